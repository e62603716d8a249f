//! `plimsoll sessions salvage`: creates a new store from the readable part of a damaged one.

use std::path::{Path, PathBuf};

use plimsoll::store::{CheckedSession, FILE, SqliteStore};

use super::check;
use crate::error::{CliError, DONE, FAILED};
use crate::listing;
use crate::terminal::text::counted;

#[derive(Debug, clap::Args)]
pub(crate) struct SalvageArgs {
    /// The folder of the new store; it must be empty, and is created if missing
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// Runs the command. The exit code is 1 if entries are lost.
pub(crate) async fn run(from: &Path, args: &SalvageArgs) -> Result<u8, CliError> {
    let salvaged = SqliteStore::salvage(from, &args.to).await?;
    let heading = ["session", ">entries", ">recovered", ">lost", "state"];
    listing::print(&salvaged, args.json, heading, cells)?;
    let damaged = salvaged.iter().filter(|one| !one.is_whole()).count();
    let whole = salvaged.len() - damaged;
    let folder = args.to.display();
    let rest = match damaged {
        0 => String::new(),
        _ => format!(
            ", and {} up to the first unreadable entry",
            counted(damaged, "damaged session")
        ),
    };
    note!(
        "{} recovered{rest}; use the new store with PLIMSOLL_HOME={folder}, or move the damaged one away and the new sessions.db to {}",
        counted(whole, "whole session"),
        from.join(FILE).display(),
    );
    Ok(if damaged == 0 { DONE } else { FAILED })
}

fn cells(one: &CheckedSession) -> [String; 5] {
    [
        one.id.to_string(),
        one.entries.to_string(),
        one.readable.to_string(),
        one.lost.to_string(),
        check::state(one),
    ]
}
