//! `plimsoll sessions files --restore`: restores files to their content before a session changed them. The
//! current content is kept first, so that this can be undone.

use std::path::{Path, PathBuf};

use plimsoll::store::{Lease, SqliteStore};
use plimsoll::tools::{FileEdit, saved_files};
use plimsoll::{SessionId, SessionStore};

use super::{ChangedFile, FilesArgs, UNCHANGED, content, diff, kept};
use crate::ask::confirm;
use crate::diff::ASKED;
use crate::error::{CliError, DONE, FAILED};
use crate::sessions::runs::{self, idle_run, recorded};
use crate::terminal::text::{clean, counted};

/// What follows if nobody can be asked.
const REFUSAL: &str = "nothing was restored; --yes restores without asking";
/// Maximum number of files that are named to the model.
const NAMED: usize = 20;

/// A set of files to restore together.
pub(crate) struct RestoreSet {
    session: SessionId,
    /// The entry after whose state the files are restored. `None` for the state before the session.
    to: Option<u64>,
    restores: Vec<FileRestore>,
    /// The reasons why other files are not restored.
    pub(crate) refused: Vec<String>,
}

struct FileRestore {
    file: ChangedFile,
    /// Its current content, and the one that it gets.
    now: Option<Vec<u8>>,
    wanted: Option<Vec<u8>>,
}

/// Runs the command. The exit code is 1 if a file could not be restored.
pub(super) async fn restore(
    store: &SqliteStore,
    id: &SessionId,
    args: &FilesArgs,
) -> Result<u8, CliError> {
    // The lease prevents other processes from running the session meanwhile.
    let lease = store.acquire(id).await?;
    let files = chosen(id, ChangedFile::all(store, id).await?, &args.paths)?;
    let set = RestoreSet::plan(store, id, files, args.to, args.force).await?;
    set.refused.iter().for_each(|why| crate::say(why));
    let code = if set.refused.is_empty() { DONE } else { FAILED };
    if set.is_empty() {
        if code == DONE {
            note!("nothing to restore: the files are as they were then");
        }
        return Ok(code);
    }
    for line in set.lines() {
        crate::note(&line);
    }
    if !args.yes && !confirm(&set.question(), REFUSAL).await? {
        crate::say(&set.later());
        return Ok(code);
    }
    let informed = inform(store, &lease, &set.names()).await?;
    let undo = informed.map(|entry| {
        let to = entry.saturating_sub(1);
        format!("; undo it with: plimsoll sessions files {id} --restore --to {to}")
    });
    let names = set.make(store).await?;
    let undo = undo.unwrap_or_default();
    note!("restored {}{undo}", counted(names.len(), "file"));
    Ok(code)
}

/// Returns the named files, or all files if none was named.
fn chosen(
    id: &SessionId,
    mut files: Vec<ChangedFile>,
    paths: &[PathBuf],
) -> Result<Vec<ChangedFile>, CliError> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let here = here.unwrap_or_default();
    let is_named = |file: &ChangedFile, path: &Path| {
        path == file.path || here.join(path) == file.root.join(&file.path)
    };
    for path in paths {
        if !files.iter().any(|file| is_named(file, path)) {
            return Err(CliError::usage(format!(
                "session {id} changed no file {}; `plimsoll sessions files {id}` lists them",
                path.display()
            )));
        }
    }
    files.retain(|file| paths.is_empty() || paths.iter().any(|path| is_named(file, path)));
    Ok(files)
}

/// Tells the model that files were restored. Returns the number of the log entry, or `None` if tool
/// calls wait for their results.
async fn inform(
    store: &SqliteStore,
    lease: &Lease,
    names: &[String],
) -> Result<Option<u64>, CliError> {
    let log = store.load(lease.session()).await?;
    let mut run = idle_run(&log)?;
    let mut named = names.iter().take(NAMED).cloned().collect::<Vec<_>>();
    if names.len() > NAMED {
        named.push(format!("and {} more", names.len() - NAMED));
    }
    let text = format!(
        "[The user has restored earlier versions of files that you changed: {}. Read them again before \
         you edit them.]",
        named.join(", ")
    );
    if !run.inform(text) {
        return Ok(None);
    }
    let entries = recorded(&mut run);
    store.append(lease, &entries).await?;
    Ok(Some((log.len() + entries.len()) as u64))
}

