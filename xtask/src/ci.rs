//! `cargo xtask ci`: all checks that must pass before a change lands, cheapest first, so that
//! faults are reported early.
//!
//! All checks run even if one fails. They share one target directory, and no check uses flags that
//! would rebuild the output of another one.

use std::cell::Cell;
use std::path::Path;
use std::time::Duration;

use crate::command::Job;
use crate::error::Error;
use crate::steps::{self, Step};
use crate::test::Counts;
use crate::{api, chaos, deny, dist, test, tidy};

/// Maximum time of all checks on two cores with an empty target directory.
const BUDGET: Duration = Duration::from_secs(15 * 60);

/// Runs all checks.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let quiet = |()| String::new();
    let counts = Cell::new(Counts::default());
    let mut steps = vec![
        Step {
            name: "lock",
            act: Box::new(|| locked(root).map(quiet)),
        },
        Step {
            name: "format",
            act: Box::new(|| {
                let job = Job::cargo(root).args(["fmt", "--all", "--", "--check"]);
                job.run().map(quiet)
            }),
        },
        Step {
            name: "tidy",
            act: Box::new(|| tidy::run(root).map(quiet)),
        },
        Step {
            name: "deny",
            act: Box::new(|| deny::run(root)),
        },
        Step {
            name: "unused",
            act: Box::new(|| deny::unused(root)),
        },
        Step {
            name: "packages",
            act: Box::new(|| packages(root).map(quiet)),
        },
        Step {
            name: "clippy",
            act: Box::new(|| clippy(root).map(quiet)),
        },
    ];
    steps.extend(test::steps(root, &counts));
    // The tests have built the processes that are killed here.
    steps.push(Step {
        name: "chaos",
        act: Box::new(|| chaos::short(root)),
    });
    // The tests have built the program. This step tests the packaging, not the speed of the
    // program.
    steps.push(Step {
        name: "dist",
        act: Box::new(|| dist::try_packages(root).map(quiet)),
    });
    steps.push(Step {
        name: "api",
        act: Box::new(|| api::run(root)),
    });
    steps.push(Step {
        name: "docs",
        act: Box::new(|| docs(root).map(quiet)),
    });
    let result = steps::run(&steps, Some(BUDGET));
    println!("{}", counts.get());
    result
}

/// Checks that both lock files are committed and match the manifests. Later steps may therefore
/// omit `--locked`.
fn locked(root: &Path) -> Result<(), Error> {
    println!("$ cargo metadata --locked");
    let job = Job::cargo(root).args(["metadata", "--locked", "--format-version", "1"]);
    job.read().map(drop)?;
    // The rivals are a workspace of their own. Only its index is read.
    Job::cargo(root)
        .args(["update", "--workspace", "--locked"])
        .args(["--manifest-path", "bench/rivals/Cargo.toml"])
        .run()
}

/// Checks that every published crate has the metadata that a registry requires, and its files. A
/// build from the packaged files needs `cargo package --workspace`, which compiles everything
/// again.
fn packages(root: &Path) -> Result<(), Error> {
    Job::cargo(root)
        .args([
            "package",
            "--workspace",
            "--exclude",
            "xtask",
            "--exclude",
            "plimsoll-examples",
            "--exclude",
            "plimsoll-chaos",
            "--exclude",
            "plimsoll-research",
            "--exclude",
            "plimsoll-testkit",
        ])
        .args(["--no-verify", "--allow-dirty"])
        .run()
}

/// Checks all code, with the one feature of the program that is not on by default.
fn clippy(root: &Path) -> Result<(), Error> {
    Job::cargo(root)
        .args(["clippy", "--workspace", "--all-targets"])
        .args(["--features", "plimsoll-cli/restate"])
        .args(["--", "-D", "warnings"])
        .run()
}

/// Builds the documentation of the libraries only: the facade and the program are both called
/// `plimsoll`, and their pages would overwrite each other. The examples in the docs ran with the
/// tests.
fn docs(root: &Path) -> Result<(), Error> {
    Job::cargo(root)
        .args(["doc", "--workspace", "--lib", "--no-deps"])
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()
}
