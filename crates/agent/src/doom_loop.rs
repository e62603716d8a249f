//! [`DoomLoopTracker`]: whether a model goes round in circles. It counts and says how far it has come;
//! what follows is decided in `work.rs`. It holds hashes, never what was said.

use std::collections::VecDeque;

use plimsoll_context::{Message, ToolResult};
use serde::{Deserialize, Serialize};

use crate::identity::{hash, identity, outcome};

/// Batches that are remembered, at least.
pub const MIN_HISTORY: usize = 10;
/// Batches that are remembered, at most: a bound on what a run holds.
pub const MAX_HISTORY: usize = 10_000;
/// What is only alike (the same error, the same text) gets so many times the patience of what is the
/// same: a model may be right to try once more in another way.
const PATIENCE: u64 = 2;

/// Whether a model goes round in circles: a bounded ring of hashed batches, newest last. A batch is
/// the tool calls of one message, the same whatever their order and that of the keys in their
/// arguments. Results count: calls whose results change are no loop.
#[derive(Debug, Clone)]
pub struct DoomLoopTracker {
    history: usize,
    ring: VecDeque<Seen>,
    /// At `p - 1`: how many of the newest batches, without a break, are what the batch `p` before
    /// them was. Cycles are looked for of which two rounds are remembered.
    matches: Vec<u64>,
    errors: Option<Errors>,
    text: Option<Said>,
    /// The calls of the newest batch while its results are awaited.
    open: Vec<Asked>,
}

/// In what a model repeats itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Repetition {
    /// The same batch of calls in a row.
    #[default]
    Identical,
    /// The same few batches, round and round.
    Period {
        /// How many batches one round has.
        length: u64,
    },
    /// The same error of the same tool, whatever it is called with.
    Error,
    /// The same text, and nothing comes of it.
    Text,
}

/// How far a repetition has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looping {
    /// Not far enough to say anything.
    No,
    /// The model is told, once the batch has its results.
    Nudge(Repetition),
    /// The batch does not run.
    Refuse(Repetition),
    /// The run ends.
    Stop(Repetition, u64),
}

/// What became of one call.
#[derive(Debug, Clone, Copy)]
pub struct Answered<'a> {
    /// Its result.
    pub result: &'a ToolResult,
    /// Where the result comes from.
    pub fate: Fate,
}

/// Where a result comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The tool.
    Ran,
    /// The call was not run, for another reason than that it was repeated.
    NotRun,
    /// The call was not run since it was repeated.
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    calls: u64,
    /// Those of the calls that ran; where none did, those that the same calls had before.
    results: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Asked {
    tool: u64,
    call: u64,
}

/// Batches in a row of which nothing came but one error of one tool.
#[derive(Debug, Clone, Copy)]
struct Errors {
    tool: u64,
    error: u64,
    times: u64,
}

#[derive(Debug, Clone, Copy)]
struct Said {
    text: u64,
    times: u64,
}

impl Default for DoomLoopTracker {
    fn default() -> Self {
        Self::new(MIN_HISTORY)
    }
}

impl DoomLoopTracker {
    /// One that remembers so many batches: `tool_call_history_size`.
    #[must_use]
    pub fn new(history: usize) -> Self {
        let history = history.clamp(MIN_HISTORY, MAX_HISTORY);
        Self {
            history,
            ring: VecDeque::new(),
            matches: vec![0; history / 2],
            errors: None,
            text: None,
            open: Vec::new(),
        }
    }

    /// What is wrong with the two settings together, as a sentence.
    #[must_use]
    pub fn fault(max_identical_tool_calls: Option<u64>, history: usize) -> Option<String> {
        let repeated = max_identical_tool_calls.unwrap_or_default();
        let least = repeated.saturating_add(1).max(MIN_HISTORY as u64);
        if least > MAX_HISTORY as u64 {
            return Some(format!(
                "max_identical_tool_calls is {repeated}; choose 1 to {}, or leave it unset for no limit",
                MAX_HISTORY - 1
            ));
        }
        let fits = (least..=MAX_HISTORY as u64).contains(&(history as u64));
        (!fits).then(|| {
            format!(
                "tool_call_history_size is {history}; choose {least} to {MAX_HISTORY}{}",
                match repeated.saturating_add(1) >= least {
                    true => ", one more than max_identical_tool_calls at least",
                    false => "",
                }
            )
        })
    }

