//! `cargo xtask chaos`: runs whose processes, database and server are killed and stopped at random. Builds
//! `bench/chaos`, which plays the scenarios, and the program that is tried; installs Restate with npm.

use std::path::{Path, PathBuf};

use crate::command::Job;
use crate::error::Error;
use crate::restate;

/// What is to be played.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) seed: Option<u64>,
    pub(crate) sessions: u64,
    pub(crate) kills: u64,
    pub(crate) minutes: u64,
    /// One scenario, or all.
    pub(crate) only: Option<String>,
    pub(crate) json: bool,
}

/// Builds everything and plays the scenarios.
pub(crate) fn run(root: &Path, options: &Options) -> Result<(), Error> {
    let needs_restate = options.only.as_deref() != Some("local");
    let server = needs_restate.then(|| restate::install(root)).transpose()?;
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
        .run()?;
    play(root, options, server)
}

/// Plays the scenarios with the programs that were built.
fn play(root: &Path, options: &Options, server: Option<PathBuf>) -> Result<(), Error> {
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
    job.run()
}
