//! [`InMemoryArchive`]: an in-memory archive with the usual bounds. Not durable.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use plimsoll_context::{Bytes, Message, Seq};

use crate::archive::ArchiveBounds;
use crate::archive::item::{
    ArchiveRow, ArchivedItem, Hit, RecallError, RecallId, RecallKey, RecalledItem, recall_text,
    recalled, resolve,
};
use crate::archive::search::{MatchedTerm, SearchIndex, SearchItem, search};
use crate::archive::word_index::WordIndex;
use crate::store::{SessionId, StoreError};

/// Text that one search of a session reads to check the order of words, in bytes.
const PHRASE_BYTES: usize = 1 << 20;

/// An in-memory archive.
#[derive(Debug, Default)]
pub(crate) struct InMemoryArchive {
    bounds: ArchiveBounds,
    sessions: BTreeMap<SessionId, SessionArchive>,
    bytes: u64,
    /// The number of the next item. Older items have lower numbers.
    next: u64,
}

/// A session and the exclusive upper bound of its visible items. A fork sees only the items of its
/// parent that both share.
pub(crate) type SessionScope = (SessionId, Option<Seq>);

/// The archive of one session.
#[derive(Debug, Default)]
struct SessionArchive {
    slots: BTreeMap<Seq, Slot>,
    /// Held items by their number, oldest first.
    held: BTreeMap<u64, Seq>,
    /// Expired items by their number.
    expired: BTreeMap<u64, Seq>,
    /// The numbers of the held items, by the words of their text.
    words: WordIndex,
    /// The highest sequence number of an expired item that is no longer remembered.
    forgotten: Option<Seq>,
    bytes: u64,
}

#[derive(Debug)]
struct Slot {
    number: u64,
    row: ArchiveRow,
    /// The message and its size in bytes; `None` once it has expired.
    held: Option<(Arc<Message>, u64)>,
}

impl InMemoryArchive {
    pub(crate) fn new(bounds: ArchiveBounds) -> Self {
        Self {
            bounds,
            ..Self::default()
        }
    }

    /// Archives all items or none. Replaces existing items with the same sequence number, which may
    /// have expired or belong to another log.
    pub(crate) fn archive(
        &mut self,
        session: &SessionId,
        items: &[ArchivedItem],
        now: u64,
    ) -> Result<(), StoreError> {
        let fresh = items
            .iter()
            .map(|item| (item.seq, (item, weight(&item.message))));
        let fresh: BTreeMap<Seq, (&ArchivedItem, u64)> = fresh.collect();
        let bytes = fresh.values().map(|(_, bytes)| bytes).sum();
        self.bounds.admit(bytes, fresh.len() as u64, "in memory")?;
        let row = self.sessions.entry(session.clone()).or_default();
        for seq in fresh.keys() {
            self.bytes -= row.remove(*seq);
        }
        for (seq, (item, bytes)) in fresh {
            let text = recall_text(&item.message);
            let slot = Slot {
                number: self.next,
                row: ArchiveRow {
                    id: item.id(),
                    kind: item.kind(),
                    tool: item.tool.clone(),
                    call: item.call().cloned(),
                    bytes: Bytes(text.len() as u64),
                    left: now,
                    why: item.why.clone(),
                    expired: false,
                },
                held: Some((Arc::clone(&item.message), bytes)),
            };
            row.insert(seq, slot, &text);
            self.bytes += bytes;
            self.next += 1;
        }
        while row.bytes > self.bounds.session_bytes.0
            || row.held.len() as u64 > self.bounds.session_items
        {
            self.bytes -= row.expire();
        }
        self.expire(now);
        Ok(())
    }

    /// Removes items that the log does not contain.
    pub(crate) fn keep_up_to(&mut self, session: &SessionId, next: Seq) {
        if let Some(row) = self.sessions.get_mut(session) {
            let gone: Vec<Seq> = row.slots.range(next..).map(|(seq, _)| *seq).collect();
            for seq in gone {
                self.bytes -= row.remove(seq);
            }
        }
    }

    /// Removes everything of a session.
    pub(crate) fn remove(&mut self, session: &SessionId) {
        let row = self.sessions.remove(session);
        self.bytes -= row.map_or(0, |row| row.bytes);
    }

