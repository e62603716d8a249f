//! `plimsoll completions` and `plimsoll man`: generate shell completions and man pages from the
//! `--help` texts.

use std::fs;
use std::path::PathBuf;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::{CliError, DONE};
use crate::stdout;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  plimsoll completions bash > ~/.local/share/bash-completion/completions/plimsoll
  plimsoll completions zsh > ~/.zfunc/_plimsoll      # a folder of $fpath
  plimsoll completions fish > ~/.config/fish/completions/plimsoll.fish
  plimsoll completions powershell >> $PROFILE";

const MAN_EXAMPLES: &str = "\
Examples:
  plimsoll man ~/.local/share/man/man1
  man plimsoll-run";

#[derive(Debug, clap::Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

#[derive(Debug, clap::Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// The folder; it is made if there is none. Pages of earlier versions are replaced
    folder: PathBuf,
}

/// Prints the completion script.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "plimsoll", &mut script);
    stdout::exactly(&String::from_utf8_lossy(&script))?;
    Ok(DONE)
}

/// Writes the man pages.
pub(crate) fn man(args: &ManArgs) -> Result<u8, CliError> {
    let failed = |error| CliError::failed(format!("{}: {error}", args.folder.display()));
    fs::create_dir_all(&args.folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), &args.folder).map_err(failed)?;
    note!("wrote man pages into {}", args.folder.display());
    Ok(DONE)
}
