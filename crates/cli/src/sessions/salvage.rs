//! `plimsoll sessions salvage`: creates a new store from the readable part of a damaged one.

use std::path::{Path, PathBuf};

use plimsoll::store::{FILE, SalvagedSession, SqliteStore};
use serde_json::{Value, json};

use super::check;
use crate::error::{CliError, DONE, FAILED};
use crate::terminal::text::counted;

/// The heading of the table, above columns of the same widths.
const HEADING: &str = "session                   entries  recovered  behind   lost  state";

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
    let salvaged = SqliteStore::salvage(from, &args.to)
        .await
        .map_err(CliError::failed)?;
    if !args.json {
        out!("{HEADING}");
    }
    for one in &salvaged {
        if args.json {
            out!("{}", as_value(one))
        } else {
            out!("{}", as_line(one))
        }
    }
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

fn as_line(one: &SalvagedSession) -> String {
    let state = check::state(&one.log);
    let behind = one.file.as_ref();
    let behind = behind.map_or_else(String::new, |file| {
        format!("; behind it: {}", file.display())
    });
    format!(
        "{:<24}  {:>7}  {:>9}  {:>6}  {:>5}  {state}{behind}",
        one.log.id.as_str(),
        one.log.entries,
        one.log.readable,
        one.behind,
        one.log.lost
    )
}

fn as_value(one: &SalvagedSession) -> Value {
    let mut value = check::as_value(&one.log);
    if let Value::Object(fields) = &mut value {
        fields.insert("behind".to_owned(), json!(one.behind));
        fields.insert("file".to_owned(), json!(one.file));
    }
    value
}
