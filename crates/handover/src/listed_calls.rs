//! [`ListedCalls`]: the calls of a transcript that have a line of their own.

use std::collections::BTreeMap;

use foldhash::HashMap;

use crate::calls::TranscriptCall;
use crate::outcome::Outcome;
use crate::story::{LineKind, StoryLine};

/// The separator between a call and its outcome.
const ARROW: &str = " → ";
/// The separator between a command and its time limit, which `)` ends.
const TIME_LIMIT: &str = " (timeout ";
/// The prefix of the outcome of a failed call.
const FAILED: &str = "failed: ";
/// The factor for the worth of a line of an earlier handover.
const FORMER: f64 = 0.7;
/// The factor for the worth of a failed call.
const FAILURE: f64 = 1.5;

/// A call with a line of its own.
pub(crate) struct ToldCall {
    pub(crate) signature: String,
    pub(crate) time_limit: Option<String>,
    /// See [`TranscriptCall::key`].
    pub(crate) key: String,
    pub(crate) outcome: Outcome,
    pub(crate) worth: f64,
    /// The entry of the last occurrence.
    pub(crate) at: usize,
    /// The position in the transcript.
    pub(crate) order: usize,
    /// The number of occurrences.
    pub(crate) times: u32,
}

/// Calls in the order of their first occurrence, each with its last outcome.
#[derive(Default)]
pub(crate) struct ListedCalls {
    calls: Vec<ToldCall>,
    /// The index in `calls`, by signature.
    by_signature: HashMap<String, usize>,
    /// The last entry in which a call succeeded, by key.
    succeeded: HashMap<String, usize>,
}

impl ToldCall {
    /// Parses a line of an earlier handover, which occurred `times`. Returns `None` if it has no
    /// outcome.
    pub(crate) fn parse(line: &str, times: u32, at: usize) -> Option<Self> {
        let (signature, outcome) = line.rsplit_once(ARROW)?;
        let limited = signature
            .strip_suffix(')')
            .and_then(|signature| signature.rsplit_once(TIME_LIMIT));
        let (signature, time_limit) = limited.map_or((signature, None), |(signature, limit)| {
            (signature, Some(limit.to_owned()))
        });
        Some(Self {
            signature: signature.to_owned(),
            time_limit,
            key: TranscriptCall::command("bash", signature).key(),
            outcome: match outcome.strip_prefix(FAILED) {
                Some(line) => Outcome::Failed(line.to_owned()),
                None => Outcome::Done(outcome.to_owned()),
            },
            worth: 0.6 * FORMER,
            at,
            order: 0,
            times,
        })
    }

    fn text(&self) -> String {
        match &self.outcome {
            Outcome::Failed(line) => format!("{}{ARROW}{FAILED}{line}", self.signature),
            Outcome::Done(result) if !result.is_empty() => {
                format!("{}{ARROW}{result}", self.signature)
            }
            Outcome::Done(_) => self.signature.clone(),
            Outcome::Lines(lines) => format!("{}{ARROW}{lines} lines", self.signature),
        }
    }
}

impl ListedCalls {
    /// Records a call. A repeated call has one line, at its last occurrence.
    pub(crate) fn tell(&mut self, mut call: ToldCall) {
        let next = self.calls.len();
        let n = *self
            .by_signature
            .entry(call.signature.clone())
            .or_insert(next);
        match self.calls.get_mut(n) {
            Some(listed) => {
                call.times = call.times.saturating_add(listed.times);
                *listed = call;
            }
            None => self.calls.push(call),
        }
    }

    /// Records that a call with this key succeeded.
    pub(crate) fn succeeded(&mut self, key: String, at: usize) {
        self.succeeded.insert(key, at);
    }

    /// Returns the lines. A failure that was settled later has none. A time limit is shown once, in
    /// the line that is most likely chosen.
    pub(crate) fn lines(self, recency: impl Fn(usize) -> f64) -> Vec<StoryLine> {
        let mut lines: Vec<StoryLine> = Vec::with_capacity(self.calls.len());
        // By time limit: the line, and the place in it.
        let mut limited: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for call in self.calls {
            let is_failed = matches!(call.outcome, Outcome::Failed(_));
            let last_success = self.succeeded.get(&call.key);
            if is_failed && last_success.is_some_and(|at| *at > call.at) {
                continue;
            }
            lines.push(StoryLine {
                order: call.order,
                kind: LineKind::Call,
                text: call.text(),
                worth: call.worth * if is_failed { FAILURE } else { 1.0 } * recency(call.at),
                times: call.times,
            });
            if let Some(limit) = call.time_limit {
                let density = |n: usize| lines.get(n).map_or(0.0, StoryLine::density);
                let this = (lines.len() - 1, call.signature.len());
                let shown = limited.entry(limit).or_insert(this);
                if density(this.0) > density(shown.0) {
                    *shown = this;
                }
            }
        }
        for (limit, (n, at)) in limited {
            if let Some(line) = lines.get_mut(n) {
                line.text.insert_str(at, &format!("{TIME_LIMIT}{limit})"));
            }
        }
        lines
    }
}
