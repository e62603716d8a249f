//! Durable runs on Restate: `plimsoll worker`, `plimsoll run --on` and `plimsoll send`. What a worker does is
//! in the library.

mod follow;
pub(crate) mod on;
pub(crate) mod send;
pub(crate) mod worker;

use plimsoll::durable::{Restate, RestateError};

use crate::exit::Stop;

/// The variable with the token that a server may want.
const TOKEN: &str = "RESTATE_AUTH_TOKEN";

/// A server by its address.
fn server(address: &str) -> Result<Restate, Stop> {
    let token = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    Restate::new(address, token).map_err(Stop::usage)
}

/// Why a server did not do what it was asked for.
fn stop_of(error: RestateError) -> Stop {
    Stop::failed(error)
}
