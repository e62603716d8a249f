//! Usage by others for a run: counted at the interruption or from tool results, and kept separate
//! from the run's own usage. Also messages of branches, which are adopted as a whole or not at all.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{
    BranchRecord, CallKey, Cost, EndReason, Entry, ExecutionLimits, Input, KEPT_FOR_RESULT,
    KnownTool, LOG_FORMAT, LimitKind, Now, Outcome, Run, Setup, Spend, Step, TargetOf,
};
use plimsoll_context::{
    CallId, Chars4, ContextStrategy, Message, Money, Part, Reply, Seq, StopReason, Tokens,
    ToolCall, ToolResult, ToolSpec, Usage,
};

fn setup(limits: ExecutionLimits) -> Setup {
    let policy = ContextStrategy::default().policy(Default::default(), Default::default());
    let tool = KnownTool {
        spec: ToolSpec {
            name: "scout".to_owned(),
            description: String::new(),
            schema: serde_json::json!({"type": "object"}),
        },
        idempotent: true,
        asks: false,
        edits_files: false,
        target: TargetOf::default(),
    };
    Setup {
        tools: vec![tool],
        limits: Arc::new(limits),
        max_parallel_tools: 2,
        ..Setup::new("test/test", Arc::new(Chars4), policy)
    }
}

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId(id.to_owned()),
        name: "scout".to_owned(),
        arguments: format!("{{\"task\": \"{id}\"}}"),
        opaque: None,
    })
}

fn reply(parts: Vec<Part>) -> Input {
    Input::Reply(Box::new(Ok(Reply {
        parts,
        stop: StopReason::Stop,
        usage: Some(Usage {
            input: Tokens(1_000),
            output: Tokens(10),
            ..Usage::default()
        }),
        model: None,
    })))
}

fn spent(tokens: u64, tool_calls: u64) -> Spend {
    Spend {
        usage: Usage {
            input: Tokens(tokens),
            ..Usage::default()
        },
        cost: Cost::of(Some(Money(7))),
        turns: 3,
        tool_calls,
        ..Spend::default()
    }
}

fn done(id: &str, spent: Spend) -> Input {
    Input::ToolDone {
        result: ToolResult {
            call: CallId(id.to_owned()),
            parts: vec![Part::text("done")],
            is_error: false,
        },
        spent,
    }
}

/// Does what the machine says until it waits or has ended; the entries of the way.
fn settle(run: &mut Run) -> (Vec<Entry>, Option<Outcome>) {
    let mut log = Vec::new();
    loop {
        match run.poll() {
            Step::Record(entry) => log.push(entry),
            Step::Finish(outcome) => return (log, Some(outcome)),
            Step::Wait => return (log, None),
            _ => {}
        }
    }
}

/// A run in which these calls are under way.
fn working(limits: ExecutionLimits, ids: &[&str]) -> (Run, Vec<Entry>) {
    let mut run = Run::resume(&[], setup(limits)).unwrap();
    run.handle(Now::default(), Input::User(vec![Part::text("go")].into()));
    let (mut log, _) = settle(&mut run);
    run.handle(
        Now::default(),
        reply(ids.iter().map(|id| call(id)).collect()),
    );
    log.extend(settle(&mut run).0);
    (run, log)
}

#[test]
fn what_a_call_had_used_counts_where_it_is_cut_off() {
    for (input, elapsed) in [(Input::Interrupt, 0), (Input::Tick, 100)] {
        let limits = ExecutionLimits {
            max_duration: Some(Duration::from_secs(100)),
            ..ExecutionLimits::turns(9)
        };
        let (mut run, mut log) = working(limits, &["a", "b"]);
        run.handle(Now::default(), done("a", spent(50, 1)));
        log.extend(settle(&mut run).0);
        let used = [("a", spent(9_999, 9)), ("b", spent(400, 2))];
        let used = used.map(|(call, spent)| (CallId(call.to_owned()), spent));
        let now = Now {
            tool_usage: used.into(),
            elapsed: Duration::from_secs(elapsed),
            ..Now::default()
        };
        run.handle(now, input);
        let (rest, outcome) = settle(&mut run);
        log.extend(rest);
        let outcome = outcome.unwrap();
        assert_eq!(outcome.tokens_used.input, Tokens(1_000 + 50 + 400));
        assert_eq!(outcome.cost.known, Money(14));
        let others = log.iter().filter_map(|entry| match entry {
            Entry::ToolResult { spent, .. } => Some(spent.usage.input),
            _ => None,
        });
        assert_eq!(others.collect::<Vec<_>>(), [Tokens(50), Tokens(400)]);
        // The log says the same.
        let again = Run::resume(&log, setup(ExecutionLimits::turns(9))).unwrap();
        assert_eq!(again.state().usage(), outcome.tokens_used);
    }
}

