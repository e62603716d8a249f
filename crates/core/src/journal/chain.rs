//! [`LogChain`]: digests of all prefixes of a log. The integrity of stored data is up to the store.

use plimsoll_agent::Entry;

use super::{JournalFault, LogHead};
use crate::store::SessionId;

/// Length of a digest in hexadecimal digits.
const DIGITS: usize = 32;

/// The digests of all prefixes of a log; see [`LogHead::digest`].
#[derive(Debug, Clone, Default)]
pub(crate) struct LogChain(Vec<String>);

impl LogChain {
    /// Creates the chain of a log.
    pub(crate) fn of(log: &[Entry]) -> Self {
        let mut chain = Self::default();
        chain.extend(log);
        chain
    }

    /// Adds new entries of the log.
    pub(crate) fn extend(&mut self, entries: &[Entry]) {
        for entry in entries {
            let mut hasher = blake3::Hasher::new();
            hasher.update(self.0.last().map_or(&[][..], String::as_bytes));
            // Neither can fail: an entry is plain data, and hashing accepts all bytes.
            let _ = serde_json::to_writer(&mut hasher, entry);
            let digest = hasher.finalize().to_hex();
            self.0.push(digest.chars().take(DIGITS).collect());
        }
    }

    /// Returns the position at the end of the log.
    pub(crate) fn head(&self) -> LogHead {
        self.at(self.0.len()).unwrap_or_default()
    }

    /// Checks that a position belongs to this log.
    ///
    /// # Errors
    /// If the log is shorter, or has other entries before the position.
    pub(crate) fn check(&self, session: &SessionId, head: &LogHead) -> Result<(), JournalFault> {
        let entries = usize::try_from(head.entries).unwrap_or(usize::MAX);
        let why = match self.at(entries) {
            Some(here) if here == *head => return Ok(()),
            Some(_) => "another entry stands there, or before it".to_owned(),
            None => match self.0.len() {
                0 => "it is empty".to_owned(),
                1 => "it has 1 entry".to_owned(),
                len => format!("it has {len} entries"),
            },
        };
        Err(JournalFault::Mismatch {
            session: session.clone(),
            entry: head.entries,
            why,
        })
    }

    /// Returns the position after this many entries.
    fn at(&self, entries: usize) -> Option<LogHead> {
        let Some(last) = entries.checked_sub(1) else {
            return Some(LogHead::default());
        };
        Some(LogHead {
            entries: entries as u64,
            digest: self.0.get(last)?.clone(),
        })
    }
}
