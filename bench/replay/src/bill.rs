//! [`Bill`]: the simulated cost of a recorded session.

use plimsoll_context::{Money, Rates, Tokens, Usage};
use serde::Serialize;

use crate::retention::Retention;

/// The cost of a session with one [`Way`](crate::Way).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bill {
    /// Number of requests, one for each recorded answer.
    pub requests: u64,
    /// Usage of all calls, including summaries.
    pub usage: Usage,
    /// Size of the recorded answers, which do not depend on the way. Part of `usage.output`.
    pub answers: Tokens,
    /// Total cost; `None` if a required price is unknown.
    pub money: Option<Money>,
    /// Number of compactions.
    pub plans: u64,
    /// Sum of the sizes of the views right after each compaction.
    pub kept: Tokens,
    /// Number of requests over the limit because too much of the view had to be kept.
    pub unfit: u64,
    /// Number of requests whose predecessor is not a prefix.
    pub prefix_breaks: u64,
    /// Number of requests after the cache had expired.
    pub expired: u64,
    /// Size of the largest view.
    pub largest: Tokens,
    /// The part of the session that the views still contained.
    pub retention: Retention,
}

impl Bill {
    /// Returns the cost at these rates without the recorded answers: the part that a policy can
    /// change.
    #[must_use]
    pub fn without_answers(&self, rates: &Rates) -> Option<Money> {
        let usage = Usage {
            output: self.usage.output.minus(self.answers),
            ..self.usage
        };
        usage.estimated_cost(rates)
    }

    /// Returns the average size of the view right after a compaction.
    #[must_use]
    pub fn mean_kept(&self) -> Tokens {
        Tokens(self.kept.0 / self.plans.max(1))
    }

    /// Returns the sum of both bills.
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
    /// Returns the bill of an empty session, which costs nothing.
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
