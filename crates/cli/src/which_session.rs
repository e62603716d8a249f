//! Finds the session that a command names, or the newest one of this folder.

use plimsoll::SessionId;
use plimsoll::session::new_session_id;
use plimsoll::store::{SessionReader, SqliteStore};

use crate::ask;
use crate::error::CliError;
use crate::sessions::list;

/// Maximum number of sessions that are listed.
const PICKED: usize = 15;

/// Returns the name of a new session: the given one, or a generated one.
pub(crate) fn new_name(name: Option<&str>) -> Result<SessionId, CliError> {
    Ok(name.map_or_else(|| Ok(new_session_id()), SessionId::new)?)
}

/// Returns the name of an existing session.
///
/// # Errors
/// If there is none.
pub(crate) async fn known(store: &impl SessionReader, text: &str) -> Result<SessionId, CliError> {
    let id = SessionId::new(text)?;
    match store.head(&id).await? {
        Some(_) => Ok(id),
        None => Err(CliError::usage(format!(
            "there is no session {id}; `plimsoll sessions list` lists them"
        ))),
    }
}

/// Which session `run` and `chat` continue.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionChoice {
    /// Continue this session, or begin one of this name
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
/// If no session was run in this folder, or if nothing was or could be chosen.
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
    new_name(choice.id.as_deref())
}

/// Lets the user choose at the terminal among the newest sessions, of this folder if there are any.
async fn pick(store: &SqliteStore) -> Result<SessionId, CliError> {
    if !ask::can_ask() {
        return Err(CliError::usage(
            "a session can be chosen only at a terminal; name it with --session ID, or use -c for \
             the newest",
        ));
    }
    let mut sessions = list::sessions(store, true).await?;
    if sessions.is_empty() {
        sessions = list::sessions(store, false).await?;
    }
    sessions.truncate(PICKED);
    if sessions.is_empty() {
        return Err(CliError::usage(list::NONE));
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

/// Returns the newest session whose last run was in this folder.
async fn newest_here(store: &SqliteStore) -> Result<SessionId, CliError> {
    let newest = list::sessions(store, true).await?.into_iter().next();
    newest.map(|session| session.info.id).ok_or_else(|| {
        let here = std::env::current_dir().unwrap_or_default();
        CliError::usage(format!(
            "no session was run in {} yet; `plimsoll sessions list` lists those of all folders, and \
             --session ID continues one",
            here.display()
        ))
    })
}
