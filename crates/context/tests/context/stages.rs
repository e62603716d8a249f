//! The effect of each stage and preset policy on a view: one row per case, in the notation of
//! `notation`. The invariants over random histories are in `properties.rs`.

use std::sync::Arc;

use plimsoll_context::{
    Budget, Bytes, Calibration, CannotFit, Cap, Chars4, ContextStrategy, Edit, Evict, Fit, Message,
    Plan, PlanError, Policy, Ppm, Prune, SessionPruneConfig, Stage, SummaryConfig, Threshold,
    TokenCounter, Tokens, Transcript, Trigger, ViewLimits,
};
use plimsoll_testkit::notation::{message, seqs, show, view};

/// What it says, the view before, what the model would see.
type StageRow = (&'static str, &'static str, &'static str);

fn budget(trigger: u64, target: u64) -> Budget {
    Budget {
        limit: Tokens(trigger),
        trigger: Tokens(trigger),
        target: Tokens(target),
        max_result: Tokens(100),
        keep_recent: 1,
        overhead: Tokens(0),
        instructions: Tokens(0),
    }
}

fn only(stage: impl Stage + 'static) -> Policy {
    Policy::new(vec![Arc::new(stage)])
}

fn prune() -> SessionPruneConfig {
    SessionPruneConfig::default()
}

/// Every row holds, and so does what holds for every plan.
fn check(policy: &Policy, budget: &Budget, table: &[StageRow]) {
    for (says, before, after) in table {
        let old = view(before);
        let mut new = old.clone();
        let plan = policy.best_plan(&old, budget, Trigger::Request);
        assert_eq!(
            plan,
            policy.best_plan(&view(before), budget, Trigger::Request),
            "{says}: the same view, the same plan"
        );
        if let Some(plan) = &plan {
            let released = new.apply(plan).unwrap();
            assert_eq!(released.freed, plan.frees, "{says}");
            assert_eq!(plan.before, old.tokens(), "{says}");
            assert_eq!(plan.after(), new.tokens(), "{says}");
            assert!(new.tokens() < old.tokens(), "{says}: strictly lighter");
            assert!(!plan.stages.is_empty(), "{says}: somebody did it");
            let first = plan.edits.first().map(first_edited);
            let sent = first.filter(|seq| *seq < old.sent());
            assert_eq!(plan.rewrites_from, sent, "{says}");
        }
        assert_eq!(show(&new, &old), *after, "{says}: {before}");
        assert_weighed(&new);
        assert_paired(&new, says);
        assert_eq!(
            policy.best_plan(&new, budget, Trigger::Request),
            None,
            "{says}: planning again at once is empty"
        );
    }
}

fn first_edited(edit: &Edit) -> plimsoll_context::Seq {
    match edit {
        Edit::Shrink { seq, .. } => *seq,
        Edit::Drop { first, .. } => *first,
        Edit::Summarize { covers, .. } => covers[0].first,
    }
}

/// The running total is the sum of the parts.
fn assert_weighed(view: &Transcript) {
    let sum: Tokens = view
        .items()
        .iter()
        .map(|item| Chars4.message(&item.message))
        .sum();
    assert_eq!(view.tokens(), sum);
}

/// Every call has its result right behind it, in call order, and no result stands elsewhere.
fn assert_paired(view: &Transcript, says: &str) {
    let mut open = Vec::new();
    for item in view.items() {
        match item.message.as_ref() {
            Message::ToolResult(result) => {
                assert!(!open.is_empty(), "{says}: an orphan");
                assert_eq!(open.remove(0), result.call, "{says}");
            }
            message => {
                assert!(open.is_empty(), "{says}: unanswered");
                open = message.calls().map(|call| call.id.clone()).collect();
            }
        }
    }
}

#[test]
fn cap_cuts_results_before_the_model_first_reads_them() {
    check(
        &only(Cap::Arrivals),
        &budget(10_000, 5_000),
        &[
            (
                "a result of 100 tokens stays, one of 101 is cut to 100 (96 · 4 bytes of text at most)",
                "u:task a:[c1,c2] | r:c1*384 r:c2*385",
                "u:task a:[c1,c2] r:c1*384 r:c2~380",
            ),
            (
                "what was sent stays as it was: cutting it would cost the cache",
                "u:task a:[c1] r:c1*10000 a:[c2] | r:c2*10000",
                "u:task a:[c1] r:c1*10000 a:[c2] r:c2~390",
            ),
            (
                "only results are cut, and an error stays an error",
                "u:task a:[c1] | r!:c1*10000 u:long*10000",
                "u:task a:[c1] r!:c1~390 u:long*10000",
            ),
            (
                "an image that weighs too much becomes a note",
                "u:task a:[c1] | r:c1*img",
                "u:task a:[c1] r:c1~50",
            ),
            (
                "a pinned result stays whole",
                "u:task a:[c1] | +r:c1*10000",
                "u:task a:[c1] +r:c1*10000",
            ),
        ],
    );
}

#[test]
fn cap_all_reaches_back_once_a_request_was_refused() {
    check(
        &only(Cap::All),
        &budget(150, 100),
        &[(
            "old and new alike",
            "u:task a:[c1] r:c1*10000 a:[c2] | r:c2*10000",
            "u:task a:[c1] r:c1~390 a:[c2] r:c2~390",
        )],
    );
    check(
        &only(Cap::All),
        &budget(10_000, 5_000),
        &[(
            "nothing under the trigger",
            "u:task a:[c1] r:c1*10000",
            "u:task a:[c1] r:c1*10000",
        )],
    );
}

/// H7, R10, R13.
#[test]
fn prune_shrinks_old_results_and_keeps_the_newest_two_exchanges() {
    let eager = SessionPruneConfig {
        eager: true,
        ..prune()
    };
    check(
        &only(Prune(eager)),
        &budget(100_000, 50_000),
        &[
            (
                "the newest two exchanges with results stay; head and tail of the old ones",
                "u:task a:[c1] r:c1*10000 a:[c2] r:c2*10000 a:[c3] r:c3*10000",
                "u:task a:[c1] r:c1~200 a:[c2] r:c2*10000 a:[c3] r:c3*10000",
            ),
            (
                "steers, notices and text-only turns in between are no exchanges with results",
                "u:task a:[c1] r:c1*900 a:[c2] r:c2*900 u:steer a:hm u:hint n:note a:[c3] r:c3*900 u:more a:ok u:now",
                "u:task a:[c1] r:c1~200 a:[c2] r:c2*900 u:steer a:hm u:hint n:note a:[c3] r:c3*900 u:more a:ok u:now",
            ),
            (
                "a batch of calls is one exchange; ids and errors stay",
                "u:task a:[c1,c2,c3] r:c1*900 r!:c2*900 r:c3*10 a:[c4] r:c4*900 a:[c5,c6] r:c5*900 r:c6*900",
                "u:task a:[c1,c2,c3] r:c1~200 r!:c2~200 r:c3*10 a:[c4] r:c4*900 a:[c5,c6] r:c5*900 r:c6*900",
            ),
            (
                "200 bytes stay, 201 are cut only if that makes them lighter",
                "u:task a:[c1,c2] r:c1*200 r:c2*205 a:[c3] r:c3 a:[c4] r:c4",
                "u:task a:[c1,c2] r:c1*200 r:c2~200 a:[c3] r:c3 a:[c4] r:c4",
            ),
            (
                "what a person or the model wrote stays",
                "u:task*900 a:long*900[c1*900] r:c1*900 u:steer*900 a:[c2] r:c2 a:[c3] r:c3",
                "u:task*900 a:long*900[c1*900] r:c1~200 u:steer*900 a:[c2] r:c2 a:[c3] r:c3",
            ),
            (
                "an old image becomes a note",
                "u:task a:[c1] r:c1*img a:[c2] r:c2 a:[c3] r:c3",
                "u:task a:[c1] r:c1~50 a:[c2] r:c2 a:[c3] r:c3",
            ),
            (
                "a pinned result stays",
                "u:task a:[c1] +r:c1*900 a:[c2] r:c2 a:[c3] r:c3",
                "u:task a:[c1] +r:c1*900 a:[c2] r:c2 a:[c3] r:c3",
            ),
        ],
    );
}

#[test]
fn prune_waits_for_the_trigger_and_stops_at_the_target() {
    // 36 tokens of calls and task, and 254 a result; pruned, a result weighs 54.
    let four = "u:task a:[c1] r:c1*1000 a:[c2] r:c2*1000 a:[c3] r:c3*1000 a:[c4] r:c4*1000";
    let table = |trigger, target, after| {
        let row = ("oldest first", four, after);
        check(&only(Prune(prune())), &budget(trigger, target), &[row]);
    };
    assert_eq!(view(four).tokens(), Tokens(5 + 4 * (14 + 254)));
    table(1_077, 700, four);
    table(
        1_076,
        900,
        "u:task a:[c1] r:c1~200 a:[c2] r:c2*1000 a:[c3] r:c3*1000 a:[c4] r:c4*1000",
    );
    table(
        1_076,
        700,
        "u:task a:[c1] r:c1~200 a:[c2] r:c2~200 a:[c3] r:c3*1000 a:[c4] r:c4*1000",
    );
}

/// R10: 60 bytes under a limit of 50 never grow.
#[test]
fn prune_never_grows_a_text() {
    for max in 0..64 {
        let config = SessionPruneConfig {
            eager: true,
            keep_recent_n: 0,
            pruned_tool_result_max_bytes: Bytes(max),
            ..prune()
        };
        for text in [
            "x".repeat(60),
            "🦀".repeat(15),
            "e\u{301}".repeat(20),
            "汉字".repeat(10),
        ] {
            let mut old = view("u:task a:[c1]");
            old.push(Message::result(
                plimsoll_context::CallId("c1".into()),
                &*text,
            ));
            old.mark_sent();
            let plan = only(Prune(config)).best_plan(&old, &budget(9_000, 9_000), Trigger::Request);
            let mut new = old.clone();
            if let Some(plan) = plan {
                new.apply(&plan).unwrap();
            }
            let now = new.items()[2].message.text();
            assert!(
                now == text || now.len() as u64 <= max,
                "{max}: {text} → {now}"
            );
        }
    }
}

#[test]
fn prune_may_take_the_task_but_never_the_newest_question() {
    let config = SessionPruneConfig {
        preserve_task: false,
        ..prune()
    };
    check(
        &only(Prune(config)),
        &budget(100, 50),
        &[
            (
                "the task gives way where that is asked for",
                "u:task*900 a:ok | u:now*900",
                "u:task~200 a:ok u:now*900",
            ),
            (
                "but not while it is the newest question too",
                "u:task*900 a:[c1] r:c1",
                "u:task*900 a:[c1] r:c1",
            ),
            (
                "nor while nobody has read it",
                "| u:task*900 u:now",
                "u:task*900 u:now",
            ),
        ],
    );
}

/// It spares the stages behind it, and changes nothing of what comes out.
#[test]
fn evict_hopeless_drops_what_no_pruning_would_save() {
    // u:task 5 (at least 4), a:[cN] 14, its result at least 4.
    check(
        &only(Evict::Hopeless),
        &budget(100, 40),
        &[
            (
                "4 + 2 · 18 fits; the third exchange does not, whatever its result weighs",
                "u:task a:[c1] r:c1*800 a:[c2] r:c2*800 a:[c3] r:c3*800",
                "u:task gap:4 a:[c3] r:c3*800",
            ),
            (
                "at the trigger nothing is hopeless",
                "u:task a:[c1] r:c1 a:[c2] r:c2 a:[c3] r:c3 a:[c4] r:c4*36",
                "u:task a:[c1] r:c1 a:[c2] r:c2 a:[c3] r:c3 a:[c4] r:c4*36",
            ),
        ],
    );
    let spared = Policy::evict(prune());
    let stages = spared.stages().iter().enumerate();
    let all = Policy::new(
        stages
            .filter(|(at, _)| *at != 1)
            .map(|(_, stage)| Arc::clone(stage))
            .collect(),
    );
    let line: Vec<String> = (0..60)
        .map(|n| format!("a:[c{n}] r:c{n}*{} u:x*{}", n * 37 % 900, n * 53 % 200))
        .collect();
    let line = format!("u:task {}", line.join(" "));
    for trigger in (200..20_000).step_by(97) {
        let budget = Budget {
            limit: Tokens(trigger * 2),
            ..budget(trigger, trigger * 7 / 10)
        };
        let shown = |policy: &Policy| {
            let mut new = view(&line);
            if let Some(plan) = policy.best_plan(&new, &budget, Trigger::Request) {
                new.apply(&plan).unwrap();
            }
            show(&new, &view(&line))
        };
        assert_eq!(shown(&spared), shown(&all), "{trigger}");
    }
}

/// A1, S15, S16.
#[test]
fn evict_drops_the_oldest_exchanges_whole() {
    // u:task 5, each exchange 14 + 6 = 20, a:ok 5.
    check(
        &only(Evict::Oldest),
        &budget(65, 30),
        &[
            (
                "at the trigger nothing leaves",
                "u:task a:[c1] r:c1 a:[c2] r:c2 a:[c3] r:c3",
                "u:task a:[c1] r:c1 a:[c2] r:c2 a:[c3] r:c3",
            ),
            (
                "one token above, the oldest leave until the target is reached",
                "u:tasks a:[c1] r:c1 a:[c2] r:c2 a:[c3] r:c3",
                "u:tasks gap:4 a:[c3] r:c3",
            ),
            (
                "a batch leaves whole, wherever the target falls in it",
                "u:task a:[c1,c2,c3] r:c1 r:c2 r:c3 a:[c4] r:c4",
                "u:task gap:4 a:[c4] r:c4",
            ),
            (
                "task, newest question and newest exchange stay, and so does the last summary",
                "s:rule u:task S:old a:[c1] r:c1 u:more n:note S:new a:[c2] r:c2*40 u:last a:[c3] r:c3*40",
                "s:rule u:task gap:5 S:new gap:2 u:last a:[c3] r:c3*40",
            ),
            (
                "pins stay; a pinned result keeps its call and its batch",
                "u:task a:[c1,c2] r:c1 +r:c2 a:[c3] r:c3 +u:rule a:ok u:more*80 a:[c4] r:c4",
                "u:task a:[c1,c2] r:c1 +r:c2 gap:2 +u:rule gap:1 u:more*80 a:[c4] r:c4",
            ),
            (
                "the end stays the end: a request that ends with an answer is refused",
                "u:task a:[c1] r:c1*100 a:[c2] r:c2 a:done n:note",
                "u:task gap:4 a:done n:note",
            ),
            (
                "what nobody has read stays, however much it is",
                "u:task a:[c1] r:c1*100 a:[c2] | r:c2*400 u:more*400",
                "u:task gap:2 a:[c2] r:c2*400 u:more*400",
            ),
        ],
    );
}

#[test]
fn evict_never_touches_pending_calls() {
    let old = view("u:task a:[c0] r:c0 a:[c1] r:c1*100 a:[c2,c3] | r:c2*100");
    let plan = only(Evict::Oldest).best_plan(&old, &budget(50, 10), Trigger::Request);
    let mut new = old.clone();
    new.apply(&plan.unwrap()).unwrap();
    // The newest complete exchange stays as well.
    assert_eq!(
        show(&new, &old),
        "u:task gap:2 a:[c1] r:c1*100 a:[c2,c3] r:c2*100"
    );
}

#[test]
fn evict_keeps_as_many_exchanges_as_it_is_told() {
    let before = "u:task a:[c1] r:c1 a:[c2] r:c2 u:steer a:[c3] r:c3 u:now";
    for (keep, after) in [
        (0, "u:task gap:4 u:steer a:[c3] r:c3 u:now"),
        (1, "u:task gap:4 u:steer a:[c3] r:c3 u:now"),
        (2, "u:task gap:2 a:[c2] r:c2 u:steer a:[c3] r:c3 u:now"),
        (3, before),
        (9, before),
    ] {
        let budget = Budget {
            keep_recent: keep,
            ..budget(10, 5)
        };
        check(
            &only(Evict::Oldest),
            &budget,
            &[("keep_recent", before, after)],
        );
    }
}

/// R8, R9, S18.
#[test]
fn fit_levels_results_until_the_view_fits() {
    check(
        &only(Fit::Results),
        &budget(500, 100),
        &[
            (
                "at the limit nothing gives",
                "u:task a:[c1] r:c1*1908",
                "u:task a:[c1] r:c1*1908",
            ),
            (
                "one 400 KB line keeps head and tail",
                "u:task a:[c1] | r:c1*400000",
                "u:task a:[c1] r:c1~1910",
            ),
            (
                "the largest give first and end equal; what is small stays",
                "u:task a:[c1,c2,c3] | r:c1*4000 r:c2*400 r:c3*9000",
                "u:task a:[c1,c2,c3] r:c1~700 r:c2*400 r:c3~700",
            ),
            (
                "what is pinned does not give, so the others give more",
                "u:task a:[c1,c2] | +r:c1*1200 r:c2*4000",
                "u:task a:[c1,c2] +r:c1*1200 r:c2~660",
            ),
        ],
    );
    check(
        &only(Fit::Results),
        &budget(60, 50),
        &[(
            "no result below 64 tokens, even if the view does not fit then",
            "u:task a:[c1,c2] | r:c1*4000 r:c2*4000",
            "u:task a:[c1,c2] r:c1~240 r:c2~240",
        )],
    );
}

/// A text that can be cut to less can be cut to more, or the last rung would be missing one.
#[test]
fn a_cut_that_fits_is_found() {
    let counter = plimsoll_context::Bpe::o200k();
    let (head, tail) = (
        "iVBORw0KGgoAAAANSUhEUgAA+/QmFzZTY0iVBORw0KGgoAAAANSUhEUgQmFzZTY0AA+/QmFzZTY0QmFz\
        ZTY0AA+/QmFzZTY0iVBORw0KGgoAAAANSUhEUgiVBORw0KGgoAAAANSUhEUgAA+/QmFzZTY0QmFzZTY0\
        iVBORw0KGgoAAAANSUhEUgAA+",
        "KGgoAAAANSUhEUgAA+/AA+/QmFzZTY0AA+/AA+/AA+/AA+/QmFzZTY0AA+/AA+/iVBORw0KGgoAAAANS\
        UhEUgQmFzZTY0QmFzZTY0QmFzZTY0AA+/AA+/AA+/AA+/QmFzZTY0QmFzZTY0QmFzZTY0QmFzZTY0QmF\
        zZTY0AA+/QmFzZTY0QmFzZTY0",
    );
    let text = format!("{head}\n[pruned: 446 bytes]\n{tail}");
    for max in 48..200 {
        let short = plimsoll_context::shorten(&text, Tokens(max), &counter);
        let weight = short.map(|short| counter.text(&short));
        assert!(
            weight.is_some_and(|weight| weight <= Tokens(max)),
            "{max}: {weight:?}"
        );
    }
}

/// R8: where nobody can be asked, protected texts give way too, but only large ones.
#[test]
fn fit_everything_cuts_texts_of_over_a_quarter() {
    check(
        &only(Fit::Everything),
        &budget(400, 400),
        &[
            (
                "a task larger than the budget keeps head and tail",
                "u:task*4000 a:[c1] r:c1",
                "u:task~1510 a:[c1] r:c1",
            ),
            (
                "results first",
                "u:task*1000 a:[c1] r:c1*4000",
                "u:task*1000 a:[c1] r:c1~520",
            ),
            (
                "then texts, to one level; a quarter of the budget stays whole",
                "s:rules*384 u:task*4000 a:ok u:now*4000",
                "s:rules*384 u:task~580 a:ok u:now~580",
            ),
            (
                "strings in arguments too, and they stay JSON",
                "u:task a:[c1*4000] r:c1",
                "u:task a:[c1*1490] r:c1",
            ),
        ],
    );
}

fn sliding(trigger: u64) -> (Policy, Budget) {
    strategy(
        ContextStrategy::SlidingWindow {
            max_tokens: Some(Tokens(trigger)),
        },
        0,
    )
    .unwrap()
}

fn evict(trigger: u64) -> (Policy, Budget) {
    strategy(
        ContextStrategy::Evict {
            max_tokens: Some(Tokens(trigger)),
        },
        0,
    )
    .unwrap()
}

fn strategy(strategy: ContextStrategy, overhead: u64) -> Result<(Policy, Budget), CannotFit> {
    let line = strategy.line(ViewLimits::default());
    let budget = line.budget(Tokens(overhead), Tokens::ZERO, Calibration::default())?;
    Ok((strategy.policy(None, SummaryConfig::default()), budget))
}

/// H2.
#[test]
fn sliding_window_keeps_task_and_newest_exchanges() {
    let (policy, budget) = sliding(200);
    assert_eq!(budget.target, Tokens(140), "0.7 of what is sent");
    check(
        &policy,
        &budget,
        &[
            (
                "within the window nothing changes",
                "s:rule u:task a:[c1] r:c1*400 a:[c2] r:c2*184",
                "s:rule u:task a:[c1] r:c1*400 a:[c2] r:c2*184",
            ),
            (
                "over it, the oldest exchanges leave down to the target",
                "s:rule u:task a:[c1] r:c1*100 a:[c2] r:c2*100 a:[c3] r:c3*100 a:[c4] r:c4*184",
                "s:rule u:task gap:4 a:[c3] r:c3*100 a:[c4] r:c4*184",
            ),
            (
                "a newest result larger than the window: capped to a quarter, its call there",
                "s:rule u:task a:[c1] r:c1*100 a:[c2] | r:c2*40000",
                "s:rule u:task a:[c1] r:c1*100 a:[c2] r:c2~190",
            ),
            (
                "a newest batch larger than the window: all its results there",
                "s:rule u:task a:[c1] r:c1*400 a:[c2,c3] | r:c2*4000 r:c3*4000",
                "s:rule u:task gap:2 a:[c2,c3] r:c2~190 r:c3~190",
            ),
        ],
    );
}

/// The default.
#[test]
fn evict_prunes_before_it_drops() {
    let (policy, budget) = evict(1_000);
    check(
        &policy,
        &budget,
        &[
            (
                "old results shrink; that is enough here",
                "u:task a:[c1] r:c1*1000 a:[c2] r:c2*1000 a:[c3] r:c3*900 a:[c4] r:c4*900",
                "u:task a:[c1] r:c1~200 a:[c2] r:c2~200 a:[c3] r:c3*900 a:[c4] r:c4*900",
            ),
            (
                "where it is not enough, the oldest leave",
                "u:task a:old*2400 a:[c1] r:c1*1000 a:[c2] r:c2*900 a:[c3] r:c3*900",
                "u:task gap:1 a:[c1] r:c1~200 a:[c2] r:c2*900 a:[c3] r:c3*900",
            ),
        ],
    );
}

/// H1.
#[test]
fn unlimited_edits_nothing() {
    let (policy, budget) = strategy(ContextStrategy::Unlimited {}, 1_000).unwrap();
    assert_eq!(budget.limit, Tokens::MAX);
    let row = (
        "nothing",
        "u:task a:[c1] r:c1*400000 a:[c2] | r:c2*400000",
        "u:task a:[c1] r:c1*400000 a:[c2] r:c2*400000",
    );
    check(&policy, &budget, &[row]);
}

/// R15: large results give way before anything leaves, the newest no more than the others.
#[test]
fn recovery_cuts_large_results_before_it_drops_anything() {
    check(
        &Policy::recovery(prune(), None),
        &budget(400, 400),
        &[
            (
                "one large result pays for all",
                "u:task a:[c1] r:c1*200 a:[c2] r:c2*40000 a:[c3] r:c3*200",
                "u:task a:[c1] r:c1*200 a:[c2] r:c2~390 a:[c3] r:c3*200",
            ),
            (
                "then old ones shrink, then the oldest leave, then the newest level out",
                "u:task a:[c1,c2] r:c1*900 r:c2*900 a:[c3,c4] r:c3*900 r:c4*900 a:[c5,c6] | r:c5*900 r:c6*900",
                "u:task gap:6 a:[c5,c6] r:c5~390 r:c6~390",
            ),
        ],
    );
}

/// A1, S16: everything that is sent counts, and the line itself is inside.
#[test]
fn total_and_overhead_at_the_limit_evict_nothing() {
    let full = "u:task a:[c1] r:c1*100 a:[c2] r:c2*100";
    let weight = view(full).tokens().0;
    let limit = weight + 500;
    let at = |overhead| {
        let evict = ContextStrategy::SlidingWindow {
            max_tokens: Some(Tokens(limit)),
        };
        let (policy, budget) = strategy(evict, overhead).unwrap();
        let mut new = view(full);
        if let Some(plan) = policy.plan(&new, &budget, Trigger::Request).unwrap() {
            new.apply(&plan).unwrap();
        }
        show(&new, &view(full))
    };
    assert_eq!(at(500), full);
    assert_eq!(at(501), "u:task gap:2 a:[c2] r:c2*100");
}

/// R1, the line: a trigger is inclusive, the target is well under it, and nothing fires again
/// without growth.
#[test]
fn the_line_is_exact() {
    let line = ViewLimits {
        window: Some(Tokens(100_000)),
        max_output: Some(Tokens(4_000)),
        ..ViewLimits::default()
    };
    let budget = line
        .budget(Tokens(6_000), Tokens::ZERO, Calibration::default())
        .unwrap();
    // room = 100,000 − 4,000 − 6,000
    assert_eq!(budget.limit, Tokens(90_000));
    assert_eq!(budget.trigger, Tokens(45_000));
    assert_eq!(budget.target, Tokens(23_400));
    let policy = Policy::sliding_window();
    // Each answer weighs 1,000 tokens.
    let mut filled = view("u:task");
    while filled.tokens() + Tokens(1_000) <= budget.trigger {
        filled.push(message("a:text*3984"));
    }
    let rest = budget.trigger.minus(filled.tokens()).0;
    filled.push(message(&format!("a:last*{}", (rest - 4) * 4)));
    filled.mark_sent();
    assert_eq!(filled.tokens(), budget.trigger);
    assert_eq!(policy.plan(&filled, &budget, Trigger::Request), Ok(None));
    filled.push(message("u:x"));
    let plan = policy.plan(&filled, &budget, Trigger::Request);
    let plan = plan.unwrap().expect("one message above the trigger");
    filled.apply(&plan).unwrap();
    assert!(filled.tokens() <= budget.target);
    assert!(budget.target < budget.trigger);
    assert_eq!(policy.plan(&filled, &budget, Trigger::Request), Ok(None));
}

/// A2, S17, S18.
#[test]
fn what_cannot_fit_is_a_typed_error() {
    // The overhead alone.
    let window = ContextStrategy::SlidingWindow {
        max_tokens: Some(Tokens(1_000)),
    };
    assert_eq!(
        strategy(window, 50_000).unwrap_err(),
        CannotFit {
            minimum: Tokens(50_001),
            overhead: Tokens(50_000),
            limit: Tokens(1_000),
        }
    );
    // The task alone; the error says how much would do.
    let (policy, budget) = strategy(window, 500).unwrap();
    let task = view("| u:task*4000");
    let cannot = policy.plan(&task, &budget, Trigger::Request).unwrap_err();
    assert_eq!(
        cannot,
        CannotFit {
            minimum: Tokens(1_504),
            overhead: Tokens(500),
            limit: Tokens(1_000),
        }
    );
    let enough = ContextStrategy::SlidingWindow {
        max_tokens: Some(cannot.minimum),
    };
    let (policy, budget) = strategy(enough, 500).unwrap();
    assert_eq!(policy.plan(&task, &budget, Trigger::Request), Ok(None));
    // A filter cuts it instead, and what comes out fits.
    let (policy, budget) = strategy(window, 500).unwrap();
    let plan = policy
        .for_filter()
        .plan(&task, &budget, Trigger::Asked)
        .unwrap();
    let mut cut = task.clone();
    cut.apply(&plan.unwrap()).unwrap();
    assert!(cut.tokens() <= budget.limit, "{}", cut.tokens());
    assert!(cut.items()[0].message.text().contains("[pruned: "));
}

/// S18: with a budget of 500 a result of 100 KB never reaches the model whole.
#[test]
fn a_large_result_never_reaches_the_model_whole() {
    for (policy, budget) in [sliding(500), evict(500)] {
        let mut view = view("u:task a:[c1] | r:c1*100000");
        let plan = policy.plan(&view, &budget, Trigger::Request).unwrap();
        let plan = plan.unwrap();
        assert_eq!(plan.rewrites_from, None, "nothing sent is rewritten");
        view.apply(&plan).unwrap();
        assert!(view.tokens() <= budget.limit);
        assert_eq!(view.items().len(), 3);
    }
}

#[test]
fn a_plan_for_another_view_is_refused_whole() {
    let here = view("u:task a:[c1] r:c1*900 a:[c2] r:c2*900 a:[c3] r:c3*900");
    let plan = |view: &Transcript| {
        let policy = Policy::recovery(prune(), None);
        policy
            .best_plan(view, &budget(300, 300), Trigger::Overflow)
            .unwrap()
    };
    let mine = plan(&here);
    let refused = |plan: &Plan| {
        let mut view = here.clone();
        let error = view.apply(plan).unwrap_err();
        assert_eq!(view.items().len(), here.items().len());
        assert_eq!(view.tokens(), here.tokens());
        for (now, was) in view.items().iter().zip(here.items()) {
            assert_eq!(now.message, was.message);
            assert_eq!(now.tokens, was.tokens);
        }
        error
    };
    let with = |edits: Vec<Edit>, frees: u64| Plan {
        edits,
        frees: Tokens(frees),
        ..mine.clone()
    };
    let seq = plimsoll_context::Seq;
    let marker = |messages| {
        let gap = plimsoll_context::Gap {
            messages,
            recall: None,
        };
        plimsoll_context::Rendition {
            tokens: Chars4.message(&gap.message()),
            message: Arc::new(gap.message()),
        }
    };
    let drop = |first: u64, last: u64| Edit::Drop {
        first: seq(first),
        last: seq(last),
        marker: marker(last + 1 - first),
    };
    let shrink = |at, word: &str| Edit::Shrink {
        seq: seq(at),
        to: plimsoll_context::Rendition {
            message: Arc::new(message(word)),
            tokens: Chars4.message(&message(word)),
        },
    };
    assert_eq!(
        refused(&with(vec![drop(1, 7)], 714)),
        PlanError::NotInView(seq(7))
    );
    assert_eq!(
        refused(&with(vec![drop(1, 3)], 14 + 229 + 14)),
        PlanError::PartsExchange(seq(3))
    );
    assert_eq!(
        refused(&with(vec![drop(2, 2)], 229)),
        PlanError::PartsExchange(seq(1))
    );
    assert_eq!(
        refused(&with(vec![shrink(2, "r:c1*2000")], 5)),
        PlanError::NotLighter(seq(2))
    );
    assert_eq!(
        refused(&with(vec![drop(1, 2)], 1)),
        PlanError::WrongGain {
            stated: Tokens(1),
            actual: Tokens(243).minus(marker(2).tokens)
        }
    );
    // A view that looks the same but for one message: other results, other calls, other roles.
    assert_eq!(
        refused(&with(vec![shrink(2, "r:c9*100")], 200)),
        PlanError::NotItsForm(seq(2))
    );
    assert_eq!(
        refused(&with(vec![shrink(2, "r!:c1*100")], 200)),
        PlanError::NotItsForm(seq(2))
    );
    assert_eq!(
        refused(&with(vec![shrink(1, "a:[c7]")], 200)),
        PlanError::NotItsForm(seq(1))
    );
    // No edit at all is no plan.
    assert_eq!(refused(&with(vec![], 0)), PlanError::FreesNothing);
    // The real thing, twice: the second time it does not match any more.
    let mut twice = here.clone();
    twice.apply(&mine).unwrap();
    let after = (seqs(&twice), twice.tokens());
    twice.apply(&mine).unwrap_err();
    assert_eq!((seqs(&twice), twice.tokens()), after);
}

/// A1, A3: what is removed is given back as it stood, in view order.
#[test]
fn what_a_plan_releases_is_what_left() {
    let old = view("u:task a:[c1] r:c1*900 a:[c2] r:c2*900 u:more a:[c3] r:c3*900");
    let plan = only(Evict::Oldest).best_plan(&old, &budget(300, 300), Trigger::Request);
    let mut new = old.clone();
    let released = new.apply(&plan.unwrap()).unwrap();
    let left: Vec<_> = released.items.iter().map(|item| item.seq.0).collect();
    assert_eq!(left, [1, 2, 3, 4]);
    for item in &released.items {
        assert_eq!(item.message, old.get(item.seq).unwrap().message);
        assert!(new.items().iter().all(|left| left.message != item.message));
    }
    let weight: Tokens = released.items.iter().map(|item| item.tokens).sum();
    let marker = new.get(plimsoll_context::Seq(1)).unwrap();
    assert_eq!(weight, released.freed + marker.tokens);
}

/// R7, V1: no clock, no counter, no chance in what the model sees.
#[test]
fn the_same_history_twice_gives_the_same_bytes() {
    let run = || {
        let (policy, budget) = evict(600);
        let mut view = view("s:rule u:task");
        let mut bytes = String::new();
        for n in 0..40 {
            view.push(message(&format!("a:[c{n}]")));
            view.mark_sent();
            view.push(message(&format!("r:c{n}*{}", n * 97 % 2_000)));
            if let Some(plan) = policy.plan(&view, &budget, Trigger::Request).unwrap() {
                bytes.push_str(&serde_json::to_string(&plan).unwrap());
                view.apply(&plan).unwrap();
            }
            view.mark_sent();
        }
        for item in view.items() {
            bytes.push_str(&serde_json::to_string(&item.message).unwrap());
        }
        bytes
    };
    assert_eq!(run(), run());
}

/// C6: `ceil(len / 4)`, and a counter of one's own.
#[test]
fn a_counter_of_ones_own_decides() {
    #[derive(Debug)]
    struct Words;
    impl TokenCounter for Words {
        fn name(&self) -> &str {
            "words"
        }
        fn text(&self, text: &str) -> Tokens {
            Tokens(text.split_whitespace().count() as u64)
        }
    }
    let mut words = Transcript::new(Arc::new(Words));
    words.push(Message::user("one two three"));
    assert_eq!(words.tokens(), Tokens(4 + 3));
    assert_eq!(view("u:abcde").tokens(), Tokens(4 + 2));
    // It is this counter that a shortened result is weighed with.
    words.push(message("a:[c1]"));
    words.push(message("r:c1*9000"));
    let plan = only(Fit::Results).best_plan(&words, &budget(100, 100), Trigger::Request);
    let plan = plan.unwrap();
    words.apply(&plan).unwrap();
    assert_eq!(
        words.tokens(),
        words
            .items()
            .iter()
            .map(|i| Words.message(&i.message))
            .sum()
    );
    assert!(words.tokens() <= Tokens(100) && words.tokens() > Tokens(80));
}

/// A plan is what the log keeps: it must survive JSON.
#[test]
fn a_plan_survives_json() {
    let view = view("u:task a:[c1] r:c1*900 a:[c2] r:c2*900 u:more a:[c3] r:c3*900");
    let plan =
        Policy::recovery(prune(), None).best_plan(&view, &budget(300, 300), Trigger::Overflow);
    let plan = plan.unwrap();
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}

#[test]
fn fill_brings_back_what_still_fits() {
    let line = ViewLimits::exactly(Tokens(300));
    let budget = line.budget(Tokens(0), Tokens::ZERO, Calibration::default());
    let (budget, filter) = (budget.unwrap(), |policy: Policy| {
        policy.for_filter().filled()
    });
    check(
        &filter(Policy::evict(prune())),
        &budget,
        &[
            (
                "a pruned result grows again as far as there is space",
                "u:task a:[c1] r:c1*2000 a:[c2] r:c2*200 a:[c3] r:c3*200",
                "u:task a:[c1] r:c1~570 a:[c2] r:c2*200 a:[c3] r:c3*200",
            ),
            (
                "nothing is due",
                "u:task a:[c1] r:c1*400 a:[c2] r:c2*200 a:[c3] r:c3*200",
                "u:task a:[c1] r:c1*400 a:[c2] r:c2*200 a:[c3] r:c3*200",
            ),
        ],
    );
    check(
        &filter(Policy::sliding_window()),
        &budget,
        &[
            (
                "the newest turn that was removed comes back with a shorter result",
                "u:task a:done u:first a:[c1] r:c1*2000 a:ok u:now a:[c2] r:c2*200",
                "u:task a:done u:first a:[c1] r:c1~730 a:ok u:now a:[c2] r:c2*200",
            ),
            (
                "of a turn that is too large, the question comes back with the last step",
                "u:task a:done u:first*2000 a:[c1] r:c1*2000 a:ok u:now a:[c2] r:c2*200",
                "u:task a:done u:first~760 gap:2 a:ok u:now a:[c2] r:c2*200",
            ),
            (
                "an answer is shortened if there is no result",
                "u:task a:done u:first a:old*400 u:second a:large*9000 u:now a:[c2] r:c2*200",
                "u:task gap:3 u:second a:large~800 u:now a:[c2] r:c2*200",
            ),
        ],
    );
}

/// A line at exactly a size is for filters: trigger, target and limit are one.
#[test]
fn a_filter_fills_what_it_is_given() {
    let line = ViewLimits::exactly(Tokens(300));
    let budget = line
        .budget(Tokens(0), Tokens::ZERO, Calibration::default())
        .unwrap();
    assert_eq!(line.trigger, Threshold::Sent(Tokens(300)));
    let old = view("u:task a:[c1] r:c1*400 a:[c2] r:c2*400 a:[c3] r:c3*400");
    let policy = Policy::sliding_window().for_filter();
    let mut new = old.clone();
    let plan = policy.plan(&old, &budget, Trigger::Asked).unwrap().unwrap();
    new.apply(&plan).unwrap();
    assert_eq!(
        show(&new, &old),
        "u:task gap:2 a:[c2] r:c2*400 a:[c3] r:c3*400"
    );
    assert_eq!(policy.plan(&new, &budget, Trigger::Asked), Ok(None));
}

/// A batch that is larger than the size to fill: its results are shortened, the oldest to their
/// markers, since most of the size would stay unused otherwise.
#[test]
fn a_filter_keeps_a_part_of_a_batch_that_is_larger_than_its_size() {
    let ids: Vec<String> = (0..500).map(|id| format!("c{id}")).collect();
    let results: Vec<String> = ids.iter().map(|id| format!("r:{id}*320")).collect();
    let chat = format!("u:task a:[{}] {} a:done", ids.join(","), results.join(" "));
    let view = view(&chat);
    let target = Tokens(20_000);
    assert!(view.tokens() > target.times(2), "{}", view.tokens());
    for strategy in [
        ContextStrategy::SlidingWindow { max_tokens: None },
        ContextStrategy::Evict { max_tokens: None },
        ContextStrategy::Extract { max_tokens: None },
    ] {
        let policy = strategy.filter_policy(SummaryConfig::default().without_model());
        let policy = policy.for_filter().filled();
        let line = ViewLimits::exactly(target);
        let budget = line.budget(Tokens(0), Tokens::ZERO, Calibration::default());
        let plan = policy.plan(&view, &budget.unwrap(), Trigger::Asked);
        let mut after = view.clone();
        after.apply(&plan.unwrap().unwrap()).unwrap();
        assert!(after.tokens() <= target, "{strategy}");
        assert!(
            after.tokens() > target.share(Ppm(900_000)),
            "{strategy}: {}",
            after.tokens()
        );
        let texts = after.items().iter().map(|item| item.message.text());
        let texts: Vec<String> = texts.collect();
        assert_eq!(texts.len(), 503, "{strategy}: nothing is removed");
        assert!(texts[2].starts_with("[pruned: 320 bytes"), "{}", texts[2]);
        assert!(
            texts[501].len() > texts[2].len(),
            "the newest say more: {}",
            texts[501]
        );
    }
}
