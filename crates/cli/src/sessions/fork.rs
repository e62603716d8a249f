//! `plimsoll sessions fork`: creates a session that begins with the first entries of another.
//! Nothing is run; `plimsoll run --session` continues it.

use plimsoll::SessionId;
use plimsoll::session::fork_session;
use plimsoll::store::SessionReader;

use crate::error::{CliError, DONE};
use crate::which_session::new_name;

/// Runs the command. The new session's name goes to standard output, its description to standard
/// error.
pub(crate) async fn run(
    store: &impl SessionReader,
    from: &SessionId,
    at: Option<u64>,
    to: Option<&str>,
) -> Result<u8, CliError> {
    let to = new_name(to)?;
    let forked = fork_session(store, from, at, &to).await;
    let _lease = forked?;
    let info = store.head(&to).await?;
    let entries = info
        .and_then(|info| info.fork)
        .map_or(0, |fork| fork.entries);
    out!("{to}");
    note!(
        "a fork of {from} at entry {entries}; continue with: plimsoll run --session {to} \
           \"...\""
    );
    Ok(DONE)
}
