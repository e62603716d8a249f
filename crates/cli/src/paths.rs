//! The directories of sessions, models and settings: `$PLIMSOLL_HOME`, otherwise the XDG
//! directories. Nothing is created here.

use std::env;
use std::path::{Path, PathBuf};

use plimsoll::config::ProjectFiles;

use crate::error::CliError;

/// Returns the data directory, which contains the sessions.
pub(crate) fn data() -> Result<PathBuf, CliError> {
    place("XDG_DATA_HOME", &[".local", "share"])
}

/// Returns the configuration directory.
pub(crate) fn config() -> Result<PathBuf, CliError> {
    place("XDG_CONFIG_HOME", &[".config"])
}

/// Returns the cache directory, which contains the models.
pub(crate) fn cache() -> Result<PathBuf, CliError> {
    Ok(match variable("PLIMSOLL_HOME") {
        Some(home) => home.join("cache"),
        None => place("XDG_CACHE_HOME", &[".cache"])?,
    })
}

/// Returns the current folder.
///
/// # Errors
/// If it was removed.
pub(crate) fn here() -> Result<PathBuf, CliError> {
    env::current_dir().map_err(|error| {
        CliError::usage(format!(
            "the current folder cannot be used: {error}; change to another one"
        ))
    })
}

fn place(xdg: &str, below_home: &[&str]) -> Result<PathBuf, CliError> {
    if let Some(home) = variable("PLIMSOLL_HOME") {
        return Ok(home);
    }
    let base = variable(xdg).or_else(|| {
        let home = variable("HOME").or_else(|| variable("USERPROFILE"))?;
        Some(below_home.iter().fold(home, |path, name| path.join(name)))
    });
    base.map(|base| base.join("plimsoll")).ok_or_else(|| {
        CliError::usage(format!("neither PLIMSOLL_HOME nor {xdg} nor HOME is set; set PLIMSOLL_HOME to a directory for sessions"))
    })
}

/// Returns the path in an environment variable. Returns `None` if it is unset or empty.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

/// Returns the files of a project and of the user.
pub(crate) fn project(root: &Path) -> ProjectFiles {
    // If `PLIMSOLL_HOME` is set, Plimsoll does not read the user's home.
    let home = match variable("PLIMSOLL_HOME") {
        Some(_) => None,
        None => std::env::home_dir(),
    };
    ProjectFiles::new(root)
        .user_folder(config().ok())
        .home(home)
}

/// Checks whether two paths lead to one existing file.
pub(crate) fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize()
        .is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}
