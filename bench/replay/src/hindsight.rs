//! The cheapest schedule of dropping the oldest exchanges, found by dynamic programming over the
//! position of the cut at each request.
//!
//! It is a lower bound for a whole family of policies. It is not a policy itself, since it knows
//! the complete session.

use plimsoll_context::{Budget, PriceSheet, Tokens, Usage};

use crate::bill::Bill;
use crate::meter::{Cache, CutStatus, Meter, MeteredRequest, billed, least};
use crate::trail::{Trail, TrailRequest};

/// Maximum number of requests times cuts. Two tables of this size take 400 MB.
pub const MAX_CELLS: usize = 50_000_000;

/// More than any schedule costs.
const NEVER: u128 = u128::MAX;

/// Returns the cheapest schedule, or `None` if the session is too long.
///
/// At each request the cut stays, or moves to a later place between two exchanges. If it stays, the
/// cache holds everything except the new messages. If it moves, everything except the head is
/// written again, independent of its former position. So the best way to a new place is the best of
/// all earlier places, a running minimum, and a session of T requests and K places takes O(T·K).
///
/// The same messages must stay as in our policies: the system prompt, the task, the newest complete
/// exchange and the new messages. (Our policies also keep the newest question. Here it may be
/// dropped, so that the bound is slightly too low rather than too high.) The minimum kept content
/// is also the same: a cut removes no more than necessary to reach the target. Between cuts the
/// view may fill the limit.
pub(crate) fn hindsight(trail: &Trail, budget: &Budget, sheet: &PriceSheet) -> Option<Bill> {
    let schedule = schedule(trail, budget, sheet)?;
    let mut meter = Meter::new(sheet, budget.limit, &trail.probes);
    let mut before = trail.head;
    for (turn, from) in trail.turns.iter().zip(schedule) {
        let cut = if from > before {
            CutStatus::Made
        } else {
            CutStatus::None
        };
        before = from;
        let head = trail.head.min(turn.at);
        let view = trail.view(head, from.min(turn.at), turn.at).collect();
        meter.request(MeteredRequest {
            view,
            length: turn.at,
            answer: turn.answer,
            cut,
            cache: Cache::Warm,
        });
    }
    Some(meter.bill())
}

/// Returns the position of the cut at each request.
pub(crate) fn schedule(trail: &Trail, budget: &Budget, sheet: &PriceSheet) -> Option<Vec<usize>> {
    let cuts = trail.cuts(trail.head, usize::MAX);
    if cuts.len().checked_mul(trail.turns.len())? > MAX_CELLS {
        return None;
    }
    let least = least(sheet);
    let rates = sheet.rates;
    let (read, write) = (rates.cache_read?, rates.cache_write?);
    let price = |usage: Usage| {
        u128::from(usage.input.0) * u128::from(rates.input.0)
            + u128::from(usage.cache_read.0) * u128::from(read.0)
            + u128::from(usage.cache_write.0) * u128::from(write.0)
    };
    let mut best = vec![NEVER; cuts.len()];
    *best.first_mut()? = 0;
    // For each request and place, the place from which it was reached.
    let mut reached: Vec<Vec<u32>> = Vec::with_capacity(trail.turns.len());
    let mut before = 0;
    for turn in &trail.turns {
        let head = trail.weight(0, trail.head.min(turn.at));
        let (floor, must) = bounds(trail, turn, budget);
        let mut next = vec![NEVER; cuts.len()];
        let mut from = vec![0_u32; cuts.len()];
        let (mut cheapest, mut cheapest_at) = (NEVER, 0_u32);
        let places = cuts.iter().zip(&best).zip(next.iter_mut().zip(&mut from));
        for (at, ((cut, was), (next, from))) in (0_u32..).zip(places) {
            if *cut > turn.at {
                break;
            }
            if *cut >= must {
                let total = head + trail.weight(*cut, turn.at);
                if *was != NEVER {
                    let old = before.max(*cut);
                    let common = match before {
                        0 => Tokens::ZERO,
                        _ => head + trail.weight(*cut, old),
                    };
                    *next = was + price(billed(common, total, least));
                    *from = at;
                }
                if cheapest != NEVER && *cut <= floor {
                    let moved = cheapest + price(billed(head, total, least));
                    if moved < *next {
                        (*next, *from) = (moved, cheapest_at);
                    }
                }
            }
            if *was < cheapest {
                (cheapest, cheapest_at) = (*was, at);
            }
        }
        best = next;
        reached.push(from);
        before = turn.at;
    }
    let last = best.iter().enumerate().min_by_key(|(_, cost)| **cost)?;
    let mut at = last.0;
    let mut schedule = Vec::with_capacity(reached.len());
    for from in reached.iter().rev() {
        schedule.push(*cuts.get(at)?);
        at = *from.get(at)? as usize;
    }
    schedule.reverse();
    Some(schedule)
}