    /// How many batches are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.ring.len()
    }

    /// How many batches are remembered at most.
    #[must_use]
    pub fn history(&self) -> usize {
        self.history
    }

    /// Begins anew: somebody has said something, or the model did something else.
    pub fn forget(&mut self) {
        *self = Self::new(self.history);
    }

    /// The model has said something. A message without tool calls begins anew.
    pub fn asked(&mut self, message: &Message) {
        self.open.clear();
        self.open.extend(message.calls().map(|call| Asked {
            tool: hash(&call.name),
            call: identity(call),
        }));
        if self.open.is_empty() {
            return self.forget();
        }
        let mut calls: Vec<u64> = self.open.iter().map(|asked| asked.call).collect();
        calls.sort_unstable();
        // The same call twice in one batch runs once.
        calls.dedup();
        let calls = hash(&calls);
        for (matches, period) in self.matches.iter_mut().zip(1..) {
            let before = nth_newest(&self.ring, period - 1);
            match before.is_some_and(|before| before.calls == calls) {
                true => *matches += 1,
                false => *matches = 0,
            }
        }
        if self.ring.len() == self.history {
            self.ring.pop_front();
        }
        self.ring.push_back(Seen {
            calls,
            results: None,
        });
        self.said(message);
    }

    /// The newest batch has all its results; they are given in the order of its calls.
    pub fn answered<'a>(&mut self, results: impl IntoIterator<Item = Answered<'a>>) {
        let open = std::mem::take(&mut self.open);
        let answered: Vec<(Asked, Answered)> = open.into_iter().zip(results).collect();
        let Some(mut newest) = self.ring.pop_back() else {
            return;
        };
        let mut ran: Vec<(u64, u64)> = answered
            .iter()
            .filter(|(_, answered)| answered.fate == Fate::Ran)
            .map(|(asked, answered)| (asked.call, outcome(answered.result)))
            .collect();
        ran.sort_unstable();
        ran.dedup();
        let alike = || self.ring.iter().filter(|seen| seen.calls == newest.calls);
        let results = (!ran.is_empty()).then(|| hash(&ran));
        let is_new = results.is_some() && !alike().any(|seen| seen.results == results);
        newest.results = results.or_else(|| alike().rev().find_map(|seen| seen.results));
        for (matches, period) in self.matches.iter_mut().zip(1..) {
            let before = nth_newest(&self.ring, period - 1).and_then(|before| before.results);
            let differ = before.zip(newest.results).is_some_and(|(a, b)| a != b);
            if differ {
                *matches = 0;
            }
        }
        self.ring.push_back(newest);
        let succeeded = |(_, answered): &(Asked, Answered)| {
            answered.fate == Fate::Ran && !answered.result.is_error
        };
        if is_new
            && answered.iter().any(succeeded)
            && let Some(said) = &mut self.text
        {
            said.times = 1;
        }
        self.errors = self.errors_after(&answered);
    }

    /// How far it has come, the newest batch included, where so many identical batches are too many
    /// (`max_identical_tool_calls`; 1 acts as 2). For the same batch in a row: after one less a nudge;
    /// that one and the next do not run; then the run ends. For a cycle likewise, where the batch
    /// that would begin a third round is one too many.
    #[must_use]
    pub fn looping(&self, max_identical_tool_calls: u64) -> Looping {
        let most = max_identical_tool_calls.max(2);
        let patient = most.saturating_mul(PATIENCE);
        let mut worst = Looping::No;
        let mut consider = |what, times, most| {
            let looping = rung(what, times, most);
            if looping.severity() > worst.severity() {
                worst = looping;
            }
        };
        for (matches, period) in self.matches.iter().zip(1_u64..) {
            match period {
                1 => consider(Repetition::Identical, matches + 1, most),
                length if *matches >= length && self.is_primitive(length) => {
                    let what = Repetition::Period { length };
                    consider(what, matches + length, 2 * length + 1);
                }
                _ => {}
            }
        }
        if let Some(errors) = self.errors {
            let is_next = |asked: &Asked| asked.tool == errors.tool;
            let times = match self.open.is_empty() {
                true => errors.times,
                // What else is asked for beside it may succeed.
                false if self.open.iter().all(is_next) => errors.times + 1,
                false => 0,
            };
            consider(Repetition::Error, times, patient);
        }
        if let Some(said) = self.text {
            consider(Repetition::Text, said.times, patient);
        }
        worst
    }

    /// Whether the newest batches are a round of that length and not several shorter ones: the same
    /// call again and again whose result alternates is no cycle.
    fn is_primitive(&self, length: u64) -> bool {
        let round = || self.ring.iter().rev().map(|seen| seen.calls);
        let length = usize::try_from(length).unwrap_or(MAX_HISTORY);
        (1..length).filter(|part| length % part == 0).all(|part| {
            let shifted = round().skip(part).take(length - part);
            round().take(length).zip(shifted).any(|(a, b)| a != b)
        })
    }

    fn said(&mut self, message: &Message) {
        let text = message.text();
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        self.text = (!words.is_empty()).then(|| {
            let text = hash(&words);
            let before = self.text.filter(|said| said.text == text);
            let times = before.map_or(1, |said| said.times + 1);
            Said { text, times }
        });
    }

    /// The errors in a row, with a batch that has its results now.
    fn errors_after(&self, answered: &[(Asked, Answered)]) -> Option<Errors> {
        let mut came = answered
            .iter()
            .filter(|(_, answered)| answered.fate != Fate::Refused);
        let Some((first, result)) = came.next() else {
            let is_next = |errors: &Errors| answered.iter().all(|(a, _)| a.tool == errors.tool);
            let errors = self.errors.filter(is_next)?;
            let times = errors.times + 1;
            return Some(Errors { times, ..errors });
        };
        let error = outcome(result.result);
        let is_same = |(asked, answered): &(Asked, Answered)| {
            asked.tool == first.tool && outcome(answered.result) == error
        };
        if !result.result.is_error || !came.all(is_same) {
            return None;
        }
        let is_next = |errors: &Errors| errors.tool == first.tool && errors.error == error;
        let before = self.errors.filter(is_next);
        Some(Errors {
            tool: first.tool,
            error,
            times: before.map_or(1, |errors| errors.times + 1),
        })
    }
}

impl Looping {
    fn severity(self) -> u8 {
        match self {
            Self::No => 0,
            Self::Nudge(_) => 1,
            Self::Refuse(_) => 2,
            Self::Stop(..) => 3,
        }
    }
}

/// The batch at this place, counted from the newest.
fn nth_newest(ring: &VecDeque<Seen>, back: usize) -> Option<&Seen> {
    ring.iter().rev().nth(back)
}

fn rung(what: Repetition, times: u64, most: u64) -> Looping {
    match times {
        times if times >= most.saturating_add(2) => Looping::Stop(what, times),
        times if times >= most => Looping::Refuse(what),
        // One of a kind is no repetition.
        times if times > 1 && times + 1 == most => Looping::Nudge(what),
        _ => Looping::No,
    }
}
