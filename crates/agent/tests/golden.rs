//! A log of the newest format, line by line, as it was when the format was made: it must be read,
//! fold, and be what the machine still writes. Logs of format 1 are golden files of the store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice
)]

mod stage;

use std::sync::Arc;

use plimsoll_agent::{Entry, Leave, Setup, State};
use plimsoll_context::{Chars4, Edit, Message, Pinned, Recall, Seq};
use stage::{Stage, good_summary, overflow, summarizing};

const GOLDEN: &str = include_str!("golden/v2.jsonl");

/// A session with a pin, a summary by a model, one without, recall, and a refusal.
fn scene() -> Vec<Entry> {
    let mut stage = Stage::new(Setup {
        leave: Leave::Asked,
        recall: Recall::Offered,
        ..summarizing(2_000, 8_000)
    });
    stage.say("the task").text("begun");
    stage.run.pin(Seq(0), Pinned::Whole).unwrap();
    stage.say("go on");
    let mut summaries = 0;
    for n in 0..12 {
        let id = format!("c{n}");
        stage
            .calls(&[&format!("{id}:read:{{\"path\":\"src/f{n}.rs\"}}")])
            .done(&id, &stage::filler(n, 900));
        if !stage.summaries.is_empty() {
            summaries += 1;
            stage.summary(&match summaries {
                1 => good_summary("keep the old API"),
                _ => String::new(),
            });
        }
    }
    stage
        .refuse(overflow(Some(9_000), Some(4_096)))
        .text("done");
    stage.log
}

#[test]
fn the_newest_format_is_read_folds_and_is_still_written() {
    let golden: Vec<Entry> = GOLDEN
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let now: Vec<String> = scene()
        .iter()
        .map(|entry| serde_json::to_string(entry).unwrap())
        .collect();
    let state = State::fold(Arc::new(Chars4), &golden).unwrap();
    let items = state.transcript().items();
    assert!(items[0].pin.as_ref().unwrap().holds(&items[0].message));
    let summaries = items
        .iter()
        .filter(|item| matches!(*item.message, Message::Summary { .. }));
    assert_eq!(summaries.count(), 1);
    let covers = |entry: &&Entry| {
        matches!(entry, Entry::Planned { plan } if plan.recall == Recall::Offered
        && plan.edits.iter().any(|edit| matches!(edit, Edit::Summarize { .. })))
    };
    assert!(golden.iter().filter(covers).count() >= 2);
    let is = |of: fn(&Entry) -> bool| golden.iter().any(of);
    assert!(is(|entry| matches!(entry, Entry::Pinned { .. })));
    assert!(is(|entry| matches!(
        entry,
        Entry::Summarized { failure: None, .. }
    )));
    assert!(is(|entry| matches!(
        entry,
        Entry::Summarized {
            failure: Some(_),
            ..
        }
    )));
    assert!(is(|entry| matches!(entry, Entry::Learned { .. })));
    // What it writes may change with the policies; that it is read the same must not.
    let again: Vec<Entry> = now
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(again, scene());
}
