//! [`RunRecord`]: a summary of one run, read from the log.
//!
//! No message is copied.

use std::borrow::Borrow;
use std::sync::Arc;

use plimsoll_context::{Message, Usage};
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::outcome::EndReason;
use crate::run_id::{DEFAULT_CONFIG, run_id};
use crate::setup::RunConfigSnapshot;
use crate::spend::Cost;

/// A summary of one run, read from the log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// The [id](run_id) of the run. A run that a fork shares keeps the id of its original session.
    pub id: String,
    /// The number of the run in its session, from 1.
    pub run: u64,
    /// The configuration of the run; if the run continued after a crash, the first one. If the log
    /// has none, as for an answer that combines several branches, only the model is known.
    pub config: RunConfigSnapshot,
    /// The number of the run's first entry in the log, from 1.
    pub first: u64,
    /// The number of its last entry so far.
    pub last: u64,
    /// The message that started the run; `None` if the run started without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<Message>>,
    /// The reason why the run ended; `None` while it is in progress and if it was cut off. Its last
    /// text is in the log, at [`Self::last`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<EndReason>,
    /// Answered model calls.
    pub turns: u64,
    /// Executed tool calls, including those of sub-agents.
    pub tool_calls: u64,
    /// The usage, including summaries, sub-agents and the estimates for calls that broke off. Rejected
    /// branches have their own sessions and records.
    pub usage: Usage,
    /// The cost of this usage.
    pub cost: Cost,
    /// `true` if the view was restored to its state before the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolled_back: bool,
    /// The entries at which the run continued after an interruption, for example a crash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continued: Vec<u64>,
}

/// A reader that takes a log entry by entry, for logs that are too long to hold in memory.
#[derive(Debug, Clone, Default)]
pub struct RunReader {
    session: String,
    records: Vec<RunRecord>,
    /// Number of entries read.
    read: u64,
    /// Index of the first record since the last fork.
    own: usize,
    /// `true` if the run of the last record is in progress at this point of the log.
    running: bool,
}

/// Returns the runs of a session's log, in order. Reads the log once and copies no messages.
///
/// ```
/// use plimsoll_agent::{Entry, run_records};
/// let log: Vec<Entry> = serde_json::from_str(r#"[
///     {"entry": "opened", "format": 1},
///     {"entry": "run_started", "run": 1, "model": "test/m", "system": "", "tools": []}
/// ]"#)?;
/// let records = run_records("s", &log);
/// assert_eq!(records[0].id.to_string(), "s.default.1");
/// assert_eq!((records[0].first, records[0].outcome.as_ref()), (2, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn run_records(
    session: impl Into<String>,
    entries: impl IntoIterator<Item: Borrow<Entry>>,
) -> Vec<RunRecord> {
    let mut reader = RunReader::new(session);
    for entry in entries {
        reader.read(entry.borrow());
    }
    reader.records()
}

impl RunReader {
    /// Creates a reader at the beginning of a session's log.
    #[must_use]
    pub fn new(session: impl Into<String>) -> Self {
        Self {
            session: session.into(),
            ..Self::default()
        }
    }

    /// Reads the next entry.
    pub fn read(&mut self, entry: &Entry) {
        self.read += 1;
        match entry {
            Entry::RunStarted {
                run, model, config, ..
            } => {
                let config = config.as_deref();
                self.started(*run, model, config);
            }
            Entry::Forked { from, .. } => {
                for record in self.records.iter_mut().skip(self.own) {
                    record.id = run_id(from, &record.config.config_id, record.run);
                }
                self.own = self.records.len();
                self.running = false;
            }
            Entry::RolledBack { run } => {
                let undone = self.records.iter_mut().filter(|it| it.run >= *run);
                undone.for_each(|record| record.rolled_back = true);
            }
            _ => {}
        }
        if let (Some(record), true) = (self.records.last_mut(), self.running) {
            record.last = self.read;
            record.take(entry);
            self.running = record.outcome.is_none();
        }
    }

    /// Returns the runs that were read, in order.
    #[must_use]
    pub fn records(self) -> Vec<RunRecord> {
        self.records
    }

    fn started(&mut self, run: u64, model: &str, config: Option<&RunConfigSnapshot>) {
        let own = self.records.iter_mut().skip(self.own);
        if let Some(record) = own.last().filter(|record| record.run == run) {
            record.continued.push(self.read);
            record.outcome = None;
        } else {
            let config = config.cloned().unwrap_or_else(|| RunConfigSnapshot {
                config_id: DEFAULT_CONFIG.to_owned(),
                model: model.to_owned(),
                max_parallel_tools: 1,
                ..RunConfigSnapshot::default()
            });
            self.records.push(RunRecord {
                id: run_id(&self.session, &config.config_id, run),
                run,
                config,
                first: self.read,
                last: self.read,
                ..RunRecord::default()
            });
        }
        self.running = true;
    }
}

impl RunRecord {
    fn take(&mut self, entry: &Entry) {
        match entry {
            // A message after the first answer steers the run.
            Entry::Message {
                message,
                queued: None,
            } if message.is_user()
                && self.prompt.is_none()
                && self.turns == 0
                && self.continued.is_empty() =>
            {
                self.prompt = Some(Arc::clone(message));
            }
            Entry::RunEnded { outcome } => self.outcome = Some(outcome.reason.clone()),
            _ => {}
        }
        let spend = entry.spend();
        self.turns += spend.turns;
        self.tool_calls = self.tool_calls.saturating_add(spend.tool_calls);
        self.usage = self.usage.combine(spend.usage).combine(spend.estimated);
        self.cost = self.cost.combine(spend.cost);
    }
}