    /// Returns one item of a session (the first of `scopes`) or of the sessions it was forked
    /// from.
    pub(crate) fn recall(
        &self,
        scopes: &[SessionScope],
        key: &RecallKey,
        now: u64,
    ) -> Result<RecalledItem, RecallError> {
        let rows = self.of(scopes);
        let id = match key {
            RecallKey::Id(id) => *id,
            RecallKey::Named(name) => {
                let mut calls: BTreeMap<RecallId, bool> = BTreeMap::new();
                for (row, below) in &rows {
                    for (seq, slot) in row.below(*below) {
                        if slot.row.call.as_ref().is_some_and(|call| call.0 == *name) {
                            let is_held = self.held(slot, now).is_some();
                            *calls.entry(RecallId(*seq)).or_default() |= is_held;
                        }
                    }
                }
                let was_there = |seq: &Seq| {
                    let mut rows = rows.iter();
                    rows.any(|(row, below)| row.knows(*seq, *below))
                };
                let number = key.seq().filter(was_there).map(RecallId);
                resolve(name, number, &calls)?
            }
        };
        let mut was_there = false;
        for (row, below) in rows {
            if below.is_some_and(|below| id.0 >= below) {
                continue;
            }
            match row.slots.get(&id.0) {
                Some(slot) => {
                    was_there = true;
                    if let Some(message) = self.held(slot, now) {
                        return Ok(recalled(slot.row.clone(), Arc::clone(message)));
                    }
                }
                None => was_there |= row.forgotten.is_some_and(|last| id.0 <= last),
            }
        }
        Err(if was_there {
            RecallError::Expired(id)
        } else {
            RecallError::Unknown(key.to_string())
        })
    }

    /// Searches the items of a session (the first of `scopes`) and of the sessions it was forked
    /// from.
    pub(crate) fn search(
        &self,
        scopes: &[SessionScope],
        query: &str,
        limit: usize,
        now: u64,
    ) -> Result<Vec<Hit>, RecallError> {
        let rows = self.of(scopes);
        search(
            &View {
                archive: self,
                rows,
                now,
            },
            query,
            limit,
        )
    }

    pub(crate) fn rows(&self, scopes: &[SessionScope], now: u64) -> Vec<ArchiveRow> {
        let row = |slot: &Slot| ArchiveRow {
            expired: self.held(slot, now).is_none(),
            ..slot.row.clone()
        };
        self.slots(scopes, now).into_values().map(row).collect()
    }

    /// Returns the existing rows, each with the bound of its visible items.
    fn of(&self, scopes: &[SessionScope]) -> Vec<(&SessionArchive, Option<Seq>)> {
        let row = |(id, below): &SessionScope| Some((self.sessions.get(id)?, *below));
        scopes.iter().filter_map(row).collect()
    }

    /// Returns every visible item once, by sequence number. Prefers a session that still holds it.
    fn slots(&self, scopes: &[SessionScope], now: u64) -> BTreeMap<Seq, &Slot> {
        let mut slots: BTreeMap<Seq, &Slot> = BTreeMap::new();
        for (row, below) in self.of(scopes) {
            for (seq, slot) in row.below(below) {
                let had = slots.entry(*seq).or_insert(slot);
                if self.held(had, now).is_none() {
                    *had = slot;
                }
            }
        }
        slots
    }

    fn held<'a>(&self, slot: &'a Slot, now: u64) -> Option<&'a Arc<Message>> {
        let (message, _) = slot.held.as_ref()?;
        (!self.bounds.is_too_old(slot.row.left, now)).then_some(message)
    }

    /// Expires items that are too old or exceed the total size.
    fn expire(&mut self, now: u64) {
        loop {
            let front = |row: &SessionArchive| {
                row.held
                    .first_key_value()
                    .map(|(number, seq)| (*number, *seq))
            };
            let rows = self.sessions.values_mut();
            let oldest = rows.filter_map(|row| Some((front(row)?, row)));
            let Some(((_, seq), row)) = oldest.min_by_key(|((number, _), _)| *number) else {
                return;
            };
            let left = row.slots.get(&seq).map_or(0, |slot| slot.row.left);
            if self.bytes <= self.bounds.bytes.0 && !self.bounds.is_too_old(left, now) {
                break;
            }
            self.bytes = self.bytes.saturating_sub(row.expire());
        }
        for row in self.sessions.values_mut() {
            row.forget(self.bounds.expired_items);
        }
    }
}

