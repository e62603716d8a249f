//! `plimsoll sessions check`: reads every session and reports which cannot be read, without changing
//! anything.

use std::path::Path;

use plimsoll::store::{CheckedSession, EntryFault, FILE, SqliteStore};

use super::list;
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
    if found.sessions.is_empty() && !json {
        crate::say(list::NONE);
    }
    Ok(DONE)
}

/// Describes the state of a log: its first fault, and the number of the others.
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

#[cfg(test)]
mod tests {
    use plimsoll::SessionId;

    use super::*;

    #[test]
    fn the_first_fault_is_named_and_the_others_are_counted() {
        let fault = |first, last| EntryFault {
            first,
            last,
            why: "it was altered".to_owned(),
        };
        let mut session = CheckedSession {
            id: SessionId::new("tour").unwrap(),
            entries: 9,
            readable: 1,
            lost: 3,
            faults: Vec::new(),
            row_fault: None,
        };
        assert_eq!(state(&session), "whole");
        session.faults = vec![fault(2, 3)];
        let first = "entries 2 to 3 are not readable: it was altered";
        assert_eq!(state(&session), first);
        session.faults.extend([fault(5, 5), fault(7, 7)]);
        session.row_fault = Some("its row is damaged".to_owned());
        let all = format!("{first}, and 2 other faults; its row is damaged");
        assert_eq!(state(&session), all);
    }
}
