//! The records of runs in a log, and forks: a run can continue from any entry of a log.

use std::sync::Arc;

use plimsoll_agent::{
    AtLimit, EndReason, Entry, LimitKind, Outcome, RunRecord, Setup, State, run_records,
};
use plimsoll_context::{Chars4, Message, Part, PriceSheet, Rates, Tokens, Usage};

use crate::stage::audit::audit;
use crate::stage::words::call;
use crate::stage::{Stage, limits, setup};

fn usage(input: u64) -> Option<Usage> {
    Some(Usage {
        input: Tokens(input),
        output: Tokens(5),
        ..Usage::default()
    })
}

fn named(config: &str) -> Setup {
    Setup {
        config_id: config.to_owned(),
        sheet: Some(PriceSheet::of(Rates::FREE)),
        ..setup()
    }
}

fn outcomes(log: &[Entry]) -> Vec<&Outcome> {
    let ended = log.iter().filter_map(|entry| match entry {
        Entry::RunEnded { outcome } => Some(outcome),
        _ => None,
    });
    ended.collect()
}

fn ids(records: &[RunRecord]) -> Vec<String> {
    records.iter().map(|record| record.id.clone()).collect()
}

fn prompts(records: &[RunRecord]) -> Vec<Option<String>> {
    let prompt = |record: &RunRecord| record.prompt.as_ref().map(|message| message.text());
    records.iter().map(prompt).collect()
}

/// One run with a tool, one of two calls of which one has its result.
fn two_runs() -> Stage {
    let mut stage = Stage::new(named("a.b"));
    stage
        .say("look")
        .reply(vec![call("c1:read")], usage(100))
        .done("c1", "found")
        .reply(vec![Part::text("it says found")], usage(120));
    stage
        .say("twice")
        .reply(vec![call("c2:read"), call("c3:write")], usage(140))
        .done("c2", "one");
    stage
}

#[test]
fn a_record_says_of_a_run_what_its_outcome_says() {
    let mut stage = two_runs();
    stage
        .done("c3", "two")
        .reply(vec![Part::text("done twice")], usage(200));
    let records = run_records("s.1", &stage.log);
    assert_eq!(ids(&records), ["s%2E1.a%2Eb.1", "s%2E1.a%2Eb.2"]);
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(prompts(&records), [said("look"), said("twice")]);
    for (record, outcome) in records.iter().zip(outcomes(&stage.log)) {
        assert_eq!(record.outcome.as_ref(), Some(&outcome.reason));
        assert_eq!(record.usage, outcome.tokens_used);
        assert_eq!(record.cost, outcome.cost);
        assert_eq!(
            (record.turns, record.tool_calls),
            (outcome.turns, outcome.tool_calls)
        );
        assert_eq!(record.config.model, "test/one");
        assert_eq!(record.config.max_parallel_tools, 3);
        assert!(!record.config.policy.is_empty());
        assert!(!record.rolled_back && record.continued.is_empty());
    }
    assert!(records[0].usage.input > Tokens(200));
    // Every entry but those before the first run is of exactly one.
    assert_eq!(records[0].first, 2);
    assert_eq!(records[1].first, records[0].last + 1);
    assert_eq!(records[1].last, stage.log.len() as u64);
    let prompt = records[0].prompt.as_ref().unwrap();
    let is_it = |entry: &Entry| matches!(entry, Entry::Message { message, .. } if Arc::ptr_eq(message, prompt));
    assert!(stage.log.iter().any(is_it), "the log's own, not a copy");
}

#[test]
fn what_is_undone_is_marked_and_the_record_stays() {
    let mut stage = Stage::new(limits(1, None, AtLimit::Rollback));
    stage.say("one").text("fine");
    stage.say("two").calls(&["c1:read"]);
    assert!(matches!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::MaxTurns,
            ..
        }
    ));
    stage.say("three").text("fine");
    let marked = |stage: &Stage| -> Vec<bool> {
        let records = run_records("s", &stage.log);
        records.iter().map(|record| record.rolled_back).collect()
    };
    assert_eq!(marked(&stage), [false, true, false]);
    assert_eq!(stage.run.undo().unwrap(), 3);
    stage.rest();
    assert_eq!(marked(&stage), [false, true, true]);
    assert_eq!(stage.run.undo().unwrap(), 1);
    stage.rest();
    assert_eq!(marked(&stage), [true, true, true]);
    let records = run_records("s", &stage.log);
    assert_eq!(records[2].outcome, Some(EndReason::Answered));
    assert!(records[1].last < records[2].first);
    let undone = Entry::RolledBack { run: 1 };
    assert_eq!(stage.log.last(), Some(&undone));
    assert!(records[2].last < stage.log.len() as u64, "it is of no run");
}

