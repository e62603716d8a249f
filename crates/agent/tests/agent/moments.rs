//! Hooks, filters, waiting messages and undo, played on the stage of `stage/`: their order in a
//! run, and the effects of a veto. The hooks themselves are in `core`.

use std::sync::Arc;

use plimsoll_agent::{
    Answer, AtLimit, EndReason, Entry, Event, Failure, FilterResult, HookPoint, Input, InputFilter,
    InputFilters, Setup, TurnTrigger, UndoError,
};
use plimsoll_context::{Part, Tokens};

use crate::stage::audit::audit;
use crate::stage::{self, Stage, limits, setup};

const ALL: [HookPoint; 10] = [
    HookPoint::BeforeTask,
    HookPoint::BeforeLoop,
    HookPoint::BeforeTurn,
    HookPoint::BeforeToolExecution,
    HookPoint::AfterToolExecution,
    HookPoint::AfterTurn,
    HookPoint::FollowUp,
    HookPoint::OnError,
    HookPoint::AfterLoop,
    HookPoint::AfterTask,
];

fn hooked(points: &[HookPoint]) -> Setup {
    Setup {
        hooks: points.iter().copied().collect(),
        ..setup()
    }
}

fn filtered(filters: &[fn(&str) -> FilterResult]) -> Setup {
    let mut input_filters = InputFilters::default();
    for filter in filters {
        input_filters.push(Arc::new(*filter) as Arc<dyn InputFilter>);
    }
    Setup {
        input_filters,
        ..setup()
    }
}

/// What observers see, in short.
fn story(stage: &Stage) -> Vec<String> {
    let short = |event: &Event| {
        Some(match event {
            Event::AgentStart { .. } => "AgentStart".to_owned(),
            Event::TurnStart { turn, cause, .. } => format!("TurnStart {turn} {cause:?}"),
            Event::TurnEnd { turn, .. } => format!("TurnEnd {turn}"),
            Event::ToolCall { phase, call, .. } => format!("{phase:?} {}", call.0),
            Event::Message { id, phase, .. } => format!("{phase:?} {id}"),
            Event::InputRejected { why } => format!("InputRejected {why}"),
            Event::AgentEnd { outcome, .. } => format!("AgentEnd {}", outcome.reason.word()),
            _ => return None,
        })
    };
    stage
        .story
        .iter()
        .filter_map(|told| match told {
            stage::Notification::Event(event) => short(event),
            stage::Notification::HookEvent(point) => Some(point.name().to_owned()),
        })
        .collect()
}

/// R23: the machine's part of it.
#[test]
fn a_run_comes_by_in_this_order() {
    let mut stage = Stage::new(hooked(&ALL));
    stage.say("go").calls(&["a:read", "b:read"]);
    stage.answer("a", Answer::Allow).answer("b", Answer::Allow);
    stage.done("b", "two").done("a", "one");
    stage.tell(Input::FollowUp(vec![Part::text("and then")].into()));
    stage.say("faster").text("fine");
    stage.refuse(Failure::Auth {
        message: "no key".into(),
    });
    assert_eq!(
        story(&stage),
        [
            "before_task",
            "before_loop",
            "AgentStart",
            "before_turn",
            "TurnStart 1 User",
            "Start a",
            "Start b",
            "Success b",
            "after_tool_execution",
            "Success a",
            "after_tool_execution",
            "TurnEnd 1",
            "after_turn",
            "before_turn",
            "TurnStart 2 ToolResults",
            "Queued 1",
            "Queued 2",
            "TurnEnd 2",
            "after_turn",
            "before_turn",
            "TurnStart 3 Steer",
            "Delivered 2",
            "on_error",
            "TurnEnd 3",
            "after_turn",
            "Undelivered 1",
            "AgentEnd failed",
            "after_loop",
            "after_task",
        ]
    );
    assert_eq!(stage.outcome().undelivered, [[Part::text("and then")]]);
    audit(&stage);
}

