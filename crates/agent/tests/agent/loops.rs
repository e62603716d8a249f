//! Loop detection: detected loops, harmless repetition, and the message to the model. Tests the
//! tracker by tables, and the machine on the stage of `stage/`.

use std::sync::Arc;

use plimsoll_agent::{
    Answer, DoomLoopTracker, EndReason, Event, ExecutionLimits, LimitKind, LoopConsequence,
    LoopVerdict, MAX_HISTORY, Repetition, Setup, ToolPhase,
};
use plimsoll_context::{CallId, Message, Part, ToolCall, ToolResult};
use proptest::prelude::*;

use crate::stage::audit::audit;
use crate::stage::{Stage, setup};

/// A batch in short: `a` a call, `a+b` two, `a:7` with an argument, `a=1` with a result, `a!1` with an
/// error, `hm|a` with a text before it.
struct Batch {
    message: Message,
    results: Vec<ToolResult>,
}

fn batch(written: &str) -> Batch {
    let (text, calls) = written.split_once('|').unwrap_or(("", written));
    let mut parts = Vec::new();
    if !text.is_empty() {
        parts.push(Part::text(text));
    }
    let mut results = Vec::new();
    for (at, written) in calls.split('+').enumerate() {
        let is_error = written.contains('!');
        let (call, result) = written.split_once(['=', '!']).unwrap_or((written, "ok"));
        let (tool, argument) = call.split_once(':').unwrap_or((call, "0"));
        let id = CallId(format!("c{at}"));
        parts.push(Part::ToolCall(ToolCall {
            id: id.clone(),
            name: tool.to_owned(),
            arguments: format!("{{\"x\":{argument}}}"),
            opaque: None,
        }));
        results.push(ToolResult {
            call: id,
            parts: vec![Part::text(result)],
            is_error,
        });
    }
    Batch {
        message: Message::Assistant { parts },
        results,
    }
}

/// What follows a batch: `.` it runs, `n` it runs and the model is told, `x` it does not run, `!` the
/// run ends.
fn follows(tracker: &mut DoomLoopTracker, most: u64, batch: &Batch) -> (char, Option<LoopVerdict>) {
    tracker.record_message(&batch.message);
    let looping = tracker.looping(most);
    let runs = match looping.map(|looping| looping.consequence) {
        Some(LoopConsequence::Stopped) => return ('!', looping),
        Some(LoopConsequence::Refused) => false,
        Some(LoopConsequence::Told) | None => true,
    };
    tracker.answered(batch.results.iter().map(|result| runs.then_some(result)));
    match (runs, tracker.looping(most)) {
        (false, _) => ('x', looping),
        (true, looping @ Some(_)) => ('n', looping),
        (true, looping) => ('.', looping),
    }
}

fn play(most: u64, script: &str) -> String {
    let mut tracker = DoomLoopTracker::default();
    let mut played = String::new();
    for written in script.split_whitespace() {
        let (letter, _) = follows(&mut tracker, most, &batch(written));
        played.push(letter);
        if letter == '!' {
            break;
        }
    }
    played
}

/// H6, R20, S23.
#[test]
fn what_is_caught_and_when() {
    for (most, script, expected) in [
        // The same batch in a row: told after one less, not run twice, ended.
        (3, "a a a a a", ".nxx!"),
        (4, "a a a a a a", "..nxx!"),
        (2, "a a a a", ".xx!"),
        (1, "a a a a", ".xx!"),
        (3, "a+b b+a a+b b+a a+b", ".nxx!"),
        (3, "a+a a a+a a a", ".nxx!"),
        // Anything else begins anew.
        (3, "a a b a a b:1 a a", ".n..n..n"),
        (3, "a a a c a a a a a", ".nx..nxx!"),
        (3, "a a+b a a+c a a+d", "......"),
        (3, "a:1 a:2 a:3 a:4 a:5 a:6 a:7", "......."),
        // A result that changes is news, until it stays.
        (3, "a=1 a=2 a=3 a=4 a=5 a=6", "......"),
        (3, "a=1 a=2 a=1 a=2 a=1 a=2 a=1 a=2", "........"),
        (3, "a=1 a=2 a=3 a=3 a=3", "...nx"),
        (3, "a=1 a!1 a=1 a!1 a=1 a!1 a=1", "......."),
        // Round and round: told after two rounds, the third does not begin.
        (3, "a b a b a b a", "...nxx!"),
        (9, "a b a b a b a", "...nxx!"),
        (3, "a b c a b c a b c", ".....nxx!"),
        (3, "a b c d a b c d a b c", ".......nxx!"),
        (3, "a b c d e a b c d e a b c", ".........nxx!"),
        (9, "a a b a a b a a b", ".....nxx!"),
        (9, "a a a b a a a b a a a", ".......nxx!"),
        (
            3,
            "a b c d e f a b c d e f a b c d e f",
            "..................",
        ),
        (3, "a b a b c a b a b a", "...n....nx"),
        // So is a round whose results change.
        (3, "a=1 b a=2 b a=3 b a=4 b a=5 b", ".........."),
        (3, "a=1 b a=2 b a=1 b a=2 b a=1 b a=2 b", "............"),
        (3, "a=1 b c a=2 b c a=3 b c a=4 b c", "............"),
        (3, "a=1 b a=2 b a=2 b a b", "....nxx!"),
        // Reads between edits of a file are no round: each edit is another call.
        (
            3,
            "w:1 t!f w:2 t!f w:3 t!f w:4 t!f w:5 t!f w:6 t!f",
            "............",
        ),
        // Other arguments are other calls, even if the error is the same.
        (
            3,
            "a:1!e a:2!e a:3!e a:4!e a:5!e a:6!e a:7!e a:8!e",
            "........",
        ),
        // A text with the calls does not matter.
        (3, "hm|a:1 hm|a:2 hm|a:3 hm|a:4 hm|a:5 hm|a:6", "......"),
    ] {
        assert_eq!(play(most, script), expected, "{most}: {script}");
    }
}

