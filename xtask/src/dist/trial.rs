//! Installs the packages into empty folders, from the files alone as a newcomer would, and runs the
//! installed program.

use std::path::{Path, PathBuf};

use super::{Packages, VERSION, python};
use crate::command::Job;
use crate::error::Error;

/// A chat of one message. The installed program counts its tokens.
const CHAT: &str = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"Ahoy"}]}"#;

/// Tries the archive, the install script, the npm packages and the wheel. Packages whose installer
/// is not on this machine are skipped with a note.
pub(super) fn run(root: &Path, dist: &Path, packages: &Packages) -> Result<(), Error> {
    let place = dist.join("trial");
    if place.exists() {
        std::fs::remove_dir_all(&place).map_err(Error::file(&place))?;
    }
    std::fs::create_dir_all(&place).map_err(Error::file(&place))?;
    let chat = place.join("chat.json");
    std::fs::write(&chat, CHAT).map_err(Error::file(&chat))?;

    if cfg!(unix) {
        script(root, dist, &place)?;
    }
    if cfg!(unix) && Job::new("npm", &place).args(["--version"]).succeeds() {
        npm(&place, packages)?;
    } else {
        println!("npm is not here: the npm packages are not tried");
    }
    match python(root) {
        Ok(python) => pip(python, &place, packages)?,
        Err(error) => println!("{error}: the wheel is not tried"),
    }
    std::fs::remove_dir_all(&place).map_err(Error::file(&place))
}

fn script(root: &Path, dist: &Path, place: &Path) -> Result<(), Error> {
    let bin = place.join("script/bin");
    Job::new("sh", place)
        .args([root.join("packaging/install.sh")])
        .env("PLIMSOLL_DOWNLOADS", format!("file://{}", dist.display()))
        .env("PLIMSOLL_BIN", &bin)
        .run()?;
    works(&bin.join("plimsoll"), place)
}

fn npm(place: &Path, packages: &Packages) -> Result<(), Error> {
    let prefix = place.join("npm");
    std::fs::create_dir_all(&prefix).map_err(Error::file(&prefix))?;
    // The packages of the other systems do not exist here; npm skips unavailable optional
    // dependencies.
    Job::new("npm", &prefix)
        .args([
            "install",
            "--offline",
            "--omit=optional",
            "--no-audit",
            "--no-fund",
            "--prefix",
        ])
        .args([&prefix, &packages.npm_system, &packages.npm])
        .run()?;
    works(&prefix.join("node_modules/.bin/plimsoll"), place)
}

fn pip(python: &str, place: &Path, packages: &Packages) -> Result<(), Error> {
    let venv = place.join("python");
    Job::new(python, place)
        .args(["-m", "venv"])
        .args([&venv])
        .run()?;
    let bin = venv.join(if cfg!(windows) { "Scripts" } else { "bin" });
    Job::new(bin.join("python"), place)
        .args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-index",
            "--disable-pip-version-check",
        ])
        .args([&packages.wheel])
        .run()?;
    for name in ["plimsoll", "plimsoll-cli"] {
        works(
            &bin.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)),
            place,
        )?;
    }
    Ok(())
}

/// Checks that the installed program has the expected version and counts a chat.
fn works(program: &PathBuf, place: &Path) -> Result<(), Error> {
    let version = Job::new(program, place).args(["--version"]).read()?;
    if version.trim() != format!("plimsoll {VERSION}") {
        return Err(unexpected(program, &version));
    }
    let counted = Job::new(program, place)
        .args(["count", "chat.json"])
        .read()?;
    if !counted.contains("user") {
        return Err(unexpected(program, &counted));
    }
    println!("works: {}", program.display());
    Ok(())
}

fn unexpected(program: &Path, text: &str) -> Error {
    Error::Unreadable {
        what: program.display().to_string(),
        why: format!("it printed {text:?}"),
    }
}