#[test]
fn only_hooks_that_are_there_are_asked() {
    let mut stage = Stage::new(setup());
    stage
        .say("go")
        .calls(&["a:read"])
        .done("a", "one")
        .text("done");
    assert!(stage.moments.is_empty());
    let mut stage = Stage::new(hooked(&[HookPoint::AfterTurn]));
    stage
        .say("go")
        .calls(&["a:read"])
        .done("a", "one")
        .text("done");
    assert_eq!(stage.moments.len(), 2);
}

#[test]
fn a_no_stops_exactly_that_and_says_so() {
    for (name, says, calls) in [
        ("before_task", "before_task", 0),
        ("before_loop", "before_loop", 0),
        ("before_turn", "before_turn", 0),
    ] {
        let mut stage = Stage::new(hooked(&ALL));
        stage.refuses.insert(name);
        stage.say("go");
        assert_eq!(stage.requests.len(), calls, "{name}");
        let refused = EndReason::Refused {
            by: says.into(),
            why: format!("{name} says no"),
        };
        assert_eq!(stage.outcome().reason, refused);
        assert_eq!(
            stage.outcome().text,
            format!("[Agent stopped: {name} refused: {name} says no]")
        );
        let began = story(&stage).iter().any(|told| told == "AgentStart");
        let said = !stage.run.state().transcript().items().is_empty();
        assert_eq!(
            (began, said),
            (name == "before_turn", name == "before_turn")
        );
        // The next run is another one.
        stage.refuses.clear();
        stage.say("again").text("done");
        assert_eq!(stage.outcome().reason, EndReason::Answered);
        audit(&stage);
    }
}

#[test]
fn before_task_is_asked_once_a_session() {
    let mut stage = Stage::new(hooked(&[HookPoint::BeforeTask, HookPoint::BeforeLoop]));
    stage.say("one").text("1").say("two").text("2");
    let points: Vec<HookPoint> = stage.moments.iter().map(|moment| moment.point()).collect();
    assert_eq!(
        points,
        [
            HookPoint::BeforeTask,
            HookPoint::BeforeLoop,
            HookPoint::BeforeLoop
        ]
    );
    let mut stage = Stage::resume(stage.log, stage.setup);
    stage.say("three").text("3");
    assert_eq!(stage.moments.len(), 1, "nor after it was opened again");
}

#[test]
fn a_hook_that_says_no_to_a_call_leaves_it_out() {
    let mut stage = Stage::new(hooked(&[HookPoint::BeforeToolExecution]));
    stage.say("go").calls(&["a:read", "b:bash"]);
    let asked = stage.asked.iter();
    let whom: Vec<_> = asked
        .map(|asked| (asked.asks_hook, asked.asks_gate))
        .collect();
    assert_eq!(whom, [(true, false), (true, true)]);
    stage.answer(
        "a",
        Answer::Skip {
            why: "not now".into(),
        },
    );
    stage.answer(
        "b",
        Answer::Deny {
            why: "never".into(),
        },
    );
    assert_eq!(
        stage.last_request(),
        "u go / a [a,b] / r! a not now / r! b never"
    );
    assert!(stage.executed.is_empty());
    let phases: Vec<String> = story(&stage)
        .into_iter()
        .filter(|told| told.ends_with(" a") || told.ends_with(" b"))
        .collect();
    assert_eq!(phases, ["Skipped a", "Error b"]);
    stage.text("done");
    audit(&stage);
}

#[test]
fn a_refused_call_leaves_its_share_of_a_limit_to_the_next() {
    for parallel in [1, 2, 8] {
        let mut setup = hooked(&[HookPoint::BeforeToolExecution]);
        setup.max_parallel_tools = parallel;
        let limits = Arc::make_mut(&mut setup.limits);
        limits.max_tool_calls = Some(2);
        let mut stage = Stage::new(setup);
        stage
            .say("go")
            .calls(&["a:read", "b:read", "c:read", "d:read"]);
        let why = || "not now".into();
        stage.answer("a", Answer::Skip { why: why() });
        for call in ["b", "c"] {
            stage.answer(call, Answer::Allow);
            stage.done(call, "x");
        }
        assert_eq!(stage.executed(), ["b", "c"]);
        assert!(stage.asked.is_empty(), "the fourth is not asked about");
        stage.text("done");
        audit(&stage);
    }
}

