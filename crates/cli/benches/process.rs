//! Whole processes: `plimsoll compact --lines` over sessions made here, and how soon
//! `plimsoll count` and `plimsoll compact` are done with a chat of two messages. Rows for the table of `cargo xtask bench`.
#![allow(clippy::expect_used)]

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use figure::{Amount, Required, Unit, median, row, sections, time};

const SESSIONS: usize = 200;
const ROUNDS: usize = 5;
const STARTS: usize = 21;

fn main() {
    sections(&[("compact_lines", compact_lines), ("cold_start", cold_start)]);
}

/// Sessions of 10 to 400 messages, most of them far over the budget.
fn compact_lines() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("sessions.jsonl");
    let lines: Vec<String> = (0..SESSIONS).map(|n| session(n).to_string()).collect();
    let input = lines.join("\n") + "\n";
    std::fs::write(&path, &input).expect("it is written");
    for policy in ["extract", "evict", "sliding_window"] {
        let arguments = ["compact", "--lines", "--budget", "8000", "--policy", policy];
        let once = |_| run(&arguments, &path).as_secs_f64();
        let spent = median((0..ROUNDS).map(once).collect());
        let what = format!("`compact --lines --budget 8000 --policy {policy}`: chats read");
        let speed = input.len() as f64 / 1e6 / spent;
        row(
            &what,
            Amount(speed, Unit::MegabytesPerSecond),
            Required::Nothing,
        );
        let what = format!(
            "the same, sessions of {} KB on average",
            input.len() / SESSIONS / 1_000
        );
        let speed = SESSIONS as f64 / spent;
        row(&what, Amount(speed, Unit::PerSecond), Required::Nothing);
    }
}

fn cold_start() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("chat.json");
    let chat = json!([
        { "role": "user", "content": "What is 6 × 7?" },
        { "role": "assistant", "content": "42" },
    ]);
    std::fs::write(&path, chat.to_string()).expect("it is written");
    for (command, required) in [
        ("count --counter o200k", Required::Nothing),
        ("count --counter estimate", Required::Nothing),
        ("compact --budget 8000", Required::AtMost(60.0)),
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let once = |_| run(&arguments, &path).as_secs_f64() * 1e3;
        let spent = median((0..STARTS).map(once).collect());
        let what = format!("`{command}` of two messages, the whole process");
        row(&what, Amount(spent, Unit::Millis), required);
    }
}

/// How long one process takes from its start to its end.
fn run(arguments: &[&str], input: &Path) -> Duration {
    let input = File::open(input).expect("it is there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command
        .args(arguments)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    time(|| {
        let status = command.status().expect("it starts");
        assert!(status.success(), "{arguments:?}: {status}");
    })
}

fn session(n: usize) -> Value {
    let mut messages = vec![
        json!({ "role": "system", "content": "You keep the harbour's books." }),
        json!({ "role": "user", "content": format!("Why do the books of year {n} not add up?") }),
    ];
    for turn in 0..4 + n * 37 % 196 {
        let id = format!("call_{n}_{turn}");
        let arguments = json!({ "path": format!("books/{n}/{turn}.txt") }).to_string();
        messages.push(json!({
            "role": "assistant",
            "content": format!("Now page {turn}."),
            "tool_calls": [{
                "id": id,
                "type": "function",
                "function": { "name": "read", "arguments": arguments },
            }],
        }));
        let page: String = (0..5 + turn * 13 % 40)
            .map(|line| {
                format!(
                    "{line}: ship {turn} took on {} barrels of oil\n",
                    n * 31 + line
                )
            })
            .collect();
        messages.push(json!({ "role": "tool", "tool_call_id": id, "content": page }));
    }
    messages.push(json!({ "role": "user", "content": "And the ships that never came back?" }));
    Value::Array(messages)
}
