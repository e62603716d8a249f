//! Writes the copy of a session atomically. It never overwrites a file, and has the permissions of
//! the original.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use plimsoll::logs::{self, Agent, SessionLog, copy};

use super::RescueArgs;
use super::diagnosis::ExaminedSession;
use crate::error::CliError;
use crate::paths;

/// A copy that was written.
pub(super) struct SavedCopy {
    pub(super) id: String,
    pub(super) path: PathBuf,
    pub(super) resume: String,
    /// The path at which the agent would find the copy, if it was written elsewhere.
    pub(super) wrong_place: Option<PathBuf>,
}

/// Writes the copy of a session.
pub(super) fn write(
    args: &RescueArgs,
    log: &SessionLog,
    patient: &ExaminedSession,
) -> Result<SavedCopy, CliError> {
    let mut ids = super::new_ids(log);
    let copy =
        copy(log, patient.history(), patient.new_tokens(), &mut ids).map_err(CliError::failed)?;
    let path = args.output.as_ref().unwrap_or(&copy.path);
    save(path, &copy.text, &log.path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::failed(format!(
            "{} exists already; give another file with --output",
            path.display()
        )),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => CliError::failed(format!(
            "{} cannot be written ({error}); give a file in another folder with --output",
            path.display()
        )),
        _ => CliError::failed(format!("{} cannot be written: {error}", path.display())),
    })?;
    let found_at = claude_code_path(log, &copy.path).unwrap_or_else(|| copy.path.clone());
    Ok(SavedCopy {
        id: copy.id,
        path: path.clone(),
        resume: copy.resume,
        wrong_place: (*path != found_at).then_some(found_at),
    })
}

/// Returns the path at which Claude Code finds a copy of a log that is outside of its folders.
fn claude_code_path(log: &SessionLog, copy: &Path) -> Option<PathBuf> {
    let folders = logs::folders(log.agent, &paths::variable);
    let is_inside = folders.iter().any(|folder| log.path.starts_with(folder));
    if log.agent != Agent::ClaudeCode || is_inside {
        return None;
    }
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let project: String = log.directory.as_ref()?.chars().map(letter).collect();
    Some(folders.first()?.join(project).join(copy.file_name()?))
}

fn save(path: &Path, text: &str, original: &Path) -> io::Result<()> {
    if path.exists() {
        return Err(ErrorKind::AlreadyExists.into());
    }
    let mut part = path.as_os_str().to_owned();
    part.push(format!(".{}.part", std::process::id()));
    let part = PathBuf::from(part);
    let written = fill(&part, text, original)
        // A hard link fails if the file exists by now; a rename would replace it.
        .and_then(|()| {
            fs::hard_link(&part, path).or_else(|error| match error.kind() {
                ErrorKind::AlreadyExists => Err(error),
                // Some file systems have no hard links.
                _ => fs::rename(&part, path),
            })
        });
    let _ = fs::remove_file(&part);
    written
}

#[cfg_attr(not(unix), allow(unused_variables))]
fn fill(part: &Path, text: &str, original: &Path) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(part)?;
    // Set before anything is written: a session may contain secrets. The copy is always writable
    // for its owner, because the agent continues it, even if the original is read-only.
    #[cfg(unix)]
    if let Ok(metadata) = fs::metadata(original) {
        use std::os::unix::fs::PermissionsExt;
        let mode = metadata.permissions().mode() | 0o600;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()
}
