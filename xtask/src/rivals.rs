//! `cargo xtask rivals`: runs `bench/rivals`, a workspace of its own, which drives yoagent's
//! compaction through the sessions of `cargo xtask money`.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;
use crate::recordings::DATA;

/// Prints the tables for the sessions of `data`, or of the default folder beside the workspace.
pub(crate) fn run(root: &Path, data: Option<&Path>) -> Result<(), Error> {
    let beside = root.join(DATA);
    Job::cargo(root)
        .args(["run", "--release", "--locked", "--manifest-path"])
        .args([root.join("bench/rivals/Cargo.toml").as_path()])
        .args(["--"])
        .args([data.unwrap_or(&beside)])
        .run()
}
