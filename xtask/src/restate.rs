//! `cargo xtask restate`: runs the tests of durable runs against a Restate server, which npm
//! installs into the target directory. Not part of `ci`: it needs npm and the network.

use std::path::{Path, PathBuf};

use crate::command::Job;
use crate::error::Error;
use crate::tools;

/// The server, at the version that the tests expect.
const PACKAGE: &str = "@restatedev/restate-server";
const VERSION: &str = "1.7.12";
/// The variable with the path of the program for the tests.
const VARIABLE: &str = "PLIMSOLL_TEST_RESTATE";

/// Installs the server if needed, and runs the tests.
pub(crate) fn run(root: &Path) -> Result<(), Error> {
    let program = install(root)?;
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

/// Installs the server if needed. Returns its program.
pub(crate) fn install(root: &Path) -> Result<PathBuf, Error> {
    if let Some(program) = installed(root) {
        return Ok(program);
    }
    let folder = folder(root);
    std::fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    Job::new("npm", &folder)
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
        .args([format!("{PACKAGE}@{VERSION}")])
        .run()?;
    installed(root).ok_or_else(|| {
        Error::Missing(format!(
            "npm has installed {PACKAGE}, and it has no server for this system"
        ))
    })
}

/// Returns the program if the server is installed.
pub(crate) fn installed(root: &Path) -> Option<PathBuf> {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let machine = match std::env::consts::ARCH {
        "aarch64" => "arm64",
        "x86_64" => "x64",
        other => other,
    };
    let program = folder(root)
        .join("node_modules")
        .join(format!("{PACKAGE}-{system}-{machine}"))
        .join("bin/restate-server");
    program.is_file().then_some(program)
}

fn folder(root: &Path) -> PathBuf {
    root.join("target/restate").join(VERSION)
}