impl RestoreSet {
    /// Determines the files to restore. Changes nothing.
    async fn plan(
        store: &SqliteStore,
        id: &SessionId,
        files: Vec<ChangedFile>,
        to: Option<u64>,
        force: bool,
    ) -> Result<Self, CliError> {
        let mut restoring = Self {
            session: id.clone(),
            to,
            restores: Vec::new(),
            refused: Vec::new(),
        };
        for file in files {
            let is_later = |entry: u64| to.is_none_or(|to| entry > to);
            let Some(change) = file.changes.iter().find(|it| is_later(it.entry)) else {
                continue;
            };
            let shown = file.shown();
            let now = match &file.now {
                Ok(now) => now.clone(),
                Err(why) => {
                    let why = format!("{shown} cannot be restored: {why}; move it away first");
                    restoring.refused.push(why);
                    continue;
                }
            };
            let Some(wanted) = kept(store, change.before).await? else {
                restoring.refused.push(format!(
                    "the content of {shown} before entry {} is no longer stored: the oldest contents \
                     are deleted first",
                    change.entry
                ));
                continue;
            };
            if now == wanted {
                continue;
            }
            if file.state != UNCHANGED && !force {
                let how = if now.is_none() { "removed" } else { "changed" };
                let command = restoring.command();
                restoring.refused.push(format!(
                    "{shown} was {how} since by something else; {command} --force restores it anyway"
                ));
                continue;
            }
            restoring.restores.push(FileRestore { file, now, wanted });
        }
        Ok(restoring)
    }

    /// Determines the files that a run changed, to restore their state before it. Files that were
    /// changed by something else since are left out.
    pub(crate) async fn of_run(
        store: &SqliteStore,
        id: &SessionId,
        run: u64,
    ) -> Result<Self, CliError> {
        let files = ChangedFile::all(store, id).await?;
        let records = runs::records(store, id).await?;
        let newest = records.iter().rev().find(|record| record.run == run);
        // Without such a run, no change is later than this.
        let to = newest.map_or(u64::MAX, |record| record.first.saturating_sub(1));
        Self::plan(store, id, files, Some(to), false).await
    }

    /// Returns `true` if no file can be restored.
    pub(crate) fn is_empty(&self) -> bool {
        self.restores.is_empty()
    }

    /// Says how to restore the files later.
    pub(crate) fn later(&self) -> String {
        let (names, command) = (self.names().join(", "), self.command());
        format!("not restored: {names}; to restore: {command}")
    }

    /// Returns the command that restores the files.
    fn command(&self) -> String {
        let to = self.to.map(|entry| format!(" --to {entry}"));
        let (session, to) = (&self.session, to.unwrap_or_default());
        format!("plimsoll sessions files {session} --restore{to}")
    }

    /// Returns the names of the files for display.
    fn names(&self) -> Vec<String> {
        self.restores.iter().map(|it| it.file.shown()).collect()
    }

    /// Returns the question to the user, for example "Restore 2 files?".
    pub(crate) fn question(&self) -> String {
        format!("Restore {}?", counted(self.restores.len(), "file"))
    }

    /// Describes the changes, line by line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for restore in &self.restores {
            let name = clean(&restore.file.shown());
            let verb = match (&restore.now, &restore.wanted) {
                (_, None) => "remove",
                (None, _) => "create",
                _ => "restore",
            };
            let (now, wanted) = (restore.now.clone(), restore.wanted.clone());
            let diff = diff(&restore.file.path, now, wanted);
            let Some(diff) = diff else {
                let bytes = restore.wanted.as_ref().map_or(0, Vec::len);
                lines.push(format!("{verb} {name}: {}", counted(bytes as u64, "byte")));
                continue;
            };
            lines.push(format!("{verb} {name} {}", diff.summary()));
            lines.extend(diff.lines(ASKED));
        }
        lines
    }

    /// Restores the files, and returns their names. Keeps the current content of each one first.
    pub(crate) async fn make(self, store: &SqliteStore) -> Result<Vec<String>, CliError> {
        let names = self.names();
        for FileRestore { file, now, wanted } in self.restores {
            let shown = file.shown();
            if content(&file.root, &file.path).as_ref() != Ok(&now) {
                return Err(CliError::failed(format!(
                    "{shown} was changed by something else just now; look at it, then restore again"
                )));
            }
            let edit = FileEdit {
                call: None,
                root: file.root.clone(),
                path: file.path.clone(),
                before: now,
                after: wanted.clone(),
            };
            store.keep_file(&self.session, edit).await?;
            let restored = saved_files::restore(&file.root, &file.path, wanted.as_deref());
            restored.map_err(|error| {
                CliError::failed(format!("{shown} cannot be restored: {error}"))
            })?;
        }
        Ok(names)
    }
}
