//! [`LogMessages`]: the messages of a log as they were recorded, and which of them are no longer whole
//! in the view.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use plimsoll_agent::{Entry, State};
use plimsoll_context::{CallId, Chars4, Message, Seq};

use super::item::{
    Hit, MessageKind, RecallError, RecallId, RecallKey, RecalledItem, recall_text, resolve,
};
use super::search::{BestMatch, SearchQuery};

/// The messages of a log, to recall and to search.
#[derive(Debug)]
pub struct LogMessages(BTreeMap<Seq, LogMessage>);

#[derive(Debug)]
struct LogMessage {
    message: Arc<Message>,
    /// Name of the tool, if it is a tool result.
    tool: Option<String>,
    /// Whether its run was undone, so that the model has never seen it.
    is_undone: bool,
    /// Whether a plan has removed it from the view or shortened it.
    is_evicted: bool,
}

impl LogMessages {
    /// Reads a log. Entries that cannot be applied, for example of a newer version, end it.
    #[must_use]
    pub fn read<'a>(log: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut messages: BTreeMap<Seq, LogMessage> = BTreeMap::new();
        let mut tools: HashMap<CallId, String> = HashMap::new();
        let mut runs: HashMap<u64, Seq> = HashMap::new();
        // The counts are not used, so the fastest counter is enough.
        let mut state = State::new(Arc::new(Chars4));
        for entry in log {
            let next = state.transcript().next_seq();
            if state.absorb(entry).is_err() {
                break;
            }
            match entry {
                Entry::RunStarted { run, .. } => drop(runs.insert(*run, next)),
                Entry::RolledBack { run } => {
                    let first = runs.get(run).copied().unwrap_or(next);
                    for (_, message) in messages.range_mut(first..) {
                        message.is_undone = true;
                    }
                }
                _ => {}
            }
            let items = state.transcript().items();
            let new = items.partition_point(|item| item.seq < next);
            for item in items.get(new..).unwrap_or_default() {
                for call in item.message.calls() {
                    tools.insert(call.id.clone(), call.name.clone());
                }
                let tool = match item.message.as_ref() {
                    Message::ToolResult(result) => tools.get(&result.call).cloned(),
                    _ => None,
                };
                let message = LogMessage {
                    message: Arc::clone(&item.message),
                    tool,
                    is_undone: false,
                    is_evicted: false,
                };
                messages.insert(item.seq, message);
            }
        }
        let view = state.transcript();
        for (seq, message) in &mut messages {
            let is_whole = |now: &Arc<Message>| Arc::ptr_eq(now, &message.message);
            let is_in_view = view.get(*seq).is_some_and(|now| is_whole(&now.message));
            message.is_evicted = !is_in_view && !message.is_undone;
        }
        Self(messages)
    }

    /// Returns one message. Tool results with a call id that several results have are told apart by
    /// their numbers; one that was evicted takes precedence.
    ///
    /// # Errors
    /// If the key matches no message, or more than one.
    pub fn recall(&self, key: &RecallKey) -> Result<RecalledItem, RecallError> {
        let named = |name: &str| {
            let calls = self.0.iter().filter(|(_, one)| one.is_result_of(name));
            calls
                .map(|(seq, one)| (RecallId(*seq), one.is_evicted))
                .collect()
        };
        let numbered = key.seq().and_then(|seq| self.0.get_key_value(&seq));
        let number = numbered.map(|(seq, one)| (RecallId(*seq), one.is_evicted));
        let id = match (key, number) {
            (RecallKey::Id(_), Some((id, _))) => id,
            (RecallKey::Id(id), None) => return Err(RecallError::Unknown(id.to_string())),
            (RecallKey::Named(name), number) => resolve(name, number, &named(name))?,
        };
        let item = self.0.get(&id.0).map(|one| RecalledItem {
            id,
            kind: MessageKind::of(&one.message),
            tool: one.tool.clone(),
            call: one.call().cloned(),
            message: Arc::clone(&one.message),
        });
        item.ok_or_else(|| RecallError::Unknown(id.to_string()))
    }

    /// Searches the evicted messages for the words of a query. Returns the best `limit` ones: those
    /// with all terms of the query or, if there are none, those with the rarest terms. Ties are
    /// ordered by how close the terms are together, then newest first.
    ///
    /// # Errors
    /// If the query has no word.
    pub fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, RecallError> {
        let query = SearchQuery::parse(query).ok_or(RecallError::NoWords)?;
        let evicted = || self.0.iter().filter(|(_, one)| one.is_evicted);
        let mut found: Vec<(Seq, BestMatch)> = evicted()
            .filter_map(|(seq, one)| Some((*seq, query.find_all(&recall_text(&one.message))?)))
            .collect();
        if found.is_empty() {
            let some = evicted();
            let some =
                some.filter_map(|(seq, one)| Some((*seq, query.find(&recall_text(&one.message))?)));
            found.extend(some);
        }
        // A term counts more if fewer messages have it.
        let mut with_term = vec![0_usize; query.terms().len()];
        for (_, one) in &found {
            one.each_term(|term| {
                if let Some(count) = with_term.get_mut(term) {
                    *count += 1;
                }
            });
        }
        let score = |one: &BestMatch| {
            let mut score = 0;
            one.each_term(|term| {
                score += found.len() * 8 / with_term.get(term).map_or(1, |count| (*count).max(1));
            });
            score
        };
        let mut ranked: Vec<(usize, usize, Seq, BestMatch)> = found
            .iter()
            .map(|(seq, one)| (score(one), one.together, *seq, *one))
            .collect();
        ranked.sort_by_key(|(score, together, seq, _)| Reverse((*score, *together, *seq)));
        let best = ranked.into_iter().take(limit);
        let hits = best.filter_map(|(_, _, seq, found)| {
            let one = self.0.get(&seq)?;
            let kind = MessageKind::of(&one.message);
            let text = recall_text(&one.message);
            Some(Hit::new(
                RecallId(seq),
                kind,
                one.tool.clone(),
                &text,
                found,
            ))
        });
        Ok(hits.collect())
    }

    /// Returns the ids of the evicted messages, in the order of the log.
    pub fn evicted(&self) -> impl Iterator<Item = RecallId> {
        let evicted = self.0.iter().filter(|(_, one)| one.is_evicted);
        evicted.map(|(seq, _)| RecallId(*seq))
    }

    /// Returns a message as it was recorded.
    pub(crate) fn get(&self, seq: Seq) -> Option<&Arc<Message>> {
        self.0.get(&seq).map(|one| &one.message)
    }
}