#[test]
fn what_is_a_runs_own_and_what_it_keeps() {
    let limits = ExecutionLimits {
        max_total_tokens: Some(Tokens(50_000)),
        max_tool_calls: Some(9),
        ..ExecutionLimits::turns(5)
    };
    let (mut run, _) = working(limits, &["a", "b", "c"]);
    let (own, tokens) = run.tracker().own();
    assert_eq!((own.turns, own.tool_calls), (1, 2));
    let keeps = run.keeps();
    assert_eq!((keeps.turns, keeps.tool_calls), (4, 1));
    assert_eq!((tokens, run.state().open_calls()), (Tokens(1_010), 3));
    assert!(Tokens(keeps.of(LimitKind::MaxTokens)) >= KEPT_FOR_RESULT + Tokens(1_000));
    assert!(run.tracker().of_tools.is_nothing());
    run.handle(Now::default(), done("a", spent(500, 4)));
    settle(&mut run);
    let ((own, tokens), of_tools) = (run.tracker().own(), run.tracker().of_tools);
    assert_eq!((tokens, of_tools), (Tokens(1_010), spent(500, 4)));
    assert_eq!((own.tool_calls, run.keeps().tool_calls), (3, 0));
    // The tool calls of others are the run's, and so are their tokens.
    let tracker = run.tracker();
    assert_eq!(
        (tracker.tool_calls, tracker.tokens_used),
        (7, Tokens(1_510))
    );
    // What others have estimated is theirs, too.
    let estimated = Usage {
        output: Tokens(80),
        ..Usage::default()
    };
    let spent = Spend {
        estimated,
        ..spent(20, 0)
    };
    run.handle(Now::default(), done("b", spent));
    settle(&mut run);
    let tracker = run.tracker();
    assert_eq!(
        (tracker.own().1, tracker.tokens_used),
        (Tokens(1_010), Tokens(1_610))
    );
    // Where a call stands is the same after a crash, and of no other call.
    let key = |id: &str| CallKey::of(&run.setup().session, run.state(), &CallId(id.to_owned()));
    let b = key("b").unwrap();
    assert_eq!((b.seq, b.index, b.to_string()), (Seq(1), 1, ".1-1".into()));
    assert_eq!(key("z"), None);
}

#[test]
fn calls_that_others_have_used_up_do_not_run() {
    let limits = ExecutionLimits {
        max_tool_calls: Some(3),
        ..ExecutionLimits::turns(5)
    };
    let (mut run, _) = working(limits, &["a"]);
    run.handle(Now::default(), done("a", spent(10, 2)));
    settle(&mut run);
    run.handle(Now::default(), reply(vec![Part::text("It is half done.")]));
    let (_, outcome) = settle(&mut run);
    let outcome = outcome.unwrap();
    assert_eq!(
        outcome.reason,
        EndReason::Limit {
            kind: LimitKind::ToolLimit,
            used: 3,
            limit: 3
        }
    );
    assert_eq!(
        (outcome.text.as_str(), outcome.tool_calls),
        ("It is half done.", 3)
    );
}

fn branched(winner: Option<usize>) -> Entry {
    let branch = |name: &str, tokens| BranchRecord {
        session: name.to_owned(),
        config: "default".to_owned(),
        model: "test/test".to_owned(),
        outcome: "answered".to_owned(),
        why: None,
        spent: spent(tokens, 0),
        duration_ms: 5,
    };
    Entry::Branched {
        strategy: "pick_first".to_owned(),
        branches: vec![branch("s.b1-0", 100), branch("s.b1-1", 200)],
        winner,
        judged: spent(1_000, 0),
    }
}

#[test]
fn what_is_taken_over_is_taken_over_whole_or_not_at_all() {
    let mut run = Run::resume(&[], setup(ExecutionLimits::turns(5))).unwrap();
    run.open_log();
    let (mut log, _) = settle(&mut run);
    assert_eq!(log, [Entry::Opened { format: LOG_FORMAT }]);
    let said = Entry::Message {
        message: Arc::new(Message::user("Where to?")),
        queued: None,
    };
    let wrong = Entry::RolledBack { run: 9 };
    assert!(
        run.adopt(branched(Some(0)), vec![said.clone(), wrong])
            .is_err()
    );
    assert!(run.state().transcript().items().is_empty());
    assert_eq!(run.state().usage(), Usage::default());
    assert!(settle(&mut run).0.is_empty());
    // The winner's own entries count what it has used; the record counts the others.
    run.adopt(branched(Some(1)), vec![said.clone()]).unwrap();
    let (entries, _) = settle(&mut run);
    assert_eq!(entries, [branched(Some(1)), said]);
    assert_eq!(run.state().usage().input, Tokens(1_100));
    assert_eq!(run.state().cost().known, Money(14));
    run.adopt(branched(None), Vec::new()).unwrap();
    assert_eq!(run.state().usage().input, Tokens(1_100 + 1_300));
    log.extend(entries);
    log.extend(settle(&mut run).0);
    let again = Run::resume(&log, setup(ExecutionLimits::turns(5))).unwrap();
    assert_eq!(again.state().usage(), run.state().usage());
    for entry in &log {
        let json = serde_json::to_string(entry).unwrap();
        assert_eq!(serde_json::from_str::<Entry>(&json).unwrap(), *entry);
    }
}