#[test]
fn it_says_what_is_repeated_and_how_often() {
    let last = |most, script: &str| {
        let mut tracker = DoomLoopTracker::default();
        let batches = script.split_whitespace();
        let ends = batches.map(|written| follows(&mut tracker, most, &batch(written)).1);
        ends.last().unwrap().unwrap()
    };
    let period = |length| Repetition::Period { length };
    let identical = Repetition::Identical;
    for (script, consequence, kind, times) in [
        ("a a", LoopConsequence::Told, identical, 2),
        ("a a a", LoopConsequence::Refused, identical, 3),
        ("a a a a a", LoopConsequence::Stopped, identical, 5),
        ("a b a b", LoopConsequence::Told, period(2), 4),
        ("a b a b a b a", LoopConsequence::Stopped, period(2), 7),
        ("a b c a b c a", LoopConsequence::Refused, period(3), 7),
        (
            "h|a!e h|a!e h|a!e h|a!e h|a!e",
            LoopConsequence::Stopped,
            identical,
            5,
        ),
    ] {
        let looping = LoopVerdict {
            kind,
            consequence,
            times,
        };
        assert_eq!(last(3, script), looping, "{script}");
    }
}

#[test]
fn a_history_that_is_too_short_is_a_fault() {
    for (identical, history, good) in [
        (None, 10, true),
        (None, 9, false),
        (None, 0, false),
        (Some(3), 10, true),
        (Some(3), 9, false),
        (Some(9), 10, true),
        (Some(10), 10, false),
        (Some(10), 11, true),
        (Some(50), 50, false),
        (Some(50), MAX_HISTORY, true),
        (Some(50), MAX_HISTORY + 1, false),
        (Some(u64::MAX), MAX_HISTORY, false),
    ] {
        let fault = DoomLoopTracker::fault(identical, history);
        assert_eq!(fault.is_none(), good, "{identical:?} {history}: {fault:?}");
        let limits = ExecutionLimits {
            max_identical_tool_calls: identical,
            tool_call_history_size: Some(history),
            ..ExecutionLimits::default()
        };
        assert_eq!(
            limits.faults().into_iter().next().map(|fault| fault.text),
            fault,
            "{identical:?} {history}"
        );
    }
    assert_eq!(
        DoomLoopTracker::fault(Some(20), 10).unwrap(),
        "tool_call_history_size is 10; choose 21 to 10000, one more than max_identical_tool_calls at least"
    );
    assert_eq!(
        DoomLoopTracker::fault(None, 4).unwrap(),
        "tool_call_history_size is 4; choose 10 to 10000"
    );
}

