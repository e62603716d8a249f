//! The effect of each stage and preset policy on a view: the cases of `stages.txt`, and tests that
//! look at more than the view. The invariants over random histories are in `properties.rs`.

use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{
    Budget, Bytes, Calibration, CannotFit, Cap, Chars4, ContextStrategy, Edit, Evict, Fit, Message,
    Plan, PlanError, Policy, Ppm, Prune, SessionPruneConfig, Stage, SummaryConfig, Threshold,
    TokenCounter, Tokens, Transcript, Trigger, ViewLimits,
};
use plimsoll_testkit::cases::{self, Case};
use plimsoll_testkit::notation::{message, seqs, show, view};

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

#[test]
fn the_cases() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/context/stages.txt");
    cases::check(&path, |case| {
        let (policy, budget) = setting(case);
        vec![outcome(&policy, &budget, case.get("view").unwrap())]
    });
}

/// Returns the policy and the budget of a case.
fn setting(case: &Case) -> (Policy, Budget) {
    let numbers = case.get("budget").unwrap_or_default().split(' ');
    let numbers: Vec<u64> = numbers.filter_map(|number| number.parse().ok()).collect();
    let max_tokens = numbers.first().copied().map(Tokens);
    let eager = SessionPruneConfig {
        eager: true,
        ..prune()
    };
    let with_task = SessionPruneConfig {
        preserve_task: false,
        ..prune()
    };
    let preset = |preset| strategy(preset, 0).unwrap();
    let filled = |policy: Policy| {
        let line = ViewLimits::exactly(max_tokens.unwrap());
        let budget = line.budget(Tokens(0), Tokens::ZERO, Calibration::default());
        (policy.for_filter().filled(), budget.unwrap())
    };
    let policy = match case.get("policy").unwrap() {
        "unlimited" => return preset(ContextStrategy::Unlimited {}),
        "sliding_window" => return preset(ContextStrategy::SlidingWindow { max_tokens }),
        "evict" => return preset(ContextStrategy::Evict { max_tokens }),
        "filled evict" => return filled(Policy::evict(prune())),
        "filled sliding_window" => return filled(Policy::sliding_window()),
        "cap arrivals" => only(Cap::Arrivals),
        "cap all" => only(Cap::All),
        "prune" => only(Prune(prune())),
        "prune eager" => only(Prune(eager)),
        "prune with task" => only(Prune(with_task)),
        "evict hopeless" => only(Evict::Hopeless),
        "evict oldest" => only(Evict::Oldest),
        "fit results" => only(Fit::Results),
        "fit everything" => only(Fit::Everything),
        "recovery" => Policy::recovery(prune(), None),
        other => panic!("there is no policy `{other}`"),
    };
    let keep_recent = case.get("keep").map_or(1, |keep| keep.parse().unwrap());
    let [trigger, target] = numbers[..] else {
        panic!("give trigger and target");
    };
    let budget = Budget {
        keep_recent,
        ..budget(trigger, target)
    };
    (policy, budget)
}

/// Returns the view after the plan, for which everything holds that holds for any plan.
fn outcome(policy: &Policy, budget: &Budget, before: &str) -> String {
    let old = view(before);
    let mut new = old.clone();
    let plan = policy.best_plan(&old, budget, Trigger::Request);
    let again = policy.best_plan(&view(before), budget, Trigger::Request);
    assert_eq!(plan, again, "the same view, the same plan");
    if let Some(plan) = &plan {
        let released = new.apply(plan).unwrap();
        assert_eq!(released.freed, plan.frees);
        assert_eq!(plan.before, old.tokens());
        assert_eq!(plan.after(), new.tokens());
        assert!(new.tokens() < old.tokens(), "strictly lighter");
        assert!(!plan.stages.is_empty(), "somebody did it");
        let first = plan.edits.first().map(first_edited);
        let sent = first.filter(|seq| *seq < old.sent());
        assert_eq!(plan.rewrites_from, sent);
    }
    assert_weighed(&new);
    assert_paired(&new);
    let again = policy.best_plan(&new, budget, Trigger::Request);
    assert_eq!(again, None, "planning again at once is empty");
    show(&new, &old)
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
fn assert_paired(view: &Transcript) {
    let mut open = Vec::new();
    for item in view.items() {
        match item.message.as_ref() {
            Message::ToolResult(result) => {
                assert!(!open.is_empty(), "an orphan");
                assert_eq!(open.remove(0), result.call);
            }
            message => {
                assert!(open.is_empty(), "unanswered");
                open = message.calls().map(|call| call.id.clone()).collect();
            }
        }
    }
}

/// H7, R10, R13.
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
fn evict_hopeless_changes_nothing_of_what_comes_out() {
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
/// H2.
/// The default.
fn sliding(trigger: u64) -> (Policy, Budget) {
    let max_tokens = Some(Tokens(trigger));
    strategy(ContextStrategy::SlidingWindow { max_tokens }, 0).unwrap()
}

fn evict(trigger: u64) -> (Policy, Budget) {
    let max_tokens = Some(Tokens(trigger));
    strategy(ContextStrategy::Evict { max_tokens }, 0).unwrap()
}

fn strategy(strategy: ContextStrategy, overhead: u64) -> Result<(Policy, Budget), CannotFit> {
    let line = strategy.line(ViewLimits::default());
    let budget = line.budget(Tokens(overhead), Tokens::ZERO, Calibration::default())?;
    Ok((strategy.policy(None, SummaryConfig::default()), budget))
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
