//! The machine, case by case, played on the stage of `stage/`: the requests to the model, the tools
//! that run, and the end of the run. Requests that are refused as too long are in `ladder.rs`.

use plimsoll_agent::{
    Answer, AtLimit, EndReason, Entry, Event, Failure, LimitKind, Repetition, Setup, ToolChoice,
    ToolPhase,
};
use plimsoll_context::{Message, Part, Ppm, Threshold, Tokens, Usage};

use crate::stage::audit::audit;
use crate::stage::{self, Stage, limits, setup, tool};

fn phases(stage: &Stage) -> Vec<(&str, ToolPhase)> {
    let phase = |event: &Event| match event {
        Event::ToolCall { call, phase, .. } => Some((call.0.clone(), *phase)),
        _ => None,
    };
    let phases = stage.events.iter().filter_map(phase);
    phases
        .map(|(id, phase)| (&*Box::leak(id.into_boxed_str()), phase))
        .collect()
}

fn warnings(stage: &Stage) -> Vec<&str> {
    let text = |event: &'_ Event| match event {
        Event::Warning { text } => Some(&*Box::leak(text.clone().into_boxed_str())),
        _ => None,
    };
    stage.events.iter().filter_map(text).collect()
}

const OVERTAKEN: &str =
    "skipped: a new message of the user arrived before this call began; read it first";

#[test]
fn a_plain_answer() {
    let mut stage = Stage::new(setup());
    stage.say("6 × 7?").text("42");
    assert_eq!(stage.requests.len(), 1);
    assert_eq!(stage.last_request(), "u 6 × 7?");
    assert_eq!(stage.outcome().text, "42");
    assert_eq!(stage.outcome().reason, EndReason::Answered);
    assert_eq!((stage.outcome().turns, stage.outcome().tool_calls), (1, 0));
    audit(&stage);
}

#[test]
fn one_tool() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["c1:read"]).done("c1", "found");
    assert_eq!(stage.last_request(), "u go / a [c1] / r c1 found");
    stage.text("it says found");
    assert_eq!(stage.outcome().tool_calls, 1);
    assert_eq!(
        phases(&stage),
        [("c1", ToolPhase::Start), ("c1", ToolPhase::Success)]
    );
    audit(&stage);
}

#[test]
fn the_next_run_sees_the_one_before() {
    let mut stage = Stage::new(setup());
    stage.say("one").text("1").say("two").text("2");
    assert_eq!(stage.last_request(), "u one / a 1 / u two");
    assert_eq!(stage.outcome().turns, 1, "counted from fresh");
    assert_eq!(stage.run.state().runs(), 2);
    audit(&stage);
}

/// S4.
#[test]
fn a_batch_runs_as_parallel_as_allowed_and_ends_in_call_order() {
    for at_once in [1, 3] {
        let mut stage = Stage::new(Setup {
            max_parallel_tools: at_once,
            ..setup()
        });
        stage
            .say("go")
            .calls(&["a:read", "b:write", "c:read", "d:read"]);
        if at_once == 1 {
            assert_eq!(stage.running(), ["a"]);
            stage
                .done("a", "1")
                .done("b", "2")
                .done("c", "3")
                .done("d", "4");
        } else {
            assert_eq!(stage.running(), ["a", "b", "c"]);
            stage.done("c", "3");
            assert_eq!(stage.running(), ["a", "b", "d"]);
            stage.done("b", "2").done("d", "4").done("a", "1");
        }
        assert_eq!(stage.at_once, at_once);
        assert_eq!(
            stage.last_request(),
            "u go / a [a,b,c,d] / r a 1 / r b 2 / r c 3 / r d 4"
        );
        stage.text("done");
        audit(&stage);
    }
}

/// A model that does not see its tools needs all of them, not those that are spelled alike.
#[test]
fn an_unknown_tool_gets_a_result_that_names_all_others() {
    for (count, more) in [(12, ""), (40, ", and 8 more")] {
        let tools = (0..count).map(|n| tool(&format!("t{n:02}"), true, false));
        let mut stage = Stage::new(Setup {
            tools: tools.collect(),
            ..setup()
        });
        stage.say("go").calls(&["a:delete"]);
        let shown = stage.seen().last().unwrap().text();
        let named = (0..count).filter(|n| shown.contains(&format!("t{n:02}")));
        assert_eq!(named.count(), count.min(32), "{shown}");
        assert!(shown.ends_with(more), "{shown}");
        stage.text("done");
        audit(&stage);
    }
}

#[test]
fn an_unknown_tool_gets_a_result_that_names_the_others() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["a:delete", "b:read"]);
    assert_eq!(stage.running(), ["b"], "the rest of the batch runs");
    stage.done("b", "ok");
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b] / r! a there is no tool `delete`; there is: read, write, bash / r b ok"
    );
    stage.text("done");
    audit(&stage);
}

