//! [`Trim`]: keeps the first or the last messages of a view that fit, with the options of
//! LangChain's `trim_messages`.
//!
//! This is no stage of a policy: it protects neither the task nor the newest question.

use crate::exchange::{Exchange, ExchangeKind};
use crate::item::Item;
use crate::message::{Message, Part};
use crate::tokens::Tokens;
use crate::transcript::Transcript;

/// Keeps messages from one end of a view while they fit.
///
/// Differs from `trim_messages` if that would produce a request that a provider refuses, or lose an
/// instruction: system messages and pins always stay and are counted first, a call is kept or
/// removed together with its results, and a view is never trimmed to nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trim {
    /// The end of the view that is kept.
    pub strategy: TrimStrategy,
    /// If not empty, the messages kept from the end must begin with one of these roles.
    pub start_on: Vec<TrimRole>,
    /// If not empty, the kept messages must end with one of these roles.
    pub end_on: Vec<TrimRole>,
    /// Whether the first message that does not fit as a whole may be kept in part.
    pub allow_partial: bool,
}

/// The end of a view that is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TrimStrategy {
    /// The oldest messages.
    First,
    /// The newest messages. The default.
    #[default]
    Last,
}

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrimRole {
    /// A user message.
    User,
    /// A message of the model, with its tool calls.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// A message that is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct TrimmedMessage {
    /// The position in the view.
    pub at: usize,
    /// The kept part of the message, if it is not kept as a whole.
    pub part: Option<Message>,
}

impl Trim {
    /// Returns the messages that are kept within `limit` tokens of the view, in view order.
    ///
    /// # Errors
    ///
    /// If no message is left besides those that always stay. The error contains the smallest
    /// sufficient limit, or `None` if no message has one of the required roles.
    pub fn keep(
        &self,
        view: &Transcript,
        limit: Tokens,
    ) -> Result<Vec<TrimmedMessage>, Option<Tokens>> {
        let items = view.items();
        let (fixed, mut loose): (Vec<Exchange>, Vec<Exchange>) = Exchange::of(items)
            .into_iter()
            .partition(|exchange| stays(items, exchange));
        // Beyond a pinned message the roles are not checked: the pinned message itself is first or
        // last.
        let mut pinned = fixed
            .iter()
            .filter(|exchange| exchange.kind != ExchangeKind::System);
        let oldest = pinned.clone().next().map(|exchange| exchange.at.start);
        let newest = pinned.next_back().map(|exchange| exchange.at.start);
        let begins = |exchange: &Exchange| {
            begins(items, exchange, &self.start_on)
                || oldest.is_some_and(|oldest| oldest < exchange.at.start)
        };
        let ends = |exchange: &Exchange| {
            ends(items, exchange, &self.end_on)
                || newest.is_some_and(|newest| newest > exchange.at.start)
        };
        let may_be_empty = loose.is_empty() || newest.is_some();
        if self.strategy == TrimStrategy::Last {
            while loose.last().is_some_and(|last| !ends(last)) {
                loose.pop();
            }
            loose.reverse();
        }
        let mut used: Tokens = fixed.iter().map(|exchange| weight(items, exchange)).sum();
        let mut fitting = 0;
        let mut partial = None;
        for exchange in &loose {
            let with = used + weight(items, exchange);
            if with > limit {
                partial = self.partial(view, exchange, limit.minus(used));
                break;
            }
            used = with;
            fitting += 1;
        }
        let whole = loose.get(..fitting).unwrap_or_default();
        let mut kept: Vec<(Exchange, Option<Message>)> = whole
            .iter()
            .map(|exchange| (exchange.clone(), None))
            .collect();
        kept.extend(partial.map(|(exchange, part)| (exchange, Some(part))));
        let is_bound = |exchange: &Exchange| match self.strategy {
            TrimStrategy::Last => begins(exchange),
            TrimStrategy::First => ends(exchange),
        };
        while kept.last().is_some_and(|(exchange, _)| !is_bound(exchange)) {
            kept.pop();
        }
        if kept.is_empty() && !may_be_empty {
            let first = loose.iter().position(is_bound).ok_or(None)?;
            let needed = loose.get(..=first).unwrap_or_default();
            let fixed: Tokens = fixed.iter().map(|exchange| weight(items, exchange)).sum();
            let needed: Tokens = needed.iter().map(|exchange| weight(items, exchange)).sum();
            return Err(Some(fixed + needed));
        }
        kept.extend(fixed.into_iter().map(|exchange| (exchange, None)));
        let messages = kept.into_iter().flat_map(|(exchange, part)| {
            exchange.at.map(move |at| TrimmedMessage {
                at,
                part: part.clone(),
            })
        });
        let mut messages: Vec<TrimmedMessage> = messages.collect();
        messages.sort_by_key(|message| message.at);
        Ok(messages)
    }

