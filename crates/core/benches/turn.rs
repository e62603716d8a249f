//! What machine and driver add to a turn: a model that answers at once, a tool that returns at once
//! and a log in memory. Rows for the table of `cargo xtask bench`. Not a test of what a run does.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;
mod instant;

use std::sync::Arc;

use plimsoll_context::Tokens;
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
