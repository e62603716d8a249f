//! The exchanges and turns of a view, and the exchanges that are protected.

use std::ops::Range;

use crate::exchange::{Exchange, ExchangeKind, turns};
use crate::item::Item;

#[derive(Debug)]
pub(super) struct Structure {
    pub(super) exchanges: Vec<Exchange>,
    pub(super) turns: Vec<Range<usize>>,
    pub(super) protected: Vec<bool>,
}

impl Structure {
    /// Analyses a view. Items from position `unsent` on were never sent; the newest `recent`
    /// complete exchanges are protected.
    pub(super) fn new(items: &[Item], unsent: usize, recent: usize) -> Self {
        let exchanges = Exchange::of(items);
        let turns = turns(&exchanges);
        let protected = protected(items, &exchanges, &turns, unsent, recent);
        Self {
            exchanges,
            turns,
            protected,
        }
    }
}

/// Returns `true` for exchanges that answer a question: messages of the model and its tool results.
pub(super) fn is_step(kind: ExchangeKind) -> bool {
    matches!(
        kind,
        ExchangeKind::Complete | ExchangeKind::Pending | ExchangeKind::Orphan
    )
}

fn protected(
    items: &[Item],
    exchanges: &[Exchange],
    turns: &[Range<usize>],
    unsent: usize,
    recent: usize,
) -> Vec<bool> {
    let last_of = |kind| exchanges.iter().rposition(|exchange| exchange.kind == kind);
    let first_user = exchanges
        .iter()
        .position(|exchange| exchange.kind == ExchangeKind::User);
    let last_user = last_of(ExchangeKind::User);
    let last_summary = last_of(ExchangeKind::Summary);
    let mut complete = exchanges
        .iter()
        .rev()
        .filter(|exchange| exchange.kind == ExchangeKind::Complete);
    let recent_from = complete
        .nth(recent - 1)
        .map_or(0, |exchange| exchange.at.start);
    let mut protected: Vec<bool> = exchanges
        .iter()
        .enumerate()
        .map(|(index, exchange)| {
            let range = items.get(exchange.at.clone()).unwrap_or_default();
            [first_user, last_user, last_summary].contains(&Some(index))
                || matches!(exchange.kind, ExchangeKind::System | ExchangeKind::Pending)
                || (exchange.kind == ExchangeKind::Complete && exchange.at.start >= recent_from)
                || exchange.at.end > unsent
                || exchange.at.end == items.len()
                || range.iter().any(|item| item.pin.is_some())
        })
        .collect();
    // A question stays if one of its answers stays.
    for turn in turns {
        let kinds = exchanges.get(turn.clone()).unwrap_or_default();
        let flags = protected.get_mut(turn.clone()).unwrap_or_default();
        let mut steps = kinds.iter().zip(flags.iter());
        let answered = steps.any(|(exchange, stays)| *stays && is_step(exchange.kind));
        if let (true, Some(first), Some(exchange)) = (answered, flags.first_mut(), kinds.first()) {
            *first |= exchange.kind == ExchangeKind::User;
        }
    }
    protected
}
