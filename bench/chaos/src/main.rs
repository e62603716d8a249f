//! Kills and pauses the processes that sessions depend on, at random, and checks that nothing is
//! lost or done twice. `cargo xtask chaos` builds and runs it; it is not shipped to users.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![cfg(unix)]

mod check;
mod durable;
mod ledger;
mod local;
mod model;
mod plan;
mod random;
mod report;
mod servers;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Parser, ValueEnum, value_parser};

use report::Report;

/// Prefix of the names of temporary folders.
const PREFIX: &str = "plimsoll-chaos-";
/// Maximum time for processes to end after the last one was killed.
const LAST: Duration = Duration::from_secs(5);
/// Time between two checks of the parent process.
const LOOK: Duration = Duration::from_millis(500);

/// Kills and pauses whatever sessions run on, and checks that nothing is lost or done twice.
#[derive(Debug, Parser)]
struct Arguments {
    /// The program `plimsoll` that is tried
    #[arg(long)]
    program: PathBuf,
    /// Decides what the sessions do and what is killed when; without it the time
    #[arg(long)]
    seed: Option<u64>,
    /// The server of Restate; without it there are no durable runs
    #[arg(long)]
    restate: Option<PathBuf>,
    /// Play only one scenario
    #[arg(long, value_enum)]
    only: Option<Scenario>,
    /// Durable runs
    #[arg(long, default_value_t = 200, value_parser = value_parser!(u64).range(1..=1_000))]
    sessions: u64,
    /// Kills of local runs
    #[arg(long, default_value_t = 1_000, value_parser = value_parser!(u64).range(..=100_000))]
    kills: u64,
    /// How long each scenario may take
    #[arg(long, default_value_t = 30, value_parser = value_parser!(u64).range(1..=600))]
    minutes: u64,
    /// Folder for the logs of sessions that have violations
    #[arg(long)]
    logs: PathBuf,
    /// Print the figures as one JSON value
    #[arg(long)]
    json: bool,
}

/// What can be played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Scenario {
    /// Runs on SQLite that are killed.
    Local,
    /// Durable runs whose workers, database and server are killed and stopped.
    Durable,
}

/// The options of the scenarios.
#[derive(Debug)]
struct Options {
    program: PathBuf,
    seed: u64,
    sessions: u64,
    kills: u64,
    time: Duration,
    logs: PathBuf,
}

/// The reason why a scenario could not be played.
#[derive(Debug)]
struct Failure(String);

impl Failure {
    fn start(program: &Path, error: std::io::Error) -> Self {
        Self(format!("could not start `{}`: {error}", program.display()))
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Dropping the losing future kills all processes that it started.
    let played = tokio::select! {
        played = play(&arguments) => played,
        why = stopped() => Err(Failure(why.to_owned())),
    };
    match played {
        Ok(reports) if reports.iter().all(|report| report.violations.is_empty()) => {
            ExitCode::SUCCESS
        }
        Ok(_) => ExitCode::FAILURE,
        Err(Failure(why)) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

async fn play(arguments: &Arguments) -> Result<Vec<Report>, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = arguments.seed.unwrap_or(now.map_or(1, |now| now.as_secs()));
    let options = Options {
        program: arguments.program.clone(),
        seed,
        sessions: arguments.sessions,
        kills: arguments.kills,
        time: Duration::from_secs(60 * arguments.minutes),
        logs: arguments.logs.clone(),
    };
    eprintln!("seed {seed}");
    let mut reports = Vec::new();
    if arguments.only != Some(Scenario::Durable) {
        reports.push(local::run(&options).await?);
    }
    if arguments.only != Some(Scenario::Local) {
        let restate = arguments.restate.as_deref();
        reports.push(durable::run(&options, restate).await?);
    }
    if arguments.json {
        let values: Vec<_> = reports.iter().map(Report::json).collect();
        println!("{}", serde_json::Value::Array(values));
    } else {
        print!("{}", report::table(&reports));
    }
    Ok(reports)
}

/// Waits until this process is asked to stop, or its parent process has ended. Returns the reason.
async fn stopped() -> &'static str {
    use tokio::signal::unix::{SignalKind, signal};
    let parent = rustix::process::getppid();
    let orphaned = async {
        while rustix::process::getppid() == parent {
            tokio::time::sleep(LOOK).await;
        }
    };
    let (Ok(mut terminate), Ok(mut hang_up)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::hangup()),
    ) else {
        return "signals cannot be heard";
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => "interrupted",
        _ = terminate.recv() => "terminated",
        _ = hang_up.recv() => "the terminal is gone",
        () = orphaned => "the process that started this one is gone",
    }
}

/// Returns the command lines of processes that still refer to a folder, after giving them time to
/// end.
async fn left_behind(folder: &Path) -> Vec<String> {
    let since = std::time::Instant::now();
    loop {
        let left = naming(folder);
        if left.is_empty() || since.elapsed() > LAST {
            return left;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Returns the command lines of processes that refer to a folder. Empty on systems without `/proc`.
fn naming(folder: &Path) -> Vec<String> {
    let name = folder.to_string_lossy();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|process| {
            let line = std::fs::read(process.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(&*name).then(|| line.trim().to_owned())
        })
        .collect()
}
