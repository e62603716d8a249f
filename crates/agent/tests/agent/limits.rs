//! Limits, played on the stage of `stage/`: the choice of the last call, the message to the model,
//! and the end of the run. Loops are in `loops.rs`.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{
    AtLimit, CountTokens, EndReason, Entry, ExecutionLimits, ExecutionTracker, Failure, Input,
    LimitKind, PartialAnswer, Setup, Spend, ToolChoice,
};
use plimsoll_context::{
    Bytes, CallId, Message, Money, Part, PriceSheet, Rates, Tokens, ToolResult, Usage,
};

use crate::stage::audit::audit;
use crate::stage::{self, Stage, limits, setup, summarizing};

fn limited(limits: ExecutionLimits) -> Setup {
    Setup {
        limits: Arc::new(limits),
        ..setup()
    }
}

/// 152,000 processed, nearly all from the cache.
fn cached(new: u64) -> Option<Usage> {
    Some(Usage {
        input: Tokens(new),
        cache_read: Tokens(152_000 - new),
        ..Usage::default()
    })
}

fn dollars(dollars: f64) -> Money {
    Money::from_dollars(dollars).unwrap()
}

/// A dollar for a thousand fresh tokens, and nothing else.
fn priced(max_cost: f64, at_limit: AtLimit) -> Setup {
    let rates = Rates {
        input: dollars(1_000.0),
        ..Rates::FREE
    };
    Setup {
        sheet: Some(PriceSheet::of(rates)),
        ..limited(ExecutionLimits {
            max_cost: Some(dollars(max_cost)),
            at_limit: Some(at_limit),
            ..ExecutionLimits::turns(50)
        })
    }
}

/// Turns with one read each until the run ends; gives the number of model calls.
fn read_on(stage: &mut Stage, usage: impl Fn(u64) -> Option<Usage>) -> usize {
    stage.say("go");
    for n in 0..60 {
        if stage.outcomes.len() == 1 {
            break;
        }
        let id = format!("c{n}");
        let last = stage.requests.last().unwrap().request.tool_choice == ToolChoice::None;
        let parts = if last {
            vec![Part::text("what I know")]
        } else {
            vec![stage::words::call(&format!("{id}:read:{{\"n\":{n}}}"))]
        };
        stage.reply(parts, usage(n));
        if !last && stage.outcomes.is_empty() {
            stage.done(&id, "found");
        }
    }
    stage.requests.len()
}

/// R4.
#[test]
fn tokens_count_as_processed_or_as_growth() {
    for (count_tokens, calls) in [(CountTokens::Processed, 6), (CountTokens::Growth, 50)] {
        for at_limit in [AtLimit::Finalize, AtLimit::Stop] {
            let mut setup = limited(ExecutionLimits {
                max_total_tokens: Some(Tokens(1_000_000)),
                max_duration: None,
                count_tokens: Some(count_tokens),
                at_limit: Some(at_limit),
                ..ExecutionLimits::default()
            });
            setup.line.window = Some(Tokens(400_000));
            let mut stage = Stage::new(setup);
            // The first call reads all of it fresh, the others what is new.
            let usage = |n| cached(if n == 0 { 152_000 } else { 150 });
            assert_eq!(read_on(&mut stage, usage), calls, "{count_tokens:?}");
            let outcome = stage.outcome();
            match count_tokens {
                CountTokens::Growth => {
                    assert_eq!(
                        outcome.reason,
                        EndReason::Limit {
                            kind: LimitKind::MaxTurns,
                            used: 50,
                            limit: 50
                        }
                    );
                }
                CountTokens::Processed => {
                    assert!(
                        matches!(
                            outcome.reason,
                            EndReason::Limit {
                                kind: LimitKind::MaxTokens,
                                limit: 1_000_000,
                                ..
                            }
                        ),
                        "{:?}",
                        outcome.reason
                    );
                    let finalized = at_limit == AtLimit::Finalize;
                    assert_eq!(outcome.text == "what I know", finalized, "{}", outcome.text);
                }
            }
            audit(&stage);
        }
    }
}

