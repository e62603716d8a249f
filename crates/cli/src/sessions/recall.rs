//! `plimsoll sessions recall`: prints the exact bytes of a message of a session's log, which may have
//! left the view.

use plimsoll::SessionId;
use plimsoll::recall::{RecallError, matches, page};
use plimsoll::store::SessionReader;
use plimsoll::tokens::Bytes;

use crate::error::{CliError, DONE};
use crate::stdout::exactly;

/// The message and the part of it to print.
#[derive(Debug, clap::Args)]
pub(crate) struct RecallArgs {
    /// The session
    pub(crate) id: String,
    /// The item, as named by `ledger` (such as m12), or the id of its tool call
    item: String,
    /// First byte to print
    #[arg(long, default_value_t = 0, value_name = "BYTES")]
    offset: u64,
    /// Maximum number of bytes [default: all]
    #[arg(long, value_name = "BYTES")]
    limit: Option<u64>,
    /// Print only matching lines, as line:offset: text (regular expression or plain text)
    #[arg(long, value_name = "PATTERN", conflicts_with = "offset")]
    pattern: Option<String>,
    /// Print the message as JSON, with images and call ids
    #[arg(long, conflicts_with_all = ["offset", "limit", "pattern"])]
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
    let limit = wanted.limit.map_or(Bytes(u64::MAX), Bytes);
    let piece = match &wanted.pattern {
        Some(pattern) => matches(&text, pattern, limit),
        None => page(&text, wanted.offset, limit),
    };
    let piece = piece.map_err(CliError::usage)?;
    exactly(&piece.text)?;
    say!("{}, {}: {}", item.id, item.kind, piece.note);
    Ok(DONE)
}
