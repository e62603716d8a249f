//! `plimsoll sessions list`: lists all sessions or those of this folder, one per line.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;

use console::Term;
use plimsoll::SessionId;
use plimsoll::pricing::Cost;
use plimsoll::store::{Fork, MAX_FORK_DEPTH, SessionInfo, SessionReader};
use plimsoll::tokens::Bytes;
use serde_json::{Value, json};

use crate::error::{CliError, DONE};
use crate::resume::SessionSettings;
use crate::sessions::ledger::when;
use crate::terminal::fitted;
use crate::terminal::text::{clip, widths};

/// Maximum width of the names of sessions and models.
const NAME: usize = 24;

/// A session, with its last run.
pub(crate) type ListedSession = (SessionInfo, SessionSettings);

/// Runs the command.
pub(crate) async fn run(
    store: &impl SessionReader,
    here: bool,
    as_json: bool,
) -> Result<u8, CliError> {
    let sessions = sessions(store, here).await?;
    if as_json {
        for (session, last) in &sessions {
            out!("{}", as_value(session, last)?);
        }
        return Ok(DONE);
    }
    if sessions.is_empty() {
        crate::say(if here {
            "there are no sessions of this folder yet; leave out --here to list those of all \
                 folders"
        } else {
            "there are no sessions yet; `plimsoll run` starts one"
        });
        return Ok(DONE);
    }
    let terminal = Term::stdout();
    for line in lines(&sessions, terminal.is_term()) {
        out!("{}", fitted(&line, &terminal));
    }
    Ok(DONE)
}

/// Returns all sessions or those that were last run in this folder, newest first.
pub(crate) async fn sessions(
    store: &impl SessionReader,
    here: bool,
) -> Result<Vec<ListedSession>, CliError> {
    let folder = if here {
        Some(env::current_dir().map_err(CliError::failed)?)
    } else {
        None
    };
    // If the store is damaged, the sessions are listed without settings.
    let settings = store.all_settings().await.unwrap_or_default();
    let sessions = store.list().await?;
    let parents: BTreeMap<&SessionId, &SessionId> = sessions
        .iter()
        .filter_map(|session| Some((&session.id, &session.fork.as_ref()?.from)))
        .collect();
    let last_run = |session: &SessionInfo| {
        // A fork that was not run yet has the settings of its parent.
        let up = std::iter::successors(Some(&session.id), |id| parents.get(id).copied());
        let text = up
            .take(1 + MAX_FORK_DEPTH as usize)
            .find_map(|id| settings.get(id));
        let last = text.map(|text| SessionSettings::of(text));
        let mut last = last.unwrap_or_default();
        last.cost = last.cost.filter(|_| settings.contains_key(&session.id));
        last
    };
    let listed = sessions
        .iter()
        .map(|session| (session.clone(), last_run(session)));
    Ok(listed
        .filter(|(_, last)| folder.is_none() || last.folder == folder)
        .collect())
}

/// Returns aligned lines, one for each session.
pub(crate) fn lines(sessions: &[ListedSession], has_heading: bool) -> Vec<String> {
    let heading = [
        "session",
        "last written",
        "entries",
        "cost",
        "size",
        "model",
        "title",
    ];
    let heading = heading.map(str::to_owned);
    let mut table = Vec::with_capacity(sessions.len() + 1);
    table.extend(has_heading.then_some(heading));
    table.extend(sessions.iter().map(cells));
    let [id, written, entries, cost, size, model, _] = widths(&table).map(|width| width.min(NAME));
    let line = |[name, when, count, paid, bytes, of, title]: &[String; 7]| {
        format!(
            "{name:<id$}  {when:<written$}  {count:>entries$}  {paid:>cost$}  {bytes:>size$}  {of:<model$}  {title}"
        )
    };
    table.iter().map(line).collect()
}

/// Writes a line to standard error, cut at the width of a terminal.
pub(crate) fn note(line: &str) {
    crate::note(&fitted(line, &Term::stderr()));
}

fn cells((session, last): &ListedSession) -> [String; 7] {
    let fork = session.fork.as_ref().map(described);
    let title = [
        Some(session.title.clone()),
        fork.map(|fork| format!("({fork})")),
    ];
    let title: Vec<String> = title.into_iter().flatten().collect();
    let model = last.model.rsplit('/').next().unwrap_or_default();
    [
        session.id.as_str().to_owned(),
        minute(session.updated),
        session.entries.to_string(),
        last.cost.map(shown).unwrap_or_default(),
        size(session.bytes),
        clip(model, NAME),
        title.join("  ").trim_start().to_owned(),
    ]
}

/// Formats a cost. A `+` means that the price of some calls is unknown.
pub(crate) fn shown(cost: Cost) -> String {
    match (cost.known.0, cost.unpriced) {
        (0, 1..) => "-".to_owned(),
        (_, 0) => cost.known.to_string(),
        (_, 1..) => format!("{}+", cost.known),
    }
}

/// Returns a size in the units that `sessions prune --max-size` takes, or in KB.
pub(crate) fn size(bytes: Bytes) -> String {
    let kb = bytes.0.div_ceil(1_000);
    match kb {
        0..1_000 => format!("{kb} KB"),
        1_000..1_000_000 => format!("{}.{} MB", kb / 1_000, kb % 1_000 / 100),
        _ => format!("{}.{} GB", kb / 1_000_000, kb % 1_000_000 / 100_000),
    }
}

/// Describes the origin of a fork.
pub(crate) fn described(fork: &Fork) -> String {
    format!("fork of {} at entry {}", fork.from, fork.entries)
}

/// Formats a time without seconds.
pub(crate) fn minute(at: u64) -> String {
    let date = when(at);
    match date.rsplit_once(':') {
        Some((minute, _)) => minute.to_owned(),
        None => date,
    }
}

fn as_value(session: &SessionInfo, last: &SessionSettings) -> Result<Value, CliError> {
    let mut value = serde_json::to_value(session)?;
    if let Value::Object(fields) = &mut value {
        let model = (!last.model.is_empty()).then_some(&last.model);
        fields.insert("model".to_owned(), json!(model));
        fields.insert("cost".to_owned(), json!(last.cost));
        let folder = last
            .folder
            .as_ref()
            .map(|folder: &PathBuf| folder.display().to_string());
        fields.insert("folder".to_owned(), json!(folder));
    }
    Ok(value)
}