/// S27: no call is made that would exceed the limit, the last one included.
#[test]
fn money_ends_a_run_and_the_last_call_answers() {
    let fresh = |_| {
        Some(Usage {
            input: Tokens(100),
            ..Usage::default()
        })
    };
    // Ten cents a call.
    let mut stage = Stage::new(priced(0.50, AtLimit::Finalize));
    assert_eq!(read_on(&mut stage, fresh), 3);
    assert_eq!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::MaxCost,
            limit: dollars(0.50).0,
            used: dollars(0.30).0,
        }
    );
    assert_eq!(stage.outcome().text, "what I know");
    assert_eq!(stage.outcome().cost.whole(), Some(dollars(0.30)));
    assert!(
        stage.last_request().contains("$0.2000 of the $0.5000"),
        "{}",
        stage.last_request()
    );
    audit(&stage);
    let mut stage = Stage::new(priced(0.25, AtLimit::Stop));
    assert_eq!(read_on(&mut stage, fresh), 2);
    assert_eq!(
        stage.outcome().text,
        "[Agent stopped: Max cost reached ($0.2000/$0.2500, and the next call would exceed it)]"
    );
    audit(&stage);
}

/// A read from a cache at an unknown price counts as fresh input, not as nothing.
#[test]
fn money_holds_where_the_price_of_cached_tokens_is_not_known() {
    let mut setup = priced(0.25, AtLimit::Stop);
    let sheet = setup.sheet.as_mut().unwrap();
    (sheet.rates.cache_read, sheet.rates.cache_write) = (None, None);
    let cached = |_| {
        Some(Usage {
            cache_read: Tokens(50),
            ..Usage::default()
        })
    };
    let mut stage = Stage::new(setup);
    assert_eq!(read_on(&mut stage, cached), 4);
    assert_eq!(stage.outcome().cost.known, dollars(0.20));
}

/// What a summary costs is a cost of the run.
#[test]
fn summaries_are_paid_for() {
    let mut setup = summarizing(2_000, 20_000);
    let rates = Rates {
        input: dollars(1_000.0),
        ..Rates::FREE
    };
    setup.summary_model.as_mut().unwrap().sheet = Some(PriceSheet::of(rates));
    let mut stage = Stage::new(setup);
    stage.say("go");
    for n in 0..12 {
        stage.turn(n, 900, &mut |stage| {
            stage.summary(&stage::good_summary("done"));
        });
    }
    let summaries = stage.asked_for.len() as u64;
    assert!(summaries > 0);
    let cost = stage.finish().cost;
    assert_eq!(cost.known, dollars(0.7 * summaries as f64));
    assert!(cost.unpriced > 0, "nobody knows what the other calls cost");
    assert_eq!(cost.whole(), None);
}

/// What a sub-agent used is used.
#[test]
fn what_a_tool_spent_counts() {
    let mut stage = Stage::new(limited(ExecutionLimits {
        max_total_tokens: Some(Tokens(10_000)),
        max_duration: None,
        ..ExecutionLimits::default()
    }));
    let usage = Usage {
        input: Tokens(100),
        ..Usage::default()
    };
    let call = stage::words::call("a:read");
    stage.say("go").reply(vec![call], Some(usage));
    stage.running.clear();
    let spent = Spend {
        usage: Usage {
            input: Tokens(7_800),
            output: Tokens(990),
            ..Usage::default()
        },
        turns: 3,
        tool_calls: 2,
        ..Spend::default()
    };
    stage.tell(Input::ToolDone {
        result: ToolResult {
            call: CallId("a".into()),
            parts: vec![Part::text("the child says 42")],
            is_error: false,
        },
        spent,
    });
    assert_eq!(
        stage.requests.last().unwrap().request.tool_choice,
        ToolChoice::None
    );
    stage.text("42");
    assert!(matches!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::MaxTokens,
            ..
        }
    ));
    assert_eq!(stage.outcome().tokens_used.output, Tokens(990));
    let resumed = Stage::resume(stage.log.clone(), stage.setup.clone());
    assert_eq!(resumed.run.state().usage(), stage.run.state().usage());
}

