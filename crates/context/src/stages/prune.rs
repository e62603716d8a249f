//! [`Prune`]: shortens old tool results to head and tail. The calls stay, so the model still knows
//! its actions.
//!
//! Texts of users and models are not changed, except for the task if that is configured.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::budget::Budget;
use crate::counter::MESSAGE_OVERHEAD;
use crate::draft::Draft;
use crate::exchange::ExchangeKind;
use crate::message::{Message, Part};
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::tokens::{Bytes, Ppm, Tokens};
use crate::truncate;

/// The share of the view that pruning must free if there is no trigger.
const WORTH_PRUNING: Ppm = Ppm(250_000);

/// The settings of [`Prune`].
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SessionPruneConfig {
    /// The number of newest exchanges with tool results that are not pruned. Default 2.
    #[default(2)]
    pub keep_recent_n: usize,
    /// The maximum size of a pruned result, including its marker. Default 200, at least
    /// [`SessionPruneConfig::LEAST_BYTES`]; with less, long results would not be pruned at all.
    #[default(Bytes(200))]
    pub pruned_tool_result_max_bytes: Bytes,
    /// Whether the first user message stays whole. If not, it may be pruned like a result. Default
    /// true.
    #[default(true)]
    pub preserve_task: bool,
    /// Whether to prune before every request. If not, pruning happens when a plan is due, or for a
    /// strategy without a trigger when it frees a quarter of the view. Default false, since each
    /// rewrite costs the provider's prompt cache.
    pub eager: bool,
}

impl SessionPruneConfig {
    /// The minimum size of a pruned result: space for the longest marker, `[pruned: 9999999999
    /// bytes; recall m9999999999]` on a line of its own, and for 16 bytes of text on each side.
    pub const LEAST_BYTES: Bytes = Bytes(80);
}

/// Shrinks old tool results, oldest first, until the view is at its target.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prune(
    /// The settings.
    pub SessionPruneConfig,
);

impl Stage for Prune {
    fn name(&self) -> &str {
        "prune"
    }

    fn is_eager(&self) -> bool {
        self.0.eager
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        let config = self.0;
        if !config.eager && !draft.is_due(budget) {
            return;
        }
        let target = if config.eager {
            Tokens::ZERO
        } else {
            budget.target
        };
        let old = old_results(draft, config.keep_recent_n);
        self.prune(draft, &old, target);
    }
}

/// [`Prune`] for a policy without a trigger, in which no plan is ever due. It acts when it frees a
/// quarter of the view, or before every request if it is eager.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PruneWithoutTrigger(pub(crate) Prune);

impl Stage for PruneWithoutTrigger {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn is_eager(&self) -> bool {
        self.0.is_eager()
    }

    fn propose(&self, draft: &mut Draft<'_>, _budget: &Budget, _why: Trigger) {
        let old = old_results(draft, self.0.0.keep_recent_n);
        if self.is_eager() || self.0.is_worth_it(draft, &old) {
            self.0.prune(draft, &old, Tokens::ZERO);
        }
    }
}

impl Prune {
    /// Prunes these results, oldest first, until the view is at `target`.
    fn prune(&self, draft: &mut Draft<'_>, old: &[usize], target: Tokens) {
        let config = self.0;
        if !config.preserve_task {
            prune_task(draft, config.pruned_tool_result_max_bytes);
        }
        for at in old.iter().copied() {
            if draft.is_within(target) {
                return;
            }
            let Some((Message::ToolResult(result), _)) = draft.current(at) else {
                continue;
            };
            if let Some(short) = truncate::result_in_bytes(
                result,
                config.pruned_tool_result_max_bytes,
                &draft.marker(at),
            ) {
                draft.shrink(at, short);
            }
        }
    }

    /// Returns `true` if pruning these results frees enough of the view to justify losing the
    /// provider's cache. Assumes about four bytes per token.
    fn is_worth_it(&self, draft: &Draft<'_>, old: &[usize]) -> bool {
        let left = Tokens(self.0.pruned_tool_result_max_bytes.0 / 4) + MESSAGE_OVERHEAD;
        let weights = old.iter().filter_map(|at| draft.current(*at));
        let frees: Tokens = weights.map(|(_, weight)| weight.minus(left)).sum();
        frees >= draft.tokens().share(WORTH_PRUNING)
    }
}

/// Returns the positions of the results outside the newest `keep` exchanges with results, oldest
/// first. Messages between exchanges (steers, hints) do not count as exchanges.
fn old_results(draft: &Draft<'_>, keep: usize) -> Vec<usize> {
    let with_results = draft.exchanges().iter().filter(|exchange| {
        matches!(
            exchange.kind,
            ExchangeKind::Complete | ExchangeKind::Pending
        ) && exchange.at.len() > 1
    });
    let ranges: Vec<_> = with_results.map(|exchange| exchange.at.clone()).collect();
    let old = ranges.len().saturating_sub(keep);
    let unsent = draft.first_unsent();
    ranges
        .into_iter()
        .take(old)
        .flat_map(|at| at.skip(1))
        .filter(|at| *at < unsent)
        .collect()
}

/// Prunes the task, unless it is also the newest question.
fn prune_task(draft: &mut Draft<'_>, max: Bytes) {
    let mut questions = (0..draft.items().len())
        .filter(|at| matches!(draft.current(*at), Some((Message::User { .. }, _))));
    let (Some(at), Some(_)) = (questions.next(), questions.next()) else {
        return;
    };
    if at >= draft.first_unsent() {
        return;
    }
    let Some((message, _)) = draft.current(at) else {
        return;
    };
    let Some(short) = draft.marker(at).head_tail(&message.text(), max) else {
        return;
    };
    let media = message
        .parts()
        .iter()
        .filter(|part| part.as_text().is_none());
    let parts = [Part::text(short)]
        .into_iter()
        .chain(media.cloned())
        .collect();
    draft.shrink(at, Message::User { parts });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truncate::{MIN_SIDE, Marker};

    #[test]
    fn the_least_bytes_have_room_for_the_longest_marker_and_text_beside_it() {
        let longest = "\n[pruned: 9999999999 bytes; recall m9999999999]\n";
        let least = SessionPruneConfig::LEAST_BYTES;
        assert_eq!(least.0, longest.len() as u64 + 2 * MIN_SIDE.0);
        let marker = Marker::with_note("recall m9999999999");
        let text = "word ".repeat(200_000);
        let short = marker.shorten_bytes(&text, least).unwrap();
        assert!(short.len() as u64 <= least.0, "{short}");
    }
}
