//! Durable runs on Restate: `plimsoll worker`, `plimsoll run --on` and `plimsoll send`. The worker
//! itself is in the library.

pub(crate) mod send;
pub(crate) mod submit;
pub(crate) mod worker;

use plimsoll::durable::Restate;
use plimsoll::session::new_session_id;
use plimsoll::store::{RunMessage, RunMessageKind};

use crate::error::CliError;

/// The environment variable with the server's token.
const TOKEN: &str = "RESTATE_AUTH_TOKEN";

/// Creates a message to a run.
fn message(kind: RunMessageKind, text: &str) -> RunMessage {
    RunMessage {
        id: new_session_id().to_string(),
        kind,
        text: text.to_owned(),
    }
}

/// Returns the client of a server by its address.
fn server(address: &str) -> Result<Restate, CliError> {
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    Restate::new(address, token).map_err(CliError::usage)
}