/// S25.
#[test]
fn malformed_arguments_stop_the_whole_batch() {
    for bad in ["{\"path\": ", "[1]", "null", "7", "\"x\"", "{}{}"] {
        let mut stage = Stage::new(setup());
        stage
            .say("go")
            .calls(&["a:write", &format!("b:read:{bad}")]);
        assert!(stage.executed.is_empty(), "{bad}");
        let request = stage.last_request();
        assert!(request.contains("r! a not run: another call"), "{request}");
        assert!(
            request.contains("r! b the arguments of `read` are not"),
            "{request}"
        );
        stage.calls(&["c:write"]).done("c", "ok").text("done");
        assert_eq!(stage.executed(), ["c"]);
        audit(&stage);
    }
}

#[test]
fn no_arguments_are_an_empty_object() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["a:read:", "b:read:  "]);
    assert_eq!(stage.running(), ["a", "b"]);
    stage.finish();
    audit(&stage);
}

/// R21 and the contract's "limits are hard".
#[test]
fn max_turns_are_hard() {
    use AtLimit::{Finalize, Stop};
    for (max, at_limit, with_tools, text) in [
        (1, Finalize, 0, "[Agent stopped: Max turns reached (1/1)]"),
        (2, Finalize, 1, "what I know"),
        (3, Finalize, 2, "what I know"),
        (1, Stop, 0, "[Agent stopped: Max turns reached (1/1)]"),
        (2, Stop, 1, "[Agent stopped: Max turns reached (2/2)]"),
        (3, Stop, 2, "[Agent stopped: Max turns reached (3/3)]"),
    ] {
        let mut stage = Stage::new(limits(max, None, at_limit));
        stage.say("go");
        let mut ran = 0;
        while stage.run.is_running() {
            let sent = stage.requests.last().unwrap().request.tool_choice;
            if sent == ToolChoice::None {
                assert_eq!(stage.requests.len() as u64, max, "the last call only");
                stage.text("what I know");
                continue;
            }
            let id = format!("c{}", stage.requests.len());
            stage.calls(&[&format!("{id}:read")]);
            if !stage.running().is_empty() {
                stage.done(&id, "ok");
                ran += 1;
            }
        }
        let name = format!("{at_limit:?} {max}");
        assert_eq!(
            stage.requests.len() as u64,
            max,
            "{name}: exactly as many calls"
        );
        assert_eq!(ran, with_tools, "{name}");
        assert_eq!(stage.outcome().text, text, "{name}");
        assert_eq!(
            stage.outcome().reason,
            EndReason::Limit {
                kind: LimitKind::MaxTurns,
                used: max,
                limit: max
            }
        );
        audit(&stage);
    }
}

#[test]
fn what_was_said_at_the_last_turn_is_not_lost() {
    let mut stage = Stage::new(limits(1, None, AtLimit::Stop));
    stage.say("go");
    let parts = vec![Part::text("let me look"), stage::words::call("a:read")];
    stage.reply(parts, None);
    assert_eq!(
        stage.outcome().text,
        "let me look\n\n[Agent stopped: Max turns reached (1/1)]"
    );
    audit(&stage);
}

/// S1, S2.
#[test]
fn max_tool_calls_run_the_first_and_skip_the_rest() {
    let mut stage = Stage::new(limits(50, Some(2), AtLimit::Finalize));
    stage.say("go").calls(&["a:read", "b:read", "c:read"]);
    stage.done("b", "2").done("a", "1");
    assert_eq!(stage.executed(), ["a", "b"]);
    assert!(phases(&stage).contains(&("c", ToolPhase::Skipped)));
    let request = &stage.requests.last().unwrap().request;
    assert_eq!(request.tool_choice, ToolChoice::None);
    assert_eq!(
        request.tools.len(),
        3,
        "the definitions are sent all the same"
    );
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b,c] / r a 1 / r b 2 \
         / r! c skipped: 2 of the 2 tool calls of this run are used \
         / n [2 of the 2 tool calls of this run are used. No tool can be called any more. Answer now \
         from what you know, and say plainly what is done and what is not.]"
    );
    stage.text("what I know");
    assert_eq!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::ToolLimit,
            used: 2,
            limit: 2
        }
    );
    assert_eq!(stage.outcome().text, "what I know");
    // The next run is fresh.
    stage
        .say("more")
        .calls(&["d:read"])
        .done("d", "4")
        .text("ok");
    assert_eq!(stage.outcome().reason, EndReason::Answered);
    audit(&stage);
}