impl LogMessage {
    fn call(&self) -> Option<&CallId> {
        match self.message.as_ref() {
            Message::ToolResult(result) => Some(&result.call),
            _ => None,
        }
    }

    fn is_result_of(&self, name: &str) -> bool {
        self.call().is_some_and(|call| call.0 == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_agent::Outcome;

    fn run(run: u64, text: &str) -> [Entry; 3] {
        let started = Entry::RunStarted {
            run,
            model: "test/model".to_owned(),
            system: "".into(),
            tools: Vec::new(),
            later: Vec::new(),
            config: None,
        };
        let message = Entry::Message {
            message: Arc::new(Message::user(text)),
            queued: None,
        };
        let outcome = Outcome::answered("done");
        [started, message, Entry::RunEnded { outcome }]
    }

    #[test]
    fn messages_of_an_undone_run_are_recalled_but_not_found() {
        let mut log = vec![Entry::Opened { format: 1 }];
        log.extend(run(1, "a quiet sea"));
        log.extend(run(2, "a white whale"));
        log.push(Entry::RolledBack { run: 2 });
        log.extend(run(3, "a calm sea"));
        let messages = LogMessages::read(&log);
        let text = |key: &str| messages.recall(&key.into()).map(|item| item.text());
        assert_eq!(text("m0").unwrap(), "a quiet sea");
        assert_eq!(text("m1").unwrap(), "a white whale");
        assert_eq!(text("m2").unwrap(), "a calm sea");
        assert_eq!(text("m3"), Err(RecallError::Unknown("m3".to_owned())));
        assert_eq!(messages.evicted().count(), 0);
        assert_eq!(messages.search("whale", 5).unwrap(), []);
    }

    #[test]
    fn a_log_that_breaks_off_is_read_up_to_there() {
        let mut log = run(1, "a quiet sea").to_vec();
        // There is no such run.
        log.push(Entry::RolledBack { run: 9 });
        log.extend(run(2, "a white whale"));
        let messages = LogMessages::read(&log);
        assert!(messages.recall(&"m0".into()).is_ok());
        assert!(messages.recall(&"m1".into()).is_err());
    }
}
