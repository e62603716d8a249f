//! `plimsoll sessions salvage`: creates a new store from the readable part of a damaged one.

use std::path::{Path, PathBuf};

use plimsoll::store::{FILE, SalvagedSession, SqliteStore};

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
    let heading = [
        "session",
        ">entries",
        ">recovered",
        ">behind",
        ">lost",
        "state",
    ];
    listing::print(&salvaged, args.json, heading, cells)?;
    let damaged = salvaged.iter().filter(|one| !one.log.is_whole()).count();
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
        "{} recovered{rest}; use the new store with PLIMSOLL_HOME={folder}, or move its sessions.db to {}",
        counted(whole, "whole session"),
        from.join(FILE).display(),
    );
    Ok(if damaged == 0 { DONE } else { FAILED })
}

fn cells(one: &SalvagedSession) -> [String; 6] {
    let mut state = check::state(&one.log);
    if let Some(file) = &one.file {
        state.push_str(&format!("; behind it: {}", file.display()));
    }
    [
        one.log.id.to_string(),
        one.log.entries.to_string(),
        one.log.readable.to_string(),
        one.behind.to_string(),
        one.log.lost.to_string(),
        state,
    ]
}