/// S2, S3: a model that goes on calling after the notice.
#[test]
fn a_disobedient_model_ends_the_run_with_a_text() {
    let mut stage = Stage::new(limits(50, Some(1), AtLimit::Finalize));
    stage.say("go").calls(&["a:read"]).done("a", "1");
    stage.calls(&["b:read", "c:read"]);
    assert_eq!(stage.executed(), ["a"]);
    assert_eq!(stage.requests.len(), 2);
    let outcome = stage.outcome();
    assert_eq!(
        outcome.reason,
        EndReason::Limit {
            kind: LimitKind::ToolLimit,
            used: 1,
            limit: 1
        }
    );
    assert_eq!(
        outcome.text,
        "[Agent stopped: Max tool calls reached (1/1)]"
    );
    assert_eq!(
        phases(&stage)[2..],
        [("b", ToolPhase::Skipped), ("c", ToolPhase::Skipped)]
    );
    let notices = stage
        .events
        .iter()
        .filter(|e| matches!(e, Event::LimitReached { .. }));
    assert_eq!(notices.count(), 1);
    // And what it left behind is whole.
    stage.say("again").text("fine");
    audit(&stage);
}

#[test]
fn an_empty_last_answer_still_ends_with_a_text() {
    let mut stage = Stage::new(limits(2, None, AtLimit::Finalize));
    stage.say("go").calls(&["a:read"]).done("a", "1").text(" ");
    assert_eq!(
        stage.outcome().text,
        "[Agent stopped: Max turns reached (2/2)]"
    );
    audit(&stage);
}

#[test]
fn tools_over_the_limit_stop_where_that_is_asked_for() {
    let mut stage = Stage::new(limits(50, Some(1), AtLimit::Stop));
    stage.say("go").calls(&["a:read", "b:read"]).done("a", "1");
    assert_eq!(stage.requests.len(), 1);
    assert_eq!(
        stage.outcome().text,
        "[Agent stopped: Max tool calls reached (1/1)]"
    );
    audit(&stage);
}

/// No tool may run, but the model is asked all the same.
#[test]
fn no_tool_calls_at_all() {
    for at_limit in [AtLimit::Finalize, AtLimit::Stop] {
        let mut stage = Stage::new(limits(50, Some(0), at_limit));
        stage.say("go").text("from memory, then");
        assert_eq!(stage.outcome().reason, EndReason::Answered);
        stage.say("go").calls(&["a:read"]);
        assert!(stage.executed.is_empty());
        stage.finish();
        assert_eq!(
            stage.outcome().reason,
            EndReason::Limit {
                kind: LimitKind::ToolLimit,
                used: 0,
                limit: 0
            }
        );
        audit(&stage);
    }
}

/// R24.
#[test]
fn a_steer_while_the_model_thinks_comes_before_the_next_request() {
    let mut stage = Stage::new(setup());
    stage.say("go").say("not there").calls(&["a:read"]);
    assert!(stage.executed.is_empty());
    assert_eq!(
        stage.last_request(),
        format!("u go / a [a] / r! a {OVERTAKEN} / u not there")
    );
    stage.text("where then?");
    audit(&stage);
}

#[test]
fn a_steer_during_a_batch_skips_what_has_not_begun() {
    let mut stage = Stage::new(Setup {
        max_parallel_tools: 2,
        ..setup()
    });
    stage
        .say("go")
        .calls(&["a:read", "b:write", "c:write", "d:read"]);
    stage.say("stop that").say("and look here");
    assert_eq!(
        stage.running(),
        ["a", "b"],
        "what has begun runs to its end"
    );
    stage.done("b", "2");
    stage.done("a", "1");
    assert_eq!(
        stage.last_request(),
        format!(
            "u go / a [a,b,c,d] / r a 1 / r b 2 / r! c {OVERTAKEN} / r! d {OVERTAKEN} \
             / u stop that / u and look here"
        )
    );
    stage.text("fine");
    assert!(phases(&stage).contains(&("d", ToolPhase::Skipped)));
    audit(&stage);
}

#[test]
fn a_steer_at_the_last_answer_goes_on() {
    let mut stage = Stage::new(setup());
    stage.say("go").say("one more thing").text("done");
    assert!(stage.outcomes.is_empty());
    assert_eq!(stage.last_request(), "u go / a done / u one more thing");
    stage.text("that too");
    assert_eq!(stage.outcome().text, "that too");
    audit(&stage);
}

#[test]
fn a_turn_that_was_only_paused_goes_on() {
    let mut stage = Stage::new(setup());
    stage.say("go").pause("let me see");
    assert!(stage.outcomes.is_empty(), "it is not over");
    assert_eq!(stage.last_request(), "u go / a let me see");
    stage.pause("still at it").text("done");
    assert_eq!(stage.outcome().text, "done");
    audit(&stage);
    // After a crash too, with no word in between.
    let mut stage = Stage::new(setup());
    stage.say("go").pause("let me see");
    let mut next = Stage::resume(stage.log.clone(), setup());
    next.go_on();
    assert_eq!(next.last_request(), "u go / a let me see");
    next.text("done");
    audit(&next);
    // A pause is a turn: it cannot go on forever.
    let mut stage = Stage::new(limits(3, None, AtLimit::Stop));
    stage.say("go").pause("1").pause("2").pause("3");
    assert_eq!(stage.outcomes.len(), 1);
}

