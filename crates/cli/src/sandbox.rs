//! `plimsoll sandbox`: the launcher of commands in a sandbox. It restricts itself and becomes the
//! shell. Only Plimsoll starts it.

use std::ffi::OsString;
use std::path::PathBuf;

use plimsoll::tools::SandboxMode;
use plimsoll::tools::sandbox::run_shell;

use crate::error::CliError;

/// The subcommand's name.
const NAME: &str = "sandbox";

#[derive(Debug, clap::Args)]
pub(crate) struct SandboxArgs {
    /// What the command may write to
    #[arg(long)]
    mode: SandboxMode,
    /// The workspace root
    #[arg(long)]
    root: PathBuf,
    /// The command, as the shell reads it
    #[arg(last = true)]
    command: String,
}

/// Returns the program and its first arguments that enter a sandbox.
pub(crate) fn launcher() -> Result<[OsString; 2], CliError> {
    let program = std::env::current_exe().map_err(|error| {
        CliError::failed(format!(
            "the sandbox cannot be entered, since the program's own file is not known: {error}"
        ))
    })?;
    Ok([program.into(), NAME.into()])
}

/// Becomes the command. Returns only on an error.
pub(crate) fn run(args: &SandboxArgs) -> Result<u8, CliError> {
    match run_shell(args.mode, &args.root, &args.command) {
        Ok(never) => match never {},
        Err(error) => Err(CliError::failed(error)),
    }
}
