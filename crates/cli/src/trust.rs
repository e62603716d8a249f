//! Whether a person trusts the files of a project: the question at a terminal, the line without
//! one, and `plimsoll config trust`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll::config::{Config, FoundFiles, ProjectFiles, TRUST_FILE, TrustStore};

use crate::ask;
use crate::error::{CliError, DONE};
use crate::lock;
use crate::paths;
use crate::terminal::text::clean;

/// The folders whose files the user knows to be ignored.
static IGNORED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
/// Whether the user has named a configuration, or none, so that a project's has no effect.
static IS_CONFIG_NAMED: AtomicBool = AtomicBool::new(false);

/// Leaves the configuration of projects out of the files that a person may trust.
pub(crate) fn leave_config_out() {
    IS_CONFIG_NAMED.store(true, Ordering::Relaxed);
}

fn found(root: &Path) -> FoundFiles {
    let found = paths::project(root).found();
    if IS_CONFIG_NAMED.load(Ordering::Relaxed) {
        found.without_config()
    } else {
        found
    }
}

/// Checks whether a person trusts all files of a project.
pub(crate) fn is_trusted(found: &FoundFiles) -> bool {
    !found.is_empty() && store().untrusted(found).is_empty()
}

/// Returns the files of the user, and those of the project if a person trusts them. Otherwise
/// prints once that they are ignored.
pub(crate) fn project(root: &Path) -> ProjectFiles {
    let files = paths::project(root);
    let found = found(root);
    if store().untrusted(&found).is_empty() {
        return files.trusting(found);
    }
    if ignore(&found) {
        let folder = shown(&found);
        say!(
            "ignoring {} of {folder}, which you have not trusted; read them, then run `plimsoll config trust`",
            clean(&found.summary())
        );
    }
    files
}

/// Asks at a terminal whether the files of a project are to be trusted, unless they are already or
/// the user has refused.
pub(crate) async fn ask(root: &Path) -> Result<(), CliError> {
    let found = found(root);
    let store = store();
    let new = store.untrusted(&found);
    if new.is_empty() || !ask::can_ask() || lock(&IGNORED).contains(found.folder()) {
        return Ok(());
    }
    let question = match new.len() == found.files().count() {
        true => format!("This folder has {}.", clean(&found.summary())),
        false => {
            let new: Vec<String> = new.iter().map(|path| path.display().to_string()).collect();
            format!("New or changed in this folder: {}.", clean(&new.join(", ")))
        }
    };
    loop {
        let said = ask::line(&format!("{question} Trust it? [s]how, [y]es, [N]o: ")).await;
        match said.trim().to_lowercase().as_str() {
            "s" | "show" => {
                for (path, text) in found.files().filter(|(path, _)| new.contains(path)) {
                    say!(
                        "--- {}\n{}",
                        clean(&path.display().to_string()),
                        clean(text)
                    );
                }
            }
            "y" | "yes" => return store.trust(&found).map_err(CliError::failed),
            _ => {
                ignore(&found);
                return Ok(());
            }
        }
    }
}

/// Runs `plimsoll config trust`.
pub(crate) fn run(folder: Option<&Path>, revoke: bool) -> Result<u8, CliError> {
    let root = folder.unwrap_or(Path::new("."));
    let found = paths::project(root).found();
    let folder = shown(&found);
    if revoke {
        if store().revoke(&found).map_err(CliError::failed)? {
            out!("{folder} is no longer trusted")
        } else {
            out!("{folder} was not trusted")
        }
        return Ok(DONE);
    }
    for note in found.left_out() {
        crate::say(&clean(note));
    }
    if found.is_empty() {
        return Err(CliError::usage(format!(
            "{folder} has no plimsoll.toml, instructions, skills, agents or prompts to trust"
        )));
    }
    let root = root.to_owned();
    // A faulty configuration is reported now rather than by the next run.
    let config = paths::project(&root).trusting(found.clone()).config();
    let checked = config.map(Config::checked).transpose();
    checked.map_err(CliError::failed)?;
    store().trust(&found).map_err(CliError::failed)?;
    out!("trusted as they are now; after a change, trust them again:");
    for (path, _) in found.files() {
        out!("{}", clean(&path.display().to_string()));
    }
    Ok(DONE)
}

/// Returns the list of the files that the user trusts.
fn store() -> TrustStore {
    // Without a data directory, nothing is trusted.
    paths::data().map_or_else(
        |_| TrustStore::default(),
        |data| TrustStore::new(data.join(TRUST_FILE)),
    )
}

/// Remembers that the user knows that the files are ignored. Returns `true` if that is new.
fn ignore(found: &FoundFiles) -> bool {
    lock(&IGNORED).insert(found.folder().to_owned())
}

fn shown(found: &FoundFiles) -> String {
    clean(&found.folder().display().to_string())
}
