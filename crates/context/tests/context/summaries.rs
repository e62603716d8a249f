//! The requests and insertions of the stages `summarize` and `extract`, on views in one line of
//! text. The text of an extract is tested in `extract.rs`, and the call of the model with the
//! machine.

use std::sync::Arc;

use plimsoll_context::{
    Author, Budget, Chars4, Edit, Fingerprint, Message, Plan, PlanContext, Policy, Ppm, Proposal,
    ReadySummary, Recall, Seq, Summarize, SummaryConfig, SummaryRange, TokenCounter, Tokens,
    Transcript, Trigger,
};
use plimsoll_testkit::notation::view;

/// 1,000 tokens at the limit and the trigger, 500 at the target; a summary takes 150 at most.
fn budget() -> Budget {
    Budget {
        limit: Tokens(1_000),
        trigger: Tokens(1_000),
        target: Tokens(500),
        max_result: Tokens(400),
        keep_recent: 1,
        overhead: Tokens(0),
        instructions: Tokens(0),
    }
}

fn config() -> SummaryConfig {
    SummaryConfig {
        share: Ppm(300_000),
        ..SummaryConfig::default()
    }
}

fn only(author: Author) -> Policy {
    Policy::new(vec![Arc::new(Summarize(SummaryConfig {
        author,
        ..config()
    }))])
}

fn propose(view: &Transcript, budget: &Budget, means: &PlanContext) -> Proposal {
    only(Author::Model).best_proposal(view, budget, Trigger::Request, means)
}

fn free() -> PlanContext {
    PlanContext {
        can_summarize: true,
        ..PlanContext::default()
    }
}

fn ready(span: &SummaryRange, text: &str) -> PlanContext {
    PlanContext {
        ready: Some(ReadySummary {
            seqs: span.seqs.clone(),
            fingerprint: span.fingerprint,
            text: text.into(),
        }),
        ..free()
    }
}

/// What a summary covers, by number.
fn covered(plan: &Plan) -> Vec<u64> {
    let edits = plan.edits.iter().filter_map(|edit| match edit {
        Edit::Summarize { covers, .. } => Some(covers),
        _ => None,
    });
    let ranges = edits.flatten();
    ranges
        .flat_map(|range| range.first.0..=range.last.0)
        .collect()
}

fn seqs(span: &SummaryRange) -> Vec<u64> {
    span.seqs.iter().map(|seq| seq.0).collect()
}

fn weight(view: &Transcript, seqs: &[Seq]) -> Tokens {
    seqs.iter().map(|seq| view.get(*seq).unwrap().tokens).sum()
}

/// 5 for the task, 14 a call, 304 a result.
const FULL: &str = "u:task a:[c1] r:c1*1200 a:[c2] r:c2*1200 a:[c3] r:c3*1200 a:[c4] r:c4*1200";