/// Returns the farthest allowed and the nearest necessary position of the cut.
fn bounds(trail: &Trail, turn: &TrailRequest, budget: &Budget) -> (usize, usize) {
    let head = trail.weight(0, trail.head.min(turn.at));
    let first = trail.head.min(turn.at);
    let floor = trail.fitting(turn, first, budget.target.minus(head));
    let must = trail.fitting(turn, first, budget.limit.minus(head));
    (floor, must)
}

#[cfg(test)]
mod tests {
    use plimsoll_context::{Money, Rates};
    use proptest::prelude::*;

    use super::*;

    fn sheet(read: u64, write: u64, least: u64) -> PriceSheet {
        PriceSheet {
            min_cacheable: Some(Tokens(least)),
            ..PriceSheet::of(Rates {
                input: Money(100_000_000),
                output: Money(0),
                cache_read: Some(Money(read * 1_000_000)),
                cache_write: Some(Money(write * 1_000_000)),
            })
        }
    }

    fn budget(limit: u64, target: u64) -> Budget {
        Budget {
            limit: Tokens(limit),
            trigger: Tokens(limit),
            target: Tokens(target),
            max_result: Tokens::MAX,
            keep_recent: 1,
            overhead: Tokens::ZERO,
            instructions: Tokens(0),
        }
    }

    fn bill(trail: &Trail, schedule: &[usize], budget: &Budget, sheet: &PriceSheet) -> Bill {
        let mut meter = Meter::new(sheet, budget.limit, &trail.probes);
        for (turn, from) in trail.turns.iter().zip(schedule) {
            let view = trail.view(trail.head, *from, turn.at).collect();
            meter.request(MeteredRequest {
                view,
                length: turn.at,
                answer: Tokens::ZERO,
                cut: CutStatus::None,
                cache: Cache::Warm,
            });
        }
        meter.bill()
    }

    /// Returns the cost of the cheapest of all possible schedules, priced by the meter.
    fn cheapest(
        trail: &Trail,
        so_far: &mut Vec<usize>,
        budget: &Budget,
        sheet: &PriceSheet,
    ) -> Money {
        let Some(turn) = trail.turns.get(so_far.len()) else {
            return bill(trail, so_far, budget, sheet).money.unwrap();
        };
        let before = so_far.last().copied().unwrap_or(trail.head);
        let (floor, must) = bounds(trail, turn, budget);
        let mut best = Money(u64::MAX);
        for cut in trail.cuts(before, turn.at).to_vec() {
            let is_moved = cut > before;
            if cut < must || (is_moved && cut > floor) {
                continue;
            }
            so_far.push(cut);
            best = best.min(cheapest(trail, so_far, budget, sheet));
            so_far.pop();
        }
        best
    }

    proptest! {
        #[test]
        fn no_schedule_is_cheaper(
            head in any::<[u8; 2]>(),
            exchanges in prop::collection::vec(prop::collection::vec(1_u64..400, 1..3), 1..9),
            limit in 300_u64..1_500, share in 20_u64..100,
            read in 1_u64..100, write in 100_u64..200, least in 0_u64..300,
        ) {
            let trail = Trail::of_weights(head.map(u64::from), &exchanges);
            let budget = budget(limit, limit * share / 100);
            let sheet = sheet(read, write, least);
            let found = hindsight(&trail, &budget, &sheet).unwrap();
            let best = cheapest(&trail, &mut Vec::new(), &budget, &sheet);
            prop_assert_eq!(found.money.unwrap(), best);
        }
    }

    #[test]
    fn a_session_that_fits_is_cut_only_where_that_pays() {
        let exchanges = vec![vec![10, 90]; 500];
        let trail = Trail::of_weights([500, 500], &exchanges);
        let all = hindsight(&trail, &budget(100_000, 10_000), &sheet(100, 100, 0)).unwrap();
        // If reading costs as much as writing, each removed token saves money. The view exceeds the
        // target after 90 turns; from then on there is a cut at each turn.
        assert_eq!(all.plans, 409, "{all:?}");
        let short = Trail::of_weights([500, 500], &exchanges[..40]);
        let none = hindsight(&short, &budget(100_000, 2_000), &sheet(1, 100, 0)).unwrap();
        assert_eq!(none.plans, 0, "{none:?}");
        assert_eq!(none.requests, 40);
    }

    #[test]
    fn a_sheet_without_cache_prices_has_no_optimum() {
        let trail = Trail::of_weights([5, 5], &[vec![10]]);
        let mut sheet = sheet(1, 100, 0);
        sheet.rates.cache_read = None;
        assert_eq!(hindsight(&trail, &budget(100, 50), &sheet), None);
    }
}
