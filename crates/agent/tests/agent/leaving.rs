//! Messages are shown to the host before they are evicted. Covers acceptance and vetoes, before a
//! request and on the ladder, with interrupts and crashes at each step.

use std::collections::BTreeSet;

use plimsoll_agent::{AtLimit, Decision, EndReason, Event, Input, Setup};
use plimsoll_context::{ContextStrategy, Form, Message, Part, Recall, Seq, Tokens};

use crate::stage::audit::{audit, carried_on};
use crate::stage::{Stage, good_summary, limits, overflow, plan_hooks, strategy, summarizing};

const NAMES: [&str; 4] = ["sliding_window", "evict", "summarize", "extract"];

fn asked(name: &str) -> Setup {
    let max_tokens = Some(Tokens(6_000));
    Setup {
        hooks: plan_hooks(),
        recall: Recall::Offered,
        limits: limits(1_000, None, AtLimit::Finalize).limits,
        summary_model: (name == "summarize")
            .then(|| summarizing(6_000, 8_000).summary_model.unwrap()),
        ..strategy(ContextStrategy::named(name, max_tokens).unwrap(), None)
    }
}

fn veto() -> Decision {
    Decision::No {
        why: "not now".into(),
    }
}

/// Turns of 3 KB; summaries are written as they are asked for.
fn turns(stage: &mut Stage, from: usize, to: usize) {
    for n in from..to {
        stage.turn(n, 3_000, &mut |stage| {
            stage.summary(&good_summary("as asked"));
        });
    }
}

/// Turns until the host is asked, and takes its time; the number of the next turn.
fn until_host_asked(stage: &mut Stage, from: usize) -> usize {
    stage.host_waits = true;
    for n in from..from + 100 {
        turns(stage, n, n + 1);
        if stage.host_asked {
            return n + 1;
        }
    }
    panic!("the host is not asked");
}

#[test]
fn every_compaction_is_asked_about_and_every_plan_told() {
    for name in NAMES {
        let mut stage = Stage::new(asked(name));
        stage.say("the task");
        turns(&mut stage, 0, 40);
        stage.text("done");
        assert!(stage.plans() > 2, "{name}");
        let compactions = stage
            .events
            .iter()
            .filter(|event| matches!(event, Event::PlanApplied(applied) if applied.is_compaction));
        assert_eq!(stage.leaving, compactions.count(), "{name}");
        assert_eq!(stage.gone.len(), stage.plans(), "{name}");
        // Every message that left did so once, and none came back.
        let (mut left, mut removed) = (BTreeSet::new(), BTreeSet::new());
        for gone in &stage.gone {
            assert!(
                gone.iter().any(|item| item.removed) || ["evict", "extract"].contains(&name),
                "{name}"
            );
            for of in gone {
                let is_result = matches!(*of.message, Message::ToolResult(_));
                assert_eq!(of.tool.as_deref(), is_result.then_some("read"), "{name}");
                left.insert(of.seq);
                assert!(
                    !of.removed || removed.insert(of.seq),
                    "{name}: it left once"
                );
            }
        }
        // Everything that is not in the view as it was left.
        let view = stage.run.state().transcript();
        for seq in (0..view.next_seq().0).map(Seq) {
            let there = view
                .get(seq)
                .is_some_and(|item| item.form == Form::Original);
            assert!(there || left.contains(&seq), "{name}: {seq} is lost");
        }
        audit(&stage);
    }
}

#[test]
fn a_veto_leaves_the_view_as_it_is_for_this_request() {
    // Under a share of the window there is room between trigger and limit.
    let mut setup = asked("evict");
    setup.line = plimsoll_context::ViewLimits {
        window: Some(Tokens(8_000)),
        ..plimsoll_context::ViewLimits::default()
    };
    let mut stage = Stage::new(setup);
    stage.say("the task");
    let n = until_host_asked(&mut stage, 0);
    let before: Vec<Seq> = seqs(&stage);
    stage.left(veto());
    assert!(stage.calling, "the request is made all the same");
    assert_eq!(seqs(&stage), before);
    assert_eq!(stage.plans(), 0);
    assert!(stage.gone.is_empty());
    assert!(stage.warnings()[0].contains("not now"));
    // The next request is asked about anew.
    until_host_asked(&mut stage, n);
    stage.left(Decision::Go);
    assert_eq!(stage.plans(), 1);
    stage.host_waits = false;
    stage.text("done");
    audit(&stage);
}

fn seqs(stage: &Stage) -> Vec<Seq> {
    let items = stage.run.state().transcript().items();
    items.iter().map(|item| item.seq).collect()
}

