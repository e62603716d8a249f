//! Writes the copy of a session. It never overwrites a file, and has the permissions of the original.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use plimsoll::logs::{self, Agent, Copy, Ids};
use plimsoll::session::new_session_id;
use serde::Serialize;

use super::RescueArgs;
use super::treatment::Treatment;
use crate::error::CliError;
use crate::paths;

/// A copy that was written.
#[derive(Serialize)]
pub(super) struct SavedCopy {
    pub(super) id: String,
    pub(super) path: PathBuf,
    pub(super) resume: String,
    /// The directory in which the copy is resumed. `None` for the current one.
    pub(super) directory: Option<PathBuf>,
    /// The path at which the agent finds the copy, if it was written elsewhere.
    #[serde(skip)]
    pub(super) place: Option<PathBuf>,
}

/// Writes the copy of a session: into the folder in which its agent finds it, unless another file was given.
pub(super) fn write(args: &RescueArgs, treatment: &Treatment) -> Result<SavedCopy, CliError> {
    let log = &treatment.diagnosis.log;
    let (units, tokens) = (&treatment.chat().units, treatment.new_tokens());
    let seed = format!("{} {}", new_session_id(), log.path.display());
    let ids = Ids::new(seed.as_bytes());
    let mut copy = logs::copy(log, units, tokens, ids)?;
    // The log may come from another machine.
    let directory = log.directory.as_ref().map(PathBuf::from);
    let directory = directory.filter(|own| own.is_dir());
    let here = || std::env::current_dir().map_err(CliError::failed);
    let resumed_in = directory.clone().map_or_else(here, Ok)?;
    let place = logs::place_of_copy(log, &copy.path, &resumed_in, &paths::variable);
    let path = match &args.output {
        Some(path) => std::path::absolute(path)?,
        None => place.clone(),
    };
    copy.directory = Some(resumed_in.to_string_lossy().into_owned());
    let id = copy.id.clone();
    save(&path, copy, &log.path).map_err(|error| {
        CliError::failed(match error.kind() {
            // The log was changed.
            io::ErrorKind::InvalidData => format!("{}: {error}", log.path.display()),
            _ => format!(
                "{} cannot be written ({error}); give another file with --output",
                path.display()
            ),
        })
    })?;
    let reads_any_file = matches!(log.agent, Agent::Pi | Agent::Opencode);
    Ok(SavedCopy {
        resume: log.agent.resume_command(&id, &path),
        id,
        directory,
        place: (path != place && !reads_any_file).then_some(place),
        path,
    })
}

/// Writes a new file. It is removed again if that fails.
#[cfg_attr(not(unix), allow(unused_variables))]
fn save(path: &Path, copy: Copy<'_>, original: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new().write(true).create_new(true).open(path)?;
    let write = || {
        // Set before anything is written: a session may contain secrets. The copy is always writable
        // for its owner, because the agent continues it, even if the original is read-only.
        #[cfg(unix)]
        if let Ok(metadata) = fs::metadata(original) {
            use std::os::unix::fs::PermissionsExt;
            let mode = metadata.permissions().mode() | 0o600;
            file.set_permissions(fs::Permissions::from_mode(mode))?;
        }
        let mut out = BufWriter::new(file);
        copy.write(&mut out)?;
        out.into_inner()?.sync_all()
    };
    write().inspect_err(|_| drop(fs::remove_file(path)))
}
