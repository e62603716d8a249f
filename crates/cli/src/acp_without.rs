//! `plimsoll acp` in a build without the feature `acp`: returns an error.

use crate::args::AcpArgs;
use crate::exit::Stop;

pub(crate) async fn run(_args: &AcpArgs) -> Result<u8, Stop> {
    Err(Stop::usage(
        "this build cannot be the agent of an editor; build it with the feature `acp`",
    ))
}
