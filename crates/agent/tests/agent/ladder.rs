//! The steps after a provider refuses a request as too long.

use plimsoll_agent::{EndReason, Entry, Event, Failure, Setup};
use plimsoll_context::{ContextStrategy, Message, Ppm, Tokens};

use crate::stage::audit::audit;
use crate::stage::{self, Stage, overflow, setup, strategy};

/// More attempts than any turn has.
const ATTEMPTS: usize = 8;

/// A session of `turns` tool turns whose results have `bytes`, with the next request out.
fn worked(setup: Setup, turns: usize, bytes: usize) -> Stage {
    let mut stage = Stage::new(setup);
    stage.say("the task");
    for n in 0..turns {
        let id = format!("c{n}");
        stage
            .calls(&[&format!("{id}:read")])
            .done(&id, &"word ".repeat(bytes / 5));
    }
    stage
}

fn unknown() -> Setup {
    strategy(ContextStrategy::default(), None)
}

fn counted(stage: &Stage) -> u64 {
    stage.requests.last().unwrap().request.counted.0
}

fn results(stage: &Stage) -> Vec<usize> {
    let messages = &stage.requests.last().unwrap().request.messages;
    let results = messages
        .iter()
        .filter(|m| matches!(***m, Message::ToolResult(_)));
    results.map(|message| message.text().len()).collect()
}

/// R15.
#[test]
fn one_overflow_is_answered_without_a_model() {
    let mut stage = Stage::new(unknown());
    stage.say("the task");
    for (n, bytes) in [400, 60_000, 400, 400].into_iter().enumerate() {
        let id = format!("c{n}");
        stage
            .calls(&[&format!("{id}:read")])
            .done(&id, &"word ".repeat(bytes / 5));
    }
    let refused = counted(&stage);
    stage.refuse(overflow(Some(refused), Some(8_192)));
    assert_eq!(stage.requests.len(), 6, "one more, and no other call");
    assert!(counted(&stage) < 8_192);
    let results = results(&stage);
    assert_eq!(results.len(), 4, "nothing had to leave");
    assert_eq!(results[0], 400);
    assert_eq!(results[2..], [400, 400], "the newest are whole");
    assert!(results[1] < 10_000, "{results:?}");
    stage.text("done");
    assert_eq!(stage.outcome().reason, EndReason::Answered);
    assert_eq!(stage.outcome().plans, 1);
    audit(&stage);
}

/// H4: about the four newest messages stay, as far as that is enough.
#[test]
fn the_newest_two_exchanges_stay_where_they_fit() {
    let mut stage = worked(unknown(), 12, 4_000);
    let used = counted(&stage);
    stage.refuse(overflow(Some(used), Some(8_192)));
    let messages = &stage.requests.last().unwrap().request.messages;
    let calls: Vec<&str> = messages
        .iter()
        .flat_map(|message| message.calls().map(|call| call.id.0.as_str()))
        .collect();
    assert!(calls.ends_with(&["c10", "c11"]), "{calls:?}");
    stage.text("done");
    audit(&stage);
}

/// Invariant 13: what it taught is used from then on, and after a crash too.
#[test]
fn the_window_that_was_learned_is_used_from_then_on() {
    let mut stage = worked(unknown(), 12, 4_000);
    let used = counted(&stage);
    stage.refuse(overflow(Some(used), Some(8_192)));
    assert_eq!(stage.run.line().window, Some(Tokens(8_192)));
    stage.text("ok").say("more");
    for n in 20..60 {
        let id = format!("c{n}");
        stage
            .calls(&[&format!("{id}:read")])
            .done(&id, &"word ".repeat(800));
        assert!(counted(&stage) <= 8_192 - 2_048, "{}", counted(&stage));
    }
    stage.text("done");
    let overflows = stage
        .events
        .iter()
        .filter(|e| matches!(e, Event::Overflow { .. }));
    assert_eq!(overflows.count(), 1);
    let next = Stage::resume(stage.log.clone(), unknown());
    assert_eq!(next.run.line().window, Some(Tokens(8_192)));
    stage::audit::whole(&stage);
}

