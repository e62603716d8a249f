//! [`DoomLoopTracker`]: detects that a model repeats itself.
//!
//! It stores hashes only, never the messages. `tool_calls.rs` decides how the run reacts.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use plimsoll_context::{Message, ToolCall, ToolResult};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arguments::read_arguments;

/// Minimum number of remembered batches.
pub const MIN_HISTORY: usize = 10;
/// Maximum number of remembered batches, which bounds the memory of a run.
pub const MAX_HISTORY: usize = 10_000;

/// A detector of repetitions, based on a bounded ring buffer of hashed batches.
///
/// A batch is the tool calls of one message. The order of the calls and of the keys in their arguments
/// is ignored. Results count: calls with changing results are not a loop.
#[derive(Debug, Clone)]
pub struct DoomLoopTracker {
    history: usize,
    ring: VecDeque<BatchHashes>,
    /// At `p - 1`: how many of the newest batches, without a gap, equal the batch `p` places before
    /// them. Only cycles with two rounds in the buffer are detected.
    matches: Vec<u64>,
    /// The calls of the newest batch until it has results.
    open: Vec<u64>,
}

/// The kind of a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repetition {
    /// The same batch of calls in a row.
    Identical,
    /// A cycle of a few batches.
    Period {
        /// Number of batches in one round.
        length: u64,
    },
}

/// The reaction to a model that repeats itself.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LoopConsequence {
    /// The model is warned.
    Told,
    /// Its newest tool calls are not run.
    Refused,
    /// The run ends.
    Stopped,
}

/// A repetition that needs a reaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopVerdict {
    /// The kind of the repetition.
    pub kind: Repetition,
    /// The reaction. A warning follows once the newest batch has results.
    pub consequence: LoopConsequence,
    /// Number of repetitions; for a cycle, the number of batches in all its rounds.
    pub times: u64,
}

#[derive(Debug, Clone, Copy)]
struct BatchHashes {
    calls: u64,
    /// The hash of the results. If no call ran, the results of the last identical calls.
    results: Option<u64>,
}

impl Default for DoomLoopTracker {
    fn default() -> Self {
        Self::new(MIN_HISTORY)
    }
}

impl DoomLoopTracker {
    /// Creates a tracker that remembers this many batches: `tool_call_history_size`.
    #[must_use]
    pub fn new(history: usize) -> Self {
        let history = history.clamp(MIN_HISTORY, MAX_HISTORY);
        Self {
            history,
            ring: VecDeque::new(),
            matches: vec![0; history / 2],
            open: Vec::new(),
        }
    }

    /// Checks the two settings together. Returns a sentence that describes the error, if there is one.
    #[must_use]
    pub fn fault(max_identical_tool_calls: Option<u64>, history: usize) -> Option<String> {
        let repeated = max_identical_tool_calls.unwrap_or_default();
        let least = repeated.saturating_add(1).max(MIN_HISTORY as u64);
        if least > MAX_HISTORY as u64 {
            let most = MAX_HISTORY - 1;
            return Some(format!(
                "max_identical_tool_calls is {repeated}; choose 1 to {most}"
            ));
        }
        let fits = (least..=MAX_HISTORY as u64).contains(&(history as u64));
        let more = match least > MIN_HISTORY as u64 {
            true => ", one more than max_identical_tool_calls at least",
            false => "",
        };
        let range = format!("{least} to {MAX_HISTORY}");
        (!fits).then(|| format!("tool_call_history_size is {history}; choose {range}{more}"))
    }

