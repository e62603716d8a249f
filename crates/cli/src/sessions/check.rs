//! `plimsoll sessions check`: reads every session and reports which cannot be read, without changing
//! anything.

use std::path::Path;

use plimsoll::store::{CheckedSession, EntryFault, FILE, SqliteStore};
use serde_json::json;

use crate::error::{CliError, DONE, FAILED};

/// Maximum number of faults of one session that are printed as text. JSON contains all.
const SHOWN: usize = 5;

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

fn as_value(session: &CheckedSession) -> serde_json::Value {
    let faults = session.faults.iter().map(
        |EntryFault { first, last, why }| json!({ "first": first, "last": last, "fault": why }),
    );
    json!({
        "id": session.id,
        "entries": session.entries,
        "readable": session.readable,
        "fault": session.faults.first().map(|fault| &fault.why),
        "faults": faults.collect::<Vec<_>>(),
        "more_faults": session.has_more_faults,
        "may_go_on": session.may_go_on,
    })
}

fn state(session: &CheckedSession) -> String {
    match session.faults.split_first() {
        None if session.may_go_on => {
            "readable; its row is lost, so its end may be missing".to_owned()
        }
        None => "whole".to_owned(),
        Some((first, others)) => {
            let state = match session.readable {
                0 => format!("not readable: {}", first.why),
                to => format!("readable up to entry {to}: {}", first.why),
            };
            let shown = others.iter().take(SHOWN).map(place).collect::<Vec<_>>();
            let hidden = others.len().saturating_sub(SHOWN);
            let more = match (hidden, session.has_more_faults) {
                (0, false) => "",
                _ => " and others",
            };
            if shown.is_empty() {
                state
            } else {
                format!("{state}; so are entries {}{more}", shown.join(", "))
            }
        }
    }
}

fn place(fault: &EntryFault) -> String {
    let EntryFault { first, last, why } = fault;
    if first == last {
        format!("{first} ({why})")
    } else {
        format!("{first} to {last} ({why})")
    }
}