/// A veto leaves the view as it is: it may outgrow the trigger, and only the window ends the run.
#[test]
fn after_a_veto_the_run_goes_on_up_to_the_window() {
    for name in NAMES {
        let mut setup = asked(name);
        setup.line.window = Some(Tokens(20_000));
        let mut stage = Stage::new(setup);
        stage.say("the task");
        turns(&mut stage, 0, 3);
        let sent = stage.requests.len();
        stage.verdict = veto();
        for n in 3..60 {
            if !stage.run.is_running() {
                break;
            }
            turns(&mut stage, n, n + 1);
        }
        let EndReason::CannotFit { cannot_fit } = &stage.outcome().reason else {
            panic!("{name}: {:?}", stage.outcome());
        };
        assert!(cannot_fit.minimum > cannot_fit.limit, "{name}");
        assert_eq!(
            cannot_fit.limit,
            Tokens(20_000 - 4_096),
            "{name}: the window"
        );
        assert!(stage.requests.len() > sent, "{name}");
        let largest = stage.requests.iter().map(|sent| sent.request.counted).max();
        assert!(largest > Some(Tokens(12_000)), "{name}: {largest:?}");
        assert_eq!(stage.plans(), 0, "{name}");
        // The session lives: once the host agrees, it goes on.
        stage.verdict = Decision::Go;
        stage.say("and now?").finish();
        assert_eq!(stage.outcome().reason, EndReason::Answered, "{name}");
        audit(&stage);
    }
}

#[test]
fn in_the_ladder_too() {
    for name in NAMES {
        for verdict in [Decision::Go, veto()] {
            let mut stage = Stage::new(asked(name));
            stage.say("the task");
            turns(&mut stage, 0, 5);
            stage.verdict = verdict.clone();
            let asked = stage.leaving;
            stage.refuse(overflow(Some(9_000), Some(4_000)));
            assert!(stage.leaving > asked, "{name}: it is asked");
            match &verdict {
                Decision::No { .. } => {
                    assert!(!stage.calling, "{name}");
                    let reason = &stage.outcome().reason;
                    assert!(
                        matches!(reason, EndReason::Failed { .. }),
                        "{name}: {reason:?}"
                    );
                }
                Decision::Go => assert!(stage.calling, "{name}"),
            }
            stage.verdict = Decision::Go;
            if !stage.run.is_running() {
                stage.say("go on");
            }
            stage.finish();
            audit(&stage);
        }
    }
}

/// An interrupt while the host makes up its mind: nothing has left, and what it says is too late.
#[test]
fn an_interrupt_while_the_host_is_asked() {
    for name in NAMES {
        for in_the_ladder in [false, true] {
            let mut stage = Stage::new(asked(name));
            stage.say("the task");
            if in_the_ladder {
                turns(&mut stage, 0, 5);
                stage.host_waits = true;
                stage.refuse(overflow(Some(9_000), Some(4_000)));
                assert!(stage.host_asked, "{name}");
            } else {
                until_host_asked(&mut stage, 0);
            }
            let before = seqs(&stage);
            stage.interrupt();
            assert_eq!(stage.outcome().reason, EndReason::Interrupted, "{name}");
            assert_eq!(seqs(&stage), before, "{name}");
            stage.tell(Input::Decided(Decision::Go));
            assert_eq!(seqs(&stage), before, "{name}: too late");
            stage.host_waits = false;
            stage.say("go on").finish();
            assert_eq!(stage.outcome().reason, EndReason::Answered, "{name}");
            audit(&stage);
        }
    }
}

/// A message that comes while the host is asked is read with the next request.
#[test]
fn a_steer_while_the_host_is_asked() {
    for name in NAMES {
        let mut stage = Stage::new(asked(name));
        stage.say("the task");
        until_host_asked(&mut stage, 0);
        stage.say("look left");
        assert!(!stage.calling, "{name}");
        stage.left(Decision::Go);
        while stage.host_asked {
            stage.left(Decision::Go);
        }
        stage.summaries_by(&mut |stage| {
            stage.summary(&good_summary("steered"));
        });
        while stage.host_asked {
            stage.left(Decision::Go);
        }
        assert_eq!(stage.seen().last().unwrap().text(), "look left", "{name}");
        stage.host_waits = false;
        stage.text("done");
        audit(&stage);
    }
}

/// The process dies between the host's yes and the plan's entry, and at every other moment.
#[test]
fn a_crash_at_any_entry_carries_on() {
    for name in NAMES {
        let mut stage = Stage::new(asked(name));
        stage.say("the task");
        until_host_asked(&mut stage, 0);
        for end in 0..=stage.log.len() {
            carried_on(&stage, end, Input::Continue);
            carried_on(
                &stage,
                end,
                Input::User(vec![Part::text("and now?")].into()),
            );
        }
        stage.left(Decision::Go);
        stage.host_waits = false;
        turns(&mut stage, 50, 60);
        stage.text("done");
        audit(&stage);
    }
}

#[test]
fn a_host_that_is_not_asked_hears_nothing() {
    let mut stage = Stage::new(Setup {
        hooks: BTreeSet::new(),
        recall: Recall::None,
        ..asked("evict")
    });
    stage.say("the task");
    turns(&mut stage, 0, 20);
    assert!(stage.plans() > 0);
    assert!(stage.leaving == 0 && stage.gone.is_empty());
    stage.text("done");
    audit(&stage);
}