/// G2: two rounds of a cycle have to be remembered, so a longer history finds longer cycles.
#[test]
fn a_longer_history_finds_longer_cycles() {
    for (history, period, found) in [
        (None, 5, true),
        (None, 6, false),
        (Some(10), 5, true),
        (Some(10), 6, false),
        (Some(12), 6, true),
        (Some(100), 50, true),
        (Some(100), 51, false),
        (Some(MAX_HISTORY), 300, true),
    ] {
        let limits = ExecutionLimits {
            max_identical_tool_calls: history.map_or(Some(4), |_| None),
            tool_call_history_size: history,
            ..ExecutionLimits::turns(2_000)
        };
        assert_eq!(limits.identical_tool_calls(), Some(4));
        let mut stage = Stage::new(Setup {
            limits: Arc::new(limits),
            ..setup()
        });
        stage.say("go");
        let mut n = 0;
        while stage.calling && n < 4 * period {
            let call = format!("read:{{\"path\":\"{}\"}}", n % period);
            turn(&mut stage, n, &call, "the same");
            n += 1;
        }
        assert_eq!(stage.outcomes.len() == 1, found, "{history:?} {period}");
        if found {
            let length = period as u64;
            let kind = Repetition::Period { length };
            assert!(
                matches!(stage.outcome().reason, EndReason::DoomLoop { kind: of, .. } if of == kind),
                "{:?}",
                stage.outcome().reason
            );
        }
    }
}

/// G2, S23.
#[test]
fn ten_thousand_batches_keep_no_more_than_the_history() {
    for history in [10, 64] {
        let mut tracker = DoomLoopTracker::new(history);
        for n in 0..10_000 {
            let (letter, _) = follows(&mut tracker, 3, &batch(&format!("w:{n}")));
            assert_eq!(letter, '.');
            assert!(tracker.remembered() <= history);
        }
        assert_eq!(
            (tracker.remembered(), tracker.history()),
            (history, history)
        );
        tracker.forget();
        assert_eq!((tracker.remembered(), tracker.history()), (0, history));
    }
}

proptest! {
    /// R20: distinct writes that succeed are work, whatever is said with them.
    #[test]
    fn distinct_writes_never_trip(
        writes in prop::collection::hash_set(0_u32..10_000, 1..60),
        most in 1_u64..5,
        text in prop_oneof![Just("next|"), Just("")],
    ) {
        let mut tracker = DoomLoopTracker::default();
        for n in writes {
            let (letter, _) = follows(&mut tracker, most, &batch(&format!("{text}w:{n}=ok")));
            prop_assert_eq!(letter, '.');
        }
    }

    /// Whatever is polled in whatever round: as long as each result is another, it runs.
    #[test]
    fn polling_never_trips(
        round in prop::collection::vec(0_u8..4, 1..7),
        most in 3_u64..5,
        turns in 1_usize..60,
    ) {
        let mut tracker = DoomLoopTracker::default();
        for (turn, tool) in round.iter().cycle().take(turns).enumerate() {
            let (letter, _) = follows(&mut tracker, most, &batch(&format!("t{tool}={turn}")));
            prop_assert_eq!(letter, '.');
        }
    }

    /// Whatever round of whatever length up to five: the run ends, and not before its third round.
    #[test]
    fn every_short_round_ends(round in prop::collection::vec(0_u8..3, 2..6)) {
        let mut tracker = DoomLoopTracker::default();
        let mut run = 0;
        for (turn, tool) in round.iter().cycle().enumerate().take(60) {
            match follows(&mut tracker, 3, &batch(&format!("t{tool}"))).0 {
                '.' | 'n' => run = turn + 1,
                'x' => {}
                _ => return Ok(()),
            }
        }
        prop_assert!(false, "no end after {run} batches ran");
    }

    #[test]
    fn nothing_breaks_it(script in "([ab]:[12]([=!][12])? ){0,40}", most in 0_u64..5) {
        play(most, &script);
    }
}

fn looping(most: u64) -> Setup {
    let mut setup = setup();
    Arc::make_mut(&mut setup.limits).max_identical_tool_calls = Some(most);
    setup
}

/// Asks for one call and, if it runs, gives its result.
fn turn(stage: &mut Stage, n: usize, call: &str, result: &str) -> bool {
    let id = format!("c{n}");
    stage.calls(&[&format!("{id}:{call}")]);
    if !stage.asked.is_empty() {
        stage.answer(&id, Answer::Allow);
    }
    let runs = stage.running().contains(&id.as_str());
    if runs {
        stage.done(&id, result);
    }
    runs
}

fn loops(stage: &Stage) -> Vec<(Repetition, LoopConsequence)> {
    let found = stage.events.iter().filter_map(|event| match event {
        Event::LoopDetected { kind, consequence } => Some((*kind, *consequence)),
        _ => None,
    });
    found.collect()
}

