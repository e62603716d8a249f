//! `cargo xtask sdk`: runs the official Python SDKs of OpenAI and Anthropic, in strict validation,
//! against `plimsoll-mock`.
//!
//! Needs Python and, once, PyPI (pip uses its own variables). The SDKs are pinned in
//! `sdk/requirements.txt` and installed only below the target directory.

use std::path::{Path, PathBuf};

use crate::command::Job;
use crate::error::Error;
use crate::tools;

/// Runs all checks, or those with `part` in their names.
pub(crate) fn run(root: &Path, part: Option<&str>) -> Result<(), Error> {
    let python = installed(root)?;
    Job::cargo(root)
        .args(["build", "--package", "plimsoll-mock"])
        .run()?;
    let mock = format!("debug/plimsoll-mock{}", std::env::consts::EXE_SUFFIX);
    let mock = tools::target(root).join(mock);
    Job::new(python, &root.join("sdk"))
        .args(["-B", "check.py"])
        .args([mock])
        .args(part)
        .run()
}

/// Returns the Python of an environment with the pinned packages.
fn installed(root: &Path) -> Result<PathBuf, Error> {
    let folder = tools::target(root).join("sdk");
    let binaries = if cfg!(windows) { "Scripts" } else { "bin" };
    let python = folder.join(binaries).join("python");
    let (wanted, have) = (
        root.join("sdk/requirements.txt"),
        folder.join("installed.txt"),
    );
    let list = std::fs::read_to_string(&wanted).map_err(Error::file(&wanted))?;
    // If the list cannot be read, nothing is installed.
    if std::fs::read_to_string(&have).is_ok_and(|have| have == list) {
        return Ok(python);
    }
    Job::new(tools::python(root)?, root)
        .args(["-m", "venv", "--clear"])
        .args([&folder])
        .run()?;
    Job::new(&python, root)
        .args(["-m", "pip", "install", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--requirement"])
        .args([&wanted])
        .run()?;
    std::fs::write(&have, list).map_err(Error::file(&have))?;
    Ok(python)
}