#[test]
fn steers_are_bounded_and_none_is_lost_in_silence() {
    let mut stage = Stage::new(setup());
    stage.say("go");
    for n in 0..plimsoll_agent::MAX_WAITING + 2 {
        stage.say(&format!("steer {n}"));
    }
    assert_eq!(warnings(&stage).len(), 2);
    stage.refuse(Failure::Auth {
        message: "no key".into(),
    });
    assert_eq!(warnings(&stage).len(), 2);
    let undelivered = &stage.outcome().undelivered;
    assert_eq!(undelivered.len(), plimsoll_agent::MAX_WAITING);
    assert_eq!(undelivered[0], [Part::text("steer 0")]);
    audit(&stage);
}

#[test]
fn an_interrupt_while_the_model_thinks() {
    let mut stage = Stage::new(setup());
    stage.say("go").interrupt();
    assert_eq!(stage.aborts, 1);
    assert_eq!(stage.outcome().reason, EndReason::Interrupted);
    assert_eq!(stage.outcome().text, "[Agent stopped: Interrupted]");
    stage.interrupt();
    assert_eq!(stage.outcomes.len(), 1, "nothing is left to interrupt");
    stage.go_on();
    assert_eq!(stage.last_request(), "u go");
    stage.text("done");
    audit(&stage);
}

#[test]
fn an_interrupt_while_tools_run() {
    let mut stage = Stage::new(Setup {
        max_parallel_tools: 2,
        ..setup()
    });
    stage
        .say("go")
        .calls(&["a:read", "b:write", "c:write"])
        .done("a", "1");
    assert_eq!(stage.running(), ["b", "c"]);
    stage.interrupt();
    stage.say("why?");
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b,c] / r a 1 \
         / r! b stopped while it was running; its effects are not known \
         / r! c stopped while it was running; its effects are not known / u why?"
    );
    stage.text("because");
    audit(&stage);
}

#[test]
fn an_interrupt_while_a_person_is_asked() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["a:bash", "b:read"]);
    assert_eq!(stage.asked.len(), 1);
    stage.interrupt();
    assert!(!stage.executed().contains(&"a"));
    stage.say("next");
    let request = stage.last_request();
    assert!(
        request.contains("r! a not run: the run was interrupted"),
        "{request}"
    );
    stage.text("ok");
    audit(&stage);
}

#[test]
fn a_gate_decides() {
    let mut stage = Stage::new(Setup {
        max_parallel_tools: 1,
        ..setup()
    });
    stage.say("go").calls(&["a:bash", "b:bash", "c:read"]);
    assert_eq!(stage.asked.len(), 1, "one at a time");
    assert!(stage.executed.is_empty());
    let why = "not on this machine".to_owned();
    stage.answer("a", Answer::Deny { why });
    stage.answer("b", Answer::Allow);
    assert_eq!(stage.running(), ["b"]);
    stage.done("b", "2").done("c", "3");
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b,c] / r! a not on this machine / r b 2 / r c 3"
    );
    stage.text("done");
    assert_eq!(stage.outcome().tool_calls, 2, "what was denied did not run");
    audit(&stage);
}

#[test]
fn a_steer_overtakes_a_call_that_was_allowed_but_has_not_begun() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["a:bash"]).say("no, wait");
    stage.answer("a", Answer::Allow);
    assert!(stage.executed.is_empty());
    assert_eq!(
        stage.last_request(),
        format!("u go / a [a] / r! a {OVERTAKEN} / u no, wait")
    );
    stage.text("ok");
    audit(&stage);
}

#[test]
fn empty_replies_are_asked_again_once() {
    let thinks = || {
        vec![Part::Thinking(plimsoll_context::Thinking {
            text: "hm".into(),
            opaque: None,
        })]
    };
    let mut stage = Stage::new(setup());
    stage.say("go").reply(thinks(), None);
    let notice = "n [Your last answer was empty. Answer the user, or call a tool.]";
    assert_eq!(stage.last_request(), format!("u go / {notice}"));
    stage.text("sorry");
    assert_eq!(stage.outcome().reason, EndReason::Answered);
    audit(&stage);

    let mut stage = Stage::new(setup());
    stage.say("go").reply(vec![], None).text(" \n");
    assert!(matches!(
        stage.outcome().reason,
        EndReason::Failed {
            failure: Failure::Garbled { .. }
        }
    ));
    audit(&stage);
}

#[test]
fn a_failure_ends_the_run_and_it_can_go_on() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["a:write"]).done("a", "1");
    let failure = Failure::Transient {
        status: Some(503),
        retry_after_ms: None,
        message: "busy".into(),
    };
    stage.refuse(failure.clone());
    assert_eq!(stage.outcome().reason, EndReason::Failed { failure });
    assert_eq!(
        stage.outcome().text,
        "[Agent stopped: the model could not be reached: busy]"
    );
    stage.go_on();
    assert_eq!(stage.last_request(), "u go / a [a] / r a 1");
    stage.text("done");
    audit(&stage);
}

