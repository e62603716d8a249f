//! `plimsoll sessions list`: lists all sessions or those of this folder, one per line.

use std::collections::BTreeMap;
use std::iter;
use std::path::PathBuf;

use console::Term;
use plimsoll::SessionId;
use plimsoll::machine::Entry;
use plimsoll::store::{Fork, MAX_FORK_DEPTH, SessionInfo, SessionReader};
use serde::Serialize;
use serde_json::Value;

use crate::error::{CliError, DONE};
use crate::listing::{self, minute};
use crate::paths;
use crate::resume::SessionSettings;
use crate::terminal::{self, fitted};

/// The note that the store is empty.
pub(crate) const NONE: &str = "there are no sessions yet; `plimsoll run` starts one";

const HEADING: [&str; 6] = [
    "session",
    "last written",
    ">size",
    "model",
    ">entries",
    "title",
];

/// A session, with facts about its last run.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ListedSession {
    #[serde(flatten)]
    pub(crate) info: SessionInfo,
    /// The model of its last run, if it is known.
    pub(crate) model: Option<String>,
    /// The folder of its last run, if it is known.
    pub(crate) folder: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(
    store: &impl SessionReader,
    is_here: bool,
    json: bool,
) -> Result<u8, CliError> {
    let sessions = sessions(store, is_here).await?;
    if sessions.is_empty() && !json {
        crate::say(if is_here {
            "there are no sessions of this folder yet; leave out --here to list those of all \
                 folders"
        } else {
            NONE
        });
    }
    listing::print(&sessions, json, HEADING, cells)?;
    Ok(DONE)
}

/// Returns all sessions, or those that were last run in this folder, newest first.
pub(crate) async fn sessions(
    store: &impl SessionReader,
    is_here: bool,
) -> Result<Vec<ListedSession>, CliError> {
    let folder = is_here.then(paths::here).transpose()?;
    // If the store is damaged, the sessions are listed without settings.
    let settings = store.all_settings().await.unwrap_or_default();
    let sessions = store.list().await?;
    let forks = sessions.iter().filter_map(|info| {
        let fork = info.fork.as_ref()?;
        Some((&info.id, &fork.from))
    });
    let parents: BTreeMap<&SessionId, &SessionId> = forks.collect();
    let listed = sessions.iter().map(|info| {
        // A fork that was not run yet has the settings of its parent.
        let ancestry = iter::successors(Some(&info.id), |id| parents.get(id).copied());
        let mut ancestry = ancestry.take(1 + MAX_FORK_DEPTH as usize);
        let last = ancestry.find_map(|id| settings.get(id));
        let last = last.map(|text| SessionSettings::of(text));
        let last = last.unwrap_or_default();
        ListedSession {
            info: info.clone(),
            model: Some(last.model).filter(|model| !model.is_empty()),
            folder: last.folder,
        }
    });
    Ok(listed
        .filter(|session| folder.is_none() || session.folder == folder)
        .collect())
}

/// Returns the heading, and aligned lines, one for each session.
pub(crate) fn lines(sessions: &[ListedSession]) -> Vec<String> {
    let width = terminal::columns(&Term::stderr());
    listing::columns(HEADING, sessions.iter().map(cells), width)
}

/// Writes a line to standard error, cut at the width of a terminal.
pub(crate) fn note(line: &str) {
    crate::note(&fitted(line, &Term::stderr()));
}

fn cells(session: &ListedSession) -> [String; 6] {
    let info = &session.info;
    let fork = info
        .fork
        .as_ref()
        .map(|fork| format!("({})", described(fork)));
    let title = [info.title.clone(), fork.unwrap_or_default()].join("  ");
    let model = session.model.as_deref().unwrap_or_default();
    [
        info.id.to_string(),
        minute(info.updated),
        listing::size(info.bytes),
        model.rsplit('/').next().unwrap_or_default().to_owned(),
        info.entries.to_string(),
        title.trim().to_owned(),
    ]
}

/// The call that a session of a sub-agent works for.
pub(crate) struct SubAgentCall<'a> {
    pub(crate) caller: &'a str,
    tool: &'a str,
    /// The call's position in its message.
    index: usize,
}

impl<'a> SubAgentCall<'a> {
    /// Parses a session's name. That of a sub-agent is `CALLER.TOOL.MESSAGE-CALL`.
    pub(crate) fn of(id: &'a str) -> Option<Self> {
        let (rest, call) = id.rsplit_once('.')?;
        let (caller, tool) = rest.rsplit_once('.')?;
        let (message, index) = call.split_once('-')?;
        message.parse::<u64>().ok()?;
        Some(Self {
            caller,
            tool,
            index: index.parse().ok()?,
        })
    }

    /// Returns `true` if the caller's log has such a call and the session's log begins with its task. A
    /// person may give a session any name.
    pub(crate) fn began(&self, session: &[Entry], caller: &[Entry]) -> bool {
        let mut messages = session.iter().filter_map(Entry::message);
        let Some(first) = messages.find(|message| message.is_user()) else {
            return false;
        };
        let task = first.text();
        let mut messages = caller.iter().filter_map(Entry::message);
        messages.any(|message| {
            let call = message.calls().nth(self.index);
            call.filter(|call| call.name == self.tool)
                .and_then(|call| serde_json::from_str::<Value>(&call.arguments).ok())
                .is_some_and(|arguments| {
                    arguments.get("task").and_then(Value::as_str) == Some(&task)
                })
        })
    }
}

/// Describes the origin of a fork.
pub(crate) fn described(fork: &Fork) -> String {
    format!("fork of {} at entry {}", fork.from, fork.entries)
}