#[test]
fn a_model_that_hangs_is_cut_off_for_a_last_answer() {
    let mut stage = Stage::new(limited(ExecutionLimits {
        max_duration: Some(Duration::from_secs(100)),
        ..ExecutionLimits::turns(50)
    }));
    stage.say("go");
    assert_eq!(stage.run.deadline(), Some(Duration::from_secs(90)));
    stage.now.elapsed = Duration::from_secs(89);
    stage.tell(Input::Tick);
    assert_eq!(stage.aborts, 0, "not yet");
    stage.now.elapsed = Duration::from_secs(90);
    stage.tell(Input::Tick);
    assert_eq!((stage.aborts, stage.requests.len()), (1, 2));
    assert_eq!(stage.requests[1].request.tool_choice, ToolChoice::None);
    // A clock that goes backwards changes nothing.
    stage.now.elapsed = Duration::from_secs(3);
    assert_eq!(stage.run.deadline(), Some(Duration::from_secs(100)));
    stage.text("as far as I got");
    assert!(matches!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::MaxDuration,
            limit: 100_000,
            ..
        }
    ));
    assert_eq!(stage.outcome().text, "as far as I got");
    assert_eq!(stage.run.deadline(), None);
    audit(&stage);
}

#[test]
fn a_tool_that_hangs_is_cut_off_and_the_last_answer_too() {
    let mut stage = Stage::new(limited(ExecutionLimits {
        max_duration: Some(Duration::from_secs(1_000)),
        ..ExecutionLimits::turns(50)
    }));
    stage
        .say("go")
        .calls(&["a:read", "b:write", "c:read", "d:read"]);
    stage.done("c", "quick");
    stage.now.elapsed = Duration::from_secs(970);
    stage.tell(Input::Tick);
    let cut = "stopped while it was running; its effects are not known";
    assert_eq!(
        stage.last_request(),
        format!(
            "u go / a [a,b,c,d] / r! a {cut} / r! b {cut} / r c quick / r! d {cut} / n [The 1000 s of this run are nearly over. No tool can be called any more. Answer now from what you know, and say plainly what is done and what is not.]"
        )
    );
    stage.now.elapsed = Duration::from_secs(1_000);
    stage.tell(Input::Tick);
    assert_eq!(
        stage.outcome().text,
        "[Agent stopped: Max duration reached (1000 s/1000 s)]"
    );
    audit(&stage);
}

#[test]
fn a_summary_that_hangs_is_cut_off() {
    let mut setup = summarizing(2_000, 20_000);
    Arc::make_mut(&mut setup.limits).max_duration = Some(Duration::from_secs(100));
    let mut stage = Stage::new(setup);
    stage.say("go");
    let mut n = 0;
    while stage.calling || !stage.running.is_empty() {
        let id = format!("c{n}");
        stage.calls(&[&format!("{id}:read:{{\"n\":{n}}}")]);
        stage.done(&id, &stage::filler(n, 900));
        n += 1;
        assert!(n < 100, "no summary is asked for");
    }
    stage.now.elapsed = Duration::from_secs(95);
    stage.tell(Input::Tick);
    assert_eq!(
        stage.requests.last().unwrap().request.tool_choice,
        ToolChoice::None
    );
    stage.text("enough");
    assert_eq!(stage.outcome().text, "enough");
    audit(&stage);
}

#[test]
fn with_stop_the_time_is_the_time() {
    let mut stage = Stage::new(limited(ExecutionLimits {
        max_duration: Some(Duration::from_secs(100)),
        at_limit: Some(AtLimit::Stop),
        ..ExecutionLimits::turns(50)
    }));
    stage.say("go");
    assert_eq!(stage.run.deadline(), Some(Duration::from_secs(100)));
    stage.now.elapsed = Duration::from_secs(100);
    stage.tell(Input::Tick);
    assert_eq!((stage.aborts, stage.outcomes.len()), (1, 1));
    audit(&stage);
}

