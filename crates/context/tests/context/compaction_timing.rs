//! When a rewrite pays for itself: tables, the closed form against a search, and monotonicity. The
//! choice of the evicted items is tested with the stages.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{
    Budget, CacheRetention, Chars4, CompactionTiming, GrowthForecast, GrowthRate, LEAST_TURNS,
    LongerCache, Message, Money, Part, Plan, Policy, Ppm, Price, PriceSheet, Rates, Reason, Tokens,
    Transcript, Trigger, Usage, batch, head, price, price_with_head,
};
use proptest::prelude::*;

fn dollars(dollars: f64) -> Money {
    Money::from_dollars(dollars).unwrap()
}

fn sheet(input: f64, read: f64, write: f64) -> PriceSheet {
    PriceSheet {
        cache_lives: Some(Duration::from_secs(300)),
        ..PriceSheet::of(Rates {
            input: dollars(input),
            output: dollars(5.0 * input),
            cache_read: Some(dollars(read)),
            cache_write: Some(dollars(write)),
        })
    }
}

fn line(limit: u64) -> Budget {
    Budget {
        limit: Tokens(limit),
        trigger: Tokens(limit).share(Ppm(800_000)),
        target: Tokens(limit).share(Ppm(550_000)),
        forced: Tokens(limit).share(Ppm(950_000)),
        cold_target: Tokens(limit).share(Ppm(200_000)),
        max_result: Tokens(limit),
        keep_recent: 1,
        overhead: Tokens(0),
        instructions: Tokens(0),
    }
}

fn outlook(grows: u64, turns_left: u64) -> GrowthForecast {
    GrowthForecast {
        grows: Tokens(grows),
        turns_left,
        ..GrowthForecast::default()
    }
}

fn user(text: &str) -> Message {
    Message::User {
        parts: vec![Part::text(text)],
    }
}

fn said(letters: usize) -> Message {
    Message::Assistant {
        parts: vec![Part::text("a".repeat(letters))],
    }
}

fn empty() -> Transcript {
    Transcript::new(Arc::new(Chars4))
}

/// A task of 100 letters, then questions and answers of 400 each, all of it sent but the last.
fn view(answers: usize) -> Transcript {
    let mut view = Transcript::new(Arc::new(Chars4));
    view.push(user(&"t".repeat(100)));
    for _ in 0..answers {
        view.push(said(400));
        view.push(user(&"u".repeat(400)));
        view.mark_sent();
    }
    view.push(said(400));
    view.push(user("and now?"));
    view
}

fn plan(view: &Transcript, line: &Budget, why: Trigger) -> Plan {
    let policy = Policy::sliding_window();
    policy.best_plan(view, line, why).unwrap()
}

/// What a saw of constant growth costs in all: every turn reads what it has and writes what is new;
/// a cut to `kept` writes those again, and the model reads `reread` again.
fn cost_of_saw(
    [kept, reread]: [u64; 2],
    growth: u64,
    batch: u64,
    turns: u64,
    [read, write]: [u64; 2],
) -> u64 {
    let (mut over, mut cost) = (0, 0);
    for _ in 0..turns {
        if over >= batch {
            over = 0;
            cost += write * (kept + growth + reread);
        } else {
            cost += read * (kept + over) + write * growth;
            over += growth;
        }
    }
    cost
}

#[test]
fn the_closed_form_is_the_cheapest_batch_of_a_search() {
    for (read, write) in [(10, 125), (10, 100), (50, 100), (25, 100), (10, 200)] {
        for [kept, reread] in [
            [4_000, 0],
            [16_000, 0],
            [64_000, 0],
            [4_000, 2_000],
            [40_000, 16_000],
        ] {
            for growth in [100, 500] {
                let sheet = sheet(1.0, read as f64 / 100.0, write as f64 / 100.0);
                let outlook = outlook(growth, 1);
                let found = batch(Some(&sheet), Tokens(kept), Tokens(reread), &outlook).0;
                let cost =
                    |batch| cost_of_saw([kept, reread], growth, batch, 20_000, [read, write]);
                let best = (1..400).map(|n| cost(n * growth)).min().unwrap();
                let ours = cost(found);
                assert!(
                    ours * 100 <= best * 103,
                    "r {read} w {write} P {kept} g {growth}: {ours} at {found}, best {best}"
                );
            }
        }
    }
}

