//! `plimsoll sessions delete | prune`: deletes sessions by name, or by age and size. No other
//! command removes data from the store.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::ArgGroup;
use plimsoll::SessionId;
use plimsoll::store::{Retention, SessionInfo, SessionReader};
use plimsoll::tokens::Bytes;

use super::list::{self, SubAgentCall};
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
    /// Delete without asking
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("which").args(["older_than", "max_size"]).required(true).multiple(true))]
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
    /// Delete without asking
    #[arg(long)]
    yes: bool,
}

/// Runs `delete`.
pub(crate) async fn delete(store: &impl SessionReader, args: &DeleteArgs) -> Result<u8, CliError> {
    let mut ids = BTreeSet::new();
    for id in &args.ids {
        ids.insert(known(store, id).await?);
    }
    let mut chosen = store.list().await?;
    add_sub_agents(store, &chosen, &mut ids).await;
    chosen.retain(|info| ids.contains(&info.id));
    if args.yes || is_confirmed(store, &chosen).await? {
        store.delete_all(&ids).await?;
        report(store, &chosen).await?;
    }
    Ok(DONE)
}

/// Adds the sessions of the sub-agents that the named sessions have called, and of those that these
/// have called.
async fn add_sub_agents(
    store: &impl SessionReader,
    listed: &[SessionInfo],
    ids: &mut BTreeSet<SessionId>,
) {
    let mut callers: Vec<SessionId> = ids.iter().cloned().collect();
    while let Some(caller) = callers.pop() {
        let ids_of_calls = listed.iter().map(|info| &info.id);
        let calls = ids_of_calls.filter_map(|id| Some((id, SubAgentCall::of(id.as_str())?)));
        let calls = calls.filter(|(_, call)| call.caller == caller.as_str());
        let calls: Vec<(&SessionId, SubAgentCall<'_>)> = calls.collect();
        if calls.is_empty() {
            continue;
        }
        // A session that cannot be read has no calls, and is deleted only if it is named.
        let log = store.load(&caller).await.unwrap_or_default();
        for (id, call) in calls {
            let called = store.load(id).await.unwrap_or_default();
            if call.began(&called, &log) && ids.insert(id.clone()) {
                callers.push(id.clone());
            }
        }
    }
}

/// Runs `prune`.
pub(crate) async fn prune(store: &impl SessionReader, args: &PruneArgs) -> Result<u8, CliError> {
    let retention = Retention {
        max_age: args.older_than,
        max_bytes: args.max_size,
    };
    let outdated = store.outdated(&retention).await?;
    if outdated.is_empty() {
        crate::note("nothing to delete: no session is that old, or the logs are small enough");
        return Ok(DONE);
    }
    if args.dry_run {
        for info in &outdated {
            out!("{}", info.id);
        }
        note!("would be deleted: {}", total(&outdated));
        return Ok(DONE);
    }
    if !args.yes && !is_confirmed(store, &outdated).await? {
        return Ok(DONE);
    }
    let pruned = store.prune(&outdated).await;
    for (_, error) in &pruned.kept {
        say!("{error}");
    }
    report(store, &pruned.deleted).await?;
    Ok(if pruned.kept.is_empty() { DONE } else { FAILED })
}

/// Lists the sessions, and asks whether to delete them.
async fn is_confirmed(
    store: &impl SessionReader,
    chosen: &[SessionInfo],
) -> Result<bool, CliError> {
    let mut listed = list::sessions(store, false).await?;
    listed.retain(|session| chosen.iter().any(|info| info.id == session.info.id));
    for line in list::lines(&listed) {
        list::note(&line);
    }
    let question = format!("Delete {}, for good?", total(chosen));
    let refusal = "nothing was deleted; --yes deletes without asking";
    let is_confirmed = confirm(&question, refusal).await?;
    if !is_confirmed {
        crate::note("nothing was deleted");
    }
    Ok(is_confirmed)
}

/// Returns the space of deleted sessions to the system, and prints their names.
async fn report(store: &impl SessionReader, deleted: &[SessionInfo]) -> Result<(), CliError> {
    // The sessions are deleted; a file that keeps its size is not a failure.
    if let Err(error) = store.shrink().await {
        say!("{error}");
    }
    for info in deleted {
        out!("{}", info.id);
    }
    note!("deleted {}", total(deleted));
    Ok(())
}

/// Returns the number and the size of sessions, for example "2 sessions: 3 KB of logs".
fn total(sessions: &[SessionInfo]) -> String {
    let count = counted(sessions.len(), "session");
    let bytes = sessions.iter().map(|info| info.bytes.0).sum();
    format!("{count}: {} of logs", listing::size(Bytes(bytes)))
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