#[test]
fn a_run_that_was_cut_off_is_one_run_and_says_where_it_went_on() {
    let before = two_runs();
    let log = before.log.clone();
    let cut = run_records("s", &log);
    assert_eq!(cut[1].outcome, None);
    assert_eq!(cut[1].last, log.len() as u64);
    let mut stage = Stage::resume(log.clone(), named("other"));
    stage.go_on();
    stage.finish();
    let records = run_records("s", &stage.log);
    assert_eq!(records.len(), 2);
    let went_on = &records[1];
    assert_eq!(went_on.continued, [log.len() as u64 + 1]);
    assert_eq!(
        (went_on.first, went_on.id.clone()),
        (cut[1].first, cut[1].id.clone())
    );
    assert_eq!(prompts(&records)[1].as_deref(), Some("twice"));
    assert_eq!(went_on.outcome, Some(EndReason::Answered));
    let outcome = stage.outcome();
    assert_eq!(
        went_on.usage,
        outcome.tokens_used.combine(outcome.estimated)
    );
    assert_eq!(went_on.turns, stage.outcome().turns);
}

#[test]
fn a_run_that_was_cut_off_and_undone_is_not_gone_on_with() {
    let before = two_runs();
    let is_end = |entry: &Entry| matches!(entry, Entry::RunEnded { .. });
    let first = before.log.iter().position(is_end).unwrap();
    let mut stage = Stage::resume(before.log.clone(), setup());
    assert_eq!(stage.run.undo().unwrap(), 2);
    stage.rest();
    assert_eq!(view(&stage.log), view(&before.log[..=first]));
    stage.go_on();
    stage.finish();
    audit(&stage);
    let records = run_records("s", &stage.log);
    assert_eq!(records.len(), 3);
    assert!(records[1].rolled_back && records[1].continued.is_empty());
    assert!(!records[2].rolled_back);
    assert_eq!(records[2].run, 3);
}

/// The log of a fork, as a host makes it.
fn fork(log: &[Entry], from: &str) -> Vec<Entry> {
    let mut fork = log.to_vec();
    fork.push(Entry::Forked {
        from: from.to_owned(),
        entries: log.len() as u64,
    });
    fork
}

fn fold(log: &[Entry]) -> State {
    State::fold(Arc::new(Chars4), log).unwrap()
}

fn view(log: &[Entry]) -> Vec<Arc<Message>> {
    let state = fold(log);
    let items = state.transcript().items().iter();
    items.map(|item| Arc::clone(&item.message)).collect()
}

#[test]
fn a_log_can_be_forked_at_any_entry_and_gone_on_from() {
    let mut whole = two_runs();
    whole.say("and then?");
    whole.finish();
    for at in 1..=whole.log.len() {
        let log = fork(&whole.log[..at], "s");
        assert_eq!(view(&log), view(&whole.log[..at]), "the same view at {at}");
        for says in [true, false] {
            let mut stage = Stage::resume(log.clone(), named("other"));
            if says {
                stage.say("something else")
            } else {
                stage.go_on()
            };
            stage.finish();
            audit(&stage);
            let seen = view(&stage.log);
            let before = view(&log);
            assert_eq!(seen[..before.len()], before, "nothing of it has changed");
            // What had run in the parent has not run again, unless that does no harm.
            let again = stage.executed.iter().filter(|call| call.name == "write");
            let began = whole.log[..at].iter();
            let began = began
                .filter(|entry| matches!(entry, Entry::ToolStarted { call } if call.0 == "c3"));
            assert!(again.count() + began.count() <= 1, "at {at}");
            let records = run_records("f", &stage.log);
            let parents = run_records("s", &whole.log[..at]);
            let (shared, own) = records.split_at(parents.len());
            assert_eq!(shared, parents, "what is shared is the parent's, at {at}");
            assert_eq!(own.len(), 1);
            let n = parents.len() as u64 + 1;
            assert_eq!(own[0].id, format!("f.other.{n}"));
            assert!(own[0].continued.is_empty());
        }
    }
}

#[test]
fn a_fork_of_a_fork_tells_the_runs_of_all_three_apart() {
    let mut log = Vec::new();
    for (session, from) in [("a", None), ("b", Some("a")), ("c", Some("b"))] {
        if let Some(from) = from {
            log = fork(&log, from);
        }
        let mut stage = Stage::resume(log, setup());
        stage.say(session).text("yes");
        log = stage.log;
    }
    let records = run_records("c", &log);
    assert_eq!(ids(&records), ["a.default.1", "b.default.2", "c.default.3"]);
}

#[test]
fn a_log_without_configurations_has_records_too() {
    let text = r#"[
        {"entry": "opened", "format": 1},
        {"entry": "run_started", "run": 1, "model": "test/one", "system": "", "tools": []},
        {"entry": "message", "message": {"role": "user", "parts": [{"type": "text", "text": "hi"}]}}
    ]"#;
    let log: Vec<Entry> = serde_json::from_str(text).unwrap();
    let records = run_records("s", log);
    assert_eq!(ids(&records), ["s.default.1"]);
    assert_eq!(records[0].config.model, "test/one");
    assert_eq!((records[0].first, records[0].last), (2, 3));
    let text = serde_json::to_string(&records).unwrap();
    assert_eq!(
        serde_json::from_str::<Vec<RunRecord>>(&text).unwrap(),
        records
    );
}
