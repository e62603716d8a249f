//! What is common elsewhere, in its simplest form: dropping the oldest or sliding a window before
//! each request, and summing up at a trigger. They are given what ours are: results capped on
//! arrival, cuts between exchanges only, the newest exchange kept.

use plimsoll_context::{Budget, PriceSheet, Tokens};

use crate::bill::Bill;
use crate::meter::{Cut, Made, Meter};
use crate::trail::Trail;
use crate::way::{Keep, Reads};

/// What a summary weighs: the usual limit.
pub const SUMMARY: Tokens = Tokens(2_000);
/// What a summariser is told besides what it is to sum up.
pub const SUMMARIZER_PROMPT: Tokens = Tokens(500);

/// The first `head` messages and the newest within `size`, chosen anew before each request.
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
        let cut = if then > from { Cut::Made } else { Cut::None };
        from = then;
        let view = trail.view(head, from.min(turn.at), turn.at).collect();
        meter.request(Made {
            view,
            length: turn.at,
            answer: turn.answer,
            cut,
            cache: turn.cache(sheet),
        });
    }
    meter.bill()
}

/// At the trigger all but the newest becomes a summary, which a call of its own writes.
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
        let mut cut = Cut::None;
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
                cut = Cut::Made;
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
        meter.request(Made {
            view,
            length: turn.at,
            answer: turn.answer,
            cut,
            cache: turn.cache(sheet),
        });
    }
    meter.bill()
}
