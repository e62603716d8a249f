//! Deletes, after a run, the sessions that `[sessions]` in the configuration does not keep.

use plimsoll::store::{Retention, SqliteStore};

use crate::terminal::text::counted;

/// Deletes them, and prints their number unless `is_quiet`. An error is printed but does not fail
/// the run.
pub(crate) async fn apply(store: &SqliteStore, retention: Retention, is_quiet: bool) {
    if retention == Retention::default() {
        return;
    }
    match store.prune(&retention).await {
        Ok(pruned) if pruned.deleted.is_empty() || is_quiet => {}
        Ok(pruned) => note!(
            "deleted {} that the configuration does not keep ([sessions])",
            counted(pruned.deleted.len(), "session")
        ),
        Err(error) => say!("{error}"),
    }
}
