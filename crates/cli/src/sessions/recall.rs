//! `plimsoll sessions recall`: prints the exact bytes of a message of a session's log, which may have
//! left the view.

use plimsoll::SessionId;
use plimsoll::recall::RecallError;
use plimsoll::store::SessionReader;

use crate::error::{CliError, DONE};
use crate::stdout::exactly;

/// The message to print.
#[derive(Debug, clap::Args)]
pub(crate) struct RecallArgs {
    /// The session
    pub(crate) id: String,
    /// The item, as named by `ledger` (such as m12), or the id of its tool call
    item: String,
    /// Print the message as JSON, with images and call ids
    #[arg(long)]
    json: bool,
}

/// Runs the command. The bytes go to standard output, a note to standard error.
pub(crate) async fn run(
    store: &impl SessionReader,
    id: &SessionId,
    wanted: &RecallArgs,
) -> Result<u8, CliError> {
    let key = &wanted.item;
    let item = store.recall(id, key).await.map_err(|error| match error {
        RecallError::Unknown(name) => CliError::usage(format!(
            "session {id} has no item `{name}`; `plimsoll sessions ledger {id}` lists the evicted \
             items"
        )),
        RecallError::Store(error) => CliError::from(error),
        error => CliError::usage(error),
    })?;
    if wanted.json {
        out!("{}", serde_json::to_string(&item.message)?);
        return Ok(DONE);
    }
    let text = item.text();
    exactly(&text)?;
    say!("{}, {}: {} bytes", item.id, item.kind, text.len());
    Ok(DONE)
}