/// What a minute may carry is the line for this session; nobody has named a window.
#[test]
fn a_minutes_allowance_is_the_line_for_this_session_alone() {
    let mut stage = worked(
        strategy(ContextStrategy::default(), Some(128_000)),
        12,
        4_000,
    );
    let used = counted(&stage);
    stage.refuse(Failure::SoftWindow {
        used: Some(Tokens(used)),
        limit: Tokens(8_192),
        retry_after_ms: None,
        message: "Limit 8192, Requested 12000".into(),
    });
    assert!(counted(&stage) <= 8_192, "{}", counted(&stage));
    assert_eq!(stage.run.line().window, Some(Tokens(8_192)));
    let told = stage.events.iter().find_map(|event| match event {
        Event::Overflow { message, .. } => Some(message.as_str()),
        _ => None,
    });
    assert!(told.unwrap().contains("rate limit") && told.unwrap().contains("Limit 8192"));
    stage.text("ok");
    let lessons: Vec<bool> = stage
        .log
        .iter()
        .filter_map(|entry| match entry {
            Entry::WindowLearned { inferred, .. } => Some(*inferred),
            _ => None,
        })
        .collect();
    assert_eq!(lessons, [true], "other sessions do not learn it");
    audit(&stage);
    // Where the answer's share was too much, the answer is asked to be shorter.
    let mut stage = Stage::new(Setup {
        max_output: Some(Tokens(4_096)),
        ..strategy(ContextStrategy::default(), Some(128_000))
    });
    stage.say(&"word ".repeat(500));
    let sent = counted(&stage);
    stage.refuse(Failure::SoftWindow {
        used: Some(Tokens(sent)),
        limit: Tokens(4_500),
        retry_after_ms: None,
        message: "Limit 4500".into(),
    });
    let again = &stage.requests.last().unwrap().request;
    assert_eq!(again.counted, Tokens(sent), "nothing has left");
    assert!(again.max_output.unwrap() < Tokens(4_096));
    stage.text("ok");
    audit(&stage);
}

/// A window that nobody has named was guessed from a refusal. Once the right one is set, the guess is gone.
#[test]
fn a_guessed_window_gives_way_to_the_one_that_is_set_later() {
    let mut stage = worked(
        strategy(ContextStrategy::default(), Some(200_000)),
        12,
        4_000,
    );
    let refused = counted(&stage);
    stage.refuse(overflow(None, None)).text("ok");
    let guessed = stage.run.line().window;
    assert_eq!(guessed, Some(Tokens(refused)));
    let resumed = |window| {
        let setup = strategy(ContextStrategy::default(), Some(window));
        Stage::resume(stage.log.clone(), setup).run.line().window
    };
    assert_eq!(resumed(200_000), guessed);
    assert_eq!(resumed(128_000), Some(Tokens(128_000)));
    // What the provider has said holds, whatever is set.
    let mut told = worked(
        strategy(ContextStrategy::default(), Some(200_000)),
        12,
        4_000,
    );
    told.refuse(overflow(Some(refused), Some(8_192))).text("ok");
    let setup = strategy(ContextStrategy::default(), Some(128_000));
    let next = Stage::resume(told.log.clone(), setup);
    assert_eq!(next.run.line().window, Some(Tokens(8_192)));
}

/// The provider's count is believed: what we count as 6,000 it counts as 12,000.
#[test]
fn numbers_correct_the_counter() {
    let mut stage = worked(unknown(), 6, 4_000);
    let ours = counted(&stage);
    stage.refuse(overflow(Some(ours * 2), Some(8_192)));
    assert!(counted(&stage) * 2 <= 8_192, "{}", counted(&stage));
    stage.text("done");
    audit(&stage);
}

/// Without numbers the refused size itself is news: no later request is as large.
#[test]
fn an_overflow_without_numbers_teaches_its_size() {
    for known in [None, Some(200_000)] {
        let mut stage = worked(strategy(ContextStrategy::default(), known), 10, 4_000);
        let refused = counted(&stage);
        stage.refuse(overflow(None, None));
        assert!(
            counted(&stage) * 100 <= refused * 75,
            "{known:?}: a real step"
        );
        stage.text("ok").say("more");
        for n in 20..60 {
            let id = format!("c{n}");
            stage
                .calls(&[&format!("{id}:read")])
                .done(&id, &"word ".repeat(800));
            assert!(counted(&stage) < refused, "{known:?}");
        }
        stage.text("done");
        stage::audit::whole(&stage);
    }
}

