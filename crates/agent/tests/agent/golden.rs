//! Logs of format 1. They must be readable and fold, and newly written entries must be read back
//! unchanged. Once released, these files are never rewritten: a new kind of entry gets a new file.
//! A log with each kind of message, part and end is a golden file of the store.

use std::sync::Arc;

use plimsoll_agent::{AtLimit, Entry, ExecutionLimits, Input, Setup, Spend, State, UserMessage};
use plimsoll_context::{
    CallId, Chars4, Edit, Message, Money, Part, PriceSheet, Rates, Recall, Seq, Tokens, ToolResult,
    Usage,
};

use crate::stage::{
    self, Stage, good_summary, overflow, plan_hooks, read_log, setup, summarizing, words,
};

const PLANS: &str = include_str!("../golden/plans.jsonl");
const LIMITS: &str = include_str!("../golden/limits.jsonl");
const KEYS: &str = include_str!("../golden/keys.jsonl");

/// A session with a pin, a summary by a model, one without, recall, and a refusal.
fn plans() -> Vec<Entry> {
    let mut stage = Stage::new(Setup {
        hooks: plan_hooks(),
        recall: Recall::Offered,
        ..summarizing(2_000, 8_000)
    });
    stage.say("the task").text("begun");
    stage.run.pin(Seq(0)).unwrap();
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
fn a_log_with_pins_summaries_and_plans_is_read_and_folds() {
    let golden = read_log(PLANS);
    let now: Vec<String> = plans()
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
        matches!(entry, Entry::PlanApplied { plan } if plan.recall == Recall::Offered
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
    assert!(is(|entry| matches!(entry, Entry::WindowLearned { .. })));
    // What it writes may change with the policies; that it is read the same must not.
    let again: Vec<Entry> = now
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(again, plans());
}

/// A session with limits that are near and reached, prices, usage of a tool, queued and undelivered
/// messages, a run that was rolled back, and one that was undone. The golden log has a fork and
/// branches besides.
fn limits() -> Vec<Entry> {
    let rates = Rates {
        input: Money(1_000_000_000),
        ..Rates::FREE
    };
    let limits = ExecutionLimits {
        max_tool_calls: Some(12),
        at_limit: Some(AtLimit::Rollback),
        ..ExecutionLimits::turns(10)
    };
    let mut stage = Stage::new(Setup {
        sheet: Some(PriceSheet::of(rates)),
        limits: Arc::new(limits),
        config_id: "golden".into(),
        ..setup()
    });
    let used = Usage {
        input: Tokens(100),
        output: Tokens(10),
        ..Usage::default()
    };
    let usage = Some(used);
    stage
        .say("the task")
        .reply(vec![Part::text("begun")], usage);
    stage.say("work on");
    stage.tell(Input::FollowUp(vec![Part::text("and then rest")].into()));
    stage
        .reply(vec![words::call("a:read")], usage)
        .say("faster");
    stage.running.clear();
    stage.tell(Input::ToolDone {
        result: ToolResult {
            call: CallId("a".into()),
            parts: vec![Part::text("the child says 42")],
            is_error: false,
        },
        spent: Spend {
            usage: used,
            turns: 1,
            ..Spend::default()
        },
    });
    for n in 0..9 {
        let id = format!("c{n}");
        stage.reply(
            vec![words::call(&format!("{id}:read:{{\"n\":{n}}}"))],
            usage,
        );
        if stage.outcomes.len() == 1 {
            stage.done(&id, "found");
        }
    }
    stage.say("again").reply(vec![Part::text("fine")], usage);
    stage.run.undo().unwrap();
    stage.rest();
    stage.log
}

#[test]
fn a_log_with_limits_prices_and_queued_messages_is_read_and_folds() {
    let golden = read_log(LIMITS);
    let state = State::fold(Arc::new(Chars4), &golden).unwrap();
    let texts: Vec<String> = state
        .transcript()
        .items()
        .iter()
        .map(|item| item.message.text())
        .collect();
    assert_eq!(texts, ["the task", "begun"], "both later runs are undone");
    assert!(state.cost().known > Money(0));
    let is = |of: fn(&Entry) -> bool| assert!(golden.iter().any(of));
    is(
        |entry| matches!(entry, Entry::RunStarted { config: Some(config), .. } if config.config_id == "golden"),
    );
    is(|entry| matches!(entry, Entry::Queued { .. }));
    is(|entry| {
        matches!(
            entry,
            Entry::Message {
                queued: Some(_),
                ..
            }
        )
    });
    is(|entry| matches!(entry, Entry::Undelivered { .. }));
    is(|entry| matches!(entry, Entry::Warned { .. }));
    is(|entry| matches!(entry, Entry::Reply { cost: Some(_), .. }));
    is(|entry| matches!(entry, Entry::ToolResult { spent, .. } if !spent.is_nothing()));
    is(|entry| matches!(entry, Entry::RolledBack { .. }));
    is(|entry| matches!(entry, Entry::Forked { .. }));
    is(|entry| matches!(entry, Entry::Branched { .. }));
    let now = limits();
    let json: Vec<String> = now
        .iter()
        .map(|entry| serde_json::to_string(entry).unwrap())
        .collect();
    assert_eq!(read_log(&json.join("\n")), now);
    // Every kind of line that the machine writes here is in the golden log too.
    for entry in &now {
        assert!(
            golden
                .iter()
                .any(|golden| std::mem::discriminant(golden) == std::mem::discriminant(entry)),
            "{entry:?}"
        );
    }
}

#[test]
fn a_log_with_keys_of_requests_is_read_and_folds() {
    let golden = read_log(KEYS);
    let mut stage = Stage::new(setup());
    let keyed = |text: &str, key: &str| UserMessage {
        parts: vec![Part::text(text)],
        key: Some(key.to_owned()),
    };
    stage.tell(Input::User(keyed("the task", "r1")));
    stage.tell(Input::FollowUp(keyed("and then rest", "m1")));
    stage.text("begun").text("done");
    let keys = |log: &[Entry]| -> Vec<String> {
        let keys = log.iter().filter_map(|entry| match entry {
            Entry::Accepted { key } => Some(key.clone()),
            _ => None,
        });
        keys.collect()
    };
    assert_eq!(keys(&golden), ["r1", "m1"]);
    assert_eq!(keys(&stage.log), keys(&golden));
    let state = State::fold(Arc::new(Chars4), &golden).unwrap();
    let now = State::fold(Arc::new(Chars4), &stage.log).unwrap();
    let texts = |state: &State| -> Vec<String> {
        let items = state.transcript().items().iter();
        items.map(|item| item.message.text()).collect()
    };

    assert_eq!(texts(&state), texts(&now));
}
