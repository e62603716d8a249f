//! [`LoopRecord`]: what a log tells of one run, and [`LoopConfigSnapshot`], what the run was
//! configured as. A view of the log and nothing beside it; no message is copied.

use std::borrow::Borrow;
use std::sync::Arc;

use plimsoll_context::{Message, Tokens, Usage};
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::limits::ExecutionLimits;
use crate::loop_id::{DEFAULT_CONFIG, LoopId};
use crate::outcome::EndReason;
use crate::request::ThinkingLevel;
use crate::setup::Setup;
use crate::spend::Cost;

/// What a log tells of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopRecord {
    /// Its name. A run that a fork shares has the name that it has in the session that it was had in.
    pub id: LoopId,
    /// What it was configured as; where it went on after a crash, at first. Of a run in a log of
    /// format 2 or older, only the model is known.
    pub config: LoopConfigSnapshot,
    /// The number of its first entry in the log, from 1.
    pub first: u64,
    /// The number of its last entry so far.
    pub last: u64,
    /// The message that it was begun with; `None` where it went on without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<Message>>,
    /// How it ended; `None` while it is under way, and where it was cut off. What it said at last
    /// is in the log, at [`Self::last`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<EndReason>,
    /// Model calls that were answered.
    pub turns: u64,
    /// Tool calls that ran.
    pub tool_calls: u64,
    /// What it used, summaries and sub-agents included. Branches that were not chosen have sessions
    /// and records of their own.
    pub usage: Usage,
    /// What that cost.
    pub cost: Cost,
    /// Whether the view was put back to what it was before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rolled_back: bool,
    /// The entries at which it went on after it was cut off, as by a crash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub continued: Vec<u64>,
}

/// Reads a log entry by entry, for one that is too long to hold.
#[derive(Debug, Clone)]
pub struct LoopReader {
    session: String,
    records: Vec<LoopRecord>,
    /// Entries that were read.
    read: u64,
    /// The records from here on are of runs since the last fork.
    own: usize,
    /// Whether the last record's run is under way, as far as the log has been read.
    running: bool,
}

/// What a run was configured as, where it makes a difference to what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct LoopConfigSnapshot {
    /// The configuration's id. Default: [`DEFAULT_CONFIG`].
    pub config_id: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// How hard the model was asked to think, if it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<ThinkingLevel>,
    /// Temperature, where it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Seed, where it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Tokens of one answer, at most, where it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<Tokens>,
    /// How long it could be.
    pub limits: ExecutionLimits,
    /// Tool calls that could run at once.
    pub max_parallel_tools: usize,
    /// The policy's stages by name, in their order.
    pub policy: Vec<String>,
    /// The provider's own tools that were asked for, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosted_tools: Vec<String>,
}

/// The runs of a session's log, in their order: one pass, and no message is copied.
///
/// ```
/// use plimsoll_agent::{Entry, loop_records};
/// let log: Vec<Entry> = serde_json::from_str(r#"[
///     {"entry": "opened", "format": 2},
///     {"entry": "started", "run": 1, "model": "test/m", "system": "", "tools": []}
/// ]"#)?;
/// let records = loop_records("s", &log);
/// assert_eq!(records[0].id.to_string(), "s.default.1");
/// assert_eq!((records[0].first, records[0].outcome.as_ref()), (2, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn loop_records(
    session: impl Into<String>,
    entries: impl IntoIterator<Item: Borrow<Entry>>,
) -> Vec<LoopRecord> {
    let mut reader = LoopReader::new(session);
    for entry in entries {
        reader.read(entry.borrow());
    }
    reader.records()
}

impl LoopReader {
    /// A reader at the beginning of a session's log.
    #[must_use]
    pub fn new(session: impl Into<String>) -> Self {
        Self {
            session: session.into(),
            records: Vec::new(),
            read: 0,
            own: 0,
            running: false,
        }
    }

