//! `cargo xtask chaos`: runs whose processes, database and server are killed and stopped at random.
//! Builds `bench/chaos`, which plays the scenarios, and the program under test. Installs Restate
//! with npm.

use std::path::{Path, PathBuf};

use crate::command::{Job, Stream};
use crate::error::Error;
use crate::restate;
use crate::steps::Outcome;

/// The scenarios to play, and their size.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) seed: Option<u64>,
    pub(crate) sessions: u64,
    pub(crate) kills: u64,
    pub(crate) minutes: u64,
    /// The only scenario to play; `None` plays all.
    pub(crate) only: Option<String>,
    pub(crate) json: bool,
}

/// The options of `ci`: half a minute.
const SHORT: Options = Options {
    seed: Some(1),
    sessions: 6,
    kills: 20,
    minutes: 1,
    only: None,
    json: false,
};

/// Builds everything and plays the scenarios.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), Error> {
    let server = match options.only.as_deref() {
        Some("local") => None,
        _ => Some(restate::install(root)?),
    };
    build(root)?;
    job(root, options, server).run()
}

/// Plays short scenarios with the installed servers and the binaries built by the tests. Returns
/// notes on skipped scenarios.
pub(crate) fn short(root: &Path) -> Outcome {
    let server = restate::installed(root);
    if server.is_some() {
        // The tests build no worker.
        build(root)?;
    }
    let mut skipped = Vec::new();
    job(root, &SHORT, server).watch(Stream::Out, |line| {
        if line.contains(": skipped: ") {
            skipped.push(line.trim().to_owned());
        }
    })?;
    Ok(skipped.join("; "))
}

fn build(root: &Path) -> Result<(), Error> {
    Job::cargo(root)
        .args([
            "build",
            "--bins",
            "-p",
            "plimsoll-cli",
            "-p",
            "plimsoll-chaos",
        ])
        .args(["--features", "plimsoll-cli/restate"])
        .run()
}

/// Returns the command that plays the scenarios with the built programs.
fn job(root: &Path, options: &Options, server: Option<PathBuf>) -> Job {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root.join("target"), PathBuf::from);
    let built = |name: &str| target.join("debug").join(name);
    let mut job = Job::new(built("plimsoll-chaos"), root)
        .args(["--program".as_ref(), built("plimsoll").as_os_str()])
        .args(["--logs".as_ref(), target.join("chaos").as_os_str()])
        .args(["--sessions".to_owned(), options.sessions.to_string()])
        .args(["--kills".to_owned(), options.kills.to_string()])
        .args(["--minutes".to_owned(), options.minutes.to_string()]);
    if let Some(seed) = options.seed {
        job = job.args(["--seed".to_owned(), seed.to_string()]);
    }
    if let Some(server) = server {
        job = job.args(["--restate".as_ref(), server.as_os_str()]);
    }
    if let Some(only) = &options.only {
        job = job.args(["--only", only]);
    }
    if options.json {
        job = job.args(["--json"]);
    }
    job
}
