//! [`each_entry`]: reads a log page by page.

use plimsoll::machine::Entry;
use plimsoll::store::{LogEntry, PAGE_ENTRIES, SessionReader, StoreError};
use plimsoll::tokens::{Bpe, TokenCounter};
use plimsoll::{SessionId, Usage};

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

/// Fills in our own count of a call whose provider reports no usage: the size of its request, and its reply.
pub(crate) fn count_usage(entry: &mut Entry) {
    if let Entry::Reply {
        message,
        usage: usage @ None,
        counted,
        ..
    } = entry
    {
        *usage = Some(Usage {
            input: *counted,
            output: Bpe::o200k().message(message),
            ..Usage::default()
        });
    }
}
