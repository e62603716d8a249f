//! `plimsoll sessions salvage`: a new store of what can be read of a damaged one.

use std::path::PathBuf;

use plimsoll::store::{Salvaged, SqliteStore};
use serde_json::json;

use crate::exit::{DONE, FAILED, Stop};
use crate::out::out;
use crate::terminal::text::counted;

#[derive(Debug, clap::Args)]
pub(crate) struct SalvageArgs {
    /// The folder of the new store; it is made if it is missing
    #[arg(long, value_name = "FOLDER")]
    to: PathBuf,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// Runs the command. The exit code is 1 if entries are lost.
pub(crate) async fn run(store: &SqliteStore, args: &SalvageArgs) -> Result<u8, Stop> {
    let salvaged = store.salvage(&args.to).await.map_err(Stop::failed)?;
    for one in &salvaged {
        match args.json {
            true => out!("{}", as_value(one)),
            false => out!("{}", as_line(one)),
        }
    }
    let damaged = salvaged.iter().filter(|one| one.why.is_some()).count();
    let whole = salvaged.len() - damaged;
    let folder = args.to.display();
    let rest = match damaged {
        0 => String::new(),
        _ => format!(
            ", and {} up to the first entry that cannot be read",
            counted(damaged, "damaged session")
        ),
    };
    crate::note(&format!(
        "{} recovered{rest}; use the new store with PLIMSOLL_HOME={folder}, or move its sessions.db to {}",
        counted(whole, "whole session"),
        store.path().display(),
    ));
    Ok(if damaged == 0 { DONE } else { FAILED })
}

fn as_line(one: &Salvaged) -> String {
    let (id, recovered) = (one.id.as_str(), one.recovered);
    let Some(why) = &one.why else {
        return format!("{id:<24}  {recovered:>6} entries  whole");
    };
    let behind = match &one.file {
        Some(file) => format!(", {} behind it in {}", one.behind, file.display()),
        None => String::new(),
    };
    format!(
        "{id:<24}  {recovered:>6} entries  of {}{behind}, {} lost: {why}",
        one.entries,
        one.lost()
    )
}

fn as_value(one: &Salvaged) -> serde_json::Value {
    json!({
        "id": one.id,
        "entries": one.entries,
        "recovered": one.recovered,
        "behind": one.behind,
        "file": one.file,
        "lost": one.lost(),
        "fault": one.why,
    })
}
