//! Builds that the other steps of `ci` do not make: without any feature, and with the default
//! features.
//!
//! All other steps enable all features, so code under `cfg(not(feature = …))` is compiled and
//! tested only here. Other tests are not run again.

use std::path::Path;

use crate::command::{Job, Stream};
use crate::error::Error;
use crate::steps::Outcome;
use crate::test::Counts;

/// The packages that have features.
const PACKAGES: [&str; 4] = ["-p", "plimsoll-cli", "-p", "plimsoll-providers"];
/// No features, and the default features.
const SETS: [&[&str]; 2] = [&["--no-default-features"], &[]];
/// Part of the names of tests that exist only without a feature.
const ONLY_HERE: &str = "not_in_this_build";

/// Checks both builds, then runs the tests that exist only in the first one.
pub(crate) fn run(root: &Path) -> Outcome {
    for set in SETS {
        Job::cargo(root)
            .args(["clippy", "--all-targets"])
            .args(PACKAGES)
            .args(set)
            .args(["--", "-D", "warnings"])
            .run()?;
    }
    let mut counts = Counts::default();
    Job::cargo(root)
        .args(["test", "--no-default-features", "--lib", "--test", "cli"])
        .args(PACKAGES)
        .args([ONLY_HERE])
        .watch(Stream::Out, |line| counts.read(line))?;
    match counts.passed() {
        0 => Err(Error::Missing(format!(
            "no test is called {ONLY_HERE}, and what a build without features says is not tried"
        ))),
        passed => Ok(format!("{passed} passed")),
    }
}
