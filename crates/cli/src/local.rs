//! The local model at the command line: `plimsoll model`, and starting it for a run. Fetching and
//! serving are in the providers.

use serde::Serialize;

use crate::args::{ModelArgs, RunArgs};
use crate::choice::{Choice, MaxContext};
use crate::exit::Stop;

/// Our own server while a run needs it.
pub(crate) struct Server;

/// A local model as `doctor` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct LocalState {
    pub(crate) name: String,
}

impl LocalState {
    pub(crate) fn state(&self) -> &'static str {
        "unknown"
    }
}

pub(crate) fn state() -> Result<Vec<LocalState>, Stop> {
    Ok(Vec::new())
}

pub(crate) async fn run(_args: &ModelArgs) -> Result<u8, Stop> {
    Err(Stop::failed("pending"))
}

pub(crate) async fn start(_args: &RunArgs, _max_context: MaxContext) -> Result<Choice, Stop> {
    Err(Stop::failed("pending"))
}
