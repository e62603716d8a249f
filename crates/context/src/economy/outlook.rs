//! [`Pace`]: how a view has grown, and [`Outlook`]: what is expected of the rest of a run. Not what
//! follows from it.

use serde::{Deserialize, Serialize};

use super::Price;
use crate::item::Item;
use crate::message::Message;
use crate::tokens::{Ppm, Tokens};

/// A run is expected to last at least this many turns more, unless its limit says otherwise: with a
/// shorter outlook nothing would pay at its beginning.
pub const LEAST_TURNS: u64 = 8;
/// How many turns the mean growth looks back, about.
pub const RECENT_TURNS: u64 = 32;
/// How a view has grown, turn by turn: a mean of about the last [`RECENT_TURNS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pace {
    /// How many turns it has seen.
    pub turns: u64,
    calls: u64,
    other: u64,
    cold: u64,
    /// What the last plan rewrote.
    #[serde(default)]
    rewrites: Option<Tokens>,
}

/// What is expected of the rest of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// What a turn's calls and results add (`g`).
    pub grows: Tokens,
    /// What else a turn adds (`c`).
    pub other: Tokens,
    /// How many requests are still to come, the next one included.
    pub turns_left: u64,
    /// The chance that the cache is cold when a later request is made (`λ`).
    pub cold: Ppm,
    /// The chance that it is cold now.
    pub cold_now: Ppm,
    /// What the last plan rewrote, which the next is expected to rewrite too. `None`: all that the
    /// target leaves behind the head.
    #[serde(default)]
    pub rewrites: Option<Tokens>,
}

impl Pace {
    /// Notes a turn: what no request has carried yet, as the next request is made. The beginning of
    /// a session, before the model has said anything, is no turn.
    pub fn observe(&mut self, unsent: &[Item], cold: Ppm) {
        let (mut calls, mut other, mut turn) = (0_u64, 0_u64, false);
        for item in unsent {
            let sum = match item.message.as_ref() {
                Message::Assistant { .. } | Message::ToolResult(_) => &mut calls,
                _ => &mut other,
            };
            *sum = sum.saturating_add(item.tokens.0);
            turn |= matches!(item.message.as_ref(), Message::Assistant { .. });
        }
        if !turn {
            return;
        }
        self.turns = self.turns.saturating_add(1);
        let over = self.turns.min(RECENT_TURNS);
        for (mean, new) in [
            (&mut self.calls, calls.saturating_mul(1_000)),
            (&mut self.other, other.saturating_mul(1_000)),
            (&mut self.cold, cold.0),
        ] {
            *mean = (*mean - *mean / over).saturating_add(new / over);
        }
    }

    /// Notes what a plan rewrote: where results are pruned, what was pruned before stays as it is,
    /// and a plan rewrites less than all that it keeps.
    pub fn planned(&mut self, price: &Price) {
        if price.rewrites > Tokens::ZERO {
            self.rewrites = Some(price.rewrites);
        }
    }

    /// What to expect. The growth is the mean of the turns seen; as many turns are to come as have
    /// passed, at least [`LEAST_TURNS`] and at most `limit`: of a run of unknown length one knows
    /// how long it has lasted, and nothing better.
    #[must_use]
    pub fn outlook(&self, limit: Option<u64>, cold_now: Ppm) -> Outlook {
        let expected = self.turns.max(LEAST_TURNS);
        Outlook {
            grows: Tokens(self.calls / 1_000),
            other: Tokens(self.other / 1_000),
            turns_left: limit.map_or(expected, |limit| expected.min(limit)).max(1),
            cold: Ppm(self.cold.min(Ppm::ONE.0)),
            cold_now,
            rewrites: self.rewrites,
        }
    }
}

impl Outlook {
    /// What a turn adds in all.
    #[must_use]
    pub fn growth(&self) -> Tokens {
        self.grows + self.other
    }
}
