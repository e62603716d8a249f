//! `plimsoll completions`: generates shell completions from the `--help` texts.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::{CliError, DONE};
use crate::stdout;

#[derive(Debug, clap::Args)]
#[command(after_help = include_str!("../help/completions.txt").trim_ascii_end())]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Prints the completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "plimsoll", &mut script);
    stdout::exactly(&String::from_utf8_lossy(&script))?;
    Ok(DONE)
}
