//! [`each_entry`]: reads a log page by page.

use plimsoll::SessionId;
use plimsoll::store::{LogEntry, PAGE_ENTRIES, SessionReader, StoreError};

/// Calls `each` for the entries after `after`, in order, until one call fails.
pub(crate) async fn each_entry<E: From<StoreError>>(
    store: &impl SessionReader,
    session: &SessionId,
    mut after: u64,
    mut each: impl FnMut(&mut LogEntry) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let mut page = store.read(session, after, PAGE_ENTRIES).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.n;
        page.iter_mut().try_for_each(&mut each)?;
    }
}
