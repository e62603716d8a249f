//! `plimsoll sessions delete | prune`: deletes sessions by name, or by age and size. No other
//! command removes data from the store.

use std::collections::BTreeSet;
use std::time::Duration;

use plimsoll::SessionId;
use plimsoll::store::{Retention, SessionReader, StoreError};
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
    remove(store, chosen, &args.consent).await
}

/// Runs `prune`.
pub(crate) async fn prune(store: &impl SessionReader, args: &PruneArgs) -> Result<u8, CliError> {
    let outdated = store
        .outdated(&Retention {
            max_age: args.older_than,
            max_bytes: args.max_size,
        })
        .await?;
    let outdated: BTreeSet<SessionId> = outdated.into_iter().map(|info| info.id).collect();
    let mut chosen = list::sessions(store, false).await?;
    chosen.retain(|session| outdated.contains(&session.info.id));
    if chosen.is_empty() {
        crate::note("nothing to delete: no session is that old, or the logs are small enough");
        return Ok(DONE);
    }
    if args.dry_run {
        print(&chosen, args.consent.json)?;
        note!(
            "{} would be deleted: {}",
            counted(chosen.len(), "session"),
            total(&chosen)
        );
        return Ok(DONE);
    }
    remove(store, chosen, &args.consent).await
}

/// Asks for confirmation and deletes the sessions.
async fn remove(
    store: &impl SessionReader,
    mut chosen: Vec<ListedSession>,
    consent: &Consent,
) -> Result<u8, CliError> {
    let what = format!("{}: {}", counted(chosen.len(), "session"), total(&chosen));
    if !consent.yes {
        for line in list::lines(&chosen) {
            list::note(&line);
        }
        let question = format!("Delete {what}, for good?");
        let refusal = "nothing was deleted; --yes deletes without asking";
        if !confirm(&question, refusal).await? {
            crate::note("nothing was deleted");
            return Ok(DONE);
        }
    }
    let mut deleted = Vec::new();
    // A session can be deleted after its forks, so the rest is tried again while any was deleted.
    let failures = loop {
        let count = deleted.len();
        let (mut rest, mut failures) = (Vec::new(), Vec::new());
        for one in chosen {
            match store.delete_idle(&one.info.id).await {
                Ok(_) => deleted.push(one),
                Err(error) => {
                    failures.push(match error {
                        StoreError::Full { path } => format!(
                            "session {} was not deleted: no space is left at {path}, and deleting needs a \
                             little; remove another file first",
                            one.info.id
                        ),
                        error => error.to_string(),
                    });
                    rest.push(one);
                }
            }
        }
        if rest.is_empty() || deleted.len() == count {
            break failures;
        }
        chosen = rest;
    };
    for error in &failures {
        say!("{error}");
    }
    // The sessions are deleted; a file that keeps its size is not a failure.
    if let Err(error) = store.shrink().await {
        say!("{error}");
    }
    print(&deleted, consent.json)?;
    if !deleted.is_empty() {
        let count = counted(deleted.len(), "session");
        note!("deleted {count}: {}", total(&deleted));
    }
    Ok(if failures.is_empty() { DONE } else { FAILED })
}

fn print(sessions: &[ListedSession], as_json: bool) -> Result<(), CliError> {
    for ListedSession { info, .. } in sessions {
        if as_json {
            out!("{}", json!({ "id": info.id, "title": info.title }))
        } else {
            out!("{}", info.id)
        }
    }
    Ok(())
}

fn total(sessions: &[ListedSession]) -> String {
    let bytes = sessions.iter().map(|session| session.info.bytes.0).sum();
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
