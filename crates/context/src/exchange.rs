//! [`Exchange`]: the indivisible units of a view.
//!
//! Edits may only cut between exchanges, so no edit can separate a call from its results. Stages
//! decide which exchanges are edited.

use std::ops::Range;

use crate::gap::Gap;
use crate::item::Item;
use crate::message::Message;

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

/// Returns the turns of a view, as ranges of exchanges that together cover all of them.
///
/// A turn is a user message with everything up to the next user message: its answers, and the steps
/// that led to them. The first range is empty or has no user message.
pub(crate) fn turns(exchanges: &[Exchange]) -> Vec<Range<usize>> {
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
