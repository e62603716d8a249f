//! [`LogChain`]: the positions in a log with their digests. The integrity of stored data is up to the store.

use plimsoll_agent::Entry;

use super::{JournalFault, LogHead};
use crate::store::SessionId;

/// Length of a digest in hexadecimal digits.
const DIGITS: usize = 32;

/// The positions in a log, from its beginning to its end.
#[derive(Debug, Clone)]
pub(crate) struct LogChain(Vec<LogHead>);

impl LogChain {
    /// Creates the chain of a log.
    pub(crate) fn of(log: &[Entry]) -> Self {
        let mut chain = Self(vec![LogHead::default()]);
        chain.extend(log);
        chain
    }

    /// Adds new entries of the log.
    pub(crate) fn extend(&mut self, entries: &[Entry]) {
        for entry in entries {
            let head = self.head();
            let mut hasher = blake3::Hasher::new();
            hasher.update(head.digest.as_bytes());
            // Neither can fail: an entry is plain data, and hashing accepts all bytes.
            let _ = serde_json::to_writer(&mut hasher, entry);
            let digest = hasher.finalize().to_hex();
            self.0.push(LogHead {
                entries: head.entries + 1,
                digest: digest.chars().take(DIGITS).collect(),
            });
        }
    }

    /// Returns the position at the end of the log.
    pub(crate) fn head(&self) -> LogHead {
        self.0.last().cloned().unwrap_or_default()
    }

    /// Checks that a position belongs to this log.
    ///
    /// # Errors
    /// If the log is shorter, or has other entries before the position.
    pub(crate) fn check(&self, session: &SessionId, head: &LogHead) -> Result<(), JournalFault> {
        let at = usize::try_from(head.entries).unwrap_or(usize::MAX);
        let why = match self.0.get(at) {
            Some(here) if here == head => return Ok(()),
            Some(_) => "another entry stands there, or before it".to_owned(),
            None => match self.head().entries {
                0 => "it is empty".to_owned(),
                1 => "it has 1 entry".to_owned(),
                entries => format!("it has {entries} entries"),
            },
        };
        Err(JournalFault::Mismatch {
            session: session.clone(),
            entry: head.entries,
            why,
        })
    }
}
