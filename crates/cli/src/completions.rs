//! `plimsoll completions`: generates shell completions from the `--help` texts.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::{CliError, DONE};
use crate::stdout;

/// Prints the completion script.
pub(crate) fn completions(shell: Shell) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "plimsoll", &mut script);
    stdout::exactly(&String::from_utf8_lossy(&script))?;
    Ok(DONE)
}
