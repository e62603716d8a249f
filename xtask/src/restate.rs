//! `cargo xtask restate`: the tests of durable runs against a server of Restate, which npm installs into the
//! target directory. Not part of `ci`: it needs npm and the network.

use std::path::Path;

use crate::command::Job;
use crate::error::Error;
use crate::tools;

/// The server, at the version that the tests know.
const PACKAGE: &str = "@restatedev/restate-server";
const VERSION: &str = "1.7.12";
/// Names the program to the tests.
const VARIABLE: &str = "PLIMSOLL_TEST_RESTATE";

/// Installs the server where it is not there yet, and runs the tests.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let folder = root.join("target/restate").join(VERSION);
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        "x86_64" => "x64",
        other => other,
    };
    let program = folder
        .join("node_modules")
        .join(format!("{PACKAGE}-{system}-{machine}"))
        .join("bin/restate-server");
    if !program.is_file() {
        std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
        let package = format!("{PACKAGE}@{VERSION}");
        Job::new("npm", &folder)
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args([package])
            .run()?;
    }
    let nextest = tools::NEXTEST.find(root)?;
    Job::new(nextest, root)
        .args([
            "nextest",
            "run",
            "-p",
            "plimsoll-cli",
            "-p",
            "plimsoll-restate",
        ])
        .args(["--features", "plimsoll-cli/restate"])
        .args(["-E", "binary(durable) or package(plimsoll-restate)"])
        .env(VARIABLE, &program)
        .run()
}