#[test]
fn the_first_filter_that_rejects_wins_and_warnings_stand_behind_the_text() {
    let warn = |text: &str| {
        if text.contains("risky") {
            FilterResult::Warn("take care".into())
        } else {
            FilterResult::Pass
        }
    };
    let reject = |text: &str| {
        if text.contains("bad") {
            FilterResult::Reject("no bad words".into())
        } else {
            FilterResult::Pass
        }
    };
    let late = |_: &str| FilterResult::Warn("late".into());
    let mut stage = Stage::new(filtered(&[warn, reject, late]));
    stage.say("risky and bad");
    assert_eq!(
        stage.outcome().reason,
        EndReason::Refused {
            by: "input_filter".into(),
            why: "no bad words".into()
        }
    );
    assert!(
        stage.run.state().transcript().items().is_empty(),
        "it was not said"
    );
    stage.say("risky");
    assert_eq!(
        stage.last_request(),
        "u risky\n[Warning: take care]\n[Warning: late]"
    );
    // A steer and a follow-up go the same way.
    stage.say("bad steer");
    stage.tell(Input::FollowUp(vec![Part::text("bad follow-up")].into()));
    stage.say("good steer").text("hm").text("done");
    let rejected = story(&stage)
        .iter()
        .filter(|told| told.starts_with("InputRejected"))
        .count();
    assert_eq!(rejected, 3);
    assert_eq!(
        stage.last_request(),
        "u risky\n[Warning: take care]\n[Warning: late] / a hm / u good steer\n[Warning: late]"
    );
    // The answer of the run before is not the text of a rejected one.
    stage.say("bad again");
    assert_eq!(
        stage.outcome().text,
        "[Agent stopped: input_filter refused: no bad words]"
    );
    audit(&stage);
}

#[test]
fn steers_come_together() {
    let mut stage = Stage::new(setup());
    stage.say("go").say("one").say("two").text("hm");
    assert_eq!(stage.last_request(), "u go / a hm / u one / u two");
    stage.text("2");
    assert_eq!(stage.outcome().text, "2");
    audit(&stage);
}

#[test]
fn follow_ups_wait_for_the_answer() {
    let mut stage = Stage::new(setup());
    stage.say("go");
    for text in ["then", "last"] {
        stage.tell(Input::FollowUp(vec![Part::text(text)].into()));
    }
    stage.calls(&["a:read"]).done("a", "x");
    assert_eq!(stage.last_request(), "u go / a [a] / r a x");
    stage.text("1");
    assert_eq!(
        stage.last_request(),
        "u go / a [a] / r a x / a 1 / u then / u last"
    );
    stage.text("2");
    assert_eq!(
        (stage.outcome().turns, stage.outcomes.len()),
        (3, 1),
        "one run"
    );
    let causes: Vec<TurnTrigger> = stage
        .events
        .iter()
        .filter_map(|event| match event {
            Event::TurnStart { cause, .. } => Some(*cause),
            _ => None,
        })
        .collect();
    use TurnTrigger::{FollowUp, ToolResults, User};
    assert_eq!(causes, [User, ToolResults, FollowUp]);
    audit(&stage);
}

/// Exactly once, also where the process dies in between.
#[test]
fn a_message_that_waits_survives_a_crash() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["a:read"]).say("left turn");
    stage.tell(Input::FollowUp(vec![Part::text("and park")].into()));
    let mut resumed = Stage::resume(stage.log.clone(), stage.setup.clone());
    resumed.go_on();
    resumed.text("turned").text("parked");
    assert!(
        resumed
            .last_request()
            .ends_with("u left turn / a turned / u and park"),
        "{}",
        resumed.last_request()
    );
    let delivered = resumed.log.iter().filter(|entry| {
        matches!(
            entry,
            Entry::Message {
                queued: Some(_),
                ..
            }
        )
    });
    assert_eq!(delivered.count(), 2);
    audit(&resumed);
    // Nor is it lost where the next thing is another message: it was said before that.
    let mut other = Stage::resume(stage.log, stage.setup);
    other.say("and now?");
    assert!(
        other.last_request().ends_with("u left turn / u and now?"),
        "{}",
        other.last_request()
    );
    other.text("turned").text("parked");
    assert!(other.last_request().ends_with("a turned / u and park"));
    audit(&other);
}

