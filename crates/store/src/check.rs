//! Reads a whole log despite damage and reports the unreadable entries. Repairs nothing.

use std::path::Path;

use plimsoll_core::{SessionId, SessionInfo, SessionStore, StoreError};

use crate::connection::blocking;
use crate::export;
use crate::read::Raw;
use crate::sqlite::SqliteStore;

/// Maximum number of faults reported for one session. Further faults are only counted.
pub const MAX_FAULTS: usize = 1_000;

/// The result of checking a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedStore {
    /// The sessions, most recently written first.
    pub sessions: Vec<CheckedSession>,
    /// Whether the file itself is damaged, so that it had to be read page by page. New sessions
    /// should not be written to it.
    pub is_damaged: bool,
}

/// The result of checking the log of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedSession {
    /// The name of the session.
    pub id: SessionId,
    /// The number of entries of its log, as far as it is known.
    pub entries: u64,
    /// The number of entries before the first unreadable one; all of them if the log is intact.
    pub readable: u64,
    /// The unreadable or altered entries, in order; at most [`MAX_FAULTS`].
    pub faults: Vec<EntryFault>,
    /// Whether there are more than [`MAX_FAULTS`] faults.
    pub has_more_faults: bool,
    /// Whether entries may be missing at the end, because the row of the session is lost.
    pub may_go_on: bool,
}

/// Entries of a log that cannot be read, for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryFault {
    /// The number of the first entry, from 1.
    pub first: u64,
    /// The number of the last entry, from 1.
    pub last: u64,
    /// The reason, as a sentence for a person.
    pub why: String,
}

impl CheckedSession {
    /// Returns `true` if the log is readable and unaltered.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty() && !self.may_go_on
    }
}

impl SqliteStore {
    /// Reads every session of the store in `folder`. Nothing in the folder is changed: the write-ahead
    /// log stays as it is, too.
    ///
    /// # Errors
    /// If there is no store in the folder, or if no session can be found in it.
    pub async fn check(folder: impl AsRef<Path>) -> Result<CheckedStore, StoreError> {
        let store = Self::open_to_read(folder.as_ref()).await?;
        let mut sessions = Vec::new();
        for info in store.list().await? {
            sessions.push(store.check_session(&info).await);
        }
        Ok(CheckedStore {
            is_damaged: store.damaged().was_read(),
            sessions,
        })
    }

    async fn check_session(&self, info: &SessionInfo) -> CheckedSession {
        let (mut faults, mut has_more_faults) = (Vec::new(), false);
        let mut last = 0;
        let mut note = |fault: EntryFault| {
            if faults.len() < MAX_FAULTS {
                faults.push(fault)
            } else {
                has_more_faults = true
            }
        };
        self.read_all(info, 0, |found| match found {
            LogElement::Entry(raw) => {
                last = raw.n;
                match export::line(&raw, self.path(), &info.id) {
                    Ok(_) => {}
                    Err(StoreError::BadEntry { why, .. }) => note(EntryFault::of(raw.n, why)),
                    Err(error) => note(EntryFault::of(raw.n, error.to_string())),
                }
            }
            LogElement::Fault(fault) => {
                last = fault.last;
                note(fault);
            }
        })
        .await;
        let entries = info.entries.max(last);
        CheckedSession {
            id: info.id.clone(),
            entries,
            readable: faults.first().map_or(entries, |fault| fault.first - 1),
            faults,
            has_more_faults,
            may_go_on: self.may_go_on(&info.id).await,
        }
    }

    /// Returns `true` if a log may have had more entries than are known.
    pub(crate) async fn may_go_on(&self, session: &SessionId) -> bool {
        if !self.damaged().was_read() {
            return false;
        }
        let (damaged, session) = (self.damaged().clone(), session.clone());
        let known = blocking(self.path(), move || damaged.knows_length(&session)).await;
        !known.unwrap_or(false)
    }

    /// Reads the entries of a log after number `after`, in order, and reports a fault in place of
    /// unreadable entries.
    pub(crate) async fn read_all(
        &self,
        info: &SessionInfo,
        mut after: u64,
        mut each: impl FnMut(LogElement) + Send,
    ) {
        loop {
            let (first, last, why) = match self.raw_page(&info.id, after).await {
                Ok(page) => {
                    let Some(last) = page.last() else {
                        return;
                    };
                    after = last.n;
                    page.into_iter()
                        .for_each(|raw| each(LogElement::Entry(raw)));
                    continue;
                }
                Err(StoreError::BadEntry { entry, why, .. }) if entry > after => {
                    let next = self.next_entry(&info.id, entry).await;
                    (entry, next.map(|next| next - 1), why)
                }
                Err(error) => (after + 1, None, error.to_string()),
            };
            each(LogElement::Fault(EntryFault {
                first,
                last: last.unwrap_or(info.entries).max(first),
                why,
            }));
            let Some(last) = last else {
                return;
            };
            after = last;
        }
    }
}

/// An element of a log that is being checked.
pub(crate) enum LogElement {
    /// The next entry, unaltered.
    Entry(Raw),
    /// Unreadable entries.
    Fault(EntryFault),
}

impl EntryFault {
    fn of(entry: u64, why: String) -> Self {
        Self {
            first: entry,
            last: entry,
            why,
        }
    }
}
