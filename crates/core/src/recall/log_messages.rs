//! [`LogMessages`]: where the messages of a log are, and which of them are no longer whole in the view.
//!
//! It keeps numbers and ids, not texts. These are read from the log when a message is recalled.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll_agent::{Entry, State};
use plimsoll_context::{Bytes, CallId, Chars4, Form, Message, Seq};
use smart_default::SmartDefault;

use super::item::{Hit, MessageKind, RecallError, RecallId, RecalledItem, recall_text, shown};
use super::search::{BestMatch, SearchQuery, snippet};
use crate::store::{LogEntry, PAGE_ENTRIES, SessionId, SessionStore, StoreError, blocking};

/// The messages of one session, to recall and to search. Every call reads the entries that are new since
/// the call before.
#[derive(Debug, SmartDefault)]
pub struct LogMessages {
    #[default(State::new(Arc::new(Chars4)))]
    state: State,
    /// The number of entries that were read.
    entries: u64,
    /// An entry could not be applied, for example one of a newer version. The log ends there.
    is_broken: bool,
    messages: BTreeMap<Seq, LoggedMessage>,
    /// The entries of results that wait for the result of an earlier call.
    waiting: Vec<(u64, Arc<Message>)>,
    /// The tool of the last call with each id. Some servers use an id again.
    tools: HashMap<CallId, Arc<str>>,
}

/// Where a message is in the log.
#[derive(Debug)]
struct LoggedMessage {
    entry: u64,
    /// The call that it is the result of, and its tool if the call is in the log.
    call: Option<(CallId, Option<Arc<str>>)>,
    /// Whether it belongs to an undone run, so that the model has never seen it.
    is_undone: bool,
}

