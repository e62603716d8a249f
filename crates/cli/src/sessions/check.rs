//! `plimsoll sessions check`: reads every session and reports which cannot be read, without changing
//! anything.

use std::path::Path;

use plimsoll::store::{CheckedSession, EntryFault, FILE, SqliteStore};

use crate::error::{CliError, DONE, FAILED};
use crate::listing;

/// Maximum number of faults of one session that are printed as text. JSON contains all.
const SHOWN: usize = 6;

/// Runs the command. The exit code is 1 if anything is damaged.
pub(crate) async fn run(folder: &Path, json: bool) -> Result<u8, CliError> {
    let found = SqliteStore::check(folder).await?;
    let heading = ["session", ">entries", "state"];
    listing::print(&found.sessions, json, heading, |session| {
        let entries = session.entries.to_string();
        [session.id.to_string(), entries, state(session)]
    })?;
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

/// Describes the state of a log, with the numbers of its first unreadable entries.
pub(super) fn state(session: &CheckedSession) -> String {
    let unreadable = |EntryFault { first, last, why }: &EntryFault| {
        if first == last {
            format!("entry {first} is not readable: {why}")
        } else {
            format!("entries {first} to {last} are not readable: {why}")
        }
    };
    let shown = session.faults.iter().take(SHOWN).map(unreadable);
    let others = (session.faults.len() > SHOWN).then(|| "and others".to_owned());
    let parts: Vec<String> = shown
        .chain(others)
        .chain(session.row_fault.clone())
        .collect();
    if parts.is_empty() {
        return "whole".to_owned();
    }
    parts.join("; ")
}
