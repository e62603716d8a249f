//! [`GrowthRate`]: the past growth of a view. [`GrowthForecast`]: the forecast for the rest of a run.

use serde::{Deserialize, Serialize};

use super::Price;
use crate::item::Item;
use crate::message::Message;
use crate::tokens::{Ppm, Tokens};

/// The minimum number of further turns that a run is expected to take, unless its limit is lower.
/// With a smaller number, no plan would pay at the beginning of a run.
pub const LEAST_TURNS: u64 = 8;
/// The approximate number of turns over which growth is averaged.
pub const RECENT_TURNS: u64 = 32;
/// The growth of a view per turn: a mean of about the last [`RECENT_TURNS`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthRate {
    /// The number of turns seen so far.
    pub turns: u64,
    calls: u64,
    other: u64,
    cold: u64,
    /// The tokens that the last plan rewrote.
    rewrites: Option<Tokens>,
}

/// The forecast for the rest of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrowthForecast {
    /// Tokens that a turn's calls and results add (`g`).
    pub grows: Tokens,
    /// Other tokens that a turn adds (`c`).
    pub other: Tokens,
    /// The number of remaining requests, including the next one.
    pub turns_left: u64,
    /// The probability that the cache is cold when a later request is made (`λ`).
    pub cold: Ppm,
    /// The probability that the cache is cold now.
    pub cold_now: Ppm,
    /// The tokens that the last plan rewrote; the next plan is expected to rewrite as many. `None`:
    /// the whole target except the head.
    pub rewrites: Option<Tokens>,
}

impl GrowthRate {
    /// Records a turn when the next request is made; `unsent` are the items that no request has
    /// carried yet. The beginning of a session, before the model has answered, is no turn.
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

    /// Records the tokens that a plan rewrote. If results are pruned, earlier pruned results stay
    /// unchanged, and a plan rewrites less than everything that it keeps.
    pub fn planned(&mut self, price: &Price) {
        if price.rewrites > Tokens::ZERO {
            self.rewrites = Some(price.rewrites);
        }
    }

    /// Returns the forecast.
    ///
    /// The growth is the mean of the turns seen so far. The run is expected to take as many further
    /// turns as have passed, at least [`LEAST_TURNS`] and at most `limit`: without a known length,
    /// its past length is the best estimate.
    #[must_use]
    pub fn outlook(&self, limit: Option<u64>, cold_now: Ppm) -> GrowthForecast {
        let expected = self.turns.max(LEAST_TURNS);
        GrowthForecast {
            grows: Tokens(self.calls / 1_000),
            other: Tokens(self.other / 1_000),
            turns_left: limit.map_or(expected, |limit| expected.min(limit)).max(1),
            cold: Ppm(self.cold.min(Ppm::ONE.0)),
            cold_now,
            rewrites: self.rewrites,
        }
    }
}

impl GrowthForecast {
    /// Returns the total growth per turn.
    #[must_use]
    pub fn growth(&self) -> Tokens {
        self.grows + self.other
    }
}