#[test]
fn what_is_covered() {
    for (says, before, covers) in [
        (
            "nothing at the trigger",
            "u:task a:[c1] r:c1*1200 a:[c2] r:c2*1200 a:[c3] r:c3*1200",
            vec![],
        ),
        (
            "the oldest, as many as it takes; task and newest exchange stay",
            FULL,
            vec![1, 2, 3, 4, 5, 6],
        ),
        (
            "the former summary with them, and one is left",
            "u:task S:old*400 a:[c1] r:c1*1200 a:[c2] r:c2*1200 a:[c3] r:c3*1200",
            vec![1, 2, 3, 4, 5],
        ),
        (
            "two former summaries become one",
            "u:task S:old*400 S:new*400 a:[c1] r:c1*1200 a:[c2] r:c2*1200 a:[c3] r:c3*1200",
            vec![1, 2, 3, 4, 5, 6],
        ),
        (
            "a pinned result keeps its exchange; what is around it is covered",
            "u:task a:[c1] r:c1*1200 a:[c2] +r:c2*400 a:[c3] r:c3*1200 a:[c4] r:c4*1200 a:[c5] r:c5*400",
            vec![1, 2, 5, 6, 7, 8],
        ),
        (
            "what nobody has read stays",
            "u:task a:[c1] r:c1*1200 a:[c2] r:c2*1200 a:[c3] | r:c3*1200 u:more*1200",
            vec![1, 2, 3, 4],
        ),
        (
            "questions between the first and the newest are summed up",
            "u:task a:ok*800 u:second*800 a:ok*800 u:third*800 a:ok*800 u:now a:[c1] r:c1*800",
            vec![1, 2, 3, 4, 5],
        ),
        (
            "a former summary alone is not summed up again",
            "u:task*1600 S:old*1600 a:[c3] r:c3*1600",
            vec![],
        ),
    ] {
        for author in [Author::Extract, Author::Model] {
            let view = view(before);
            let plan = only(author).best_plan(&view, &budget(), Trigger::Request);
            let found = plan.as_ref().map(covered).unwrap_or_default();
            assert_eq!(found, covers, "{says}");
            let Some(plan) = plan else { continue };
            let mut after = view.clone();
            after.apply(&plan).unwrap();
            assert!(
                after.tokens() <= budget().target || after.items().len() <= 5,
                "{says}"
            );
            let summaries = after.items().iter();
            let summaries = summaries.filter(|i| matches!(*i.message, Message::Summary { .. }));
            let summaries: Vec<_> = summaries.collect();
            assert_eq!(summaries.len(), 1, "{says}");
            assert!(summaries[0].tokens <= config().most(&budget()), "{says}");
            assert_eq!(
                summaries[0].seq.0, covers[0],
                "{says}: where the first stood"
            );
        }
    }
}

#[test]
fn a_model_is_asked_when_there_is_one_and_something_to_do() {
    let soon = "u:task a:[c1] r:c1*1200 a:[c2] r:c2*1200 a:[c3] r:c3*1000";
    let (soon, full) = (view(soon), view(FULL));
    assert!(soon.tokens() <= budget().trigger);
    let asked = propose(&soon, &budget(), &free());
    assert_eq!((asked.wants, asked.plan), (None, None), "it is not due");
    let asked = propose(&full, &budget(), &free());
    let span = asked.wants.unwrap();
    assert_eq!(seqs(&span), [1, 2, 3, 4, 5, 6]);
    assert_eq!(span.tokens, weight(&full, &span.seqs));
    assert!(span.max <= config().most(&budget()));
    assert!(asked.plan.is_some(), "and what can be done without it");
    for none in [
        view("u:task a:[c1] r:c1*1200"),
        view("u:task*3000 a:[c1] r:c1*1200"),
    ] {
        assert_eq!(
            propose(&none, &budget(), &free()).wants,
            None,
            "nothing may leave"
        );
    }
    assert_eq!(
        propose(&full, &budget(), &PlanContext::default()).wants,
        None
    );
    let extract = only(Author::Extract);
    let proposal = extract.best_proposal(&full, &budget(), Trigger::Request, &free());
    assert_eq!(proposal.wants, None);
}