/// Invariant 12: what may have run and must not run twice gets a result that says so.
#[test]
fn after_a_crash_only_idempotent_calls_run_again() {
    let mut stage = Stage::new(setup());
    stage
        .say("go")
        .calls(&["a:read", "b:write", "c:write:{\"x\":", "d:read"]);
    assert!(stage.executed.is_empty());
    let mut stage = Stage::new(setup());
    stage
        .say("go")
        .calls(&["a:read", "b:write", "c:write", "d:read"]);
    assert_eq!(stage.running(), ["a", "b", "c"]);
    stage.done("c", "3");
    // The process dies here, with `a`, `b` and `d` under way.
    let mut next = Stage::resume(stage.log.clone(), setup());
    next.go_on();
    assert_eq!(next.running(), ["a", "d"]);
    next.done("d", "4").done("a", "1");
    let request = next.last_request();
    assert!(
        request.contains("r a 1 / r! b it is not known whether"),
        "{request}"
    );
    assert!(request.ends_with("r c 3 / r d 4"), "{request}");
    next.text("done");
    audit(&next);
}

#[test]
fn after_a_crash_a_batch_is_read_before_it_runs() {
    let mut stage = Stage::new(limits(50, Some(1), AtLimit::Finalize));
    stage.say("go").calls(&["a:read", "b:nothing", "c:write"]);
    let replied = |entry: &Entry| matches!(entry, Entry::Reply { .. });
    let end = stage.log.iter().position(replied).unwrap() + 1;
    let mut next = Stage::resume(stage.log[..end].to_vec(), stage.setup.clone());
    next.go_on();
    assert_eq!(next.running(), ["a"]);
    next.done("a", "1").text("done");
    let outcome = next.outcome();
    assert_eq!(
        outcome.reason,
        EndReason::Limit {
            kind: LimitKind::ToolLimit,
            used: 1,
            limit: 1
        }
    );
    let bad = ["a:read:{\"path\":", "b:write"];
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&bad);
    let end = stage.log.iter().position(replied).unwrap() + 1;
    let mut next = Stage::resume(stage.log[..end].to_vec(), setup());
    next.go_on();
    assert!(next.executed.is_empty(), "malformed arguments run nothing");
    next.text("done");
    audit(&next);
}

/// A run that goes on after a crash is the same run: its limits do not begin again.
#[test]
fn limits_hold_across_a_crash() {
    let mut stage = Stage::new(limits(3, Some(2), AtLimit::Stop));
    stage.say("go").calls(&["a:read"]).done("a", "1");
    let mut next = Stage::resume(stage.log.clone(), stage.setup.clone());
    next.go_on().calls(&["b:read", "c:read"]).done("b", "2");
    assert_eq!(next.executed(), ["b"]);
    assert_eq!(
        next.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::ToolLimit,
            used: 2,
            limit: 2
        }
    );
    assert_eq!(next.outcome().turns, 2);
    assert_eq!(next.run.state().runs(), 1);
    audit(&next);
}

/// The answer was paid for; it is not asked for again.
#[test]
fn after_a_crash_a_whole_answer_ends_the_run() {
    let mut stage = Stage::new(setup());
    stage.say("go").text("42");
    let ended = |entry: &Entry| matches!(entry, Entry::RunEnded { .. });
    let end = stage.log.iter().position(ended).unwrap();
    let mut next = Stage::resume(stage.log[..end].to_vec(), setup());
    next.go_on();
    assert!(next.requests.is_empty());
    assert_eq!(next.outcome().reason, EndReason::Answered);
    assert_eq!(next.outcome().text, "42");
    audit(&next);
}

/// It ends as it would have ended, for the limit at which the model was asked to finish.
#[test]
fn after_a_crash_a_last_answer_ends_the_run_at_its_limit() {
    let setup = limits(2, None, AtLimit::Finalize);
    let mut stage = Stage::new(setup.clone());
    let begun = stage.say("go").calls(&["a:read"]);
    begun.done("a", "1").text("half of it");
    let asked = |entry: &Entry| matches!(entry, Entry::Finalizing { .. });
    let asked = stage.log.iter().position(asked).unwrap();
    for end in asked - 1..stage.log.len() {
        let mut next = Stage::resume(stage.log[..end].to_vec(), setup.clone());
        next.go_on();
        if !next.requests.is_empty() {
            next.text("half of it");
        }
        assert_eq!(
            next.outcome().reason,
            EndReason::Limit {
                kind: LimitKind::MaxTurns,
                used: 2,
                limit: 2
            }
        );
        assert_eq!(next.outcome().text, stage.outcome().text);
        audit(&next);
    }
}