    /// Returns the number of remembered batches.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.ring.len()
    }

    /// Returns the maximum number of remembered batches.
    #[must_use]
    pub fn history(&self) -> usize {
        self.history
    }

    /// Clears the history, after a message of the user or a different action of the model.
    pub fn forget(&mut self) {
        *self = Self::new(self.history);
    }

    /// Adds a message of the model. A message without tool calls clears the history.
    pub fn record_message(&mut self, message: &Message) {
        self.open = message.calls().map(identity).collect();
        if self.open.is_empty() {
            return self.forget();
        }
        let mut calls = self.open.clone();
        calls.sort_unstable();
        // Identical calls in one batch run once.
        calls.dedup();
        let calls = hash(&calls);
        for (matches, before) in self.matches.iter_mut().zip(newest_first(&self.ring)) {
            *matches = if before.is_some_and(|before| before.calls == calls) {
                *matches + 1
            } else {
                0
            };
        }
        if self.ring.len() == self.history {
            self.ring.pop_front();
        }
        self.ring.push_back(BatchHashes {
            calls,
            results: None,
        });
    }

    /// Adds the results of the newest batch, in the order of its calls. `None` stands for a call that
    /// did not run.
    pub fn answered<'a>(&mut self, results: impl IntoIterator<Item = Option<&'a ToolResult>>) {
        let open = std::mem::take(&mut self.open);
        let Some(mut newest) = self.ring.pop_back() else {
            return;
        };
        let ran = open.into_iter().zip(results);
        let ran = ran.filter_map(|(call, result)| Some((call, outcome(result?))));
        let mut ran: Vec<(u64, u64)> = ran.collect();
        ran.sort_unstable();
        ran.dedup();
        let alike = || self.ring.iter().filter(|seen| seen.calls == newest.calls);
        let results = (!ran.is_empty()).then(|| hash(&ran));
        newest.results = results.or_else(|| alike().rev().find_map(|seen| seen.results));
        for (matches, before) in self.matches.iter_mut().zip(newest_first(&self.ring)) {
            let before = before.and_then(|before| before.results);
            if before.zip(newest.results).is_some_and(|(a, b)| a != b) {
                *matches = 0;
            }
        }
        self.ring.push_back(newest);
    }

    /// Returns the worst current repetition, including the newest batch.
    ///
    /// `max_identical_tool_calls` identical batches in a row are too many (1 acts as 2). After one less
    /// the model is told; that batch and the next do not run; then the run ends. In a cycle, the first
    /// batch of a third round is one too many.
    #[must_use]
    pub fn looping(&self, max_identical_tool_calls: u64) -> Option<LoopVerdict> {
        let most = max_identical_tool_calls.max(2);
        let matches = self.matches.iter().zip(1_u64..);
        let repetitions = matches.filter_map(|(matches, length)| {
            if length == 1 {
                verdict(Repetition::Identical, matches + 1, most)
            } else if *matches >= length && self.is_primitive(length) {
                let cycle = Repetition::Period { length };
                verdict(cycle, matches + length, 2 * length + 1)
            } else {
                None
            }
        });
        // The shortest of the worst ones.
        repetitions.min_by_key(|verdict| Reverse(verdict.consequence))
    }

    /// Checks whether the newest batches form a round of this length that does not consist of shorter
    /// rounds. The same call with alternating results is not a cycle.
    fn is_primitive(&self, length: u64) -> bool {
        let round = || self.ring.iter().rev().map(|seen| seen.calls);
        let length = usize::try_from(length).unwrap_or(MAX_HISTORY);
        (1..length).filter(|part| length % part == 0).all(|part| {
            let shifted = round().skip(part).take(length - part);
            round().take(length).zip(shifted).any(|(a, b)| a != b)
        })
    }
}

/// Returns the remembered batches from the newest on, then `None` without end.
fn newest_first(ring: &VecDeque<BatchHashes>) -> impl Iterator<Item = Option<&BatchHashes>> {
    ring.iter().rev().map(Some).chain(std::iter::repeat(None))
}

fn verdict(kind: Repetition, times: u64, most: u64) -> Option<LoopVerdict> {
    let consequence = match times {
        times if times >= most.saturating_add(2) => LoopConsequence::Stopped,
        times if times >= most => LoopConsequence::Refused,
        // A single occurrence is not a repetition.
        times if times > 1 && times + 1 == most => LoopConsequence::Told,
        _ => return None,
    };
    Some(LoopVerdict {
        kind,
        consequence,
        times,
    })
}

/// Returns the hash of a call within this process. The id, the order of keys and the whitespace of
/// the arguments are ignored. Missing arguments are equal to an empty object.
pub(crate) fn identity(call: &ToolCall) -> u64 {
    let written = call.arguments.trim();
    hash(&(&call.name, read_arguments(written).map_err(|_| written)))
}

/// Returns the hash of a result's content.
fn outcome(result: &ToolResult) -> u64 {
    hash(&(result.is_error, &result.parts))
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
