//! The plan of a session. The model follows it turn by turn, and the checks know it beforehand.

use std::path::Path;

use plimsoll_mock::{Call, Turn};
use serde_json::json;

use crate::random::Random;

/// Number of turns of a session, without its answer.
const TURNS: (u64, u64) = (3, 8);
/// Maximum number of calls of one turn.
const CALLS: u64 = 3;
/// Maximum time of an effect before and after it happens, each in milliseconds.
const EFFECT_MS: u64 = 60;
/// Approximate tokens of a session's first request, and of each further turn.
const FIRST_TOKENS: u64 = 280;
const TURN_TOKENS: u64 = 120;
/// The file that the idempotent call reads, in the folder of the runs.
pub(crate) const NOTES: &str = "notes.txt";
/// The output of an effect that has happened.
pub(crate) const HAPPENED: &str = "happened";

/// The plan of a session.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The name of the session.
    pub(crate) session: String,
    /// The calls of each turn. The turn after the last one is the answer.
    pub(crate) turns: Vec<Vec<PlannedCall>>,
    /// The limit of the run.
    pub(crate) limit: Limit,
}

/// The limit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The run ends by itself.
    None,
    /// Maximum number of answered model calls.
    Turns(u64),
    /// Maximum number of tokens of all model calls.
    Tokens(u64),
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedCall {
    /// The id of the call, which is also the line that an effect appends to the ledger.
    pub(crate) id: String,
    /// The action of the call.
    pub(crate) work: Work,
}

/// The action of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Appends one line to the ledger, some milliseconds after the call begins and before it ends.
    Effect { before: u64, after: u64 },
    /// Reads a file, which may be repeated.
    Read,
}

impl Plan {
    /// Creates the plan of a session. It depends only on the seed and the number.
    pub(crate) fn new(seed: u64, prefix: &str, number: u64) -> Self {
        let session = format!("{prefix}-{number:04}");
        let mut random = Random::new(seed, &[1, number]);
        let mut next = 0;
        let mut turns = Vec::new();
        for _ in 0..random.between(TURNS.0, TURNS.1) {
            let calls = if random.percent(60) {
                1
            } else {
                random.between(2, CALLS)
            };
            let mut turn = Vec::new();
            for _ in 0..calls {
                let work = if random.percent(85) {
                    Work::Effect {
                        before: random.between(0, EFFECT_MS),
                        after: random.between(0, EFFECT_MS),
                    }
                } else {
                    Work::Read
                };
                let id = format!("{session}-{next}");
                turn.push(PlannedCall { id, work });
                next += 1;
            }
            turns.push(turn);
        }
        let mut plan = Self {
            session,
            turns,
            limit: Limit::None,
        };
        let half = plan.turns.len() as u64 / 2;
        plan.limit = match random.between(1, 5) {
            1 => Limit::Turns(half + 1),
            // Some runs reach this limit, and some end before.
            2 => Limit::Tokens(
                (0..=half)
                    .map(|turn| FIRST_TOKENS + TURN_TOKENS * turn)
                    .sum(),
            ),
            _ => Limit::None,
        };
        plan
    }

    /// Returns the task of the session.
    pub(crate) fn task(&self) -> String {
        format!("Do the work of session {}.", self.session)
    }

    /// Returns the model's answer in a turn, from 0.
    pub(crate) fn say(&self, turn: u64, may_call: bool, ledger: &Path) -> Turn {
        let calls = usize::try_from(turn)
            .ok()
            .and_then(|turn| self.turns.get(turn));
        match calls.filter(|_| may_call) {
            Some(calls) => Turn {
                call: calls.iter().map(|call| call.said(ledger)).collect(),
                ..Turn::default()
            },
            None => Turn::say(format!("Session {} is done.", self.session)),
        }
    }
}

impl PlannedCall {
    fn said(&self, ledger: &Path) -> Call {
        let (name, arguments) = match self.work {
            Work::Effect { before, after } => {
                // `>>` opens the file with O_APPEND, and such a short line is one write.
                let command = format!(
                    "sleep 0.{before:03}; echo {} >> '{}'; sleep 0.{after:03}; echo {HAPPENED}",
                    self.id,
                    ledger.display()
                );
                ("bash", json!({ "command": command }))
            }
            Work::Read => ("read", json!({ "path": NOTES })),
        };
        let mut call = Call::new(name, arguments);
        call.id = Some(self.id.clone());
        call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_follows_from_its_seed_and_its_ids_are_unique() {
        let plan = Plan::new(3, "s", 4);
        assert_eq!(plan.turns, Plan::new(3, "s", 4).turns);
        let ids: Vec<&String> = plan.turns.iter().flatten().map(|call| &call.id).collect();
        let unique: std::collections::BTreeSet<&&String> = ids.iter().collect();
        assert_eq!(unique.len(), ids.len());
        assert!(plan.task().contains("session s-0004."));
    }

    #[test]
    fn every_kind_of_limit_and_of_call_occurs() {
        let plans: Vec<Plan> = (0..50).map(|number| Plan::new(1, "s", number)).collect();
        let has = |kind: fn(&Limit) -> bool| plans.iter().any(|plan| kind(&plan.limit));
        assert!(has(|limit| *limit == Limit::None));
        assert!(has(|limit| matches!(limit, Limit::Turns(_))));
        assert!(has(|limit| matches!(limit, Limit::Tokens(_))));
        let mut calls = plans.iter().flat_map(|plan| &plan.turns).flatten();
        assert!(calls.any(|call| call.work == Work::Read));
    }
}
