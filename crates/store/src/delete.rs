//! Deletes whole sessions, and finds those that are outdated by age and size. Entries are never changed
//! here.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_core::{MAX_FORK_DEPTH, Retention, SessionId, SessionInfo, StoreError};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};

use crate::columns::{self, from_column};
use crate::connection::overwrite_deleted;
use crate::fault::WorkError;
use crate::files;
use crate::lease::Right;
use crate::search;
use crate::write;

/// The result of [`SessionReader::prune`](crate::SessionReader::prune).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The deleted sessions. Forks come before the sessions that they were forked from.
    pub deleted: Vec<SessionInfo>,
    /// The outdated sessions that still exist, with the reason: [`StoreError::Busy`] if another
    /// process writes to the session, [`StoreError::HasForks`] if a fork of it is still in use.
    pub kept: Vec<(SessionInfo, StoreError)>,
}

/// Returns the outdated sessions of a list, except those that a retained fork needs.
pub(crate) fn outdated(sessions: &[SessionInfo], retention: &Retention) -> Vec<SessionInfo> {
    let now = from_column(write::now());
    let (mut bytes, mut old) = (0_u64, BTreeSet::new());
    for info in sessions {
        bytes = bytes.saturating_add(info.bytes.0);
        let age = Duration::from_secs(now.saturating_sub(info.updated));
        let is_old = retention.max_age.is_some_and(|max| age > max);
        if is_old || retention.max_bytes.is_some_and(|max| bytes > max.0) {
            old.insert(&info.id);
        }
    }
    // Each session comes after all of its forks, which may need it.
    for info in forks_first(sessions) {
        if let (Some(fork), false) = (&info.fork, old.contains(&info.id)) {
            old.remove(&fork.from);
        }
    }
    let old = sessions.iter().filter(|info| old.contains(&info.id));
    old.cloned().collect()
}

/// Returns the sessions, each after its forks.
pub(crate) fn forks_first(sessions: &[SessionInfo]) -> Vec<&SessionInfo> {
    let by_id: BTreeMap<&SessionId, &SessionInfo> =
        sessions.iter().map(|info| (&info.id, info)).collect();
    let parent = |info: &SessionInfo| by_id.get(&info.fork.as_ref()?.from).copied();
    let mut sorted: Vec<&SessionInfo> = sessions.iter().collect();
    sorted.sort_by_cached_key(|info| {
        let ancestors = std::iter::successors(parent(info), |info| parent(info));
        // In a damaged file they may form a circle.
        Reverse(ancestors.take(MAX_FORK_DEPTH as usize).count())
    });
    sorted
}

/// Deletes sessions: their entries, their settings, the contents of files that they changed, and their
/// rows. All of them or none. Returns `false` if there is none.
pub(crate) fn sessions(connection: &mut Connection, rights: &[Right]) -> Result<bool, WorkError> {
    overwrite_deleted(connection)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut found = BTreeMap::new();
    for right in rights {
        right.check()?;
        let key = transaction
            .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
            .query_row([right.session().as_str()], |row| row.get::<_, i64>(0))
            .optional()?;
        found.extend(key.map(|key| (key, right.session())));
    }
    if found.is_empty() {
        return Ok(false);
    }
    search::drop_index(&transaction)?;
    // A fork is newer than its parent.
    for (key, session) in found.into_iter().rev() {
        let forks = forks(&transaction, key)?;
        if !forks.is_empty() {
            let session = session.clone();
            return Err(StoreError::HasForks { session, forks }.into());
        }
        files::delete(&transaction, key)?;
        for sql in [
            "INSERT INTO deletions (session) VALUES (?1)",
            "DELETE FROM settings WHERE session = (SELECT id FROM sessions WHERE key = ?1)",
            "DELETE FROM entries WHERE session = ?1",
            "DELETE FROM sessions WHERE key = ?1",
            "DELETE FROM deletions WHERE session = ?1",
        ] {
            transaction.execute(sql, [key])?;
        }
    }
    transaction.commit()?;
    Ok(true)
}

fn forks(transaction: &Transaction<'_>, key: i64) -> rusqlite::Result<Vec<SessionId>> {
    let mut statement =
        transaction.prepare_cached("SELECT id FROM sessions WHERE parent = ?1 ORDER BY key")?;
    let rows = statement.query_map([key], |row| columns::name(row, 0))?;
    rows.collect()
}
