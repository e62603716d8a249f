//! `plimsoll sessions files --restore`: restores files to their content before a session changed them. The
//! current content is kept first, so that this can be undone.

use std::path::Path;

use plimsoll::machine::Entry;
use plimsoll::session::run_records;
use plimsoll::store::{Lease, SqliteStore};
use plimsoll::tools::{FileEdit, saved_files};
use plimsoll::{SessionId, SessionStore};

use super::{ChangedFile, FilesArgs, UNCHANGED, content, kept, shown};
use crate::ask::confirm;
use crate::diff::{ASKED, Diff};
use crate::error::{CliError, DONE, FAILED};
use crate::sessions::runs::{idle_run, recorded};
use crate::terminal::text::{clean, counted};

/// What follows if nobody can be asked.
const REFUSAL: &str = "nothing was restored; --yes restores without asking";
/// Maximum number of files that are named to the model.
const NAMED: usize = 20;

/// A set of files to restore together.
pub(crate) struct RestoreSet {
    session: SessionId,
    /// The command that restores them.
    command: String,
    edits: Vec<FileEdit>,
    /// The reasons why other files are not restored.
    pub(crate) refused: Vec<String>,
}

/// Runs the command. The exit code is 1 if a file could not be restored.
pub(super) async fn restore(
    store: &SqliteStore,
    id: &SessionId,
    args: &FilesArgs,
) -> Result<u8, CliError> {
    // The lease prevents other processes from running the session meanwhile.
    let lease = store.acquire(id).await?;
    let mut files = ChangedFile::all(store, id).await?;
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    let here = here.unwrap_or_default();
    let is_named = |file: &ChangedFile, path: &Path| {
        path == file.path || here.join(path) == file.root.join(&file.path)
    };
    for path in &args.paths {
        if !files.iter().any(|file| is_named(file, path)) {
            return Err(CliError::usage(format!(
                "session {id} changed no file {}; `plimsoll sessions files {id}` lists them",
                path.display()
            )));
        }
    }
    let paths = &args.paths;
    files.retain(|file| paths.is_empty() || paths.iter().any(|path| is_named(file, path)));
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
    // The last entry that all kept contents follow.
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
    /// Determines the files to restore: to their contents after the entry `to`, or from before the
    /// session. Changes nothing.
    async fn plan(
        store: &SqliteStore,
        id: &SessionId,
        files: Vec<ChangedFile>,
        to: Option<u64>,
        force: bool,
    ) -> Result<Self, CliError> {
        let mut command = format!("plimsoll sessions files {id} --restore");
        if let Some(to) = to {
            command.push_str(&format!(" --to {to}"));
        }
        let (mut edits, mut refused) = (Vec::new(), Vec::new());
        for file in files {
            let is_later = |entry: u64| to.is_none_or(|to| entry > to);
            let Some(change) = file.changes.iter().find(|it| is_later(it.entry)) else {
                continue;
            };
            let shown = shown(&file.root, &file.path);
            let wanted = kept(store, change.before).await?;
            match (file.now, wanted) {
                (Err(why), _) => refused.push(format!(
                    "{shown} cannot be restored: {why}; move it away first"
                )),
                (_, None) => refused.push(format!(
                    "the content of {shown} before entry {} is no longer stored: the oldest contents \
                     are deleted first",
                    change.entry
                )),
                (Ok(now), Some(wanted)) if now == wanted => {}
                (Ok(now), Some(_)) if file.state != UNCHANGED && !force => {
                    let how = if now.is_none() { "removed" } else { "changed" };
                    refused.push(format!(
                        "{shown} was {how} since by something else; {command} --force restores it anyway"
                    ));
                }
                (Ok(before), Some(after)) => edits.push(FileEdit {
                    call: None,
                    root: file.root,
                    path: file.path,
                    before,
                    after,
                }),
            }
        }
        Ok(Self {
            session: id.clone(),
            command,
            edits,
            refused,
        })
    }

    /// Determines the files that a run changed, to restore their state before it. Files that were
    /// changed by something else since are left out.
    pub(crate) async fn of_run(
        store: &SqliteStore,
        id: &SessionId,
        log: &[Entry],
        run: u64,
    ) -> Result<Self, CliError> {
        let files = ChangedFile::all(store, id).await?;
        let records = run_records(id.as_str(), log);
        let newest = records.iter().rev().find(|record| record.run == run);
        // Without such a run, no change is later than this.
        let to = newest.map_or(u64::MAX, |record| record.first.saturating_sub(1));
        Self::plan(store, id, files, Some(to), false).await
    }

    /// Returns `true` if no file can be restored.
    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Says how to restore the files later.
    pub(crate) fn later(&self) -> String {
        let (names, command) = (self.names().join(", "), &self.command);
        format!("not restored: {names}; to restore: {command}")
    }

    /// Returns the names of the files for display.
    fn names(&self) -> Vec<String> {
        let edits = self.edits.iter();
        edits.map(|edit| shown(&edit.root, &edit.path)).collect()
    }

    /// Returns the question to the user, for example "Restore 2 files?".
    pub(crate) fn question(&self) -> String {
        format!("Restore {}?", counted(self.edits.len(), "file"))
    }

    /// Describes the changes, line by line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (FileEdit { before, after, .. }, name) in self.edits.iter().zip(self.names()) {
            let name = clean(&name);
            let verb = match (before, after) {
                (_, None) => "remove",
                (None, _) => "create",
                _ => "restore",
            };
            if let Some(diff) = Diff::of(before.as_deref(), after.as_deref()) {
                lines.push(format!("{verb} {name} {}", diff.summary()));
                lines.extend(diff.lines(ASKED));
            } else {
                let bytes = after.as_ref().map_or(0, Vec::len);
                lines.push(format!("{verb} {name}: {}", counted(bytes as u64, "byte")));
            }
        }
        lines
    }

    /// Restores the files, and returns their names. Keeps the current content of each one first.
    pub(crate) async fn make(self, store: &SqliteStore) -> Result<Vec<String>, CliError> {
        let names = self.names();
        for (edit, shown) in self.edits.into_iter().zip(&names) {
            let FileEdit { root, path, .. } = &edit;
            if content(root, path).as_ref() != Ok(&edit.before) {
                return Err(CliError::failed(format!(
                    "{shown} was changed by something else just now; look at it, then restore again"
                )));
            }
            store.keep_file(&self.session, edit.clone()).await?;
            saved_files::restore(root, path, edit.after.as_deref()).map_err(|error| {
                CliError::failed(format!("{shown} cannot be restored: {error}"))
            })?;
        }
        Ok(names)
    }
}