#[test]
fn a_steer_during_the_last_answer_is_given_back() {
    let mut stage = Stage::new(limits(2, None, AtLimit::Finalize));
    stage
        .say("go")
        .calls(&["a:read"])
        .done("a", "x")
        .say("wait")
        .text("the end");
    assert_eq!(stage.outcome().undelivered, [[Part::text("wait")]]);
    assert_eq!(stage.outcome().text, "the end");
    audit(&stage);
}

#[test]
fn undo_puts_the_view_back_run_by_run() {
    let view = |stage: &Stage| stage::words::list(stage.run.state().transcript().items());
    let mut setup = setup();
    setup.line.window = Some(Tokens(2_000));
    let mut stage = Stage::new(setup);
    assert_eq!(stage.run.undo(), Err(UndoError::Nothing));
    let mut views = vec![view(&stage)];
    for run in 0..4 {
        stage.say(&format!("run {run}"));
        assert_eq!(stage.run.undo(), Err(UndoError::Running));
        for n in 0..4 {
            stage.turn(run * 10 + n, 1_500, &mut |_| {});
        }
        stage.text("done");
        views.push(view(&stage));
    }
    assert!(stage.plans() > 2);
    for run in (1..=4).rev() {
        assert_eq!(stage.run.undo(), Ok(run));
        stage.rest();
        assert_eq!(view(&stage), views[run as usize - 1], "before run {run}");
        let resumed = Stage::resume(stage.log.clone(), stage.setup.clone());
        assert_eq!(view(&resumed), view(&stage));
    }
    assert_eq!(stage.run.undo(), Err(UndoError::Nothing));
    stage.say("afresh").text("hello");
    assert_eq!(stage.last_request(), "u afresh");
    assert_eq!(stage.run.state().runs(), 5, "numbers are not given again");
    audit(&stage);
}

#[test]
fn undo_reaches_back_a_bounded_number_of_runs() {
    let mut stage = Stage::new(setup());
    for run in 0..plimsoll_agent::MAX_UNDO + 3 {
        stage.say(&format!("run {run}")).text("done");
    }
    for _ in 0..plimsoll_agent::MAX_UNDO {
        assert!(stage.run.undo().is_ok());
    }
    assert_eq!(stage.run.undo(), Err(UndoError::Nothing));
}

/// A run that begins with calls still open, as in a fork, takes their message with it.
#[test]
fn undo_leaves_no_call_without_a_result() {
    let mut stage = Stage::new(setup());
    stage.say("go").calls(&["a:read"]);
    let mut log = stage.log.clone();
    log.push(Entry::Forked {
        from: "other".into(),
        entries: log.len() as u64,
    });
    let mut fork = Stage::resume(log, stage.setup.clone());
    fork.go_on();
    assert_eq!(fork.running(), ["a"]);
    fork.done("a", "found").text("done");
    assert_eq!(fork.run.undo(), Ok(2));
    fork.rest();
    assert_eq!(
        stage::words::list(fork.run.state().transcript().items()),
        "#0 (5) u go"
    );
    fork.say("again").text("yes");
    audit(&fork);
}

#[test]
fn what_waited_in_a_run_that_is_undone_is_not_said() {
    let mut stage = Stage::new(setup());
    stage.say("go").say("DELETE ALL");
    let mut resumed = Stage::resume(stage.log.clone(), stage.setup.clone());
    assert_eq!(resumed.run.undo(), Ok(1));
    resumed.rest();
    resumed.say("harmless").text("ok");
    assert_eq!(resumed.last_request(), "u harmless");
    audit(&resumed);
    // Nor does a fork say it again.
    let mut log = stage.log;
    let entries = log.len() as u64;
    log.push(Entry::Forked {
        from: "other".into(),
        entries,
    });
    let mut fork = Stage::resume(log, stage.setup);
    fork.say("harmless").text("ok");
    assert!(
        !fork.last_request().contains("DELETE"),
        "{}",
        fork.last_request()
    );
}
