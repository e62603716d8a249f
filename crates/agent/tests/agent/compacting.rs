//! Requested plans between two runs: with and without a model's summary, vetoed, interrupted, and
//! with nothing to do. Also the report of window usage by kind.

use std::sync::Arc;

use plimsoll_agent::{
    CompactError, Contents, Decision, Entry, Event, Input, MAX_FOCUS, Now, Setup, State,
    SummaryModel,
};
use plimsoll_context::{Chars4, ContextStrategy, Reason, Tokens, Trigger};

use crate::stage::audit::{audit, whole};
use crate::stage::{self, Stage, good_summary, plan_hooks, strategy, summarizing};

/// A session of one run that read `files`, under its trigger of 40,000 and over its target.
fn session(setup: Setup, files: usize) -> Stage {
    let mut stage = Stage::new(setup);
    stage.say("Port the parser. Never touch vendor/.");
    for n in 0..files {
        let id = format!("c{n}");
        stage
            .calls(&[&format!("{id}:read:{{\"path\":\"src/f{n}.rs\"}}")])
            .done(&id, &stage::filler(n, 4_000));
    }
    stage.text("It is ported.");
    assert_eq!(stage.plans(), 0, "no plan was due");
    stage
}

fn evicting() -> Setup {
    let evict = ContextStrategy::named("evict", Some(Tokens(40_000))).unwrap();
    Setup {
        hooks: plan_hooks(),
        ..strategy(evict, None)
    }
}

fn summing_up() -> Setup {
    Setup {
        hooks: plan_hooks(),
        ..summarizing(40_000, 60_000)
    }
}

fn folded(stage: &Stage) -> Vec<plimsoll_context::Seq> {
    let state = State::fold(Arc::new(Chars4), &stage.log).unwrap();
    let items = state.transcript().items().iter();
    items.map(|item| item.seq).collect()
}

#[test]
fn a_view_under_its_trigger_is_brought_to_its_target() {
    let mut stage = session(evicting(), 36);
    let before = stage.run.tokens();
    assert!(before < Tokens(40_000), "{before}");
    let entries = stage.log.len();
    stage.run.compact(Now::default(), None).unwrap();
    stage.rest();
    assert!(!stage.run.is_running());
    let target = stage.run.window_use().target.unwrap();
    assert!(
        stage.run.tokens() <= target,
        "{} {target}",
        stage.run.tokens()
    );
    assert!(stage.summaries.is_empty() && stage.requests.len() == 37);
    let [Entry::PlanApplied { plan }] = &stage.log[entries..] else {
        panic!("{:?}", &stage.log[entries..]);
    };
    assert_eq!(plan.why, Trigger::Asked);
    assert_eq!(plan.price.unwrap().reason, Reason::Asked);
    assert_eq!(stage.leaving, 1, "the host was asked");
    assert_eq!(stage.gone.len(), 1, "and told");
    let done = stage.run.take_compaction().unwrap();
    assert_eq!(done.plan, *plan);
    assert_eq!(
        (done.tokens_before, done.tokens_after),
        (before, stage.run.tokens())
    );
    assert!(done.messages_after <= done.messages_before);
    assert_eq!(stage.run.take_compaction(), None, "it is told once");
    let seqs: Vec<_> = stage
        .run
        .state()
        .transcript()
        .items()
        .iter()
        .map(|item| item.seq)
        .collect();
    assert_eq!(folded(&stage), seqs);
    // Asked again, there is nothing to compact, and nothing is recorded.
    let entries = stage.log.len();
    stage.run.compact(Now::default(), None).unwrap();
    stage.rest();
    assert!(!stage.run.is_running());
    assert_eq!(stage.log.len(), entries);
    stage.say("And the tests?");
    stage.text("They pass.");
    audit(&stage);
}

#[test]
fn the_focus_goes_into_what_the_summariser_is_told() {
    let mut stage = session(summing_up(), 36);
    stage
        .run
        .compact(Now::default(), Some("  the names of the files  "))
        .unwrap();
    stage.rest();
    assert!(stage.run.is_running(), "it waits for the summary");
    let request = stage.summaries[0].clone();
    assert!(request.system.starts_with(SummaryModel::PROMPT.trim_end()));
    assert!(
        request
            .system
            .ends_with("above all: the names of the files")
    );
    stage.summary(&good_summary("src/f1.rs was read"));
    assert!(!stage.run.is_running());
    assert_eq!(stage.plans(), 1);
    let items = stage.run.state().transcript().items();
    assert!(
        items
            .iter()
            .any(|item| item.message.text().contains("src/f1.rs was read"))
    );
    stage.say("And the tests?");
    stage.text("They pass.");
    assert_eq!(stage.seen_summaries().len(), 1);
    audit(&stage);
}