/// P6: going on after an answer needs a message of the user's role, or providers refuse it.
#[test]
fn going_on_after_an_answer_does_not_end_with_that_answer() {
    let mut stage = Stage::new(limits(2, None, AtLimit::Finalize));
    stage
        .say("go")
        .calls(&["a:read"])
        .done("a", "1")
        .text("half of it");
    stage.go_on();
    assert!(
        stage
            .last_request()
            .ends_with("/ a half of it / n [Go on.]")
    );
    stage.text("all of it");
    assert_eq!(stage.outcome().text, "all of it");
    audit(&stage);
}

#[test]
fn an_empty_session_has_nothing_to_go_on_with() {
    let mut stage = Stage::new(setup());
    stage.go_on();
    assert!(stage.requests.is_empty());
    assert_eq!(stage.outcome().reason, EndReason::NothingToDo);
    stage.say("go").text("ok");
    audit(&stage);
}

/// H9: every call of a run and of a session, failed runs too.
#[test]
fn usage_adds_up() {
    let used = |input, cache_read, output| Usage {
        input: Tokens(input),
        cache_read: Tokens(cache_read),
        output: Tokens(output),
        reasoning: Tokens(1),
        ..Usage::default()
    };
    let mut stage = Stage::new(setup());
    stage.say("go");
    stage.reply(vec![stage::words::call("a:read")], Some(used(100, 0, 10)));
    stage.done("a", "1");
    stage.reply(vec![Part::text("ok")], Some(used(20, 90, 5)));
    let run = stage.outcome().tokens_used;
    assert_eq!((run.processed(), run.output), (Tokens(210), Tokens(15)));
    assert_eq!(run.reasoning, Tokens(2));
    stage.say("more");
    stage.reply(vec![stage::words::call("b:read")], Some(used(1, 0, 1)));
    stage.done("b", "1");
    stage.refuse(Failure::Auth {
        message: "no".into(),
    });
    assert_eq!(
        stage.outcome().tokens_used.processed(),
        Tokens(1),
        "available on error"
    );
    assert_eq!(stage.run.state().usage().processed(), Tokens(211));
    audit(&stage);
}

/// Invariant 13: the provider counts twice what we count, so the line comes down to half.
#[test]
fn usage_calibrates_the_line() {
    let mut setup = setup();
    setup.line.trigger = Threshold::Share(Ppm(800_000));
    let mut stage = Stage::new(setup);
    stage.say(&"x".repeat(8_000));
    let counted = stage.requests[0].request.counted;
    let usage = Usage {
        input: counted.times(2),
        ..Usage::default()
    };
    stage.reply(vec![stage::words::call("a:read")], Some(usage));
    let trigger = |stage: &Stage| {
        let start = |event: &Event| match event {
            Event::TurnStart { trigger, .. } => *trigger,
            _ => None,
        };
        stage.events.iter().filter_map(start).next_back().unwrap().0
    };
    let before = trigger(&stage);
    stage.done("a", "1");
    let after = trigger(&stage);
    assert!(after.abs_diff(before / 2) < 20, "{before} → {after}");
    stage.text("ok");
    audit(&stage);
}

/// Another model counts otherwise and has another window: what the one before taught is not true
/// of it.
#[test]
fn another_model_learns_anew() {
    let mut stage = Stage::new(setup());
    stage.say(&"x".repeat(4_000));
    stage.refuse(stage::overflow(Some(3_000), Some(2_000)));
    stage.finish();
    assert_eq!(stage.run.line().window, Some(Tokens(2_000)));
    let other = Setup {
        model: "test/two".into(),
        ..setup()
    };
    let mut next = Stage::resume(stage.log.clone(), other);
    next.say("and you?");
    assert_eq!(next.run.line().window, Some(Tokens(10_000)));
    next.text("fine");
    audit(&next);
}

/// A log that was weighed by another counter, or by this one in another version, still opens.
#[test]
fn a_log_opens_under_another_counter() {
    let mut stage = Stage::new(setup());
    stage.say("go");
    for n in 0..30 {
        let id = format!("c{n}");
        stage
            .calls(&[&format!("{id}:read")])
            .done(&id, &"word ".repeat(500));
    }
    stage.text("done");
    let plans = stage
        .log
        .iter()
        .filter(|e| matches!(e, Entry::PlanApplied { .. }));
    assert!(plans.count() > 1);
    let other = Setup {
        counter: std::sync::Arc::new(plimsoll_context::Bpe::o200k()),
        ..setup()
    };
    let mut next = Stage::resume(stage.log.clone(), other);
    let bytes = |stage: &Stage| -> Vec<String> {
        let items = stage.run.state().transcript().items().iter();
        items
            .map(|item| serde_json::to_string(&item.message).unwrap())
            .collect()
    };
    assert_eq!(bytes(&next), bytes(&stage), "the same view, byte for byte");
    next.say("and?").text("ok");
    stage::audit::whole(&next);
}