#[test]
fn memory_is_a_limit_and_is_given_back() {
    let mut stage = Stage::new(Setup {
        line: plimsoll_context::ViewLimits {
            window: Some(Tokens(1_000_000)),
            ..setup().line
        },
        ..limited(ExecutionLimits {
            max_memory: Some(Bytes(50_000)),
            ..ExecutionLimits::turns(50)
        })
    });
    assert_eq!(stage.run.state().memory(), Bytes(0));
    stage.say("go");
    let before = stage.run.state().memory();
    stage.calls(&["a:read"]).done("a", &"x".repeat(20_000));
    let grown = stage.run.state().memory().0 - before.0;
    assert!((20_000..22_000).contains(&grown), "{grown}");
    assert_eq!(
        stage.requests.last().unwrap().request.tool_choice,
        ToolChoice::Auto
    );
    stage
        .calls(&["b:read:{\"n\":2}"])
        .done("b", &"y".repeat(30_000));
    assert_eq!(
        stage.requests.last().unwrap().request.tool_choice,
        ToolChoice::None
    );
    stage.text("enough");
    assert!(matches!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::MaxMemory,
            limit: 50_000,
            ..
        }
    ));
    assert_eq!(stage.run.state().memory(), Bytes(0), "it is the query's");
    audit(&stage);
}