#[test]
fn a_summary_that_fails_leaves_a_plan_without_one() {
    let mut stage = session(summing_up(), 36);
    stage.run.compact(Now::default(), None).unwrap();
    stage.rest();
    stage.summary("");
    assert!(!stage.run.is_running());
    assert_eq!(stage.plans(), 1);
    assert!(stage.summaries_ended()[0].1.is_some());
    whole(&stage);
}

#[test]
fn with_nothing_to_do_no_model_is_asked() {
    for setup in [summing_up(), evicting()] {
        let mut stage = session(setup, 3);
        let entries = stage.log.len();
        stage
            .run
            .compact(Now::default(), Some("everything"))
            .unwrap();
        stage.rest();
        assert!(!stage.run.is_running());
        assert_eq!(stage.log.len(), entries);
        assert!(stage.summaries.is_empty() && stage.leaving == 0);
    }
    let mut empty = Stage::new(summing_up());
    empty.run.compact(Now::default(), None).unwrap();
    empty.rest();
    assert!(empty.log.is_empty() && !empty.run.is_running());
}

#[test]
fn the_host_can_refuse_it() {
    let mut stage = session(evicting(), 36);
    let before = stage.run.tokens();
    stage.verdict = Decision::No {
        why: "not now".into(),
    };
    stage.run.compact(Now::default(), None).unwrap();
    stage.rest();
    assert!(!stage.run.is_running());
    assert_eq!((stage.run.tokens(), stage.plans()), (before, 0));
    assert!(stage.warnings().iter().any(|text| text.contains("not now")));
    stage.verdict = Decision::Go;
    stage.run.compact(Now::default(), None).unwrap();
    stage.rest();
    assert_eq!(stage.plans(), 1);
    stage.say("And the tests?");
    stage.text("They pass.");
    whole(&stage);
}

#[test]
fn it_can_be_interrupted_and_what_the_summary_used_is_counted() {
    let mut stage = session(summing_up(), 36);
    let before = stage.run.tokens();
    stage.run.compact(Now::default(), None).unwrap();
    stage.rest();
    let aborts = stage.aborts;
    stage.tell(Input::Interrupt);
    assert!(!stage.run.is_running());
    assert_eq!(stage.aborts, aborts + 1);
    assert_eq!((stage.run.tokens(), stage.plans()), (before, 0));
    assert!(matches!(
        stage.log.last(),
        Some(Entry::Summarized {
            failure: Some(_),
            ..
        })
    ));
    assert_eq!(
        stage.outcomes.len(),
        1,
        "it is no run, so it has no outcome"
    );
    whole(&stage);
}

#[test]
fn a_run_under_way_and_a_focus_of_a_whole_page_are_refused() {
    let mut stage = Stage::new(summing_up());
    stage.say("Hi.");
    assert_eq!(
        stage.run.compact(Now::default(), None),
        Err(CompactError::Running)
    );
    stage.text("Hello.");
    let long = "x".repeat(MAX_FOCUS + 1);
    assert_eq!(
        stage.run.compact(Now::default(), Some(&long)),
        Err(CompactError::Focus {
            bytes: MAX_FOCUS + 1
        })
    );
    assert!(!stage.run.is_running());
}

#[test]
fn a_run_can_be_undone_over_a_plan() {
    let mut stage = session(evicting(), 36);
    let before = stage.run.tokens();
    stage.say("And the tests?");
    stage.text("They pass.");
    stage.run.compact(Now::default(), None).unwrap();
    stage.rest();
    assert!(stage.run.tokens() < before);
    stage.run.undo().unwrap();
    stage.rest();
    assert_eq!(
        stage.run.tokens(),
        before,
        "the view is what it was before the run"
    );
    whole(&stage);
}

#[test]
fn the_window_adds_up() {
    let mut stage = session(evicting(), 5);
    stage.run.pin_text("Never touch vendor/.").unwrap();
    stage.rest();
    let window = stage.run.window_use();
    let view = &window.view;
    assert_eq!(view.results.keys().collect::<Vec<_>>(), ["read"]);
    assert_eq!(view.all_results().messages, 5);
    assert_eq!((view.user.messages, view.pins.messages), (1, 1));
    assert_eq!(view.answers.messages, 6);
    let parts = [view.pins, view.user, view.notices, view.summaries];
    let parts = parts
        .into_iter()
        .chain([view.system, view.answers, view.all_results()]);
    let messages: Tokens = parts.map(|share| share.tokens).sum();
    let head = window.system + window.tools + window.dynamic_context;
    assert_eq!(head + messages, window.used);
    assert_eq!(window.tool_count, 3);
    assert!(window.target < window.trigger && window.trigger <= window.limit);
    assert_eq!(Contents::of(stage.run.state()), *view);
    let started = stage.events.iter().rev().find_map(|event| match event {
        Event::TurnStart { trigger, .. } => Some(*trigger),
        _ => None,
    });
    assert_eq!(started, Some(window.trigger), "as the run was told");
}