/// A2: the overhead alone does not fit, and the call is not made.
#[test]
fn what_cannot_fit_is_not_sent() {
    let context = "x".repeat(200_000);
    let mut stage = Stage::new(Setup {
        dynamic_context: Some(context.as_str().into()),
        ..setup()
    });
    stage.say("go");
    assert!(stage.requests.is_empty());
    let EndReason::CannotFit { cannot_fit } = &stage.outcome().reason else {
        panic!("{:?}", stage.outcome());
    };
    assert!(cannot_fit.overhead > Tokens(50_000));
    // With less of it, the session goes on.
    stage.run.set_dynamic_context(Some("now: noon".into()));
    stage.setup.dynamic_context = Some("now: noon".into());
    stage.go_on();
    assert_eq!(stage.last_request(), "u go");
    let context = &stage.requests[0].request.dynamic_context;
    assert_eq!(context.as_deref(), Some("now: noon"));
    stage.text("ok");
    stage::audit::whole(&stage);
}

/// A task too large for the window ends its run, not its session.
#[test]
fn a_task_too_large_does_not_kill_the_session() {
    let mut stage = Stage::new(setup());
    stage.say(&"x".repeat(100_000));
    assert!(matches!(
        stage.outcome().reason,
        EndReason::CannotFit { .. }
    ));
    assert!(stage.requests.is_empty());
    stage.say("then only this");
    assert_eq!(
        stage.last_request(),
        "n [1 message was removed here] / u then only this"
    );
    stage.text("ok");
    assert_eq!(stage.outcome().reason, EndReason::Answered);
    audit(&stage);
}

/// What nobody has read for want of room makes way for the next question, not for the same run.
#[test]
fn an_exchange_too_large_does_not_kill_the_session() {
    let mut stage = Stage::new(setup());
    let arguments = format!("{{\"text\":\"{}\"}}", "x".repeat(50_000));
    stage
        .say("go")
        .calls(&[&format!("a:write:{arguments}")])
        .done("a", "ok");
    assert!(matches!(
        stage.outcome().reason,
        EndReason::CannotFit { .. }
    ));
    stage.go_on();
    assert!(matches!(
        stage.outcome().reason,
        EndReason::CannotFit { .. }
    ));
    stage.say("in pieces, please");
    assert_eq!(
        stage.last_request(),
        "u go / S [This summary replaces 2 messages]\n\n[handover 6fec79f1] » user's words, - done\n- write \
         / u in pieces, please"
    );
    stage.text("ok");
    audit(&stage);
}

/// Nor does an exchange that was read long ago, when the window was larger.
#[test]
fn an_old_exchange_does_not_kill_the_session_under_a_smaller_window() {
    let mut stage = Stage::new(setup());
    let arguments = format!("{{\"text\":\"{}\"}}", "x".repeat(16_000));
    stage
        .say("go")
        .calls(&[&format!("a:write:{arguments}")])
        .done("a", "ok")
        .text("done");
    let evict = plimsoll_context::ContextStrategy::Evict { max_tokens: None };
    let smaller = stage::strategy(evict, Some(4_000));
    let mut next = Stage::resume(stage.log.clone(), smaller.clone());
    next.say("and now?");
    assert_eq!(
        next.last_request(),
        "u go / n [2 messages were removed here] / a done / u and now?",
        "the old exchange may leave"
    );
    next.text("fine");
    audit(&next);
    // Where it is the newest one, it stays as long as the question fits beside it.
    let end = stage.log.len() - 2;
    let mut next = Stage::resume(stage.log[..end].to_vec(), smaller);
    next.say("and now?");
    assert_eq!(
        next.last_request(),
        "u go / S [This summary replaces 2 messages]\n\n[handover 6fec79f1] » user's words, - done\n- write \
         / u and now?"
    );
    next.text("fine");
    audit(&next);
}

/// No answer may ask for more than is left behind the request.
#[test]
fn the_answer_fits_behind_the_request() {
    let mut stage = Stage::new(Setup {
        max_output: Some(Tokens(6_000)),
        ..setup()
    });
    stage.say(&"x".repeat(20_000));
    let request = &stage.requests[0].request;
    let left = Tokens(10_000).minus(request.counted);
    let asked = request.max_output.unwrap();
    // A little less: a provider may count more than we do.
    assert!(
        asked < left && left.minus(asked) < request.counted.share(Ppm(50_000)),
        "{asked:?}"
    );
    stage.text("ok");
    audit(&stage);
}

/// Late news of what was given up changes nothing.
#[test]
fn what_comes_too_late_is_ignored() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["a:read"]).interrupt();
    let before = stage.log.len();
    stage.tell(plimsoll_agent::Input::ToolDone {
        result: plimsoll_context::ToolResult {
            call: plimsoll_context::CallId("a".into()),
            parts: vec![Part::text("late")],
            is_error: false,
        },
        spent: Default::default(),
    });
    stage.tell(plimsoll_agent::Input::Answer {
        call: plimsoll_context::CallId("a".into()),
        answer: Answer::Allow,
    });
    stage.tell(plimsoll_agent::Input::Reply(Box::new(Err(
        stage::overflow(None, None),
    ))));
    assert_eq!(stage.log.len(), before);
    assert_eq!(stage.outcomes.len(), 1);
    audit(&stage);
}

