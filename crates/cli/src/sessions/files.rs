//! `plimsoll sessions files`: lists the files that a session changed, with their current state, or
//! restores them.

mod restore;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use plimsoll::SessionId;
use plimsoll::store::{ContentHash, RecordedChange, SqliteStore, content_hash};
use plimsoll::tools::saved_files;
use serde::Serialize;

use crate::diff::{ASKED, Diff};
use crate::error::{CliError, DONE};
use crate::listing::{self, when};
use crate::terminal::Terminal;
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
    #[arg(
        long,
        value_name = "ENTRY",
        requires = "restore",
        allow_negative_numbers = true
    )]
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
    let terminal = Terminal::direct(false);
    let lines = changed_lines(store, id).await?;
    terminal.say_styled(&lines.join("\n"));
    terminal.flush();
    terminal.failed().map_or(Ok(DONE), Err)
}

/// A file that a session changed.
#[derive(Debug, Serialize)]
pub(crate) struct ChangedFile {
    /// Relative to the root.
    path: PathBuf,
    root: PathBuf,
    /// The entries at which it was changed, oldest first. Never empty.
    entries: Vec<u64>,
    /// The time of the last change, in seconds since 1970.
    at: u64,
    /// Whether it is as the session left it.
    state: &'static str,
    /// The change by the whole session. `None` if a content is not kept, not text or too large.
    #[serde(flatten)]
    diff: Option<Diff>,
    /// Whether its content is the one from before the session again, after other ones.
    #[serde(skip)]
    is_restored: bool,
    #[serde(skip)]
    changes: Vec<RecordedChange>,
    /// The current content; `None` if the file does not exist. The error is the reason why it cannot be
    /// read.
    #[serde(skip)]
    now: Result<Option<Vec<u8>>, String>,
}

/// The state of a file that is as the session left it.
const UNCHANGED: &str = "unchanged";
/// The state of a file that something else has changed since.
const CHANGED: &str = "changed";
/// The state of a file that no longer exists.
const GONE: &str = "gone";

impl ChangedFile {
    /// Returns the files that a session changed, sorted by path.
    async fn all(store: &SqliteStore, id: &SessionId) -> Result<Vec<Self>, CliError> {
        let mut by_path: BTreeMap<(PathBuf, PathBuf), Vec<RecordedChange>> = BTreeMap::new();
        for change in store.changed_files(id).await? {
            let file = (change.root.clone(), change.path.clone());
            by_path.entry(file).or_default().push(change);
        }
        let mut files = Vec::new();
        for ((root, path), changes) in by_path {
            let before = changes.first().and_then(|change| change.before);
            let after = changes.last().and_then(|change| change.after);
            let diff = match (kept(store, before).await?, kept(store, after).await?) {
                (Some(before), Some(after)) => Diff::of(before.as_deref(), after.as_deref()),
                _ => None,
            };
            let now = content(&root, &path);
            let state = match &now {
                Ok(now) if now.as_deref().map(content_hash) == after => UNCHANGED,
                Ok(None) => GONE,
                // A file that cannot be read is no regular file any more, or larger than any kept content.
                _ => CHANGED,
            };
            files.push(Self {
                entries: changes.iter().map(|change| change.entry).collect(),
                at: changes.last().map_or(0, |change| change.at),
                is_restored: before == after,
                state,
                diff,
                changes,
                now,
                path,
                root,
            });
        }
        Ok(files)
    }

    /// Describes the change by the whole session in a few words.
    fn summary(&self) -> Option<String> {
        if self.is_restored {
            return Some("restored".to_owned());
        }
        self.diff.as_ref().map(Diff::summary)
    }
}

/// Returns a path for display: relative to the working directory if that is the root, otherwise in full.
fn shown(root: &Path, path: &Path) -> String {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    if here.is_ok_and(|here| here == root) {
        path.display().to_string()
    } else {
        root.join(path).display().to_string()
    }
}

/// Returns the current content of a file; `None` if it does not exist.
fn content(root: &Path, path: &Path) -> Result<Option<Vec<u8>>, String> {
    if !root.is_dir() {
        return Ok(None);
    }
    saved_files::content(root, path).map_err(|error| error.to_string())
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

/// Returns the changes of a session for the user: the name and the changed lines of each file.
pub(crate) async fn changed_lines(
    store: &SqliteStore,
    id: &SessionId,
) -> Result<Vec<String>, CliError> {
    let mut lines = Vec::new();
    for file in ChangedFile::all(store, id).await? {
        let summary = file.summary();
        let summary = summary.unwrap_or("not kept, not text or too large to compare".to_owned());
        let since = match file.state {
            UNCHANGED => String::new(),
            state => format!(" ({state} since)"),
        };
        lines.push(format!(
            "{} {summary}{since}",
            clean(&shown(&file.root, &file.path))
        ));
        lines.extend(file.diff.iter().flat_map(|diff| diff.lines(ASKED)));
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

/// Lists the files that a session changed.
async fn list(store: &SqliteStore, id: &SessionId, json: bool) -> Result<u8, CliError> {
    let files = ChangedFile::all(store, id).await?;
    if files.is_empty() && !json {
        crate::say(&unchanged(id));
    }
    let heading = ["file", "lines", ">entry", "last changed", "since"];
    listing::print(&files, json, heading, |file| {
        let last = file.entries.last().copied().unwrap_or_default();
        [
            shown(&file.root, &file.path),
            file.summary().unwrap_or_else(|| "-".to_owned()),
            last.to_string(),
            when(file.at),
            file.state.to_owned(),
        ]
    })?;
    Ok(DONE)
}
