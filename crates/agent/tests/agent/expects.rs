//! The machine's predictions about a request, and its judgement of the cache after the reply.

use plimsoll_agent::{EndReason, Entry, Event, Expects, Failure, PartialAnswer, Setup};
use plimsoll_context::{Part, PriceSheet, Rates, Tokens, Usage};

use crate::stage::audit::audit;
use crate::stage::{Stage, setup, words};

fn wide() -> Setup {
    let mut setup = setup();
    setup.line.window = Some(Tokens(100_000));
    setup
}

fn usage(input: u64, read: u64) -> Option<Usage> {
    Some(Usage {
        input: Tokens(input),
        cache_read: Tokens(read),
        output: Tokens(10),
        ..Usage::default()
    })
}

fn counted(stage: &Stage) -> u64 {
    stage.requests.last().unwrap().request.counted.0
}

fn expects(stage: &Stage) -> Expects {
    stage.requests.last().unwrap().request.expects
}

/// A session with one request answered, as `percent` of what we count, and a result of 8,000 bytes
/// behind it.
fn answered(percent: u64) -> (Stage, u64) {
    let mut stage = Stage::new(wide());
    stage.say(&"the task ".repeat(200));
    let reported = counted(&stage) * percent / 100;
    stage.reply(vec![words::call("c:read")], usage(reported, 0));
    stage.done("c", &"word ".repeat(1_600));
    (stage, reported)
}

#[test]
fn what_has_come_since_is_expected_to_be_read() {
    let mut stage = Stage::new(wide());
    stage.say("the task");
    let first = expects(&stage);
    assert_eq!((first.input, first.previous), (None, None));
    assert_eq!(first.window, Some(Tokens(100_000)));

    for percent in [60, 100, 130] {
        let (stage, reported) = answered(percent);
        let grown = counted(&stage) - counted_first(&stage);
        let said = expects(&stage);
        assert_eq!(said.previous, Some(Tokens(reported)));
        assert_eq!(said.input, Some(Tokens(reported + grown)), "{percent}");
    }

    // Another model has reported nothing yet.
    let (stage, _) = answered(100);
    let other = Setup {
        model: "test/other".into(),
        ..wide()
    };
    let mut stage = Stage::resume(stage.log.clone(), other);
    stage.say("go on");
    assert_eq!(expects(&stage).previous, None);
}

fn counted_first(stage: &Stage) -> u64 {
    stage.requests[0].request.counted.0
}

#[test]
fn a_request_that_was_cut_is_an_overflow_and_paid() {
    let (mut stage, reported) = answered(100);
    let large = counted(&stage);
    stage.now.partial_answers = vec![PartialAnswer {
        usage: usage(reported, 0),
        ..PartialAnswer::default()
    }];
    stage.refuse(Failure::Cut {
        used: Some(Tokens(large)),
        window: None,
        message: "it read too little".into(),
    });
    stage.now.partial_answers.clear();
    assert!(counted(&stage) < large);
    assert!(
        stage
            .log
            .iter()
            .any(|entry| matches!(entry, Entry::PartialReply { .. }))
    );
    stage.text("done");
    assert_eq!(stage.outcome().tokens_used.input, Tokens(2 * reported));
    assert_eq!(stage.outcome().turns, 2, "it was no turn");
    audit(&stage);
}

#[test]
fn a_server_that_cuts_whatever_it_is_sent_ends_the_run() {
    let (mut stage, _) = answered(100);
    let mut calls = 0;
    while stage.run.is_running() {
        calls += 1;
        assert!(calls < 8, "the ladder ends");
        let used = Some(Tokens(counted(&stage)));
        let message = "cut".to_owned();
        stage.refuse(Failure::Cut {
            used,
            window: None,
            message,
        });
    }
    let EndReason::Failed { failure } = &stage.outcome().reason else {
        panic!("{:?}", stage.outcome());
    };
    assert!(matches!(failure, Failure::Cut { .. }), "{failure:?}");
    audit(&stage);
}

/// Returns the number of calls that missed the cache.
fn missed(stage: &Stage) -> usize {
    let misses = stage.events.iter();
    misses
        .filter(|event| matches!(event, Event::CacheMissed { .. }))
        .count()
}

/// A run with a cache that works, about to make its third call.
fn cached(setup: Setup) -> Stage {
    let mut stage = Stage::new(setup);
    stage.say(&"the task ".repeat(2_000));
    stage.reply(vec![words::call("a:read")], usage(5_000, 0));
    stage.done("a", "ok");
    stage.reply(vec![words::call("b:read")], usage(50, 5_000));
    assert_eq!(missed(&stage), 0);
    stage.done("b", "ok");
    stage
}

#[test]
fn a_cache_that_forgets_is_missed_also_after_a_crash() {
    let mut stage = cached(wide());
    let mut next = Stage::resume(stage.log.clone(), wide());
    next.go_on();
    assert_eq!(expects(&next).previous, Some(Tokens(5_050)));
    assert_eq!(
        next.requests[0].request.cache, stage.requests[2].request.cache,
        "the same breakpoints"
    );
    for stage in [&mut stage, &mut next] {
        stage.reply(vec![words::call("c:read")], usage(5_100, 0));
        assert_eq!(missed(stage), 1);
        stage.done("c", "ok");
        stage.reply(vec![Part::text("done")], usage(5_150, 0));
        assert_eq!(missed(stage), 1, "nothing was there to be read");
    }
}

#[test]
fn a_prefix_that_the_model_does_not_cache_is_missed_by_nobody() {
    let mut sheet = PriceSheet::of(Rates::FREE);
    sheet.min_cacheable = Some(Tokens(8_192));
    let mut stage = cached(Setup {
        sheet: Some(sheet),
        ..wide()
    });
    stage.reply(vec![Part::text("done")], usage(5_100, 0));
    assert_eq!(missed(&stage), 0);
}
