//! [`Fill`]: restores messages that still fit after other stages removed or shortened more than
//! necessary. The newest messages come first.

use crate::budget::Budget;
use crate::draft::Draft;
use crate::message::Message;
use crate::plan::Trigger;
use crate::policy::Stage;
use crate::stages::fit::{LEAST_RESULT, shorten_to_level};
use crate::tokens::{Ppm, Tokens};
use crate::truncate;

/// The share of its target at which a view counts as full.
const FULL: Ppm = Ppm(985_000);
/// The maximum number of messages and turns that are tried. Each try examines all edits of the
/// draft.
const TRIES: usize = 64;

/// Uses the part of the target that the stages before it left free.
///
/// First shortened messages become longer, then removed turns are restored, in each case the newest
/// first. The first one that does not fit as a whole is restored in shortened form. If most of the
/// target would stay unused without it, its oldest results may become mere markers. For filters, which
/// are given a size to fill: an agent's view is cut below its limit on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fill;

impl Stage for Fill {
    fn name(&self) -> &str {
        "fill"
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, _why: Trigger) {
        let target = budget.target;
        let is_full = |draft: &Draft<'_>| draft.tokens() >= target.share(FULL);
        for at in draft.shrunk().into_iter().rev().take(TRIES) {
            if is_full(draft) {
                break;
            }
            grow(draft, at, target);
        }
        for exchanges in draft.removed(target).into_iter().rev().take(TRIES) {
            let before = draft.tokens();
            let was_full = is_full(draft);
            draft.restore(&exchanges);
            // In a full view, a turn that is smaller than its marker still fits.
            if !was_full {
                shorten(draft, &exchanges, target, is_mostly_free(before, target));
            }
            if draft.tokens() > target {
                draft.drop_exchanges(&exchanges);
            }
        }
    }
}

/// Makes a shortened message as long as possible.
fn grow(draft: &mut Draft<'_>, at: usize, target: Tokens) {
    let (Some((_, now)), Some(item)) = (draft.current(at), draft.items().get(at)) else {
        return;
    };
    let allowed = now + target.minus(draft.tokens());
    if item.tokens <= allowed {
        draft.grow(at, None);
        return;
    }
    let marker = draft.marker(at);
    let longer = truncate::text_in_tokens(&item.message, allowed, draft.counter(), &marker);
    if longer.is_some() {
        draft.grow(at, longer);
    }
}

/// Returns `true` if a view of this size leaves most of the target unused.
pub(super) fn is_mostly_free(view: Tokens, target: Tokens) -> bool {
    view.times(2) < target
}

/// Shortens the largest messages of these exchanges so that the view fits, if possible: results
/// before texts. `may_empty` allows replacing results by their markers.
pub(super) fn shorten(draft: &mut Draft<'_>, exchanges: &[usize], target: Tokens, may_empty: bool) {
    let is_result = |at: &usize| {
        let item = draft.items().get(*at);
        item.is_some_and(|item| matches!(*item.message, Message::ToolResult(_)))
    };
    let positions = draft.positions(exchanges).into_iter();
    let (results, texts): (Vec<usize>, Vec<usize>) = positions.partition(is_result);
    shorten_to_level(draft, &results, target, LEAST_RESULT);
    if may_empty {
        empty(draft, &results, target);
    }
    shorten_to_level(draft, &texts, target, LEAST_RESULT);
}

/// Replaces these results by their markers, the oldest first, until the view fits.
fn empty(draft: &mut Draft<'_>, results: &[usize], target: Tokens) {
    for at in results {
        if draft.tokens() <= target {
            return;
        }
        if let Some((Message::ToolResult(result), _)) = draft.current(*at) {
            let marker = truncate::result_as_marker(result, &draft.marker(*at));
            draft.shrink(*at, marker);
        }
    }
}
