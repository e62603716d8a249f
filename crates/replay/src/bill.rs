//! [`Bill`]: what a session would have cost. Not a forecast; every request in it was made.

use plimsoll_context::{Money, Rates, Tokens, Usage};
use serde::Serialize;

use crate::retention::Retention;

/// What a session would have cost under one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bill {
    /// Requests for the recorded answers.
    pub requests: u64,
    /// What all calls used, those for summaries included.
    pub usage: Usage,
    /// The recorded answers, which are the same whatever the way. A part of `usage.output`.
    pub answers: Tokens,
    /// What that costs; `None` where a price that it takes is not known.
    pub money: Option<Money>,
    /// How often the view was made smaller.
    pub plans: u64,
    /// What the views weighed that were sent right after, in sum.
    pub kept: Tokens,
    /// Requests that stayed over the limit, because what must stay was over it.
    pub unfit: u64,
    /// Requests of which the one before was not a prefix.
    pub prefix_breaks: u64,
    /// Requests that were made after the cache had expired.
    pub expired: u64,
    /// The largest view that was sent.
    pub largest: Tokens,
    /// What the views still contained of the session.
    pub retention: Retention,
}

impl Bill {
    /// What it costs at these rates without the recorded answers: the part that a policy can
    /// change.
    #[must_use]
    pub fn without_answers(&self, rates: &Rates) -> Option<Money> {
        let usage = Usage {
            output: self.usage.output.minus(self.answers),
            ..self.usage
        };
        usage.estimated_cost(rates)
    }

    /// What a view weighed right after it was made smaller, on average.
    #[must_use]
    pub fn mean_kept(&self) -> Tokens {
        Tokens(self.kept.0 / self.plans.max(1))
    }

    /// Both together, as of two sessions.
    #[must_use]
    pub fn combine(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            usage: self.usage.combine(other.usage),
            answers: self.answers + other.answers,
            money: self
                .money
                .and_then(|money| other.money.map(|other| money + other)),
            plans: self.plans.saturating_add(other.plans),
            kept: self.kept + other.kept,
            unfit: self.unfit.saturating_add(other.unfit),
            prefix_breaks: self.prefix_breaks.saturating_add(other.prefix_breaks),
            expired: self.expired.saturating_add(other.expired),
            largest: self.largest.max(other.largest),
            retention: self.retention.combine(other.retention),
        }
    }
}

impl Default for Bill {
    /// Of nothing: it costs nothing.
    fn default() -> Self {
        Self {
            requests: 0,
            usage: Usage::default(),
            answers: Tokens::ZERO,
            money: Some(Money::default()),
            plans: 0,
            kept: Tokens::ZERO,
            unfit: 0,
            prefix_breaks: 0,
            expired: 0,
            largest: Tokens::ZERO,
            retention: Retention::default(),
        }
    }
}