/// R16: each request is strictly smaller than the refused one, and there are few.
#[test]
fn the_ladder_steps_down_and_ends_with_the_providers_error() {
    for (used, window) in [
        (None, None),
        (Some(9_000), Some(8_192)),
        (None, Some(8_192)),
    ] {
        let mut stage = worked(unknown(), 10, 4_000);
        let mut sizes = vec![counted(&stage)];
        while stage.run.is_running() {
            stage.refuse(overflow(used, window));
            if stage.run.is_running() {
                sizes.push(counted(&stage));
            }
            assert!(sizes.len() < ATTEMPTS, "{sizes:?}");
        }
        assert!(sizes.len() > 2, "{sizes:?}");
        assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]), "{sizes:?}");
        let EndReason::Failed { failure } = &stage.outcome().reason else {
            panic!("{:?}", stage.outcome());
        };
        assert_eq!(*failure, overflow(used, window), "the provider's own error");
        assert!(stage.outcome().text.contains("too long, said the provider"));
        // Nobody reached the model, and the session is whole.
        stage.say("shorter").text("ok");
        assert_eq!(stage.outcome().reason, EndReason::Answered);
        audit(&stage);
    }
}

/// R16: nothing is left to drop.
#[test]
fn with_nothing_to_give_up_the_first_refusal_ends_the_run() {
    let mut stage = Stage::new(unknown());
    stage.say("short").refuse(overflow(None, None));
    assert_eq!(stage.requests.len(), 1, "not sent again as it was");
    let failure = overflow(None, None);
    assert_eq!(stage.outcome().reason, EndReason::Failed { failure });
    stage.say("again").text("ok");
    audit(&stage);
}

/// A task that no window holds ends its run, not its session.
#[test]
fn a_refused_task_does_not_kill_the_session() {
    for setup in [unknown(), strategy(ContextStrategy::Unlimited {}, None)] {
        let mut stage = Stage::new(setup);
        stage.say(&"x".repeat(100_000));
        stage.refuse(overflow(Some(25_000), Some(4_096)));
        assert!(!stage.run.is_running());
        stage.say("then only this");
        let marked = "n [1 message was removed here] / u then only this";
        if stage.last_request() != marked {
            stage.refuse(overflow(Some(25_000), Some(4_096)));
        }
        assert_eq!(stage.last_request(), marked);
        stage.text("ok");
        assert_eq!(stage.outcome().reason, EndReason::Answered);
        audit(&stage);
    }
}

/// H1.
#[test]
fn unlimited_edits_nothing_before_a_refusal_and_recovers_then() {
    let mut stage = worked(strategy(ContextStrategy::Unlimited {}, None), 20, 40_000);
    assert!(
        !stage
            .log
            .iter()
            .any(|entry| matches!(entry, Entry::PlanApplied { .. }))
    );
    assert_eq!(results(&stage), [40_000; 20]);
    stage.refuse(overflow(Some(200_100), Some(128_000)));
    assert!(counted(&stage) < 128_000);
    stage.text("ok");
    assert_eq!(stage.outcome().reason, EndReason::Answered);
    // Nor after it: the next request simply grows, until it is refused again.
    let plans = |stage: &Stage| {
        let planned = |entry: &&Entry| matches!(entry, Entry::PlanApplied { .. });
        stage.log.iter().filter(planned).count()
    };
    let before = plans(&stage);
    stage
        .say("more")
        .calls(&["z:read"])
        .done("z", &"word ".repeat(30_000));
    assert_eq!(plans(&stage), before);
    stage.text("done");
    stage::audit::whole(&stage);
}