/// What is kept longer costs more to write: plans are rarer, and dearer, and the cache is cold later.
#[test]
fn what_is_kept_longer_is_dearer_to_rewrite() {
    let usual = PriceSheet {
        longer: Some(LongerCache {
            lives: Duration::from_secs(3_600),
            cache_write: dollars(6.0),
        }),
        ..sheet(3.0, 0.3, 3.75)
    };
    let long = usual.kept(CacheRetention::Long);
    let outlook = outlook(400, 100);
    let size = |sheet: &PriceSheet| batch(Some(sheet), Tokens(50_000), Tokens(0), &outlook).0;
    // √(2·(w-r)·P·g/r) with w = 3.75 and w = 6
    assert_eq!((size(&usual), size(&long)), (21_447, 27_568));
    assert_eq!(size(&usual.kept(CacheRetention::Head)), size(&usual));
    let unknown = PriceSheet {
        longer: None,
        ..long
    };
    assert_eq!(
        size(&unknown),
        27_568,
        "the usual ratio, which is the same here"
    );
    let age = Some(Duration::from_secs(600));
    let cold = |sheet: &PriceSheet| sheet.cold_after(age);
    assert_eq!((cold(&usual), cold(&long)), (Ppm::ONE, Ppm(0)));
    let most = unknown.at_most().cost(Usage {
        cache_write: Tokens(1_000_000),
        cache_write_longer: Tokens(1_000_000),
        ..Usage::default()
    });
    assert_eq!(most, Some(dollars(6.0)));
}

#[test]
fn a_cold_cache_makes_batches_small() {
    let mut often_cold = outlook(500, 10);
    let warm = batch(None, Tokens(10_000), Tokens(0), &often_cold);
    often_cold.cold = Ppm(500_000);
    let mixed = batch(None, Tokens(10_000), Tokens(0), &often_cold);
    often_cold.cold = Ppm::ONE;
    assert_eq!(
        batch(None, Tokens(10_000), Tokens(0), &often_cold),
        Tokens(0)
    );
    assert!(Tokens(0) < mixed && mixed < warm, "{mixed} {warm}");
}

#[test]
fn a_provider_without_a_cheaper_cache_gives_no_reason_to_wait() {
    let flat = sheet(1.0, 1.0, 1.0);
    assert_eq!(
        batch(Some(&flat), Tokens(10_000), Tokens(0), &outlook(500, 10)),
        Tokens(0)
    );
    let least =
        CompactionTiming::Priced.budget(&line(10_000), &empty(), Some(&flat), &outlook(500, 10));
    // √(2 · 2,200 · 500): only what is read again after a plan is a reason to wait.
    assert_eq!(least.trigger, Tokens(5_500 + 1_483));
}

#[test]
fn prices_that_are_unknown_or_nothing_have_the_usual_shape() {
    let usual = batch(None, Tokens(10_000), Tokens(0), &outlook(500, 10));
    let free = PriceSheet::of(Rates::FREE);
    assert_eq!(
        batch(Some(&free), Tokens(10_000), Tokens(0), &outlook(500, 10)),
        usual
    );
    let mut unknown = sheet(3.0, 0.3, 3.0);
    assert_eq!(
        batch(Some(&unknown), Tokens(10_000), Tokens(0), &outlook(500, 10)),
        usual
    );
    unknown.rates.cache_read = None;
    assert_eq!(
        batch(Some(&unknown), Tokens(10_000), Tokens(0), &outlook(500, 10)),
        usual
    );
}