impl SessionArchive {
    /// Returns the items, up to the given bound.
    fn below(&self, below: Option<Seq>) -> impl Iterator<Item = (&Seq, &Slot)> {
        let is_below = move |seq: &Seq| below.is_none_or(|below| *seq < below);
        self.slots.iter().take_while(move |(seq, _)| is_below(seq))
    }

    /// Checks whether the row has or had an item, as far as it remembers.
    fn knows(&self, seq: Seq, below: Option<Seq>) -> bool {
        let is_forgotten = self.forgotten.is_some_and(|last| seq <= last);
        below.is_none_or(|below| seq < below) && (is_forgotten || self.slots.contains_key(&seq))
    }

    /// Adds a new item and indexes its text.
    fn insert(&mut self, seq: Seq, slot: Slot, text: &str) {
        self.words.insert(slot.number, text);
        self.held.insert(slot.number, seq);
        self.bytes += slot.held.as_ref().map_or(0, |(_, bytes)| *bytes);
        self.slots.insert(seq, slot);
    }

    /// Removes an item without a trace. Returns its size in bytes.
    fn remove(&mut self, seq: Seq) -> u64 {
        let Some(mut slot) = self.slots.remove(&seq) else {
            return 0;
        };
        self.held.remove(&slot.number);
        self.expired.remove(&slot.number);
        self.release(&mut slot)
    }

    /// Expires the oldest item. Returns its size in bytes.
    fn expire(&mut self) -> u64 {
        let Some((number, seq)) = self.held.pop_first() else {
            return 0;
        };
        self.expired.insert(number, seq);
        let Some(mut slot) = self.slots.remove(&seq) else {
            return 0;
        };
        let bytes = self.release(&mut slot);
        self.slots.insert(seq, slot);
        bytes
    }

    /// Drops the message of an item and its index entries. Returns its size in bytes.
    fn release(&mut self, slot: &mut Slot) -> u64 {
        let Some((message, bytes)) = slot.held.take() else {
            return 0;
        };
        self.words.remove(slot.number, &recall_text(&message));
        self.bytes = self.bytes.saturating_sub(bytes);
        bytes
    }

    fn forget(&mut self, keep: u64) {
        while self.expired.len() as u64 > keep {
            let Some((_, seq)) = self.expired.pop_first() else {
                return;
            };
            self.slots.remove(&seq);
            self.forgotten = self.forgotten.max(Some(seq));
        }
    }

    /// Returns the numbers of the newest items that have all terms, newest first.
    fn newest(&self, terms: &[MatchedTerm<'_>], below: Option<Seq>, most: usize) -> Vec<u64> {
        let phrases = terms.iter().filter(|wanted| wanted.term.words.len() > 1);
        let phrases: Vec<_> = phrases.map(|wanted| wanted.term).collect();
        let mut bytes = 0;
        self.words.newest(terms, most, |number| {
            let seq = self.held.get(&number).copied();
            let Some(seq) = seq.filter(|seq| below.is_none_or(|below| *seq < below)) else {
                return false;
            };
            // The index does not know the order of words.
            if phrases.is_empty() {
                return true;
            }
            if bytes >= PHRASE_BYTES {
                return false;
            }
            let text = self.text(seq).unwrap_or_default();
            bytes += text.len();
            phrases.iter().all(|term| term.is_in(&text))
        })
    }

    fn text(&self, seq: Seq) -> Option<String> {
        let (message, _) = self.slots.get(&seq)?.held.as_ref()?;
        Some(recall_text(message))
    }
}

/// The index of one search: the rows of a session and of the sessions it was forked from.
struct View<'a> {
    archive: &'a InMemoryArchive,
    rows: Vec<(&'a SessionArchive, Option<Seq>)>,
    now: u64,
}

impl SearchIndex for View<'_> {
    type Key = u64;

    fn words(&self, prefix: &str, most: usize) -> Result<Vec<String>, RecallError> {
        let rows = self.rows.iter();
        let words = rows.flat_map(|(row, _)| row.words.beginning_with(prefix).take(most));
        let words: BTreeSet<&str> = words.collect();
        Ok(words.into_iter().take(most).map(str::to_owned).collect())
    }