#[test]
fn one_that_is_ready_is_put_in_where_its_span_is_what_it_was() {
    let full = view(FULL);
    let span = propose(&full, &budget(), &free()).wants.unwrap();
    let means = ready(&span, "all is well");
    let Proposal { plan, wants } = propose(&full, &budget(), &means);
    assert_eq!(wants, None);
    let plan = plan.unwrap();
    let Edit::Summarize { to, .. } = &plan.edits[0] else {
        panic!("{plan:?}");
    };
    assert_eq!(
        to.message.text(),
        "[This summary replaces 6 messages]\n\nall is well"
    );
    // It is of less than there is by now, but enough.
    let grown = view(&format!("{FULL} a:[c5] r:c5*200"));
    let plan = propose(&grown, &budget(), &means).plan.unwrap();
    assert_eq!(covered(&plan), [1, 2, 3, 4, 5, 6]);
    // It is of something else.
    for changed in [
        "u:task a:[c1] r:c1*1201 a:[c2] r:c2*1200 a:[c3] r:c3*1200 a:[c4] r:c4*1200",
        "u:task a:[c1] +r:c1*1200 a:[c2] r:c2*1200 a:[c3] r:c3*1200 a:[c4] r:c4*1200",
        "u:task a:[c1] r:c1*1200 a:[c2] r:c2*1200 n:note*1200 a:[c4] r:c4*1200",
    ] {
        let changed = view(changed);
        let Proposal { plan, wants } = propose(&changed, &budget(), &means);
        assert!(wants.is_some(), "a new one is asked for");
        for edit in &plan.unwrap().edits {
            if let Edit::Summarize { to, .. } = edit {
                assert_ne!(to.message.text(), "all is well");
            }
        }
    }
    // One that lies about what it is of.
    let mut lies = ready(&span, "all is well");
    lies.ready.as_mut().unwrap().fingerprint = Fingerprint::of([&Message::user("other")]);
    assert!(propose(&full, &budget(), &lies).wants.is_some());
}

/// A model that has done what it can is not asked again, or the run would wait without end.
#[test]
fn one_that_does_not_bring_the_view_under_its_trigger_is_used_all_the_same() {
    let budget = Budget {
        limit: Tokens(2_000),
        ..budget()
    };
    let heavy = "u:task*2800 a:[c1] r:c1*600 a:[c2] r:c2*600 a:[c3] r:c3*1200";
    let heavy = view(heavy);
    let span = propose(&heavy, &budget, &free()).wants.unwrap();
    for text in ["all is well", &"words that go on ".repeat(4_000)] {
        let Proposal { plan, wants } = propose(&heavy, &budget, &ready(&span, text));
        assert_eq!(wants, None);
        let plan = plan.unwrap();
        assert!(plan.after() > budget.trigger, "it does not help enough");
        let mut after = heavy.clone();
        after.apply(&plan).unwrap();
        let again = propose(&after, &budget, &free());
        assert_eq!(
            (again.plan, again.wants),
            (None, None),
            "planning again at once is empty"
        );
    }
}

#[test]
fn one_that_overshoots_is_not_cut_but_left_out() {
    let full = view(FULL);
    let span = propose(&full, &budget(), &free()).wants.unwrap();
    let plan = propose(&full, &budget(), &ready(&span, &"words ".repeat(10_000)))
        .plan
        .unwrap();
    let Edit::Summarize { to, .. } = &plan.edits[0] else {
        panic!("{plan:?}");
    };
    assert!(to.tokens <= span.max, "{} > {}", to.tokens, span.max);
    assert_eq!(to.tokens, Chars4.message(&to.message));
    assert!(
        !to.message.text().contains("words words"),
        "nothing cuts it"
    );
}

/// Where even a summary is too much, what it stands for leaves without one, and nobody is asked.
#[test]
fn where_even_a_summary_is_too_much_it_is_left_out() {
    let policy = Policy::summarize(config());
    let budget = Budget {
        limit: Tokens(1_020),
        ..budget()
    };
    let tight = view("u:task*3600 a:[c1] r:c1*900 a:[c2] r:c2*900 a:[c3] r:c3*400");
    let Proposal { plan, wants } = policy
        .propose(&tight, &budget, Trigger::Request, &free())
        .unwrap();
    assert_eq!(wants, None);
    let mut after = tight.clone();
    after.apply(&plan.unwrap()).unwrap();
    assert!(after.tokens() <= budget.limit);
    assert_eq!(after.items().len(), 4, "task, marker and newest exchange");
}

#[test]
fn a_plan_with_a_summary_says_whether_what_it_takes_can_be_recalled() {
    let means = PlanContext {
        recall: Recall::Offered,
        ..PlanContext::default()
    };
    let plan = propose(&view(FULL), &budget(), &means).plan.unwrap();
    assert_eq!(plan.recall, Recall::Offered);
    assert_eq!(plan.rewrites_from, Some(Seq(1)));
    let json = serde_json::to_string(&plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
}
