//! `plimsoll sessions check`: reads every session and reports which cannot be read, without changing
//! anything.

use std::path::Path;

use plimsoll::store::{CheckedSession, EntryFault, FILE, SqliteStore};
use serde_json::{Value, json};

use crate::error::{CliError, DONE, FAILED};

/// Maximum number of faults of one session that are printed as text. JSON contains all.
const SHOWN: usize = 6;

/// Runs the command. The exit code is 1 if anything is damaged.
pub(crate) async fn run(folder: &Path, as_json: bool) -> Result<u8, CliError> {
    let found = SqliteStore::check(folder).await?;
    for session in &found.sessions {
        if as_json {
            out!("{}", as_value(session))
        } else {
            out!(
                "{:<24}  {:>6} entries  {}",
                session.id.as_str(),
                session.entries,
                state(session)
            )
        }
    }
    let is_whole = found.sessions.iter().all(CheckedSession::is_whole);
    if found.is_damaged || !is_whole {
        say!(
            "{} is damaged; save the readable sessions with `plimsoll sessions salvage --to \
             FOLDER`",
            folder.join(FILE).display()
        );
        return Ok(FAILED);
    }
    Ok(DONE)
}

pub(super) fn as_value(session: &CheckedSession) -> Value {
    let faults = session.faults.iter().map(
        |EntryFault { first, last, why }| json!({ "first": first, "last": last, "fault": why }),
    );
    json!({
        "id": session.id,
        "entries": session.entries,
        "readable": session.readable,
        "lost": session.lost,
        "faults": faults.collect::<Vec<_>>(),
        "row_fault": session.row_fault,
    })
}

/// Describes the state of a log, with the numbers of its first unreadable entries.
pub(super) fn state(session: &CheckedSession) -> String {
    let shown = session.faults.iter().take(SHOWN);
    let mut parts: Vec<String> = shown.map(unreadable).collect();
    parts.extend((session.faults.len() > SHOWN).then(|| "and others".to_owned()));
    parts.extend(session.row_fault.clone());
    if parts.is_empty() {
        return "whole".to_owned();
    }
    parts.join("; ")
}

fn unreadable(EntryFault { first, last, why }: &EntryFault) -> String {
    if first == last {
        format!("entry {first} is not readable: {why}")
    } else {
        format!("entries {first} to {last} are not readable: {why}")
    }
}
