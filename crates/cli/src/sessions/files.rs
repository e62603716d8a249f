//! `plimsoll sessions files`: lists the files that a session changed, with their current state, or
//! restores them.

mod restore;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll::SessionId;
use plimsoll::store::{ContentHash, RecordedChange, SqliteStore};
use plimsoll::tools::{FileChange, saved_files};
use serde::Serialize;

use crate::diff::{ASKED, Diff};
use crate::error::{CliError, DONE};
use crate::listing::{self, when};
use crate::terminal::Terminal;
use crate::terminal::style::Colours;
use crate::terminal::text::clean;

pub(crate) use restore::RestoreSet;

#[derive(Debug, clap::Args)]
pub(crate) struct FilesArgs {
    /// The session
    pub(crate) id: String,
    /// Restore only these files, as they are listed [default: all]
    #[arg(requires = "restore")]
    paths: Vec<PathBuf>,
    /// Restore the contents from before the session
    #[arg(long, conflicts_with_all = ["diff", "json"])]
    restore: bool,
    /// Restore their contents after this entry [default: before the session]
    #[arg(long, value_name = "ENTRY", requires = "restore")]
    to: Option<u64>,
    /// Restore without asking
    #[arg(long, short, requires = "restore")]
    yes: bool,
    /// Also replace files that something else changed since
    #[arg(long, requires = "restore")]
    force: bool,
    /// Print the changed lines of each
    #[arg(long, conflicts_with = "json")]
    diff: bool,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(
    store: &SqliteStore,
    id: &SessionId,
    args: &FilesArgs,
) -> Result<u8, CliError> {
    if args.restore {
        return restore::restore(store, id, args).await;
    }
    if !args.diff {
        return list(store, id, args.json).await;
    }
    let colours = Terminal::direct(false).colours();
    for line in changed_lines(store, id, colours).await? {
        out!("{line}");
    }
    Ok(DONE)
}

/// A file that a session changed.
#[derive(Debug)]
pub(crate) struct ChangedFile {
    pub(crate) root: PathBuf,
    /// Relative to the root.
    pub(crate) path: PathBuf,
    /// All changes, oldest first. Never empty.
    pub(crate) changes: Vec<RecordedChange>,
}

/// The state of a file that is as the session left it.
const UNCHANGED: &str = "unchanged";
/// The state of a file that something else has changed since.
const CHANGED: &str = "changed";
/// The state of a file that no longer exists.
const GONE: &str = "gone";

impl ChangedFile {
    /// Returns the files that a session changed, sorted by path.
    pub(crate) async fn all(store: &SqliteStore, id: &SessionId) -> Result<Vec<Self>, CliError> {
        let changes = store.changed_files(id).await?;
        let mut files: BTreeMap<(PathBuf, PathBuf), Vec<RecordedChange>> = BTreeMap::new();
        for change in changes {
            let file = (change.root.clone(), change.path.clone());
            files.entry(file).or_default().push(change);
        }
        let files = files.into_iter();
        let files = files.map(|((root, path), changes)| Self {
            root,
            path,
            changes,
        });
        Ok(files.collect())
    }

    /// Returns the path for display: relative to the working directory if that is the root,
    /// otherwise in full.
    pub(crate) fn shown(&self) -> String {
        let here = std::env::current_dir().and_then(|here| here.canonicalize());
        if here.is_ok_and(|here| here == self.root) {
            self.path.display().to_string()
        } else {
            self.root.join(&self.path).display().to_string()
        }
    }

    /// Returns the hash of the content after the session.
    fn after(&self) -> Option<ContentHash> {
        self.changes.last().and_then(|change| change.after)
    }

    /// Returns the current content; `None` if the file does not exist. The error is the reason why
    /// it cannot be read.
    pub(crate) fn now(&self) -> Result<Option<Vec<u8>>, String> {
        if !self.root.is_dir() {
            return Ok(None);
        }
        saved_files::content(&self.root, &self.path).map_err(|error| error.to_string())
    }

    /// Compares the current content with that after the session.
    pub(crate) fn state(&self, now: Option<&[u8]>) -> &'static str {
        match (now.map(ContentHash::of), self.after()) {
            (now, after) if now == after => UNCHANGED,
            (None, _) => GONE,
            (Some(_), _) => CHANGED,
        }
    }
}

