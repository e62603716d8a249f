//! Whole processes: `plimsoll compact` over sessions made here, one a line and one a file, and how soon
//! `plimsoll count` and `plimsoll compact` are done with a chat of two messages. Rows for the table of
//! `cargo xtask bench`.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use figure::{Amount, Requirement, Unit, median, row, sections, time};

const SESSIONS: usize = 200;
const ROUNDS: usize = 5;
const STARTS: usize = 21;
/// Sizes of whole chats in megabytes, and what the peak of memory has to be. The vocabulary and the
/// program take 18 MB, which is most of it for a small chat.
const WHOLE: [(usize, Requirement); 3] = [
    (1, Requirement::Nothing),
    (10, Requirement::Nothing),
    (100, Requirement::AtMost(6.0)),
];
/// A message that says nothing: no server accepts it.
const SILENT: &str = r#"{"role":"assistant","content":null},"#;
/// Linux counts in hundredths of a second.
const MILLIS_PER_TICK: f64 = 10.0;

fn main() {
    sections(&[
        ("compact_lines", compact_lines),
        ("compact_whole", compact_whole),
        ("cold_start", cold_start),
    ]);
}

/// One chat of each size, as it is accepted and with a message in it that has to be repaired.
fn compact_whole() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    for (megabytes, most) in WHOLE {
        for (kind, damage) in [("valid", None), ("damaged", Some(SILENT))] {
            let path = folder.path().join(format!("{megabytes}-{kind}.json"));
            let bytes = write_chat(&path, megabytes * 1_000_000, damage);
            let spent = resources(&["compact", "--budget", "8000"], &path);
            let chat = format!("`compact --budget 8000` of a {kind} chat of {megabytes} MB");
            row(
                &format!("{chat}: CPU time"),
                Amount(spent.cpu, Unit::Millis),
                Requirement::Nothing,
            );
            let times = spent.peak / bytes as f64;
            let what = format!("{chat}: peak of memory beside the file");
            let most = if damage.is_none() {
                most
            } else {
                Requirement::Nothing
            };
            row(&what, Amount(times, Unit::Times), most);
        }
    }
}

/// Writes sessions as one chat. Returns its size.
fn write_chat(path: &Path, size: usize, damage: Option<&str>) -> usize {
    let mut chat = String::from("{\"model\":\"gpt-5\",\"messages\":[");
    let mut number = 0;
    while chat.len() < size {
        let messages = session(number);
        let messages = messages.as_array().expect("a list").iter();
        for message in messages.skip(usize::from(number > 0)) {
            chat.push_str(&message.to_string());
            chat.push(',');
        }
        if number == 0 {
            chat.push_str(damage.unwrap_or_default());
        }
        number += 1;
    }
    chat.pop();
    chat.push_str("]}");
    std::fs::write(path, &chat).expect("it is written");
    chat.len()
}

/// What a process used.
struct Resources {
    /// Milliseconds.
    cpu: f64,
    /// Bytes.
    peak: f64,
}

/// Returns what one process used, as Linux tells it: its memory is looked at until it ends, its time
/// counts in hundredths of a second. Zero elsewhere.
fn resources(arguments: &[&str], input: &Path) -> Resources {
    let before = children_ticks();
    let mut child = command(arguments, input).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    while child.try_wait().expect("it runs").is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        peak = kilobytes.map_or(peak, |kilobytes| kilobytes * 1_024.0);
        std::thread::sleep(Duration::from_millis(1));
    }
    Resources {
        cpu: (children_ticks() - before) * MILLIS_PER_TICK,
        peak,
    }
}

/// Returns the time of all children that have ended.
fn children_ticks() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(13).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
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
            Requirement::Nothing,
        );
        let what = format!(
            "the same, sessions of {} KB on average",
            input.len() / SESSIONS / 1_000
        );
        let speed = SESSIONS as f64 / spent;
        row(&what, Amount(speed, Unit::PerSecond), Requirement::Nothing);
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
        ("count --counter o200k", Requirement::Nothing),
        ("count --counter estimate", Requirement::Nothing),
        ("compact --budget 8000", Requirement::AtMost(60.0)),
    ] {
        let arguments: Vec<&str> = command.split(' ').collect();
        let once = |_| run(&arguments, &path).as_secs_f64() * 1e3;
        let spent = median((0..STARTS).map(once).collect());
        let what = format!("`{command}` of two messages, the whole process");
        row(&what, Amount(spent, Unit::Millis), required);
    }
}

fn command(arguments: &[&str], input: &Path) -> Command {
    let input = File::open(input).expect("it is there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
    command
        .args(arguments)
        .stdin(input)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// How long one process takes from its start to its end.
fn run(arguments: &[&str], input: &Path) -> Duration {
    let mut command = command(arguments, input);
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
