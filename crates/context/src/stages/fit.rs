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
use crate::truncate;

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
    let weight = |at: &usize| draft.current(*at).map(|(_, weight)| weight);
    let weights: Vec<Tokens> = positions.iter().filter_map(weight).collect();
    let rest = draft.tokens().minus(weights.iter().copied().sum());
    let level = level(weights, limit.minus(rest)).max(least);
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

/// Returns the highest level at which `sum(min(weight, level)) <= room`.
fn level(mut weights: Vec<Tokens>, room: Tokens) -> Tokens {
    weights.sort_unstable();
    let mut room = room;
    let mut left = weights.len() as u64;
    for weight in weights {
        let even = Tokens(room.0 / left.max(1));
        if weight > even {
            return even;
        }
        room = room.minus(weight);
        left -= 1;
    }
    Tokens::MAX
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
    let weights = large.iter().map(|(_, weight)| *weight);
    let rest = draft.tokens().minus(weights.clone().sum());
    let level = level(weights.collect(), limit.minus(rest)).max(floor);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_the_highest_that_fits() {
        let level = |weights: &[u64], room| {
            level(weights.iter().map(|w| Tokens(*w)).collect(), Tokens(room)).0
        };
        assert_eq!(level(&[10, 20, 30], 100), u64::MAX);
        assert_eq!(level(&[10, 20, 30], 50), 20);
        assert_eq!(level(&[100, 100], 50), 25);
        assert_eq!(level(&[], 0), u64::MAX);
    }
}