#[test]
fn the_trigger_of_each_way() {
    let line = line(100_000);
    let calm = outlook(100, 400);
    let wild = outlook(50_000, 400);
    let cold = GrowthForecast {
        cold_now: Ppm::ONE,
        ..calm
    };
    let short = outlook(100, 20);
    let cold_and_short = GrowthForecast {
        turns_left: 2,
        ..cold
    };
    let set = Budget {
        trigger: Tokens(70_000),
        forced: Tokens(70_000),
        ..line
    };
    let rows = [
        (
            "fixed",
            CompactionTiming::Fixed,
            line,
            calm,
            (80_000, 55_000),
        ),
        (
            "eager",
            CompactionTiming::Eager,
            line,
            calm,
            (80_000, 80_000),
        ),
        // √(2 · (0.9 · 54,900 + 22,000) · 100 / 0.1)
        (
            "priced",
            CompactionTiming::Priced,
            line,
            calm,
            (66_950, 55_000),
        ),
        (
            "at the latest",
            CompactionTiming::Priced,
            line,
            wild,
            (95_000, 55_000),
        ),
        (
            "where it was set",
            CompactionTiming::Priced,
            set,
            wild,
            (70_000, 55_000),
        ),
        // A tenth above the target of an expired cache; 8,000 are read again.
        (
            "cold",
            CompactionTiming::Priced,
            line,
            cold,
            (22_000, 20_000),
        ),
        // 8,000 / (1 + 0.1)
        (
            "cold, and ends soon",
            CompactionTiming::Priced,
            line,
            cold_and_short,
            (27_272, 20_000),
        ),
        (
            "cold, fixed",
            CompactionTiming::Fixed,
            line,
            cold,
            (80_000, 55_000),
        ),
        // (0.9 · 54,900 + 22,000) / (0.1 · 20)
        (
            "ends soon",
            CompactionTiming::Priced,
            line,
            short,
            (90_705, 55_000),
        ),
        (
            "nothing known",
            CompactionTiming::Priced,
            line,
            outlook(0, 8),
            (80_000, 55_000),
        ),
    ];
    for (name, compaction_timing, line, outlook, (trigger, target)) in rows {
        let found = compaction_timing.budget(&line, &empty(), None, &outlook);
        let expected = Budget {
            trigger: Tokens(trigger),
            target: Tokens(target),
            ..line
        };
        assert_eq!(found, expected, "{name}");
    }
    let none = Budget {
        limit: Tokens::MAX,
        trigger: Tokens::MAX,
        target: Tokens::MAX,
        ..line
    };
    assert_eq!(
        CompactionTiming::Priced.budget(&none, &empty(), None, &calm),
        none
    );
}

#[test]
fn where_much_has_just_arrived_less_is_enough() {
    let (line, outlook) = (line(100_000), outlook(400, 400));
    let trigger = |letters: usize| {
        let mut view = empty();
        view.push(user("the task"));
        view.mark_sent();
        view.push(said(4 * letters));
        CompactionTiming::Priced
            .budget(&line, &view, None, &outlook)
            .trigger
    };
    assert_eq!(trigger(10), trigger(300), "no more than usual");
    // √(13,650 / 54,600) is a half, of √(2 · (0.9 · 54,600 + 22,000) · 400 / 0.1) = 23,857.
    let half = trigger(13_650 + 400);
    assert!(half.0.abs_diff(55_000 + 11_928) < 20, "{half}");
    assert_eq!(
        trigger(50_000),
        Tokens(60_500),
        "but never less than the least gain"
    );
}

#[test]
fn a_plan_that_rewrites_little_is_due_sooner() {
    let (view, line) = (view(40), line(10_000));
    let mut pace = GrowthRate::default();
    pace.observe(view.unsent(), Ppm(0));
    let found = price(
        &plan(&view, &self::line(4_000), Trigger::Request),
        &view,
        &line,
        None,
        &outlook(1, 1),
    );
    let trigger = |pace: &GrowthRate| {
        let outlook = GrowthForecast {
            turns_left: 400,
            ..pace.outlook(None, Ppm(0))
        };
        CompactionTiming::Priced
            .budget(&line, &empty(), None, &outlook)
            .trigger
    };
    let at_first = trigger(&pace);
    pace.planned(&found);
    let after = trigger(&pace);
    assert!(
        found.rewrites < line.target && after < at_first,
        "{after} {at_first}"
    );
    pace.planned(&Price {
        rewrites: Tokens(0),
        ..found
    });
    assert_eq!(trigger(&pace), after, "what rewrites nothing says nothing");
}

