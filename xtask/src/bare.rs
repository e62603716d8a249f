//! The builds that the other steps of `ci` do not make: without any feature, and with those that
//! everybody has by default. Every other step has all features, so what stands under
//! `cfg(not(feature = …))` is compiled and tried only here. No other tests are run again.

use std::path::Path;

use crate::command::{Job, Stream};
use crate::error::Error;
use crate::steps::Outcome;
use crate::test::Counts;

/// What has features of its own.
const PACKAGES: [&str; 4] = ["-p", "plimsoll-cli", "-p", "plimsoll-providers"];
/// No feature, and the default ones.
const SETS: [&[&str]; 2] = [&["--no-default-features"], &[]];
/// In the names of the tests that are there only without a feature, and of no others.
const ONLY_HERE: &str = "not_in_this_build";

/// Checks both builds, then runs the tests that only the first has.
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