    /// Reads the next entry.
    pub fn read(&mut self, entry: &Entry) {
        self.read += 1;
        match entry {
            Entry::Started {
                run, model, config, ..
            } => {
                let config = config.as_deref();
                self.started(*run, model, config);
            }
            Entry::Forked { from, .. } => {
                for record in self.records.iter_mut().skip(self.own) {
                    record.id.session.clone_from(from);
                }
                self.own = self.records.len();
                self.running = false;
            }
            Entry::RolledBack { run } => {
                let undone = self.records.iter_mut().filter(|it| it.id.n >= *run);
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

    /// The runs that were read, in their order.
    #[must_use]
    pub fn records(self) -> Vec<LoopRecord> {
        self.records
    }

    fn started(&mut self, run: u64, model: &str, config: Option<&LoopConfigSnapshot>) {
        let own = self.records.iter_mut().skip(self.own);
        if let Some(record) = own.last().filter(|record| record.id.n == run) {
            record.continued.push(self.read);
            record.outcome = None;
        } else {
            let config = config.cloned().unwrap_or_else(|| LoopConfigSnapshot {
                model: model.to_owned(),
                ..LoopConfigSnapshot::default()
            });
            self.records.push(LoopRecord {
                id: LoopId::new(self.session.as_str(), config.config_id.as_str(), run),
                config,
                first: self.read,
                last: self.read,
                prompt: None,
                outcome: None,
                turns: 0,
                tool_calls: 0,
                usage: Usage::default(),
                cost: Cost::default(),
                rolled_back: false,
                continued: Vec::new(),
            });
        }
        self.running = true;
    }
}

impl LoopRecord {
    fn take(&mut self, entry: &Entry) {
        match entry {
            // What is said once the model has answered steers the run: in older logs too, where it
            // was not queued.
            Entry::Said {
                message,
                queued: None,
            } if message.is_user()
                && self.prompt.is_none()
                && self.turns == 0
                && self.continued.is_empty() =>
            {
                self.prompt = Some(Arc::clone(message));
            }
            Entry::Replied { usage, cost, .. } => {
                self.turns += 1;
                self.pay(usage.unwrap_or_default(), Cost::of(*cost));
            }
            Entry::Began { .. } => self.tool_calls += 1,
            Entry::Returned { spent, .. } => self.pay(spent.usage, spent.cost),
            Entry::Summarized { usage, cost, .. } | Entry::Wasted { usage, cost } => {
                self.pay(*usage, Cost::of(*cost));
            }
            Entry::Ended { outcome } => self.outcome = Some(outcome.reason.clone()),
            _ => {}
        }
    }

    fn pay(&mut self, usage: Usage, cost: Cost) {
        self.usage = self.usage.combine(usage);
        self.cost = self.cost.combine(cost);
    }
}

impl LoopConfigSnapshot {
    /// What a run with this setup is configured as.
    #[must_use]
    pub fn of(setup: &Setup) -> Self {
        let stages = setup.policy.stages().iter();
        Self {
            config_id: setup.config_id.clone(),
            model: setup.model.clone(),
            thinking_level: setup.sampling.thinking,
            temperature: setup.sampling.temperature,
            seed: setup.sampling.seed,
            max_tokens: setup.max_output,
            limits: ExecutionLimits::clone(&setup.limits),
            max_parallel_tools: setup.max_parallel_tools,
            policy: stages.map(|stage| stage.name().to_owned()).collect(),
            hosted_tools: setup
                .hosted_tools
                .iter()
                .map(|tool| tool.name().to_owned())
                .collect(),
        }
    }
}

impl Default for LoopConfigSnapshot {
    fn default() -> Self {
        Self {
            config_id: DEFAULT_CONFIG.to_owned(),
            model: String::new(),
            thinking_level: None,
            temperature: None,
            seed: None,
            max_tokens: None,
            limits: ExecutionLimits::default(),
            max_parallel_tools: 1,
            policy: Vec::new(),
            hosted_tools: Vec::new(),
        }
    }
}
