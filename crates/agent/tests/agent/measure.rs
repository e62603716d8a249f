//! Asks the provider to count a request before the first plan that relies on the local count.

use plimsoll_agent::{Entry, Input, MEASURE_FROM, Setup};
use plimsoll_context::{ContextStrategy, Tokens};

use crate::stage::audit::audit;
use crate::stage::{self, Stage, setup, strategy};

/// A window of 10,000 tokens: with a quarter of it set aside and 80 % of the rest, a plan is due at
/// about 6,000.
fn asks() -> Setup {
    Setup {
        measures: true,
        ..setup()
    }
}

/// A session whose provider reports no usage, with one result of so many characters in it.
fn grown(setup: Setup, tokens: usize) -> Stage {
    let mut stage = Stage::new(setup);
    stage.say("the task");
    stage.calls(&["a:read"]).done("a", &filled(200));
    stage.calls(&["b:read"]).done("b", &filled(tokens));
    stage
}

fn filled(tokens: usize) -> String {
    "tok ".repeat(tokens)
}

fn entries(stage: &Stage) -> Vec<(u64, u64)> {
    let measured = stage.log.iter().filter_map(|entry| match entry {
        Entry::Measured { counted, reported } => Some((counted.0, reported.0)),
        _ => None,
    });
    measured.collect()
}

/// What is sent then weighs so much by our counter.
fn sent(stage: &Stage) -> u64 {
    stage.requests.last().unwrap().request.counted.0
}

#[test]
fn nobody_is_asked_far_below_the_line_or_where_the_counter_is_calibrated() {
    let stage = grown(asks(), 1_000);
    assert!(stage.measured.is_empty(), "far below");
    let stage = grown(setup(), 4_000);
    assert!(stage.measured.is_empty(), "not wanted");
    let mut stage = Stage::new(asks());
    stage.say("the task");
    let usage = plimsoll_context::Usage {
        input: Tokens(900),
        ..Default::default()
    };
    let call = vec![stage::words::call("a:read")];
    stage.reply(call.clone(), Some(usage));
    stage.done("a", &filled(1_000));
    // A request of a thousand tokens was reported as 900: that says enough of the next one.
    stage.reply(vec![stage::words::call("b:read")], Some(usage));
    stage.done("b", &filled(1_900));
    assert!(stage.measured.is_empty(), "calibrated");
    let unknown = Setup {
        measures: true,
        ..strategy(ContextStrategy::default(), None)
    };
    assert!(grown(unknown, 50_000).measured.is_empty(), "no line");
}

#[test]
fn a_lower_count_of_the_provider_loosens_nothing() {
    let play = |mut stage: Stage, weighs: bool| {
        stage.calls(&["c:read"]).done("c", &filled(1_500));
        if weighs {
            stage.weighs(Some(2_200));
        }
        stage
            .calls(&["d:read"])
            .done("d", &filled(1_500))
            .calls(&["e:read"])
            .done("e", &filled(1_800));
        stage
    };
    let plain = play(grown(setup(), 1_500), false);
    let stage = play(grown(asks(), 1_500), true);
    let asked = &stage.measured[0];
    assert_eq!(stage.measured.len(), 1, "once");
    assert_eq!(entries(&stage), [(asked.counted.0, 2_200)]);
    let next = &stage.requests[3].request;
    assert_eq!(asked.messages, next.messages, "as it is sent then");
    assert_eq!((&asked.system, &asked.tools), (&next.system, &next.tools));
    assert_eq!(stage.plans(), plain.plans());
    assert_eq!(sent(&stage), sent(&plain));
    audit(&stage);
    // And again from the log: the plan that follows is the same one.
    let mut again = Stage::resume(stage.log.clone(), asks());
    let one = stage.run.line();
    assert_eq!(one, again.run.line());
    assert_eq!(stage.run.room(), again.run.room());
    again.go_on();
    assert!(again.measured.is_empty(), "the log knows");
}

#[test]
fn a_count_that_is_too_low_is_found_out_before_the_provider_refuses() {
    let mut stage = grown(asks(), 1_400);
    stage.calls(&["c:read"]).done("c", &filled(1_400));
    // 3,300 by our count; the provider reads 1.9 of its tokens for each of ours.
    let counted = stage.measured[0].counted.0;
    assert!(
        Tokens(counted) >= Tokens(6_000).share(MEASURE_FROM),
        "{counted}"
    );
    stage.weighs(Some(counted * 19 / 10));
    assert!(stage.plans() == 1, "a plan is due by its count");
    assert!(sent(&stage) * 19 / 10 <= 7_500, "{}", sent(&stage));
    audit(&stage);
}

#[test]
fn who_does_not_say_is_not_asked_again_and_nothing_else_changes() {
    let mut silent = grown(asks(), 1_400);
    let mut plain = grown(setup(), 1_400);
    silent.calls(&["c:read"]).done("c", &filled(1_400));
    plain.calls(&["c:read"]).done("c", &filled(1_400));
    silent.weighs(None);
    for stage in [&mut silent, &mut plain] {
        stage.calls(&["d:read"]).done("d", &filled(1_900));
        stage
            .calls(&["e:read"])
            .done("e", &filled(1_900))
            .text("done");
    }
    assert_eq!(silent.measured.len(), 1);
    assert_eq!(silent.log, plain.log);
    audit(&silent);
}

#[test]
fn another_model_is_asked_anew() {
    let mut stage = grown(asks(), 1_500);
    stage.calls(&["c:read"]).done("c", &filled(1_500));
    stage.weighs(Some(2_300)).text("done");
    let mut again = Stage::resume(stage.log.clone(), asks());
    again.say("more");
    assert!(again.measured.is_empty(), "the same model");
    let other = Setup {
        model: "test/two".into(),
        ..asks()
    };
    let mut other = Stage::resume(stage.log.clone(), other);
    other.say("more");
    assert_eq!(other.measured.len(), 1);
    other.weighs(Some(9_000)).text("done");
    assert_eq!(other.plans(), 1, "the other one's tokens are dearer");
    audit(&other);
}

#[test]
fn an_interrupt_while_it_is_asked_ends_the_run() {
    let mut stage = grown(asks(), 1_500);
    stage.calls(&["c:read"]).done("c", &filled(1_500));
    assert!(stage.measuring);
    stage.interrupt();
    assert_eq!(stage.outcomes.len(), 1);
    stage.tell(Input::Measured(Some(Tokens(9_000))));
    assert!(entries(&stage).is_empty(), "it comes too late");
    stage.go_on();
    assert_eq!(stage.requests.len(), 4, "asked once, and then sent");
}
