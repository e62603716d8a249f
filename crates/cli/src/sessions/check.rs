//! `plimsoll sessions check`: reads every session and reports which cannot be read, without changing
//! anything.

use std::path::Path;

use plimsoll::store::{CheckedSession, EntryFault, FILE, SqliteStore};

use crate::error::{CliError, DONE, FAILED};
use crate::listing;
use crate::terminal::text::counted;

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

/// Describes the state of a log, with its first unreadable entries.
pub(super) fn state(session: &CheckedSession) -> String {
    let fault = session.faults.first().map(|fault| {
        let EntryFault { first, last, why } = fault;
        let entries = match first == last {
            true => format!("entry {first} is"),
            false => format!("entries {first} to {last} are"),
        };
        let others = match session.faults.len() - 1 {
            0 => String::new(),
            others => format!(", and {}", counted(others, "other fault")),
        };
        format!("{entries} not readable: {why}{others}")
    });
    let parts: Vec<String> = fault.into_iter().chain(session.row_fault.clone()).collect();
    match parts.is_empty() {
        true => "whole".to_owned(),
        false => parts.join("; "),
    }
}