#[test]
fn the_model_is_told_once_that_a_limit_is_near() {
    let mut stage = Stage::new(limits(10, None, AtLimit::Finalize));
    stage.say("go");
    for n in 0..9 {
        let id = format!("c{n}");
        stage
            .calls(&[&format!("{id}:read:{{\"n\":{n}}}")])
            .done(&id, "found");
    }
    stage.text("done");
    let notices: Vec<String> = stage
        .seen()
        .iter()
        .filter_map(|message| match &**message {
            Message::Notice { text } => Some(text.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(
        notices,
        [
            "[7 of the 10 turns of this run are used. Use what is left well.]",
            "[9 of the 10 turns of this run are used. No tool can be called any more. Answer now from what you know, and say plainly what is done and what is not.]"
        ],
        "70 % are said once"
    );
    let warned = stage
        .log
        .iter()
        .filter(|entry| matches!(entry, Entry::Warned { .. }));
    assert_eq!(warned.count(), 1);
    audit(&stage);
    // A run that goes on after a crash does not say it again.
    let mut resumed = Stage::resume(
        stage.log[..stage.log.len() - 4].to_vec(),
        stage.setup.clone(),
    );
    resumed.go_on().finish();
    let told = resumed
        .last_request()
        .matches("Use what is left well")
        .count();
    assert_eq!(told, 1);
}

#[test]
fn few_turns_are_not_worth_a_warning() {
    let mut stage = Stage::new(limits(5, Some(4), AtLimit::Stop));
    assert_eq!(read_on(&mut stage, |_| None), 4);
    assert!(
        !stage.last_request().contains("Use what is left"),
        "{}",
        stage.last_request()
    );
}

/// A4, S20.
#[test]
fn roll_back_leaves_the_view_as_it_was_before_the_message() {
    let view = |stage: &Stage| {
        let items = stage.run.state().transcript().items().iter();
        let json = items.map(|item| serde_json::to_string(&(item.seq, &item.message)).unwrap());
        json.collect::<Vec<_>>()
    };
    let mut setup = limits(6, None, AtLimit::Rollback);
    setup.line.window = Some(Tokens(2_000));
    let mut stage = Stage::new(setup);
    stage.say("the task").text("fine");
    let (before, weight) = (view(&stage), stage.run.tokens());
    stage.say("now read everything");
    for n in 0..5 {
        stage.turn(n, 2_000, &mut |_| {});
    }
    stage.calls(&["last:read"]);
    assert!(stage.plans() > 0, "the run had its view compacted");
    let outcome = stage.outcome();
    assert_eq!(
        outcome.reason,
        EndReason::Limit {
            kind: LimitKind::MaxTurns,
            used: 6,
            limit: 6
        }
    );
    assert!(outcome.rolled_back);
    assert_eq!(
        outcome.text,
        "[Agent stopped: Max turns reached (6/6)]\n[The messages of this run were removed from the \
         session.]"
    );
    assert_eq!((view(&stage), stage.run.tokens()), (before, weight));
    stage.say("then this").text("done");
    assert_eq!(stage.last_request(), "u the task / a fine / u then this");
    let seqs: Vec<u64> = stage
        .run
        .state()
        .transcript()
        .items()
        .iter()
        .map(|i| i.seq.0)
        .collect();
    assert!(
        seqs.windows(2).all(|pair| pair[0] < pair[1]),
        "numbers are never given again"
    );
    audit(&stage);
}

#[test]
fn the_tracker_alone_says_which_limit_is_reached() {
    let second = Duration::from_secs(1);
    let tracker = |limits| ExecutionTracker::new(limits, 5 * second);
    let none = tracker(ExecutionLimits::standard());
    assert_eq!(none.check_limits(604 * second), None);
    assert_eq!(
        none.check_limits(605 * second),
        Some(EndReason::Limit {
            kind: LimitKind::MaxDuration,
            used: 600_000,
            limit: 600_000
        })
    );
    let mut all = tracker(ExecutionLimits {
        max_tool_calls: Some(2),
        ..ExecutionLimits::standard()
    });
    all.tokens_used = Tokens(1_000_000);
    let tokens = EndReason::Limit {
        kind: LimitKind::MaxTokens,
        limit: 1_000_000,
        used: 1_000_000,
    };
    assert_eq!(all.check_limits(Duration::ZERO), Some(tokens));
    all.tokens_used = Tokens(0);
    all.tool_calls = 2;
    assert_eq!(
        all.check_limits(Duration::ZERO),
        Some(EndReason::Limit {
            kind: LimitKind::ToolLimit,
            used: 2,
            limit: 2
        })
    );
    all.turns = 50;
    assert_eq!(
        all.check_limits(Duration::ZERO),
        Some(EndReason::Limit {
            kind: LimitKind::MaxTurns,
            used: 50,
            limit: 50
        })
    );
}

/// What refused requests have used counts before the next is made.
#[test]
fn the_ladder_does_not_pass_a_limit() {
    let mut setup = limited(ExecutionLimits {
        max_total_tokens: Some(Tokens(100_000)),
        max_duration: None,
        ..ExecutionLimits::default()
    });
    setup.line.window = Some(Tokens(20_000));
    let mut stage = Stage::new(setup);
    stage.say("go");
    for n in 0..4 {
        stage.turn(n, 4_000, &mut |_| {});
    }
    stage.now.partial_answers = vec![PartialAnswer {
        usage: Some(Usage {
            input: Tokens(500_000),
            ..Usage::default()
        }),
        ..PartialAnswer::default()
    }];
    stage.refuse(Failure::Cut {
        used: None,
        window: None,
        message: "cut".into(),
    });
    assert!(!stage.calling, "no further call");
    assert!(matches!(
        stage.outcome().reason,
        EndReason::Limit {
            kind: LimitKind::MaxTokens,
            used: 500_001..,
            ..
        }
    ));
    audit(&stage);
}

/// What a summary used counts before the request that it was made for.
#[test]
fn a_summary_does_not_pass_a_limit() {
    for (cost, calls) in [(500_000, 0), (96_000, 1)] {
        let mut setup = summarizing(2_000, 20_000);
        Arc::make_mut(&mut setup.limits).max_total_tokens = Some(Tokens(100_000));
        let mut stage = Stage::new(setup);
        stage.say("go");
        let mut n = 0;
        while stage.summaries.is_empty() || stage.calling {
            let id = format!("c{n}");
            let small = Some(Usage::default());
            stage.reply(
                vec![stage::words::call(&format!("{id}:read:{{\"n\":{n}}}"))],
                small,
            );
            stage.done(&id, &stage::filler(n, 900));
            n += 1;
            assert!(n < 100, "no summary is waited for");
        }
        let before = stage.requests.len();
        stage.summary_reply(Ok(plimsoll_context::Reply {
            parts: vec![Part::text(stage::good_summary("x"))],
            stop: plimsoll_context::StopReason::Stop,
            usage: Some(Usage {
                input: Tokens(cost),
                ..Usage::default()
            }),
            model: None,
        }));
        assert_eq!(stage.requests.len() - before, calls);
        if calls == 1 {
            let last = &stage.requests.last().unwrap().request;
            assert_eq!(last.tool_choice, ToolChoice::None, "it is the last");
            stage.text("enough");
        }
        assert!(matches!(
            stage.outcome().reason,
            EndReason::Limit {
                kind: LimitKind::MaxTokens,
                ..
            }
        ));
        audit(&stage);
    }
}

/// Some servers know no `tool_choice` but `auto`.
#[test]
fn a_server_that_refuses_tool_choice_none_still_answers() {
    let refused = || Failure::Refused {
        status: Some(400),
        message: "tool_choice must be auto".into(),
    };
    for answers in [true, false] {
        let mut stage = Stage::new(limits(2, None, AtLimit::Finalize));
        stage.say("go").calls(&["a:read"]).done("a", "x");
        let last = |stage: &Stage| stage.requests.last().unwrap().request.clone();
        assert_eq!(last(&stage).tool_choice, ToolChoice::None);
        stage.refuse(refused());
        assert_eq!(last(&stage).tool_choice, ToolChoice::Auto);
        assert!(last(&stage).tools.is_empty());
        if answers {
            stage.text("what I know");
        } else {
            stage.refuse(refused());
            assert!(matches!(stage.outcome().reason, EndReason::Failed { .. }));
            continue;
        }
        assert_eq!(stage.executed(), ["a"]);
        let outcome = stage.outcome();
        assert_eq!(
            outcome.reason,
            EndReason::Limit {
                kind: LimitKind::MaxTurns,
                used: 2,
                limit: 2
            }
        );
        assert_eq!(outcome.text, "what I know");
        audit(&stage);
        // The next run knows it.
        stage.say("more").calls(&["c:read"]).done("c", "y");
        assert_eq!(last(&stage).tool_choice, ToolChoice::Auto);
        assert!(last(&stage).tools.is_empty());
        stage.text("all of it");
        assert_eq!(stage.outcome().text, "all of it");
        // Another refusal is the end.
        stage
            .say("once more")
            .calls(&["d:read"])
            .done("d", "z")
            .refuse(refused());
        assert!(matches!(stage.outcome().reason, EndReason::Failed { .. }));
    }
}

/// The filter is named, the hook is told, and half an answer is none.
#[test]
fn a_content_filter_is_named() {
    use plimsoll_context::{Reply, StopReason};
    for (said, text) in [
        (
            "",
            "[Agent stopped: the provider's content filter ended the answer]",
        ),
        (
            "Half of it",
            "Half of it\n\n[Agent stopped: the provider's content filter ended the answer]",
        ),
    ] {
        let mut stage = Stage::new(Setup {
            hooks: [plimsoll_agent::HookPoint::OnError].into(),
            ..limits(9, None, AtLimit::Finalize)
        });
        stage.say("go").calls(&["a:read"]).done("a", "x");
        stage.calling = false;
        stage.tell(Input::Reply(Box::new(Ok(Reply {
            parts: vec![Part::text(said)],
            stop: StopReason::ContentFilter,
            usage: None,
            model: None,
        }))));
        assert_eq!(stage.requests.len(), 2, "it is not asked again");
        let outcome = stage.outcome();
        assert_eq!(outcome.text, text);
        let failure = Failure::ContentFilter;
        assert_eq!(outcome.reason, EndReason::Failed { failure });
        assert_eq!(stage.moments.len(), 1);
        audit(&stage);
    }
}

#[test]
fn an_answer_that_breaks_off_says_so() {
    use plimsoll_context::{Reply, StopReason};
    let cut = "\n\n[The answer was cut off before its end.]";
    let filtered = "\n\n[The answer was cut off before its end by the provider's content filter.]";
    for (stop, says) in [
        (StopReason::Stop, ""),
        (StopReason::Length, cut),
        (StopReason::ContentFilter, filtered),
    ] {
        let mut stage = Stage::new(limits(2, None, AtLimit::Finalize));
        stage.say("go").calls(&["a:read"]).done("a", "x");
        stage.calling = false;
        stage.tell(Input::Reply(Box::new(Ok(Reply {
            parts: vec![Part::text("I have done the")],
            stop,
            usage: None,
            model: None,
        }))));
        assert_eq!(stage.outcome().text, format!("I have done the{says}"));
    }
}
