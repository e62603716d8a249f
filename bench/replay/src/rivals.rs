//! Common approaches in their simplest form: dropping the oldest messages, a sliding window, and
//! summarizing at a trigger.
//!
//! They work under the same conditions as our own policies: results are capped on arrival, cuts are
//! only made between exchanges, and the newest exchange is kept.

use plimsoll_context::{Budget, PriceSheet, Tokens};

use crate::bill::Bill;
use crate::meter::{CutStatus, Meter, MeteredRequest};
use crate::trail::Trail;
use crate::way::{Keep, Reads};

/// Size of a summary: the usual limit.
pub const SUMMARY: Tokens = Tokens(2_000);
/// Size of the summarizer's prompt without the messages to summarize.
pub const SUMMARIZER_PROMPT: Tokens = Tokens(500);

/// Keeps the first `head` messages and the newest within `size`, chosen again before each request.
pub(crate) fn window(
    trail: &Trail,
    head: usize,
    size: Tokens,
    limit: Tokens,
    sheet: &PriceSheet,
) -> Bill {
    let mut meter = Meter::new(sheet, limit, &trail.probes);
    let mut from = head;
    for turn in &trail.turns {
        let head = head.min(turn.at);
        let room = size.minus(trail.weight(0, head));
        let then = trail.fitting(turn, from, room).max(from);
        let cut = if then > from {
            CutStatus::Made
        } else {
            CutStatus::None
        };
        from = then;
        let view = trail.view(head, from.min(turn.at), turn.at).collect();
        meter.request(MeteredRequest {
            view,
            length: turn.at,
            answer: turn.answer,
            cut,
            cache: turn.cache(sheet),
        });
    }
    meter.bill()
}

/// Replaces all but the newest messages at the trigger by a summary, which is written in a separate
/// call.
pub(crate) fn summarize(
    trail: &Trail,
    keep: Keep,
    reads: Reads,
    budget: &Budget,
    sheet: &PriceSheet,
) -> Bill {
    let mut meter = Meter::new(sheet, budget.limit, &trail.probes);
    let mut from = trail.head;
    let mut summaries = 0_u64;
    for turn in &trail.turns {
        let fixed = trail.weight(0, trail.head.min(turn.at));
        let summary = if summaries == 0 {
            Tokens::ZERO
        } else {
            SUMMARY
        };
        let mut cut = CutStatus::None;
        if fixed + summary + trail.weight(from, turn.at) > budget.trigger {
            let then = match keep {
                Keep::Target => {
                    let room = budget.target.minus(fixed + SUMMARY);
                    trail.fitting(turn, from, room)
                }
                Keep::Messages(number) => {
                    let first = turn.at.saturating_sub(number).min(turn.last_cut);
                    let cuts = trail.cuts(from, first);
                    cuts.last().copied().unwrap_or(from)
                }
            };
            let span = summary + trail.weight(from, then);
            if span > SUMMARY {
                from = then;
                summaries += 1;
                cut = CutStatus::Made;
                match reads {
                    Reads::Fresh => meter.aside(span + SUMMARIZER_PROMPT, SUMMARY),
                    Reads::Cached => meter.aside_cached(SUMMARIZER_PROMPT, SUMMARY),
                }
            }
        }
        let mut view: Vec<_> = trail
            .view(trail.head.min(turn.at), turn.at, turn.at)
            .collect();
        if summaries > 0 {
            // No message has such a number.
            view.push((u64::MAX - summaries, SUMMARY));
        }
        view.extend(trail.view(0, from.min(turn.at), turn.at));
        meter.request(MeteredRequest {
            view,
            length: turn.at,
            answer: turn.answer,
            cut,
            cache: turn.cache(sheet),
        });
    }
    meter.bill()
}