#[test]
fn a_pace_is_the_mean_of_its_turns() {
    let mut view = Transcript::new(Arc::new(Chars4));
    let mut pace = GrowthRate::default();
    view.push(user(&"t".repeat(4_000)));
    pace.observe(view.unsent(), Ppm(0));
    assert_eq!(pace.turns, 0, "the beginning is no turn");
    assert_eq!(pace.outlook(None, Ppm(0)).turns_left, LEAST_TURNS);
    view.mark_sent();
    for turn in 0..200 {
        view.push(said(392));
        view.push(user(&"u".repeat(192)));
        pace.observe(view.unsent(), if turn % 2 == 0 { Ppm(0) } else { Ppm::ONE });
        view.mark_sent();
    }
    let outlook = pace.outlook(None, Ppm(0));
    let weight = |message: Message| {
        let mut one = Transcript::new(Arc::new(Chars4));
        one.push(message);
        one.tokens().0
    };
    let near = |found: Tokens, expected: u64| found.0.abs_diff(expected) <= 1;
    assert!(near(outlook.grows, weight(said(392))), "{outlook:?}");
    assert!(
        near(outlook.other, weight(user(&"u".repeat(192)))),
        "{outlook:?}"
    );
    assert!(outlook.cold.0.abs_diff(500_000) < 30_000, "{outlook:?}");
    assert_eq!(outlook.turns_left, 200);
    assert_eq!(pace.outlook(Some(7), Ppm(0)).turns_left, 7);
    assert_eq!(pace.outlook(Some(0), Ppm(0)).turns_left, 1);
}

#[test]
fn a_plan_is_priced_by_what_it_rewrites_and_frees() {
    let view = view(40);
    let line = line(4_000);
    let plan = plan(&view, &line, Trigger::Request);
    let unsent: Tokens = view.unsent().iter().map(|item| item.tokens).sum();
    let rewrites = plan.after().minus(head(&view)).minus(unsent);
    let sheet = sheet(3.0, 0.3, 3.75);
    let ten = price(&plan, &view, &line, Some(&sheet), &outlook(100, 10));
    assert_eq!(
        ten.rewrites, rewrites,
        "all that was sent and stays, but its head"
    );
    assert_eq!(ten.loses, Some(dollars(3.45).of(rewrites)));
    assert_eq!(ten.saves, Some(dollars(0.3).of(plan.frees.times(10))));
    assert_eq!(ten.over_turns, 10);
    let net = i128::from(ten.saves.unwrap().0) - i128::from(ten.loses.unwrap().0);
    assert_eq!(ten.net(), Some(net));
    let cold = GrowthForecast {
        cold_now: Ppm::ONE,
        ..outlook(100, 10)
    };
    let cold = price(&plan, &view, &line, Some(&sheet), &cold);
    assert_eq!(cold.loses, Some(Money(0)));
    assert!(cold.saves > ten.saves, "what is freed is not written again");
    let unknown = price(&plan, &view, &line, None, &outlook(100, 10));
    assert_eq!(
        (unknown.loses, unknown.saves, unknown.net()),
        (None, None, None)
    );
    assert_eq!(unknown.rewrites, rewrites);
    // Where tools join with it, everything is written again, the tools and the system prompt too.
    let joining = Some(Tokens(700));
    let whole = price_with_head(&plan, &view, joining, &line, None, &outlook(100, 10));
    assert_eq!(whole.rewrites, Tokens(700) + plan.after().minus(unsent));
}

#[test]
fn the_reason_of_a_plan() {
    let full = view(40);
    // At nine tenths of its limit: over the trigger, under the mark.
    let (over, tight) = (line(full.tokens().0 * 10 / 9), line(4_000));
    let cold = GrowthForecast {
        cold_now: Ppm::ONE,
        ..outlook(100, 2)
    };
    let rows = [
        (
            "over the mark",
            &tight,
            Trigger::Request,
            outlook(100, 100),
            Reason::Must,
        ),
        (
            "refused",
            &over,
            Trigger::Overflow,
            outlook(100, 1),
            Reason::Must,
        ),
        (
            "asked",
            &over,
            Trigger::Asked,
            outlook(100, 1),
            Reason::Asked,
        ),
        (
            "long",
            &over,
            Trigger::Request,
            outlook(100, 100),
            Reason::Pays,
        ),
        ("cold", &over, Trigger::Request, cold, Reason::Cold),
        (
            "short",
            &over,
            Trigger::Request,
            outlook(100, 1),
            Reason::Configured,
        ),
    ];
    for (name, line, why, outlook, reason) in rows {
        let plan = plan(&full, line, why);
        let found = price(&plan, &full, line, None, &outlook);
        assert_eq!(found.reason, reason, "{name}");
    }
}

