//! [`Exchange`]: the indivisible units of a view. [`Structure`]: the turns that they form, and those
//! that are protected.
//!
//! Edits may only cut between exchanges, so no edit can separate a call from its results. Stages
//! decide which exchanges are edited.

use std::ops::Range;

use crate::item::Item;
use crate::message::Message;
use crate::removal_marker::Gap;

/// A run of items that no edit may split: an assistant's message with all its results, or any other
/// single message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exchange {
    /// Positions in the view, not sequence numbers.
    pub at: Range<usize>,
    /// The kind of messages in the exchange.
    pub kind: ExchangeKind,
}

/// The kind of messages in an [`Exchange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExchangeKind {
    /// A system message.
    System,
    /// A user message.
    User,
    /// A notice of the host.
    Notice,
    /// A summary of removed messages.
    Summary,
    /// The marker of a gap: messages were removed here.
    Gap,
    /// An assistant's message with all its results.
    Complete,
    /// An assistant's message with missing results.
    Pending,
    /// A result without its call. Occurs only in damaged transcripts.
    Orphan,
}

/// The exchanges and turns of a view.
#[derive(Debug)]
pub(crate) struct Structure {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) turns: Vec<Range<usize>>,
    pub(crate) protected: Vec<bool>,
}

impl Exchange {
    /// Returns the exchanges of a view, in order. Together they cover every item.
    #[must_use]
    pub fn of(items: &[Item]) -> Vec<Self> {
        let mut exchanges = Vec::new();
        let mut rest = items;
        let mut start = 0;
        while let Some((first, after)) = rest.split_first() {
            let results = match first.message.as_ref() {
                Message::Assistant { .. } => leading_results(after),
                _ => 0,
            };
            let len = 1 + results;
            exchanges.push(Self {
                at: start..start + len,
                kind: kind(&first.message, results),
            });
            start += len;
            rest = rest.get(len..).unwrap_or_default();
        }
        exchanges
    }
}

impl ExchangeKind {
    /// Returns `true` for exchanges that answer a question: messages of the model and its tool
    /// results.
    pub(crate) fn is_step(self) -> bool {
        matches!(self, Self::Complete | Self::Pending | Self::Orphan)
    }
}

impl Structure {
    /// Analyses a view. Items from position `unsent` on were never sent; the newest `recent`
    /// complete exchanges are protected.
    pub(crate) fn new(items: &[Item], unsent: usize, recent: usize) -> Self {
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

/// Returns the turns of a view, as ranges of exchanges that together cover all of them.
///
/// A turn is a user message with everything up to the next user message: its answers, and the steps
/// that led to them. The first range is empty or has no user message.
fn turns(exchanges: &[Exchange]) -> Vec<Range<usize>> {
    let mut turns = Vec::new();
    let mut start = 0;
    for (index, exchange) in exchanges.iter().enumerate() {
        if exchange.kind == ExchangeKind::User {
            turns.push(start..index);
            start = index;
        }
    }
    turns.push(start..exchanges.len());
    turns
}

fn leading_results(items: &[Item]) -> usize {
    items
        .iter()
        .take_while(|item| matches!(*item.message, Message::ToolResult(_)))
        .count()
}

fn kind(first: &Message, results: usize) -> ExchangeKind {
    match first {
        Message::System { .. } => ExchangeKind::System,
        Message::User { .. } => ExchangeKind::User,
        Message::Notice { .. } if Gap::of(first).is_some() => ExchangeKind::Gap,
        Message::Notice { .. } => ExchangeKind::Notice,
        Message::Summary { .. } => ExchangeKind::Summary,
        Message::ToolResult(_) => ExchangeKind::Orphan,
        Message::Assistant { .. } if results < first.calls().count() => ExchangeKind::Pending,
        Message::Assistant { .. } => ExchangeKind::Complete,
    }
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
        let answered = steps.any(|(exchange, stays)| *stays && exchange.kind.is_step());
        if let (true, Some(first), Some(exchange)) = (answered, flags.first_mut(), kinds.first()) {
            *first |= exchange.kind == ExchangeKind::User;
        }
    }
    protected
}
