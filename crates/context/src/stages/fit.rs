//! [`Fit`]: the last stage. It shortens the results in the protected messages, the largest first.
//!
//! It needs no model, and acts only if the view would be refused otherwise.

use crate::budget::Budget;
use crate::counter::TokenCounter;
use crate::draft::Draft;
use crate::handover::extract;
use crate::message::Message;
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::removal_marker::Gap;
use crate::tokens::Tokens;
use crate::truncate::{self, level};

/// The minimum size of a shortened result. A smaller result tells the model nothing, and has no
/// space for a marker between head and tail in a script with a token per byte.
pub(super) const LEAST_RESULT: Tokens = Tokens(64);
/// The minimum size of a new result is the largest allowed result divided by this number.
const ARRIVAL_SHARE: u64 = 8;
/// A protected text is only cut if it takes more than this fraction of the budget.
const TEXT_SHARE: u64 = 4;
/// Removed turns that are restored take at most this fraction of the limit.
const SMALL_TURNS_SHARE: u64 = 8;

/// Makes the view fit its limit by shortening protected messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fit {
    /// Shortens only unsent results, and none below an eighth of the maximum size of a result: a
    /// shorter one would tell the model too little.
    Arrivals,
    /// Shortens only results.
    Results,
    /// Shortens results, then also texts (and strings in arguments) of more than a quarter of the
    /// budget, with a marker. For filters, because an error would not help there. Instructions are
    /// never shortened. Restores small turns that were removed before it.
    Everything,
}

impl Stage for Fit {
    fn name(&self) -> &str {
        "fit"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        if draft.tokens() <= budget.limit {
            return;
        }
        let restored = match self {
            Self::Everything => restore_small_turns(draft, budget.limit),
            Self::Arrivals | Self::Results => Vec::new(),
        };
        let (from, least) = match self {
            Self::Arrivals => (
                draft.first_unsent(),
                LEAST_RESULT.max(Tokens(budget.max_result.0 / ARRIVAL_SHARE)),
            ),
            Self::Results | Self::Everything => (0, LEAST_RESULT),
        };
        let is_result =
            |at: &usize| matches!(draft.current(*at), Some((Message::ToolResult(_), _)));
        let results = shrinkable(draft).into_iter().map(|(at, _)| at);
        let results: Vec<usize> = results.filter(|at| *at >= from && is_result(at)).collect();
        shorten_to_level(draft, &results, budget.limit, least);
        if *self == Self::Everything {
            cut_texts(draft, budget.limit);
        }
        if draft.tokens() > budget.limit {
            draft.drop_exchanges(&restored);
        }
    }
}

/// Restores the newest removed turns, up to an eighth of the limit, and returns their exchanges.
///
/// What stays has to be cut in any case, so a few short messages, such as a prohibition by the user,
/// need not leave for it. An agent does without: it would remove them again before its next request,
/// and can recall them.
fn restore_small_turns(draft: &mut Draft<'_>, limit: Tokens) -> Vec<usize> {
    let mut room = Tokens(limit.0 / SMALL_TURNS_SHARE);
    let mut restored = Vec::new();
    for turn in draft.removed(limit).into_iter().rev() {
        draft.restore(&turn);
        let weight = draft.weight_of(&turn);
        if weight > room {
            draft.drop_exchanges(&turn);
            break;
        }
        room = room.minus(weight);
        restored.extend(turn);
    }
    restored
}

/// Shortens the largest of these messages to one level, chosen so that the view just fits, but none
/// below `least`.
pub(super) fn shorten_to_level(
    draft: &mut Draft<'_>,
    positions: &[usize],
    limit: Tokens,
    least: Tokens,
) {
    if draft.tokens() <= limit {
        return;
    }
    let weight = |at: &usize| draft.current(*at).map(|(_, weight)| weight.0);
    let weights: Vec<u64> = positions.iter().filter_map(weight).collect();
    let all: Tokens = weights.iter().map(|weight| Tokens(*weight)).sum();
    let rest = draft.tokens().minus(all);
    let level = Tokens(level(weights, limit.minus(rest).0)).max(least);
    for at in positions {
        let Some((message, _)) = draft.current(*at).filter(|(_, weight)| *weight > level) else {
            continue;
        };
        let marker = draft.marker(*at);
        if let Some(short) = truncate::text_in_tokens(message, level, draft.counter(), &marker) {
            draft.shrink(*at, short);
        }
    }
}

/// Cuts texts of more than a quarter of the budget, the largest first, by no more than necessary. A
/// former summary is not cut but summarised again; the size of a new one is set by the policy.
fn cut_texts(draft: &mut Draft<'_>, limit: Tokens) {
    let floor = Tokens(limit.0 / TEXT_SHARE);
    let has_new_summary = draft.summary().is_some();
    let is_summary = |message: &Message| matches!(message, Message::Summary { .. });
    let mut large = shrinkable(draft);
    large.retain(|(at, weight)| {
        let message = draft.current(*at).map(|(message, _)| message);
        *weight > floor && !(has_new_summary && message.is_some_and(is_summary))
    });
    large.sort_by_key(|(at, weight)| (std::cmp::Reverse(*weight), *at));
    let weights: Vec<u64> = large.iter().map(|(_, weight)| weight.0).collect();
    let all: Tokens = weights.iter().map(|weight| Tokens(*weight)).sum();
    let rest = draft.tokens().minus(all);
    let level = Tokens(level(weights, limit.minus(rest).0)).max(floor);
    for (at, _) in large {
        if draft.tokens() <= limit {
            return;
        }
        let Some((message, _)) = draft.current(at) else {
            continue;
        };
        let short = if is_summary(message) {
            summarized(message, level, draft.counter())
        } else {
            truncate::text_in_tokens(message, level, draft.counter(), &draft.marker(at))
        };
        if let Some(short) = short {
            draft.shrink(at, short);
        }
    }
}

/// Returns a summary of a summary, of at most `max` tokens.
fn summarized(message: &Message, max: Tokens, counter: &dyn TokenCounter) -> Option<Message> {
    let Message::Summary { text } = message else {
        return None;
    };
    let (gap, _) = Gap::split_summary(text);
    let frame = Message::Summary {
        text: gap.map_or(String::new(), |gap| gap.with_summary("")),
    };
    let words = extract(&[message], max.minus(counter.message(&frame)), counter)?;
    let text = gap.map_or(words.clone(), |gap| gap.with_summary(&words));
    Some(Message::Summary { text })
}

/// Returns positions and sizes of the remaining messages, except instructions and pinned messages.
fn shrinkable(draft: &Draft<'_>) -> Vec<(usize, Tokens)> {
    let items = draft.items().iter().enumerate();
    items
        .filter(|(_, item)| item.pin.is_none() && !item.message.is_system())
        .filter_map(|(at, _)| Some((at, draft.current(at)?.1)))
        .collect()
}