/// Returns a kept content; the inner `None` stands for a file that did not exist, the outer one for a
/// content that is not kept any longer.
async fn kept(
    store: &SqliteStore,
    hash: Option<ContentHash>,
) -> Result<Option<Option<Vec<u8>>>, CliError> {
    match hash {
        Some(hash) => Ok(store.kept_content(hash).await?.map(Some)),
        None => Ok(Some(None)),
    }
}

/// Returns the change from one content to another. Returns `None` if they are not text or too large.
fn diff(path: &Path, before: Option<Vec<u8>>, after: Option<Vec<u8>>) -> Option<Diff> {
    let text = |bytes: Option<Vec<u8>>| bytes.map(String::from_utf8).transpose().ok();
    Diff::of(&FileChange {
        path: path.display().to_string(),
        before: text(before)?,
        after: text(after)?.unwrap_or_default(),
    })
}

/// Returns the changes of a session for the user: the name and the changed lines of each file.
pub(crate) async fn changed_lines(
    store: &SqliteStore,
    id: &SessionId,
    colours: Colours,
) -> Result<Vec<String>, CliError> {
    let mut lines = Vec::new();
    for row in rows(store, id).await? {
        let summary = row.summary(colours);
        let summary = summary.unwrap_or("not kept, not text or too large to compare".to_owned());
        let since = match row.state {
            UNCHANGED => String::new(),
            state => format!(" ({state} since)"),
        };
        lines.push(format!("{} {summary}{since}", clean(&row.shown)));
        lines.extend(row.diff.iter().flat_map(|diff| diff.lines(ASKED, colours)));
    }
    if lines.is_empty() {
        lines.push(unchanged(id));
    }
    Ok(lines)
}

fn unchanged(id: &SessionId) -> String {
    format!(
        "session {id} changed no file with `write` or `edit`; changes by commands are not recorded"
    )
}

/// A file in the list.
#[derive(Debug, Serialize)]
struct FileRow {
    path: PathBuf,
    root: PathBuf,
    /// The entries at which it was changed.
    entries: Vec<u64>,
    /// The time of the last change, in seconds since 1970.
    at: u64,
    new: bool,
    added: Option<usize>,
    removed: Option<usize>,
    state: &'static str,
    #[serde(skip)]
    shown: String,
    #[serde(skip)]
    diff: Option<Diff>,
    /// The session left the file as it was before.
    #[serde(skip)]
    is_restored: bool,
}

impl FileRow {
    fn summary(&self, colours: Colours) -> Option<String> {
        if self.is_restored {
            return Some("restored".to_owned());
        }
        self.diff.as_ref().map(|diff| diff.summary(colours))
    }
}

async fn rows(store: &SqliteStore, id: &SessionId) -> Result<Vec<FileRow>, CliError> {
    let mut rows = Vec::new();
    for file in ChangedFile::all(store, id).await? {
        let first = file.changes.first().and_then(|change| change.before);
        let contents = (kept(store, first).await?, kept(store, file.after()).await?);
        let diff = match contents {
            (Some(before), Some(after)) => diff(&file.path, before, after),
            _ => None,
        };
        rows.push(FileRow {
            entries: file.changes.iter().map(|change| change.entry).collect(),
            at: file.changes.last().map_or(0, |change| change.at),
            new: first.is_none(),
            added: diff.as_ref().map(|diff| diff.added),
            removed: diff.as_ref().map(|diff| diff.removed),
            // A file that cannot be read is no regular file any more, or larger than any kept content.
            state: file.now().map_or(CHANGED, |now| file.state(now.as_deref())),
            shown: file.shown(),
            diff,
            is_restored: first == file.after(),
            path: file.path,
            root: file.root,
        });
    }
    Ok(rows)
}

/// Lists the files that a session changed.
async fn list(store: &SqliteStore, id: &SessionId, json: bool) -> Result<u8, CliError> {
    let rows = rows(store, id).await?;
    if rows.is_empty() && !json {
        crate::say(&unchanged(id));
    }
    let heading = ["file", "lines", ">entry?1", "last changed?2", "since"];
    listing::print(&rows, json, heading, |row| {
        let last = row.entries.last().copied().unwrap_or_default();
        [
            row.shown.clone(),
            row.summary(Colours::None).unwrap_or_else(|| "-".to_owned()),
            last.to_string(),
            when(row.at),
            row.state.to_owned(),
        ]
    })?;
    Ok(DONE)
}