    /// Returns the part of a message that fits: as many of its parts from the kept end as possible,
    /// else as many lines of its text. A message with calls or results is not split.
    fn partial(
        &self,
        view: &Transcript,
        exchange: &Exchange,
        space: Tokens,
    ) -> Option<(Exchange, Message)> {
        let item = view.items().get(exchange.at.clone())?;
        let [Item { message, .. }] = item else {
            return None;
        };
        if !self.allow_partial || message.calls().next().is_some() {
            return None;
        }
        let fits = |parts: Vec<Part>| {
            let message = match message.as_ref() {
                Message::User { .. } => Message::User { parts },
                Message::Assistant { .. } => Message::Assistant { parts },
                _ => return None,
            };
            (view.counter().message(&message) <= space).then_some(message)
        };
        // Thinking and provider-specific blocks are only valid in a complete message.
        let is_plain =
            |part: &&Part| matches!(part, Part::Text { .. } | Part::Image(_) | Part::File(_));
        let parts: Vec<Part> = message.parts().iter().filter(is_plain).cloned().collect();
        let fewer = (1..parts.len()).rev().find_map(|count| {
            let part = match self.strategy {
                TrimStrategy::First => parts.get(..count),
                TrimStrategy::Last => parts.get(parts.len() - count..),
            };
            fits(part?.to_vec())
        });
        let found = fewer.or_else(|| {
            let text = parts.iter().find_map(Part::as_text)?;
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            // A line has at least one token for nearly every counter, so the size grows with the
            // number of lines, and that number is found by bisection.
            let fitting = partition(lines.len(), |count| {
                self.lines(&lines, count)
                    .and_then(|text| fits(vec![Part::text(text)]))
                    .is_some()
            });
            let text = self.lines(&lines, fitting).filter(|_| fitting > 0)?;
            fits(vec![Part::text(text)])
        });
        Some((exchange.clone(), found?))
    }

    fn lines(&self, lines: &[&str], count: usize) -> Option<String> {
        let lines = match self.strategy {
            TrimStrategy::First => lines.get(..count),
            TrimStrategy::Last => lines.get(lines.len().checked_sub(count)?..),
        };
        Some(lines?.concat())
    }
}

impl TrimRole {
    /// Parses the name of a role as spelled by the providers or by LangChain. Returns `None` for an
    /// unknown name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "user" | "human" => Some(Self::User),
            "assistant" | "ai" => Some(Self::Assistant),
            "tool" => Some(Self::Tool),
            _ => None,
        }
    }

    fn is_of(self, message: &Message) -> bool {
        match message {
            Message::Assistant { .. } => self == Self::Assistant,
            Message::ToolResult(_) => self == Self::Tool,
            Message::User { .. } | Message::Notice { .. } | Message::Summary { .. } => {
                self == Self::User
            }
            Message::System { .. } => false,
        }
    }
}

/// Returns the largest number up to `most` for which `fits` is true, if it is also true for all
/// smaller ones.
fn partition(most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut fitting, mut exceeding) = (0, most + 1);
    while fitting + 1 < exceeding {
        let middle = fitting + (exceeding - fitting) / 2;
        if fits(middle) {
            fitting = middle
        } else {
            exceeding = middle
        }
    }
    fitting
}

fn stays(items: &[Item], exchange: &Exchange) -> bool {
    let items = items.get(exchange.at.clone()).unwrap_or_default();
    exchange.kind == ExchangeKind::System || items.iter().any(|item| item.pin.is_some())
}

fn weight(items: &[Item], exchange: &Exchange) -> Tokens {
    let items = items.get(exchange.at.clone()).unwrap_or_default();
    items.iter().map(|item| item.tokens).sum()
}

fn begins(items: &[Item], exchange: &Exchange, roles: &[TrimRole]) -> bool {
    let first = items.get(exchange.at.start);
    is_one_of(roles, first)
}

fn ends(items: &[Item], exchange: &Exchange, roles: &[TrimRole]) -> bool {
    let last = exchange.at.end.checked_sub(1).and_then(|at| items.get(at));
    is_one_of(roles, last)
}

fn is_one_of(roles: &[TrimRole], item: Option<&Item>) -> bool {
    let is = |item: &Item| roles.iter().any(|role| role.is_of(&item.message));
    roles.is_empty() || item.is_some_and(is)
}