#[test]
fn two_calls_round_and_round_end_the_run() {
    let mut stage = Stage::new(looping(3));
    stage.say("go");
    for n in 0..3 {
        assert!(turn(&mut stage, n, ["read", "write"][n % 2], "same"));
    }
    assert!(!stage.last_request().contains("n ["));
    assert!(turn(&mut stage, 3, "write", "same"));
    let told = "r c3 same / n [You have made these calls before, and their results are \
                the same. Answer from what you have, or do something else.]";
    assert!(
        stage.last_request().ends_with(told),
        "{}",
        stage.last_request()
    );
    for n in [4, 5] {
        assert!(!turn(&mut stage, n, ["read", "write"][n % 2], ""));
        let refused = format!("r! c{n} not run: you have made these calls several times");
        let request = stage.last_request();
        assert!(
            request.contains(&refused) && !request.ends_with("]"),
            "{request}"
        );
    }
    turn(&mut stage, 6, "read", "");
    let outcome = stage.outcome();
    let kind = Repetition::Period { length: 2 };
    assert_eq!(outcome.reason, EndReason::DoomLoop { times: 7, kind });
    assert_eq!(
        outcome.text,
        "[Agent stopped: The model repeated the same tool calls, 7 messages in a row; the work is \
         not done]"
    );
    assert_eq!(stage.executed.len(), 4);
    assert_eq!(
        loops(&stage),
        [
            (kind, LoopConsequence::Told),
            (kind, LoopConsequence::Refused),
            (kind, LoopConsequence::Refused),
            (kind, LoopConsequence::Stopped),
        ]
    );
    audit(&stage);
}

#[test]
fn a_round_whose_results_change_goes_on() {
    let mut stage = Stage::new(looping(2));
    stage.say("wait for it");
    for n in 0..30 {
        assert!(turn(
            &mut stage,
            n,
            ["read", "write"][n % 2],
            &format!("{n} %")
        ));
    }
    stage.text("there");
    assert_eq!((loops(&stage), stage.outcome().tool_calls), (vec![], 30));
    audit(&stage);
}

/// R20: the first of them runs; the other has its result right behind it.
#[test]
fn the_same_call_twice_in_one_message_runs_once() {
    let twice = [
        "a:read:{\"x\":1,\"y\":2}",
        "b:write",
        "c:read:{\"y\":2, \"x\":1}",
    ];
    let mut stage = Stage::new(looping(3));
    stage.say("go").calls(&twice);
    assert_eq!(stage.running(), ["a", "b"]);
    stage.done("b", "2").done("a", "1");
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b,c] / r a 1 / r b 2 / r! c not run: the same call stands in this message \
         already; its result is above"
    );
    stage.text("done");
    assert_eq!(stage.outcome().tool_calls, 2);
    audit(&stage);
    // Where nobody asked for it, calls are not compared.
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&twice);
    assert_eq!(stage.running(), ["a", "b", "c"]);
    stage.finish();
    audit(&stage);
}

/// A process that dies after every turn decides no differently.
#[test]
fn a_resumed_run_decides_the_same() {
    for round in [
        vec!["read"],
        vec!["read", "write"],
        vec!["read", "write", "bash"],
    ] {
        let mut whole = Stage::new(looping(3));
        whole.say("go");
        let mut broken = Stage::new(looping(3));
        broken.say("go");
        for n in 0..round.len() * 2 + 3 {
            if !whole.run.is_running() {
                break;
            }
            let call = round[n % round.len()];
            let ran = turn(&mut whole, n, call, "same");
            assert_eq!(turn(&mut broken, n, call, "same"), ran, "{round:?} {n}");
            assert_eq!(whole.run.is_running(), broken.run.is_running());
            if broken.run.is_running() {
                assert_eq!(whole.last_request(), broken.last_request());
                broken = Stage::resume(broken.log, broken.setup);
                broken.go_on();
            }
        }
        assert_eq!(whole.outcome().reason, broken.outcome().reason);
        assert!(matches!(whole.outcome().reason, EndReason::DoomLoop { .. }));
    }
}

/// Where the run is to end anyway, that is why it ended.
#[test]
fn a_loop_in_the_last_answer_is_not_the_reason() {
    let mut setup = looping(2);
    Arc::make_mut(&mut setup.limits).max_turns = Some(4);
    let mut stage = Stage::new(setup);
    stage.say("go");
    for n in 0..4 {
        turn(&mut stage, n, "read", "same");
    }
    assert_eq!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::MaxTurns,
            used: 4,
            limit: 4
        }
    );
    let skipped = |event: &&Event| matches!(event, Event::ToolCall { phase: ToolPhase::Skipped, call, .. } if call.0 == "c3");
    assert_eq!(stage.events.iter().filter(skipped).count(), 1);
    audit(&stage);
}
