//! Which session a command means: a whole name, a shortened one, or the newest of this folder.

use std::env;

use plimsoll::store::SqliteStore;
use plimsoll::{SessionId, SessionInfo, SessionStore, new_session_id};

use crate::exit::Stop;
use crate::resume;

/// A shortened name has at least this many characters.
const SHORTEST: usize = 3;
/// How many of the newest sessions are asked for their folder.
const NEWEST: u32 = 1_000;
/// How many sessions an ambiguous name lists.
const LISTED: usize = 5;

/// Returns the session that is meant: one of that name, or the only one whose name begins or ends with
/// `text`.
///
/// # Errors
/// If there is none, or more than one.
pub(crate) async fn known(store: &SqliteStore, text: &str) -> Result<SessionId, Stop> {
    let id = SessionId::new(text).map_err(Stop::usage)?;
    if store.info(&id).await.map_err(Stop::failed)?.is_some() {
        return Ok(id);
    }
    match shortened(store, text, |_| true).await? {
        Some(id) => Ok(id),
        None => Err(Stop::usage(format!(
            "there is no session {id}; `plimsoll sessions list` lists them"
        ))),
    }
}

/// Returns the session of `run` and `chat`: the newest of this folder, the one that is meant by
/// `name`, or a new one. A name that was chosen by somebody is never taken for a shortened one, since a
/// new session may have it.
///
/// # Errors
/// If no session was run in this folder, or if `name` may mean several.
pub(crate) async fn of_run(
    store: &SqliteStore,
    name: Option<&str>,
    goes_on: bool,
) -> Result<SessionId, Stop> {
    let Some(text) = name else {
        return match goes_on {
            true => newest_here(store).await,
            false => Ok(new_session_id()),
        };
    };
    let id = SessionId::new(text).map_err(Stop::usage)?;
    if store.info(&id).await.map_err(Stop::failed)?.is_some() {
        return Ok(id);
    }
    Ok(shortened(store, text, is_generated).await?.unwrap_or(id))
}

/// Returns the session that was written last of those that were last run in this folder.
async fn newest_here(store: &SqliteStore) -> Result<SessionId, Stop> {
    let here = env::current_dir().map_err(Stop::failed)?;
    for SessionInfo { id, .. } in store.newest(NEWEST).await.map_err(Stop::failed)? {
        let last = resume::last_run(store, &id).await?;
        if last.and_then(|last| last.folder).as_ref() == Some(&here) {
            return Ok(id);
        }
    }
    Err(Stop::usage(format!(
        "no session was run in {} yet; `plimsoll sessions list` lists those of all folders, and \
         --session ID continues one",
        here.display()
    )))
}

async fn shortened(
    store: &SqliteStore,
    text: &str,
    may_be: fn(&str) -> bool,
) -> Result<Option<SessionId>, Stop> {
    if text.len() < SHORTEST {
        return Ok(None);
    }
    let sessions = store.list().await.map_err(Stop::failed)?;
    let ids = sessions.into_iter().map(|info| info.id);
    let mut ids: Vec<SessionId> = ids
        .filter(|id| {
            let id = id.as_str();
            may_be(id) && (id.starts_with(text) || id.ends_with(text))
        })
        .collect();
    if ids.len() < 2 {
        return Ok(ids.pop());
    }
    let listed: Vec<&str> = ids.iter().take(LISTED).map(SessionId::as_str).collect();
    let more = if ids.len() > LISTED { ", …" } else { "" };
    Err(Stop::usage(format!(
        "{text} may be {} sessions ({}{more}); give more of the name",
        ids.len(),
        listed.join(", ")
    )))
}

/// Checks whether a name has the form of [`new_session_id`]: two hexadecimal numbers.
fn is_generated(id: &str) -> bool {
    let is_hex = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    id.split_once('-')
        .is_some_and(|(time, random)| is_hex(time) && is_hex(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_name_has_two_numbers() {
        assert!(is_generated(new_session_id().as_str()));
        for chosen in ["notes", "notes-2", "tour-a1", "-a1", "18f2c-"] {
            assert!(!is_generated(chosen), "{chosen}");
        }
    }
}
