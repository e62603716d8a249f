//! The archive: complete copies of the messages that were removed from a session's view.
//!
//! This module contains its bounds, its items, its search and the tools that a model calls. The log
//! remains the source of truth and contains every message anyway. The archive is a searchable copy
//! beside it that may expire and that a run can do without. Beyond its bounds, the oldest items expire;
//! the archive remembers expired items for a while, so that a recall can report them as expired.

mod in_memory;
mod item;
mod page;
mod search;
mod tools;
mod word_index;

use std::time::Duration;

use plimsoll_context::Bytes;

use crate::store::StoreError;

pub(crate) use in_memory::InMemoryArchive;
pub use item::{
    ArchiveRow, ArchivedItem, ArchivedKind, BadRecallId, Hit, MAX_KEY, RecallError, RecallId,
    RecallKey, RecalledItem, recall_text, recalled, resolve,
};
pub use page::{RECALL_MATCHES, TextExcerpt, matches, page};
pub use search::{
    BestMatch, INDEXED_BYTES, MatchedTerm, QUERY_BYTES, QUERY_TERMS, SNIPPET, SearchIndex,
    SearchItem, SearchQuery, Term, search, snippet, spaced_words,
};
pub use tools::{RECALL_PAGE, RECALL_PAGE_MAX, RecallTools, recall_tools};

/// Limits on the size and the age of an archive. The oldest items expire first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveBounds {
    /// All sessions together, in bytes. Default: [`ArchiveBounds::BYTES`].
    pub bytes: Bytes,
    /// One session, in bytes. Default: [`ArchiveBounds::SESSION_BYTES`].
    pub session_bytes: Bytes,
    /// Number of items of one session. Default: [`ArchiveBounds::SESSION_ITEMS`].
    pub session_items: u64,
    /// Number of expired items of one session that a recall still reports as expired. Default:
    /// [`ArchiveBounds::EXPIRED_ITEMS`].
    pub expired_items: u64,
    /// Maximum age of an item. Default: [`ArchiveBounds::AGE`].
    pub age: Duration,
}

impl ArchiveBounds {
    /// 1 GiB: ten thousand results of 100 KB. That is little compared to the log, which contains
    /// them too.
    pub const BYTES: Bytes = Bytes(1 << 30);
    /// 256 MiB: one session takes at most a quarter of the total, and the largest message that the
    /// log accepts still fits.
    pub const SESSION_BYTES: Bytes = Bytes(256 << 20);
    /// 100,000 items. Each takes a few hundred bytes in addition to its text. We have not seen a
    /// larger session.
    pub const SESSION_ITEMS: u64 = 100_000;
    /// 100,000 items of a few hundred bytes each, even if the archive itself is small.
    pub const EXPIRED_ITEMS: u64 = 100_000;
    /// 30 days. A run that continues after that should read its files again instead of an old copy.
    pub const AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    /// Returns the limit for one session in bytes: its own or the total, whichever is smaller.
    #[must_use]
    pub fn for_one_session(&self) -> Bytes {
        self.session_bytes.min(self.bytes)
    }

    /// Checks whether this many new bytes and items of one session can be stored at all. Stores
    /// call it before they write; `place` names the archive in the error.
    ///
    /// # Errors
    /// If the new items alone exceed a limit, so that expiring older items would not help.
    pub fn admit(&self, bytes: u64, items: u64, place: &str) -> Result<(), StoreError> {
        let (most, most_items) = (self.for_one_session(), self.session_items);
        if bytes <= most.0 && items <= most_items {
            return Ok(());
        }
        Err(StoreError::Archive {
            place: place.to_owned(),
            why: format!(
                "the plan evicts {bytes} bytes in {items} items, but the archive holds at most \
                 {most} bytes and {most_items} items of a session; raise its bounds"
            ),
        })
    }

    /// Checks whether an item archived at `left` has expired at `now`, both in seconds since 1970.
    #[must_use]
    pub fn is_too_old(&self, left: u64, now: u64) -> bool {
        now.saturating_sub(left) > self.age.as_secs()
    }
}

impl Default for ArchiveBounds {
    fn default() -> Self {
        Self {
            bytes: Self::BYTES,
            session_bytes: Self::SESSION_BYTES,
            session_items: Self::SESSION_ITEMS,
            expired_items: Self::EXPIRED_ITEMS,
            age: Self::AGE,
        }
    }
}
