//! Finds the session that a command names: by a whole name, a shortened one, or as the newest of
//! this folder.

use plimsoll::SessionId;
use plimsoll::session::new_session_id;
use plimsoll::store::{SessionReader, SqliteStore};

use crate::ask;
use crate::error::CliError;
use crate::sessions::list::{self, ListedSession};

/// Minimum length of a shortened name, in characters.
const SHORTEST: usize = 3;
/// Maximum number of sessions that are listed.
const PICKED: usize = 15;
const NONE: &str = "there are no sessions yet; `plimsoll run` starts one";
pub(crate) const NOTHING: &str =
    "nothing was found; an entry is found if it contains all of the words";
/// Maximum number of sessions that are listed for an ambiguous name.
const LISTED: usize = 5;

/// Returns the name of a new session: the given one, or a generated one.
pub(crate) fn new_name(name: Option<&str>) -> Result<SessionId, CliError> {
    Ok(name.map_or_else(|| Ok(new_session_id()), SessionId::new)?)
}

/// Returns the session with this name, or the only one whose generated name begins or ends with `text`.
///
/// # Errors
/// If there is none, or more than one.
pub(crate) async fn known(store: &impl SessionReader, text: &str) -> Result<SessionId, CliError> {
    let id = SessionId::new(text)?;
    existing(store, &id).await?.ok_or_else(|| {
        CliError::usage(format!(
            "there is no session {id}; `plimsoll sessions list` lists them"
        ))
    })
}

/// Returns the session with this name, or the only one that may be meant by it.
async fn existing(
    store: &impl SessionReader,
    id: &SessionId,
) -> Result<Option<SessionId>, CliError> {
    match store.head(id).await? {
        Some(_) => Ok(Some(id.clone())),
        None => shortened(store, id.as_str()).await,
    }
}

/// Which session `run` and `chat` continue.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionChoice {
    /// Continue this session; a generated name may be shortened
    #[arg(long = "session", value_name = "ID")]
    id: Option<String>,
    /// Continue the newest session of this folder
    #[arg(long = "continue", short = 'c', conflicts_with = "id")]
    newest: bool,
    /// Choose the session from a list
    #[arg(long = "resume", short = 'r', conflicts_with_all = ["id", "newest"])]
    pick: bool,
}

impl SessionChoice {
    /// Returns the session that is named in full, for a store that cannot be searched from here.
    #[cfg(feature = "restate")]
    pub(crate) fn named(&self) -> Result<Option<SessionId>, CliError> {
        if self.newest || self.pick {
            return Err(CliError::usage("with --on, name the session: --session ID"));
        }
        Ok(self.id.as_deref().map(SessionId::new).transpose()?)
    }

    /// Returns `true` if an existing session is named or chosen.
    pub(crate) fn is_made(&self) -> bool {
        self.id.is_some() || self.newest || self.pick
    }
}

/// Returns the session of `run` and `chat`: a new one unless one is chosen.
///
/// # Errors
/// If no session was run in this folder, if the name is ambiguous, or if nothing was or could be
/// chosen.
pub(crate) async fn of_run(
    store: &SqliteStore,
    choice: &SessionChoice,
) -> Result<SessionId, CliError> {
    if choice.newest {
        return newest_here(store).await;
    }
    if choice.pick {
        return pick(store).await;
    }
    let Some(text) = choice.id.as_deref() else {
        return Ok(new_session_id());
    };
    let id = SessionId::new(text)?;
    Ok(existing(store, &id).await?.unwrap_or(id))
}

/// Lets the user choose at the terminal among the newest sessions, of this folder if there are any.
async fn pick(store: &SqliteStore) -> Result<SessionId, CliError> {
    if !ask::can_ask() {
        return Err(CliError::usage(
            "a session can be chosen only at a terminal; name it with --session ID, or use -c for \
             the newest",
        ));
    }
    let sessions = newest(store).await?;
    if sessions.is_empty() {
        return Err(CliError::usage(NONE));
    }
    // Without the heading.
    let lines = list::lines(&sessions).into_iter().skip(1);
    for (number, line) in (1..).zip(lines) {
        list::note(&format!("{number:>2}  {line}"));
    }
    let chosen = ask::number(sessions).await;
    chosen.map(|session| session.info.id).ok_or_else(|| {
        CliError::usage("no session was chosen; `plimsoll sessions search WORDS` finds others")
    })
}

/// Returns the newest sessions, of this folder if there are any.
async fn newest(store: &SqliteStore) -> Result<Vec<ListedSession>, CliError> {
    let mut sessions = list::sessions(store, true).await?;
    if sessions.is_empty() {
        sessions = list::sessions(store, false).await?;
    }
    sessions.truncate(PICKED);
    Ok(sessions)
}

/// Returns the newest session whose last run was in this folder.
async fn newest_here(store: &SqliteStore) -> Result<SessionId, CliError> {
    let newest = list::sessions(store, true).await?.into_iter().next();
    newest.map(|session| session.info.id).ok_or_else(|| {
        let here = list::folder().unwrap_or_default();
        CliError::usage(format!(
            "no session was run in {} yet; `plimsoll sessions list` lists those of all folders, and \
             --session ID continues one",
            here.display()
        ))
    })
}

/// Returns the only session whose name was generated and begins or ends with `text`. Names that a person
/// gave are not shortened: a new session may have any of them, and a wrong one may be deleted.
async fn shortened(store: &impl SessionReader, text: &str) -> Result<Option<SessionId>, CliError> {
    if text.len() < SHORTEST {
        return Ok(None);
    }
    let sessions = store.list().await?;
    let ids = sessions.into_iter().map(|info| info.id);
    let mut ids: Vec<SessionId> = ids
        .filter(|id| {
            let id = id.as_str();
            is_generated(id) && (id.starts_with(text) || id.ends_with(text))
        })
        .collect();
    if ids.len() < 2 {
        return Ok(ids.pop());
    }
    let listed: Vec<&str> = ids.iter().take(LISTED).map(SessionId::as_str).collect();
    let more = if ids.len() > LISTED { ", …" } else { "" };
    Err(CliError::usage(format!(
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