#[test]
fn a_newer_or_damaged_log_is_refused_with_a_reason() {
    use plimsoll_agent::{FoldError, Run};
    let newer = [Entry::Opened { format: 99 }];
    let error = Run::resume(&newer, setup()).unwrap_err();
    assert_eq!(error, FoldError::Format { found: 99 });
    let orphan = plimsoll_context::CallId("x".into());
    let damaged = [Entry::ToolResult {
        message: Message::result(orphan.clone(), "?").into(),
        spent: Default::default(),
    }];
    let error = Run::resume(&damaged, setup()).unwrap_err();
    assert_eq!(error, FoldError::Result(orphan));
    // Numbers that no run has reach no arithmetic that could fail.
    let far = [Entry::RunStarted {
        run: u64::MAX,
        model: "test/one".into(),
        system: "".into(),
        tools: vec![],
        config: None,
    }];
    let mut stage = Stage::resume(far.to_vec(), setup());
    stage.say("go").text("ok");
    assert_eq!(stage.outcome().text, "ok");
}

fn looping(times: u64) -> Setup {
    let mut setup = setup();
    std::sync::Arc::make_mut(&mut setup.limits).max_identical_tool_calls = Some(times);
    setup
}

const REPEATED: &str = "n [You have made these calls before";
const REPEATED_CALL: &str = "not run: you have made these calls";

/// H6, R20.
#[test]
fn the_same_calls_again_and_again_end_the_run() {
    let mut stage = Stage::new(looping(3));
    stage.say("go");
    let ask = |stage: &mut Stage, n: u64| {
        // The order of the calls, of their keys and blanks is no difference.
        let one = format!("a{n}:read:{{\"x\":1,\"y\":[{{\"b\":1,\"a\":2}}]}}");
        let same = format!("a{n}:read: {{ \"y\":[{{\"a\":2, \"b\":1}}], \"x\":1 }}");
        let other = format!("b{n}:bash:{{}}");
        match n % 2 {
            0 => stage.calls(&[&one, &other]),
            _ => stage.calls(&[&other, &same]),
        };
    };
    let work = |stage: &mut Stage, n: u64| {
        stage.answer(&format!("b{n}"), Answer::Allow);
        stage
            .done(&format!("a{n}"), "same")
            .done(&format!("b{n}"), "too");
    };
    ask(&mut stage, 0);
    work(&mut stage, 0);
    assert!(!stage.last_request().contains(REPEATED));
    ask(&mut stage, 1);
    work(&mut stage, 1);
    assert!(
        stage.last_request().contains(REPEATED),
        "{}",
        stage.last_request()
    );
    for n in [2, 3] {
        ask(&mut stage, n);
        assert!(stage.asked.is_empty() && stage.running.is_empty());
        assert_eq!(
            stage.last_request().matches(REPEATED_CALL).count() as u64,
            2 * (n - 1)
        );
    }
    ask(&mut stage, 4);
    assert_eq!(
        stage.outcome().reason,
        EndReason::DoomLoop {
            times: 5,
            kind: Repetition::Identical
        }
    );
    assert_eq!(stage.outcome().tool_calls, 4);
    audit(&stage);
    // A person who says something, or who wants it to go on, begins anew.
    let asked = stage.log.clone();
    for input in ["again", ""] {
        let mut next = Stage::resume(asked.clone(), looping(3));
        match input {
            "" => next.go_on(),
            text => next.say(text),
        };
        ask(&mut next, 5);
        assert_eq!(next.running(), ["b5", "a5"][1..], "it runs: {input:?}");
        next.finish();
        audit(&next);
    }
}

#[test]
fn a_result_that_changes_is_no_loop() {
    let mut stage = Stage::new(looping(3));
    stage.say("wait for it");
    for n in 0..20 {
        let id = format!("p{n}");
        stage
            .calls(&[&format!("{id}:read")])
            .done(&id, &format!("{n} %"));
        assert!(!stage.last_request().contains(REPEATED));
    }
    stage.text("there");
    audit(&stage);
}

/// A steer is news; what follows it is no repetition.
#[test]
fn a_steer_breaks_a_loop() {
    let mut stage = Stage::new(looping(2));
    stage.say("go").calls(&["a:read"]).done("a", "same");
    stage.calls(&["b:read"]);
    assert!(
        stage.running().is_empty(),
        "the second of its kind does not run"
    );
    stage.say("it has changed, look again").calls(&["c:read"]);
    // The steer came while the model was thinking, so what it asks for is skipped.
    stage.calls(&["d:read"]);
    assert_eq!(stage.running(), ["d"]);
    stage.finish();
    audit(&stage);
}
