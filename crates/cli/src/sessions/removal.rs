//! `plimsoll sessions delete | prune`: deletes sessions by name, or by age and size. No other
//! command removes data from the store.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll::SessionId;
use plimsoll::store::{Retention, SessionInfo, SessionReader};
use plimsoll::tokens::Bytes;
use serde_json::json;

use super::list::{self, ListedSession};
use crate::ask::confirm;
use crate::error::{CliError, DONE, FAILED};
use crate::listing;
use crate::terminal::text::counted;
use crate::which_session::known;

#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// The sessions
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, clap::Args)]
#[group(id = "outdated", required = true, multiple = true, args = ["older_than", "max_size"])]
pub(crate) struct PruneArgs {
    /// Delete sessions that were last written so long ago (30d, 12w)
    #[arg(long, value_name = "AGE", value_parser = age)]
    older_than: Option<Duration>,
    /// Delete the oldest sessions until the logs of all take at most so much (500MB, 2GB)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<Bytes>,
    /// Print what would be deleted, and delete nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    consent: Consent,
}

#[derive(Debug, clap::Args)]
struct Consent {
    /// Delete without asking
    #[arg(long)]
    yes: bool,
    /// Print JSON lines
    #[arg(long)]
    json: bool,
}

/// Runs `delete`.
pub(crate) async fn delete(store: &impl SessionReader, args: &DeleteArgs) -> Result<u8, CliError> {
    let mut wanted = BTreeSet::new();
    for id in &args.ids {
        wanted.insert(known(store, id).await?);
    }
    let mut chosen = list::sessions(store, false).await?;
    chosen.retain(|session| wanted.contains(&session.info.id));
    if !is_confirmed(&chosen, &args.consent).await? {
        return Ok(DONE);
    }
    store.delete_all(&wanted).await?;
    deleted(store, &infos(&chosen), &args.consent).await?;
    Ok(DONE)
}

/// Runs `prune`.
pub(crate) async fn prune(store: &impl SessionReader, args: &PruneArgs) -> Result<u8, CliError> {
    let retention = Retention {
        max_age: args.older_than,
        max_bytes: args.max_size,
    };
    let outdated = store.outdated(&retention).await?;
    let ids: BTreeSet<&SessionId> = outdated.iter().map(|info| &info.id).collect();
    let mut chosen = list::sessions(store, false).await?;
    chosen.retain(|session| ids.contains(&session.info.id));
    if chosen.is_empty() {
        crate::note("nothing to delete: no session is that old, or the logs are small enough");
        return Ok(DONE);
    }
    if args.dry_run {
        print(&outdated, args.consent.json)?;
        let sessions = counted(outdated.len(), "session");
        note!("{sessions} would be deleted: {}", total(&outdated));
        return Ok(DONE);
    }
    if !is_confirmed(&chosen, &args.consent).await? {
        return Ok(DONE);
    }
    let pruned = store.prune(&outdated).await;
    for (_, error) in &pruned.kept {
        say!("{error}");
    }
    deleted(store, &pruned.deleted, &args.consent).await?;
    Ok(if pruned.kept.is_empty() { DONE } else { FAILED })
}

/// Asks whether to delete the sessions, unless `--yes` says so.
async fn is_confirmed(chosen: &[ListedSession], consent: &Consent) -> Result<bool, CliError> {
    if consent.yes {
        return Ok(true);
    }
    for line in list::lines(chosen) {
        list::note(&line);
    }
    let sessions = counted(chosen.len(), "session");
    let question = format!("Delete {sessions}: {}, for good?", total(&infos(chosen)));
    let refusal = "nothing was deleted; --yes deletes without asking";
    let is_confirmed = confirm(&question, refusal).await?;
    if !is_confirmed {
        crate::note("nothing was deleted");
    }
    Ok(is_confirmed)
}

/// Returns the space of deleted sessions to the system, and prints their names.
async fn deleted(
    store: &impl SessionReader,
    sessions: &[SessionInfo],
    consent: &Consent,
) -> Result<(), CliError> {
    // The sessions are deleted; a file that keeps its size is not a failure.
    if let Err(error) = store.shrink().await {
        say!("{error}");
    }
    print(sessions, consent.json)?;
    if !sessions.is_empty() {
        let count = counted(sessions.len(), "session");
        note!("deleted {count}: {}", total(sessions));
    }
    Ok(())
}

fn print(sessions: &[SessionInfo], as_json: bool) -> Result<(), CliError> {
    for info in sessions {
        if as_json {
            out!("{}", json!({ "id": info.id, "title": info.title }))
        } else {
            out!("{}", info.id)
        }
    }
    Ok(())
}

fn infos(sessions: &[ListedSession]) -> Vec<SessionInfo> {
    let infos = sessions.iter().map(|session| session.info.clone());
    infos.collect()
}

fn total(sessions: &[SessionInfo]) -> String {
    let bytes = sessions.iter().map(|info| info.bytes.0).sum();
    format!("{} of logs", listing::size(Bytes(bytes)))
}

/// Parses an age: a number of days or weeks.
pub(crate) fn age(text: &str) -> Result<Duration, String> {
    let day = 24 * 60 * 60;
    let (number, seconds) = match text.strip_suffix('w') {
        Some(number) => (number, 7 * day),
        None => (text.strip_suffix('d').unwrap_or_default(), day),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(seconds))
        .map(Duration::from_secs)
        .ok_or_else(|| "give a number of days or weeks, as in 30d or 12w".to_owned())
}

/// Parses a size: a number of MB or GB.
fn size(text: &str) -> Result<Bytes, String> {
    let upper = text.to_ascii_uppercase();
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000)];
    let found = units
        .iter()
        .find_map(|(unit, bytes)| Some((upper.strip_suffix(unit)?, *bytes)));
    found
        .and_then(|(number, bytes)| number.trim().parse::<u64>().ok()?.checked_mul(bytes))
        .map(Bytes)
        .ok_or_else(|| "give a number of MB or GB, as in 500MB or 2GB".to_owned())
}