/// Only the answer is too long: the request stays, and less is asked for.
#[test]
fn an_output_too_large_lowers_only_the_output() {
    let too_large = |limit: Option<u64>| Failure::OutputTooLarge {
        limit: limit.map(Tokens),
        message: "max_tokens is too large".into(),
    };
    let asks = |max: Option<u64>| Setup {
        max_output: max.map(Tokens),
        ..strategy(ContextStrategy::default(), Some(100_000))
    };
    for (max, limit, then) in [
        (Some(8_000), Some(2_048), 2_048),
        (Some(8_000), None, 4_000),
        (None, Some(2_048), 2_048),
        (None, None, 2_048),
    ] {
        let mut stage = Stage::new(asks(max));
        stage.say("go");
        let before = counted(&stage);
        stage.refuse(too_large(limit));
        assert_eq!(counted(&stage), before);
        let now = stage.requests.last().unwrap().request.max_output;
        assert_eq!(now, Some(Tokens(then)), "{max:?} {limit:?}");
        stage.calls(&["a:read"]).done("a", "1");
        let now = stage.requests.last().unwrap().request.max_output;
        assert_eq!(now, Some(Tokens(then)), "for the rest of the run");
        stage.text("ok");
        audit(&stage);
    }
    // A limit that would change nothing is not tried.
    let mut stage = Stage::new(asks(Some(1_000)));
    stage.say("go").refuse(too_large(Some(4_000)));
    assert_eq!(stage.requests.len(), 1);
    audit(&stage);
    // What is asked for is bounded by the room behind the request; that is what was refused.
    let mut stage = Stage::new(Setup {
        max_output: Some(Tokens(8_000)),
        ..setup()
    });
    stage.say(&"x".repeat(20_000));
    let asked = stage.requests[0].request.max_output.unwrap();
    assert!(asked < Tokens(5_000));
    stage.refuse(too_large(Some(6_000)));
    let again = stage.requests.get(1).map(|sent| sent.request.max_output);
    assert!(
        again.is_none_or(|again| again < Some(asked)),
        "{again:?} after {asked}"
    );
    stage.finish();
    audit(&stage);
}

/// The window was taken to be larger than it is, and only the answer's share went over it: the window is
/// learned, that request is sent once more with less of an answer, and no other is refused for it.
#[test]
fn a_request_that_fits_without_its_answer_teaches_the_window() {
    for asked in [None, Some(20_000)] {
        let mut stage = Stage::new(Setup {
            max_output: asked.map(Tokens),
            ..strategy(ContextStrategy::default(), Some(24_000))
        });
        stage.say(&"word ".repeat(500));
        let sent = |stage: &Stage, at: usize| stage.requests[at].request.clone();
        let first = sent(&stage, 0);
        let used = Tokens(first.counted.0 + 100);
        stage.refuse(overflow(Some(used.0), Some(16_000)));
        let again = sent(&stage, 1);
        assert_eq!(again.counted, first.counted, "{asked:?}: nothing has left");
        let (left, asked_now) = (Tokens(16_000).minus(used), again.max_output.unwrap());
        let spare = left.minus(asked_now);
        assert!(
            asked_now <= left && spare < used.share(Ppm(50_000)),
            "{asked_now:?}"
        );
        stage.calls(&["a:read"]).done("a", &"word ".repeat(2_000));
        let next = sent(&stage, 2);
        assert_eq!(next.expects.window, Some(Tokens(16_000)));
        let room = next.expects.room.unwrap();
        assert!(room <= Tokens(16_000).minus(next.counted), "{room:?}");
        assert_eq!(next.max_output, Some(room), "{asked:?}");
        stage.text("ok");
        audit(&stage);
    }
    // Where next to nothing is left for an answer, it is the request that is too long.
    let mut stage = Stage::new(Setup {
        max_output: Some(Tokens(4_000)),
        ..strategy(ContextStrategy::default(), Some(24_000))
    });
    stage
        .say("go")
        .calls(&["a:read"])
        .done("a", &"word ".repeat(6_000));
    let (before, asked) = (counted(&stage), stage.requests.len());
    stage.refuse(overflow(Some(15_900), Some(16_000)));
    assert_eq!(stage.requests.len(), asked + 1);
    assert!(counted(&stage) < before);
    stage.text("ok");
    audit(&stage);
}

