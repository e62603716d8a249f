//! `cargo xtask judge`, `money` and `rivals`: measurements on recorded sessions. The programs are in
//! `bench/research` and `bench/rivals`, a workspace of its own that drives yoagent's compaction.

use std::ffi::OsString;
use std::path::Path;

use crate::command::Job;
use crate::error::Error;

/// The default folder of sessions, relative to the root of the workspace.
const DATA: &str = "../shared/data/normalized";

/// Runs one measurement of `bench/research` with its own arguments.
pub(crate) fn run(root: &Path, name: &str, arguments: &[OsString]) -> Result<(), Error> {
    Job::cargo(root)
        .args(["run", "--quiet", "--package", "plimsoll-research", "--"])
        .args([name])
        .args(arguments)
        .run()
}

/// Prints the tables of yoagent for the sessions of `data`, or of the default folder.
pub(crate) fn rivals(root: &Path, data: Option<&Path>) -> Result<(), Error> {
    let beside = root.join(DATA);
    Job::cargo(root)
        .args(["run", "--release", "--locked", "--manifest-path"])
        .args([root.join("bench/rivals/Cargo.toml").as_path()])
        .args(["--"])
        .args([data.unwrap_or(&beside)])
        .run()
}
