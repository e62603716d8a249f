//! What machine and driver add to a turn: a model that answers at once, a tool that returns at once
//! and a log in memory. Rows for the table of `cargo xtask bench`. Not a test of what a run does.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;
mod instant;

use std::sync::Arc;

use plimsoll_agent::{Input, Now, Run, Setup, Step};
use plimsoll_context::{
    Bpe, CallId, ContextStrategy, Memo, Part, Reply, StopReason, Tokens, ToolCall, ToolResult,
    ToolSpec,
};
use plimsoll_core::{Agent, Session, SessionId, ToolError, Window, tool};
use tokio::runtime::{Builder, Runtime};

use figure::{Amount, Requirement, Unit, median, row, sections, time};
use instant::{Instantly, Nothing};

/// Machine and driver may add this to a turn.
const BOUND: Requirement = Requirement::AtMost(100.0);
const SESSIONS: usize = 9;

fn main() {
    sections(&[
        ("turns_of_a_session", turns_of_a_session),
        ("turns_on_a_long_view", turns_on_a_long_view),
        ("turns_with_tools", turns_with_tools),
    ]);
}

/// 1,000 turns, each with one tool call, from an empty session on.
fn turns_of_a_session() {
    for (name, runtime) in runtimes() {
        let one = |_| {
            let provider = Instantly::new();
            let mut session = open(&runtime, &provider);
            per_turn(&runtime, &mut session, &provider, 1_000)
        };
        let spent = median((0..SESSIONS).map(one).collect());
        let what = format!("machine and driver, a turn of 1,000 with a tool call each, {name}");
        row(&what, Amount(spent, Unit::Micros), BOUND);
    }
}

/// The same where the view holds so many messages before the first turn that is timed.
fn turns_on_a_long_view() {
    let lengths = [(1_000, BOUND), (10_000, Requirement::Nothing)];
    for (name, runtime) in runtimes() {
        for (length, required) in lengths {
            let provider = Instantly::new();
            let mut session = open(&runtime, &provider);
            per_turn(&runtime, &mut session, &provider, length / 2);
            let one = |_| per_turn(&runtime, &mut session, &provider, 20);
            let spent = median((0..SESSIONS).map(one).collect());
            let what = format!("the same with a view of {length} messages, {name}");
            row(&what, Amount(spent, Unit::Micros), required);
        }
    }
}

/// The machine's part of a turn: it takes a result, checks and plans, and makes the request.
fn turns_with_tools() {
    const TURN: Requirement = Requirement::AtMost(60.0);
    for tools in [1, 100, 1_000] {
        for messages in [100, 1_000, 10_000] {
            let mut run = machine(tools);
            turns(&mut run, messages / 2);
            let one = |_| time(|| turns(&mut run, 20)).as_secs_f64() * 1e6 / 20.0;
            let spent = median((0..SESSIONS).map(one).collect());
            let what = format!("the machine, a turn with {tools} tools and {messages} messages");
            row(&what, Amount(spent, Unit::Micros), TURN);
        }
    }
}

/// A machine whose run has begun, with the default policy.
fn machine(tools: usize) -> Run {
    let policy = ContextStrategy::default().policy(Default::default(), Default::default());
    let mut setup = Setup::new("bench/none", Arc::new(Memo::new(Bpe::o200k())), policy);
    setup.line.window = Some(Tokens(10_000_000));
    let limits = plimsoll_agent::ExecutionLimits::turns(u64::MAX);
    setup.limits = Arc::new(limits);
    let schema = serde_json::json!({
        "type": "object",
        "properties": { "path": { "type": "string", "description": "The page to read" } },
    });
    setup.tools = (0..tools)
        .map(|n| plimsoll_agent::KnownTool {
            spec: ToolSpec {
                name: format!("read_{n}"),
                description: format!("Reads page {n} of the harbour's books."),
                schema: schema.clone(),
            },
            idempotent: true,
            asks: false,
            edits_files: false,
            target: Default::default(),
        })
        .collect();
    let mut run = Run::resume(&[], setup).expect("an empty log");
    let task = vec![Part::text("Read all pages.")];
    run.handle(Now::default(), Input::User(task.into()));
    run
}

/// So many turns with a tool call each.
fn turns(run: &mut Run, turns: usize) {
    let mut left = turns;
    loop {
        match run.poll() {
            Step::Call(request) => {
                std::hint::black_box(request);
                if left == 0 {
                    // The next turns begin with the answer to this call.
                    return;
                }
                left -= 1;
                answer(run);
            }
            Step::Execute(call) => run.handle(
                Now::default(),
                Input::ToolDone {
                    result: ToolResult {
                        call: call.id,
                        parts: vec![Part::text("a page of the harbour's books")],
                        is_error: false,
                    },
                    spent: Default::default(),
                },
            ),
            // The call of the turns before has not been answered.
            Step::Wait => {
                left -= 1;
                answer(run);
            }
            Step::Finish(outcome) => panic!("it ended: {outcome:?}"),
            _ => {}
        }
    }
}

fn answer(run: &mut Run) {
    let turn = run.tracker().turns;
    let call = Part::ToolCall(ToolCall {
        id: CallId(format!("call_{turn}")),
        name: "read_0".to_owned(),
        arguments: format!("{{\"path\":\"{turn}\"}}"),
        opaque: None,
    });
    let reply = Reply {
        parts: vec![call],
        stop: StopReason::ToolCalls,
        usage: None,
        model: None,
    };
    run.handle(Now::default(), Input::Reply(Box::new(Ok(reply))));
}

fn runtimes() -> [(&'static str, Runtime); 2] {
    let here = Builder::new_current_thread().enable_all().build();
    let two = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    [
        ("one thread", here.expect("a runtime")),
        ("two threads", two.expect("a runtime")),
    ]
}

fn open(runtime: &Runtime, provider: &Arc<Instantly>) -> Session {
    let read = tool("read", "Reads a page.", |_: Nothing| async {
        Ok::<_, ToolError>("a page of the harbour's books")
    });
    let agent = Agent::builder_shared(Arc::<Instantly>::clone(provider))
        .system("You keep the harbour's books.")
        .tool(read)
        .window(Window::Known(Tokens(10_000_000)))
        .max_turns(u64::MAX)
        .build()
        .expect("good settings");
    let id = SessionId::new("bench").expect("a good name");
    runtime.block_on(agent.session(id)).expect("it opens")
}

/// Microseconds a turn of a run of so many turns and a last one.
fn per_turn(runtime: &Runtime, session: &mut Session, provider: &Instantly, turns: usize) -> f64 {
    provider.calls(turns);
    let spent = time(|| {
        let output = runtime.block_on(session.run("Read all pages."));
        let output = output.expect("it runs");
        assert_eq!(output.tool_calls, turns as u64);
    });
    spent.as_secs_f64() * 1e6 / (turns + 1) as f64
}
