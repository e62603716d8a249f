//! [`each_entry`]: reads a log page by page.

use plimsoll::store::{LogEntry, PAGE_ENTRIES, SessionReader, StoreError};
use plimsoll::tokens::{Bpe, TokenCounter};
use plimsoll::{Message, SessionId, Tokens, Usage};

/// Calls `each` for the entries after `after`, in order, until one call fails.
pub(crate) async fn each_entry<E: From<StoreError>>(
    store: &impl SessionReader,
    session: &SessionId,
    mut after: u64,
    mut each: impl FnMut(&LogEntry) -> Result<(), E>,
) -> Result<(), E> {
    loop {
        let page = store.read(session, after, PAGE_ENTRIES).await?;
        let Some(last) = page.last() else {
            return Ok(());
        };
        after = last.n;
        page.iter().try_for_each(&mut each)?;
    }
}

/// Returns our own count of a call, for a provider that reports none: the size of its request, and
/// its reply.
pub(crate) fn own_count(request: Tokens, reply: &Message) -> Usage {
    Usage {
        input: request,
        output: Bpe::o200k().message(reply),
        ..Usage::default()
    }
}