/// vLLM names the window and the answer that was asked for, and not the size of the request: by our
/// count the answer was too much, and only where that was not all of it something leaves.
#[test]
fn a_window_without_a_size_lowers_the_answer_first() {
    let mut stage = Stage::new(Setup {
        max_output: Some(Tokens(16_000)),
        ..strategy(ContextStrategy::default(), Some(100_000))
    });
    stage
        .say("the task")
        .calls(&["a:read"])
        .done("a", &"word ".repeat(2_000));
    let before = counted(&stage);
    stage.refuse(overflow(None, Some(16_000)));
    assert_eq!(counted(&stage), before, "nothing has left");
    let lowered = stage.requests.last().unwrap().request.max_output.unwrap();
    assert!(
        lowered <= Tokens(16_000).minus(Tokens(before)),
        "{lowered:?}"
    );
    assert!(lowered >= Tokens(8_000), "{lowered:?}");
    // It was more than we count.
    stage.refuse(overflow(None, Some(16_000)));
    assert!(counted(&stage) < before);
    stage.text("ok");
    audit(&stage);
    // Where nothing can leave, the answer alone is lowered, and the run goes on.
    let mut stage = Stage::new(Setup {
        max_output: Some(Tokens(32_000)),
        ..strategy(ContextStrategy::default(), Some(200_000))
    });
    stage
        .say("go")
        .refuse(overflow(None, Some(32_000)))
        .text("ok");
    assert_eq!(stage.outcome().text, "ok");
    audit(&stage);
}

/// What our count may miss is left free behind a request, but never what is set aside for the answer: a
/// window is never so full that the model is asked for a word.
#[test]
fn the_answer_always_has_what_is_set_aside_for_it() {
    for (window, asked) in [
        (200_000, None),
        (200_000, Some(4_000)),
        (1_000_000, Some(8_192)),
    ] {
        let mut stage = Stage::new(Setup {
            max_output: asked.map(Tokens),
            ..strategy(ContextStrategy::default(), Some(window))
        });
        stage.say(&"word".repeat(usize::try_from(window).unwrap() - 6_000 - 4_192));
        let sent = &stage.requests[0].request;
        let room = sent.expects.room.unwrap();
        let least = asked.unwrap_or(4_000);
        assert!((least..10_400).contains(&room.0), "{room:?} in {window}");
        assert_eq!(sent.max_output, asked.map(Tokens));
        stage.text("ok");
    }
}

/// However large the results are, no two turns in a row are compacted: in the turn after a
/// compaction only the results that have just arrived are shortened.
#[test]
fn no_two_turns_in_a_row_are_compacted() {
    const WINDOW: u64 = 4_000;
    let mut setups = vec![("unlimited", strategy(ContextStrategy::Unlimited {}, None))];
    for name in ["sliding_window", "evict", "extract"] {
        for (max_tokens, window) in [(None, Some(WINDOW)), (Some(Tokens(2_000)), None)] {
            let preset = ContextStrategy::named(name, max_tokens).unwrap();
            setups.push((name, strategy(preset, window)));
        }
    }
    for (name, setup) in setups {
        for share in [30, 90] {
            let bytes = usize::try_from(WINDOW * 4 * share / 100).unwrap();
            let mut stage = Stage::new(setup.clone());
            stage.say("the task");
            for turn in 0..12 {
                while counted(&stage) > WINDOW - 1_000 {
                    stage.refuse(overflow(Some(counted(&stage)), Some(WINDOW)));
                }
                stage.turn(turn, bytes, &mut |_| {});
            }
            let mut compacted: Vec<usize> = Vec::new();
            let mut turns = 0;
            for entry in &stage.log {
                match entry {
                    Entry::Reply { .. } => turns += 1,
                    Entry::PlanApplied { plan } if plan.is_compaction() => compacted.push(turns),
                    _ => {}
                }
            }
            assert!(compacted.len() > 2, "{name}, {share} %: {compacted:?}");
            let in_a_row = compacted.windows(2).any(|pair| pair[1] == pair[0] + 1);
            assert!(!in_a_row, "{name}, {share} %: {compacted:?}");
            audit(&stage);
        }
    }
}

/// Whatever a provider says of sizes, the machine ends.
#[test]
fn nonsense_numbers_do_no_harm() {
    for used in [None, Some(0), Some(1), Some(u64::MAX)] {
        for window in [None, Some(0), Some(1), Some(5), Some(u64::MAX)] {
            let mut stage = worked(setup(), 5, 2_000);
            for _ in 0..ATTEMPTS {
                if stage.run.is_running() {
                    stage.refuse(overflow(used, window));
                }
            }
            assert!(!stage.run.is_running(), "{used:?} {window:?}");
            stage::audit::whole(&stage);
        }
    }
}
