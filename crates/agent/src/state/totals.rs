//! [`RunTotals`]: the usage of the current run, which its limits are compared with.

use std::collections::BTreeMap;

use plimsoll_context::{Tokens, Usage};

use super::State;
use crate::entry::BranchRecord;
use crate::limits::CountTokens;
use crate::spend::{Cost, Spend};
use crate::tracker::{ExecutionTracker, LimitKind, Nearness};

/// The usage of the current run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunTotals {
    pub(crate) turns: u64,
    pub(crate) tool_calls: u64,
    pub(crate) plans: u64,
    pub(crate) freed: Tokens,
    pub(crate) usage: Usage,
    pub(crate) summary_usage: Usage,
    /// Estimated usage of the calls for which the provider reported none. Not part of `usage`.
    pub(crate) estimated: Usage,
    pub(crate) cost: Cost,
    /// Tokens that the run's calls have read and written. Each call counts in full. Estimated if the
    /// provider reported none.
    pub(crate) processed: Tokens,
    /// The part of `processed` that was new in each call.
    pub(crate) growth: Tokens,
    /// Tokens that the newest call has read and written.
    pub(crate) newest: Tokens,
    /// The usage of tools, for example of sub-agents. Their tokens and money are part of the sums
    /// above.
    pub(crate) spent: Spend,
    /// Executed calls by tool.
    pub(crate) calls_of: BTreeMap<String, u64>,
    /// The limits about which the model was warned.
    pub(crate) warned: Vec<(LimitKind, Nearness)>,
}

impl RunTotals {
    /// Adds a call, with the reported usage or else our own count.
    pub(super) fn answered(&mut self, usage: Option<&Usage>, counted: Tokens, reply: Tokens) {
        let (processed, output) = match usage {
            Some(usage) => (usage.processed(), usage.output),
            None => {
                self.estimated.input += counted;
                self.estimated.output += reply;
                (counted, reply)
            }
        };
        let add = |count| ExecutionTracker::counted(count, self.newest, processed, output);
        let (all, new) = (add(CountTokens::Processed), add(CountTokens::Growth));
        self.processed += all;
        self.growth += new;
        self.newest = processed + output;
    }

    /// Returns how much a call that reads `processed` tokens adds to the counted tokens, before it has
    /// written any.
    pub(crate) fn next(&self, count: CountTokens, processed: Tokens) -> Tokens {
        ExecutionTracker::counted(count, self.newest, processed, Tokens::ZERO)
    }

    /// Returns the tokens that count towards the limit.
    pub(crate) fn tokens(&self, count: CountTokens) -> Tokens {
        match count {
            CountTokens::Processed => self.processed,
            CountTokens::Growth => self.growth,
        }
    }
}

impl State {
    /// Adds the usage of the rejected branches and of the choice. The entries of the chosen branch
    /// follow and are counted then.
    pub(crate) fn branched(
        &mut self,
        branches: &[BranchRecord],
        winner: Option<usize>,
        judged: &Spend,
    ) {
        let losers = branches.iter().enumerate();
        let losers = losers.filter(|(index, _)| Some(*index) != winner);
        for spent in losers.map(|(_, branch)| &branch.spent).chain([judged]) {
            self.spend(spent);
        }
    }
}
