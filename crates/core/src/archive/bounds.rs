//! [`ArchiveBounds`]: how much an archive holds and for how long. Beyond it the oldest expire; what
//! has expired is still known for a while, so that it can be said. Not how a store counts.

use std::time::Duration;

use plimsoll_context::Bytes;

use crate::store::StoreError;

/// How much an archive holds, and for how long. Beyond any of these the oldest expire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveBounds {
    /// All sessions together. Default: [`ArchiveBounds::BYTES`].
    pub bytes: Bytes,
    /// One session. Default: [`ArchiveBounds::SESSION_BYTES`].
    pub session_bytes: Bytes,
    /// Items of one session. Default: [`ArchiveBounds::SESSION_ITEMS`].
    pub session_items: u64,
    /// Expired items of one session that are remembered as expired, so that a recall can say so.
    /// Default: [`ArchiveBounds::EXPIRED_ITEMS`].
    pub expired_items: u64,
    /// How long an item is held. Default: [`ArchiveBounds::AGE`].
    pub age: Duration,
}

impl ArchiveBounds {
    /// 1 GiB: ten thousand results of 100 KB, and little beside the log, which has them too.
    pub const BYTES: Bytes = Bytes(1 << 30);
    /// 256 MiB: no session takes more than a quarter from the others, and the largest message
    /// that the log takes still fits.
    pub const SESSION_BYTES: Bytes = Bytes(256 << 20);
    /// 100,000: as many items as anyone has seen a session have, at a few hundred bytes each
    /// besides their text.
    pub const SESSION_ITEMS: u64 = 100_000;
    /// 100,000: as many as are held, at a few hundred bytes each, however few a small archive holds.
    pub const EXPIRED_ITEMS: u64 = 100_000;
    /// 30 days: a run that is carried on after that reads its files anew rather than trust an old
    /// copy.
    pub const AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

    /// The bytes that one session may have: its own bound, or that of all where it is less.
    #[must_use]
    pub fn for_one_session(&self) -> Bytes {
        self.session_bytes.min(self.bytes)
    }

    /// Whether so many new bytes and items of one session can be held at all; for stores, before
    /// they write. `place` is where the archive is.
    ///
    /// # Errors
    /// Where they alone are over a bound: letting the oldest go would not make room for them.
    pub fn admit(&self, bytes: u64, items: u64, place: &str) -> Result<(), StoreError> {
        let (most, most_items) = (self.for_one_session(), self.session_items);
        if bytes <= most.0 && items <= most_items {
            return Ok(());
        }
        Err(StoreError::Archive {
            place: place.to_owned(),
            why: format!(
                "what leaves at once is {bytes} bytes in {items} items, and it holds {most} bytes \
                 and {most_items} items of a session; raise its bounds"
            ),
        })
    }

    /// Whether what left then, in seconds since 1970, is too old by now.
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