impl LogMessages {
    /// Reads a log.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn read<S: SessionStore + ?Sized>(
        store: &S,
        session: &SessionId,
    ) -> Result<Self, StoreError> {
        let mut messages = Self::default();
        messages.update(store, session).await?;
        Ok(messages)
    }

    /// Reads the entries that are new since the last call.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub async fn update<S: SessionStore + ?Sized>(
        &mut self,
        store: &S,
        session: &SessionId,
    ) -> Result<(), StoreError> {
        loop {
            let page = store.read(session, self.entries, PAGE_ENTRIES).await?;
            if page.is_empty() {
                return Ok(());
            }
            for line in page {
                self.entries = line.n;
                self.is_broken = self.is_broken || !self.take(&line);
            }
        }
    }

    /// Returns one message. The key is the id of the message or that of a tool call, as models write it:
    /// quotes and backticks around it are ignored.
    ///
    /// # Errors
    /// If the key matches no message or more than one, or if the log cannot be read.
    pub async fn recall<S: SessionStore + ?Sized>(
        &mut self,
        store: &S,
        session: &SessionId,
        key: &str,
    ) -> Result<RecalledItem, RecallError> {
        self.update(store, session).await?;
        let key = key.trim().trim_matches(['`', '"', '\'']);
        let id = key.parse().ok();
        let is_meant = |(seq, logged): &(&Seq, &LoggedMessage)| {
            let call = logged.call.as_ref();
            let is_of_call = call.is_some_and(|(call, _)| call.0 == key);
            // Some servers name their calls m1, m2, as messages are named. `#1` is always a message.
            id == Some(RecallId(**seq)) || (is_of_call && !key.starts_with('#'))
        };
        let candidates: Vec<_> = self.messages.iter().filter(is_meant).take(10).collect();
        let unknown = || RecallError::Unknown(shown(key));
        let (seq, logged) = match candidates.as_slice() {
            [one] => *one,
            [] => return Err(unknown()),
            many => {
                return Err(RecallError::Ambiguous {
                    key: shown(key),
                    candidates: many.iter().map(|(seq, _)| RecallId(**seq)).collect(),
                });
            }
        };
        let line = store.read(session, logged.entry.saturating_sub(1), 1);
        let line = line.await?.into_iter().find(|line| line.n == logged.entry);
        let message = line.and_then(|line| line.entry.message().cloned());
        let message = message.ok_or_else(unknown)?;
        let (call, tool) = logged.call.clone().unzip();
        Ok(RecalledItem {
            id: RecallId(*seq),
            kind: MessageKind::of(&message),
            tool: tool.flatten().map(|tool| tool.to_string()),
            call,
            message,
        })
    }

    /// Searches the evicted messages for the words of a query. Returns the best `limit` ones: those
    /// with all terms of the query or, if there are none, those with the most. Ties are
    /// ordered by how close the terms are together, then newest first.
    ///
    /// If the log has more than [`SEARCH_ENTRIES`](crate::store::SEARCH_ENTRIES) messages that match, the
    /// newest are searched.
    ///
    /// # Errors
    /// If the query has no word, or if the log cannot be read.
    pub async fn search<S: SessionStore + ?Sized>(
        &mut self,
        store: &S,
        session: &SessionId,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, RecallError> {
        let query = SearchQuery::parse(query).ok_or(RecallError::NoWords)?;
        self.update(store, session).await?;
        let mut found = self.find(store, session, query.clone()).await?;
        if found.is_empty() {
            found = self.find(store, session, query.any()).await?;
        }
        found.sort_by_key(|(hit, best)| Reverse((best.terms, best.together, hit.id)));
        let hits = found.into_iter().take(limit).map(|(hit, _)| hit);
        Ok(hits.collect())
    }

    /// Returns the ids of the evicted messages, in the order of the log.
    pub fn evicted(&self) -> impl Iterator<Item = RecallId> {
        let evicted = self
            .messages
            .iter()
            .filter(|(seq, logged)| self.is_evicted(**seq, logged));
        evicted.map(|(seq, _)| RecallId(*seq))
    }

    /// Returns the evicted messages that match.
    async fn find<S: SessionStore + ?Sized>(
        &self,
        store: &S,
        session: &SessionId,
        query: SearchQuery,
    ) -> Result<Vec<(Hit, BestMatch)>, StoreError> {
        let lines = store.search(session, &query).await?.into_iter();
        let messages = self.messages.iter();
        let by_entry: HashMap<u64, _> = messages.map(|it| (it.1.entry, it)).collect();
        let evicted = lines.filter_map(|line| {
            let (seq, logged) = *by_entry.get(&line.n)?;
            let tool = logged.call.as_ref().and_then(|(_, tool)| tool.clone());
            self.is_evicted(*seq, logged).then_some((*seq, tool, line))
        });
        let evicted: Vec<_> = evicted.collect();
        blocking(move || {
            let found = evicted.into_iter().filter_map(|(seq, tool, line)| {
                let message = line.entry.message()?;
                let text = recall_text(message);
                let best = query.find(&text)?;
                let (offset, piece) = snippet(&text, best.at);
                let hit = Hit {
                    id: RecallId(seq),
                    kind: MessageKind::of(message),
                    tool: tool.map(|tool| tool.to_string()),
                    bytes: Bytes(text.len() as u64),
                    offset: offset as u64,
                    snippet: piece.to_owned(),
                    terms: best.terms,
                };
                Some((hit, best))
            });
            found.collect()
        })
        .await
    }

    /// Applies the next entry. Returns `false` if it does not match the entries before it.
    fn take(&mut self, line: &LogEntry) -> bool {
        let next = self.state.transcript().next_seq();
        if self.state.absorb(&line.entry).is_err() {
            return false;
        }
        let items = self.state.transcript().items();
        let (old, new) = items.split_at(items.partition_point(|item| item.seq < next));
        if let Entry::RolledBack { .. } = line.entry {
            // The view is the one before the run again. What follows its newest message is undone.
            let undone = old.last().map_or(Seq(0), |item| Seq(item.seq.0 + 1));
            let undone = self.messages.range_mut(undone..);
            undone.for_each(|(_, logged)| logged.is_undone = true);
        }
        match &line.entry {
            Entry::RolledBack { .. } | Entry::Reply { .. } => self.waiting.clear(),
            Entry::ToolResult { message, .. } => {
                self.waiting.push((line.n, Arc::clone(message)));
            }
            _ => {}
        }
        for item in new {
            for call in item.message.calls() {
                let tool = call.name.as_str().into();
                self.tools.insert(call.id.clone(), tool);
            }
            let call = match &*item.message {
                Message::ToolResult(result) => Some(&result.call),
                _ => None,
            };
            let mut waiting = self.waiting.iter();
            let at = waiting.position(|(_, message)| Arc::ptr_eq(message, &item.message));
            let logged = LoggedMessage {
                entry: at.map_or(line.n, |at| self.waiting.remove(at).0),
                call: call.map(|call| (call.clone(), self.tools.get(call).cloned())),
                is_undone: false,
            };
            self.messages.insert(item.seq, logged);
        }
        true
    }

    /// Checks whether a plan has removed a message from the view or shortened it.
    fn is_evicted(&self, seq: Seq, logged: &LoggedMessage) -> bool {
        let in_view = self.state.transcript().get(seq);
        let is_whole = in_view.is_some_and(|item| item.form == Form::Original);
        !is_whole && !logged.is_undone
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use plimsoll_agent::Outcome;

    fn run(run: u64, text: &str) -> [Entry; 3] {
        let started = Entry::RunStarted {
            run,
            model: "test/model".to_owned(),
            system: "".into(),
            tools: Vec::new(),
            config: None,
        };
        let message = Entry::Message {
            message: Arc::new(Message::user(text)),
            queued: None,
        };
        let outcome = Outcome::answered("done");
        [started, message, Entry::RunEnded { outcome }]
    }

    async fn stored(log: &[Entry]) -> (MemoryStore, SessionId) {
        let (store, id) = (MemoryStore::default(), SessionId::new("s").unwrap());
        let lease = store.acquire(&id).await.unwrap();
        store.append(&lease, log).await.unwrap();
        (store, id)
    }

    #[tokio::test]
    async fn messages_of_an_undone_run_are_recalled_but_not_found() {
        let mut log = vec![Entry::Opened { format: 1 }];
        log.extend(run(1, "a quiet sea"));
        log.extend(run(2, "a white whale"));
        log.push(Entry::RolledBack { run: 2 });
        log.extend(run(3, "a calm sea"));
        let (store, id) = stored(&log).await;
        let mut messages = LogMessages::default();
        let mut text = async |key: &str| {
            let item = messages.recall(&store, &id, key).await;
            item.map(|item| item.text())
        };
        assert_eq!(text("m0").await.unwrap(), "a quiet sea");
        assert_eq!(text("m1").await.unwrap(), "a white whale");
        assert_eq!(text("m2").await.unwrap(), "a calm sea");
        let unknown = RecallError::Unknown("m3".to_owned());
        assert_eq!(text("m3").await, Err(unknown));
        assert_eq!(messages.evicted().count(), 0);
        let found = messages.search(&store, &id, "whale", 5).await.unwrap();
        assert_eq!(found, []);
    }

    #[tokio::test]
    async fn a_log_that_breaks_off_is_read_up_to_there() {
        let mut log = run(1, "a quiet sea").to_vec();
        // There is no such run.
        log.push(Entry::RolledBack { run: 9 });
        log.extend(run(2, "a white whale"));
        let (store, id) = stored(&log).await;
        assert!(store.recall(&id, "m0").await.is_ok());
        assert!(store.recall(&id, "m1").await.is_err());
    }
}
