//! `plimsoll sessions check`: reads every session and reports which cannot be read.

use plimsoll::store::SqliteStore;
use plimsoll::{SessionInfo, SessionStore, StoreError};
use serde_json::json;

use crate::exit::{DONE, FAILED, Stop};
use crate::out::out;

/// Runs the command. The exit code is 1 if anything is damaged.
pub(crate) async fn run(store: &SqliteStore, as_json: bool) -> Result<u8, Stop> {
    let sessions = store.list().await.map_err(Stop::failed)?;
    let mut code = DONE;
    for SessionInfo { id, entries, .. } in &sessions {
        let fault = store.load(id).await.err().map(|error| match error {
            StoreError::BadEntry { entry, why, .. } => (entry.saturating_sub(1), why),
            other => (0, other.to_string()),
        });
        if fault.is_some() {
            code = FAILED;
        }
        if as_json {
            let (readable, why) = fault.map_or((*entries, None), |(to, why)| (to, Some(why)));
            out!(
                "{}",
                json!({ "id": id, "entries": entries, "readable": readable, "fault": why })
            );
            continue;
        }
        let state = match fault {
            None => "whole".to_owned(),
            Some((0, why)) => format!("not readable: {why}"),
            Some((to, why)) => format!("readable up to entry {to}: {why}"),
        };
        out!("{:<24}  {entries:>6} entries  {state}", id.as_str());
    }
    if store.is_damaged() {
        crate::say(&format!(
            "{} is damaged; save what can be read with `plimsoll sessions salvage --to FOLDER`",
            store.path().display()
        ));
        code = FAILED;
    }
    Ok(code)
}