#[test]
fn a_price_is_one_sentence_and_survives_the_log() {
    let known = Price {
        rewrites: Tokens(12_300),
        loses: Some(dollars(0.0461)),
        saves: Some(dollars(0.082)),
        over_turns: 14,
        reason: Reason::Pays,
    };
    assert_eq!(
        known.to_string(),
        "rewrites 12,300 tokens for $0.0461, saves $0.0820 over 14 turns: pays"
    );
    let unknown = Price {
        rewrites: Tokens(1_012_003),
        loses: None,
        saves: None,
        reason: Reason::Must,
        ..known
    };
    assert_eq!(
        unknown.to_string(),
        "rewrites 1,012,003 tokens, at prices that are not known: it would not have fitted"
    );
    let mut plan = plan(&view(40), &line(4_000), Trigger::Request);
    let silent = serde_json::to_string(&plan).unwrap();
    assert!(!silent.contains("price"), "{silent}");
    plan.price = Some(known);
    let text = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&text).unwrap(), plan);
    assert_eq!(serde_json::from_str::<Plan>(&silent).unwrap().price, None);
}

proptest! {
    #[test]
    fn more_to_rewrite_and_faster_growth_wait_longer(
        kept in 1_u64..1_000_000, more in 0_u64..1_000_000, growth in 1_u64..100_000,
        cold in 0_u64..=1_000_000, read in 1_u32..1_000, write in 1_u32..2_000,
        reread in 0_u64..100_000,
    ) {
        let sheet = sheet(1.0, f64::from(read) / 1_000.0, f64::from(write) / 1_000.0);
        let at = |growth| GrowthForecast { cold: Ppm(cold), ..outlook(growth, 10) };
        let one = batch(Some(&sheet), Tokens(kept), Tokens(reread), &at(growth));
        let batch = |kept, reread, growth| batch(Some(&sheet), Tokens(kept), Tokens(reread), &at(growth));
        prop_assert!(batch(kept + more, reread, growth) >= one);
        prop_assert!(batch(kept, reread + more, growth) >= one);
        prop_assert!(batch(kept, reread, growth + more) >= one);
    }

    #[test]
    fn a_priced_budget_keeps_its_order_and_never_overflows(
        limit in 100_u64..u64::MAX, answers in 0_usize..5, grows in any::<u64>(), other in any::<u64>(),
        turns in any::<u64>(), cold in any::<u64>(), cold_now in any::<u64>(),
        rates in any::<[u64; 4]>(), rewrites in any::<Option<u64>>(),
    ) {
        let (line, seen) = (line(limit), view(answers));
        let rates = rates.map(Money);
        let sheet = PriceSheet::of(Rates {
            input: rates[0],
            output: rates[1],
            cache_read: Some(rates[2]),
            cache_write: Some(rates[3]),
        });
        let outlook = GrowthForecast {
            grows: Tokens(grows),
            other: Tokens(other),
            turns_left: turns,
            cold: Ppm(cold),
            cold_now: Ppm(cold_now),
            rewrites: rewrites.map(Tokens),
        };
        let priced = CompactionTiming::Priced.budget(&line, &seen, Some(&sheet), &outlook);
        prop_assert!(priced.target < priced.trigger && priced.trigger <= priced.limit);
        prop_assert_eq!(priced.limit, line.limit);
        let is_cold = cold_now == Ppm::ONE.0 && grows.saturating_add(other) > 0;
        let target = if is_cold { line.cold_target } else { line.target };
        prop_assert_eq!(priced.target, target);
    }

    #[test]
    fn a_longer_run_never_waits_longer(grows in 1_u64..5_000, turns in 1_u64..1_000) {
        let line = line(100_000);
        let at = |turns| CompactionTiming::Priced.budget(&line, &empty(), None, &outlook(grows, turns)).trigger;
        prop_assert!(at(turns + 1) <= at(turns));
    }

    #[test]
    fn what_a_plan_saves_grows_with_the_turns(turns in 1_u64..1_000) {
        let (view, line) = (view(40), line(4_000));
        let plan = plan(&view, &line, Trigger::Request);
        let sheet = sheet(3.0, 0.3, 3.75);
        let at = |turns| price(&plan, &view, &line, Some(&sheet), &outlook(100, turns));
        prop_assert!(at(turns).saves < at(turns + 1).saves);
        prop_assert_eq!(at(turns).loses, at(turns + 1).loses);
    }
}
