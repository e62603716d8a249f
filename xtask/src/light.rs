//! `cargo xtask light`: runs the README's `cargo plimsoll run` once per seed. Each answer is judged
//! by a fact from a file that the agent has to read.
//!
//! It measures the default local model and takes minutes per seed, so it is not part of `ci`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::Error;
use crate::fresh::commands;

/// The fact that the answer must contain. It is in `docs/stages/6-ladder.md` and not in the task.
const FACT: &str = "CannotFit";
/// Maximum time of a run.
const LIMIT: Duration = Duration::from_secs(600);
/// The required share of successful runs: nine of ten.
const SHARE: (u64, u64) = (9, 10);

/// The result of one run.
struct Run {
    answered: bool,
    plans: u64,
    turns: u64,
    text: String,
    took: Duration,
}

/// Runs the command for the seeds 1 to `seeds`.
pub(crate) fn run(root: &Path, seeds: u64) -> Result<(), Error> {
    let readme = root.join("README.md");
    let text = std::fs::read_to_string(&readme).map_err(Error::file(&readme))?;
    let command = commands(&text)
        .into_iter()
        .find(|command| command.starts_with("cargo plimsoll run "))
        .ok_or_else(|| Error::Unreadable {
            what: "README.md".to_owned(),
            why: "its first ```sh block has no `cargo plimsoll run`".to_owned(),
        })?;
    println!("| seed | good | plans | turns | seconds | answer |");
    println!("|--:|---|--:|--:|--:|---|");
    let mut good = 0;
    for seed in 1..=seeds {
        let run = once(root, &command, seed)?;
        let is_good = run.answered && run.plans > 0 && run.text.contains(FACT) && run.took <= LIMIT;
        good += u64::from(is_good);
        let verdict = if is_good { "yes" } else { "no" };
        let answer: String = run
            .text
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .chars()
            .take(80)
            .collect();
        println!(
            "| {seed} | {verdict} | {} | {} | {:.0} | {answer} |",
            run.plans,
            run.turns,
            run.took.as_secs_f64()
        );
    }
    println!("{good} of {seeds} runs are good");
    if good * SHARE.1 < seeds * SHARE.0 {
        return Err(Error::Missing(format!(
            "only {good} of {seeds} runs are good; {} in {} must be",
            SHARE.0, SHARE.1
        )));
    }
    Ok(())
}

fn once(root: &Path, command: &str, seed: u64) -> Result<Run, Error> {
    let start = Instant::now();
    let output = Command::new("sh")
        .args(["-ec", &format!("{command} --seed {seed} --json")])
        .current_dir(root)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .map_err(Error::file("sh"))?;
    let took = start.elapsed();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let end = stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .rfind(|event| event.get("event").is_some_and(|kind| kind == "agent_end"))
        .unwrap_or_default();
    let outcome = |key: &str| end.pointer(&format!("/outcome/{key}"));
    let number = |key: &str| outcome(key).and_then(Value::as_u64).unwrap_or_default();
    let text = outcome("text").and_then(Value::as_str);
    Ok(Run {
        answered: output.status.success(),
        plans: number("plans"),
        turns: number("turns"),
        text: text.unwrap_or("(none)").to_owned(),
        took,
    })
}
