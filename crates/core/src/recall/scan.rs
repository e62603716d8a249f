//! [`scan`]: the search of a store without an index.

use std::collections::VecDeque;

use super::item::recall_text;
use super::search::SearchQuery;
use crate::store::{
    LogEntry, PAGE_ENTRIES, SEARCH_BYTES, SEARCH_ENTRIES, SessionId, SessionStore, StoreError,
    blocking,
};

/// Searches a log by reading it, as [`SessionStore::search`] does by default.
///
/// # Errors
/// If the log cannot be read.
pub async fn scan<S: SessionStore + ?Sized>(
    store: &S,
    session: &SessionId,
    query: &SearchQuery,
) -> Result<Vec<LogEntry>, StoreError> {
    let (mut found, mut bytes, mut after) = (VecDeque::new(), 0, 0);
    loop {
        let page = store.read(session, after, PAGE_ENTRIES).await?;
        let Some(last) = page.last() else {
            break;
        };
        after = last.n;
        let query = query.clone();
        let matching = blocking(move || {
            let sized = page.into_iter().filter_map(|line| {
                let text = recall_text(line.entry.message()?);
                query.find(&text).map(|_| (text.len() as u64, line))
            });
            sized.collect::<Vec<_>>()
        });
        for (size, line) in matching.await? {
            bytes += size;
            found.push_back((size, line));
            while found.len() > SEARCH_ENTRIES || bytes > SEARCH_BYTES.0 && found.len() > 1 {
                bytes -= found.pop_front().map_or(0, |(size, _)| size);
            }
        }
    }
    Ok(found.into_iter().rev().map(|(_, line)| line).collect())
}