    fn newest(&self, terms: &[MatchedTerm<'_>], most: usize) -> Result<Vec<u64>, RecallError> {
        let rows = self.rows.iter();
        let mut numbers: Vec<u64> = rows
            .flat_map(|(row, below)| row.newest(terms, *below, most))
            .collect();
        numbers.sort_unstable_by_key(|number| Reverse(*number));
        numbers.truncate(most);
        Ok(numbers)
    }

    fn item(&self, key: u64) -> Result<Option<SearchItem>, RecallError> {
        let item = self.rows.iter().find_map(|(row, _)| {
            let seq = row.held.get(&key)?;
            let slot = row.slots.get(seq)?;
            let message = self.archive.held(slot, self.now)?;
            Some(SearchItem {
                id: RecallId(*seq),
                kind: slot.row.kind,
                tool: slot.row.tool.clone(),
                text: recall_text(message),
            })
        });
        Ok(item)
    }
}

/// Returns the length of a message as JSON. The stores on disk count the same.
fn weight(message: &Message) -> u64 {
    struct Count(u64);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Neither the counting writer nor serializing a message can fail.
    let _ = serde_json::to_writer(&mut count, message);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::CallId;
    use std::time::Duration;

    fn item(seq: u64) -> ArchivedItem {
        ArchivedItem {
            seq: Seq(seq),
            message: Arc::new(Message::result(CallId("c".to_owned()), "some text")),
            tool: None,
            why: "test".to_owned(),
        }
    }

    #[test]
    fn what_is_too_old_has_expired_before_and_after_it_is_let_go() {
        let session = SessionId::new("s").unwrap();
        let mut archive = InMemoryArchive::new(ArchiveBounds {
            age: Duration::from_secs(10),
            ..ArchiveBounds::default()
        });
        archive.archive(&session, &[item(0)], 100).unwrap();
        archive.archive(&session, &[item(1)], 105).unwrap();
        let has = |archive: &InMemoryArchive, seq, now| {
            let key = RecallKey::Id(RecallId(Seq(seq)));
            archive
                .recall(&[(session.clone(), None)], &key, now)
                .is_ok()
        };
        assert!(has(&archive, 0, 110) && !has(&archive, 0, 111) && has(&archive, 1, 111));
        assert_eq!(
            archive
                .search(&[(session.clone(), None)], "text", 9, 111)
                .unwrap()
                .len(),
            1
        );
        let both = archive.bytes;
        archive.archive(&session, &[item(2)], 111).unwrap();
        assert_eq!(archive.bytes, both);
        assert!(!has(&archive, 0, 111) && has(&archive, 1, 111) && has(&archive, 2, 111));
        let expired: Vec<bool> = archive
            .rows(&[(session.clone(), None)], 111)
            .iter()
            .map(|row| row.expired)
            .collect();
        assert_eq!(expired, [true, false, false]);
    }

    #[test]
    fn what_is_too_old_is_held_again_where_it_is_archived_again() {
        let session = SessionId::new("s").unwrap();
        let mut archive = InMemoryArchive::new(ArchiveBounds {
            age: Duration::from_secs(10),
            ..ArchiveBounds::default()
        });
        for now in [100, 200] {
            archive.archive(&session, &[item(0)], now).unwrap();
        }
        let key = RecallKey::Id(RecallId(Seq(0)));
        assert!(
            archive
                .recall(&[(session.clone(), None)], &key, 200)
                .is_ok()
        );
        assert_eq!(archive.bytes, weight(&item(0).message));
    }

    #[test]
    fn the_sums_are_right() {
        let session = SessionId::new("s").unwrap();
        let mut archive = InMemoryArchive::new(ArchiveBounds {
            session_items: 3,
            expired_items: 3,
            ..ArchiveBounds::default()
        });
        // Archiving an item again counts once, whether it is held or has expired.
        for seq in (0..20).chain([18, 16, 19, 17, 18, 19]) {
            archive.archive(&session, &[item(seq)], 1).unwrap();
        }
        assert_eq!(archive.bytes, 3 * weight(&item(0).message));
        let row = archive.sessions.get(&session).unwrap();
        assert_eq!((row.bytes, row.slots.len()), (archive.bytes, 6));
        assert_eq!(row.forgotten, Some(Seq(13)));
    }
}
