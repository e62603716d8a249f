//! Limits on tokens and money are hard: the usage of a run stays within them, and the last call
//! gives the answer.

use std::sync::Arc;

use plimsoll_agent::{
    AtLimit, CountTokens, EndReason, ExecutionLimits, LimitKind, Setup, ToolChoice,
};
use plimsoll_context::{Money, Part, PriceSheet, Rates, StopReason, Tokens, Usage, ViewLimits};

use crate::stage::audit::audit;
use crate::stage::{self, Stage, setup};

/// A provider that counts a fifth more than we do, has a cache and bills what it reports.
struct Honest {
    seed: u64,
    cached: u64,
    caches: bool,
    sheet: PriceSheet,
    used: u64,
    spent: u64,
}

impl Honest {
    fn below(&mut self, most: u64) -> u64 {
        self.seed = self
            .seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 33) % most.max(1)
    }

    /// Answers the newest request, as long as it likes or as it may.
    fn answer(&mut self, stage: &mut Stage, n: usize) {
        let request = &stage.requests.last().unwrap().request;
        let input = request.counted.0 * 6 / 5;
        let last = request.tool_choice == ToolChoice::None;
        let wanted = self.below(3_000);
        let output = request.max_output.map_or(wanted, |most| wanted.min(most.0));
        let read = if self.caches && self.below(8) > 0 {
            self.cached.min(input)
        } else {
            0
        };
        self.cached = input;
        let usage = Usage {
            input: Tokens(if self.caches { 0 } else { input }),
            cache_read: Tokens(read),
            cache_write: Tokens(if self.caches { input - read } else { 0 }),
            output: Tokens(output),
            ..Usage::default()
        };
        self.used += input + output;
        self.spent += self.sheet.cost(usage).unwrap().0;
        // Four characters a token.
        let text = "word".repeat(usize::try_from(output).unwrap());
        let mut parts = vec![Part::text(format!("{text}."))];
        if !last {
            parts.push(stage::words::call(&format!("c{n}:read:{{\"n\":{n}}}")));
        }
        stage.calling = false;
        stage.tell(plimsoll_agent::Input::Reply(Box::new(Ok(
            plimsoll_context::Reply {
                parts,
                stop: StopReason::Stop,
                usage: Some(usage),
                model: None,
            },
        ))));
    }
}

fn sheet() -> PriceSheet {
    let dollars = |dollars| Money::from_dollars(dollars).unwrap();
    PriceSheet::of(Rates {
        input: dollars(3.0),
        output: dollars(15.0),
        cache_read: Some(dollars(0.3)),
        cache_write: Some(dollars(3.75)),
    })
}

fn limited(window: u64, limits: ExecutionLimits) -> Setup {
    let setup = setup();
    Setup {
        line: ViewLimits {
            window: Some(Tokens(window)),
            ..setup.line
        },
        sheet: Some(sheet()),
        limits: Arc::new(limits),
        ..setup
    }
}

/// Plays a run whose results have sizes of all magnitudes.
fn play(setup: Setup, caches: bool, seed: u64) -> (Stage, Honest) {
    let mut honest = Honest {
        seed,
        cached: 0,
        caches,
        sheet: sheet(),
        used: 0,
        spent: 0,
    };
    let mut stage = Stage::new(setup);
    stage.say("go");
    let mut n = 0;
    while stage.outcomes.is_empty() {
        if stage.calling {
            honest.answer(&mut stage, n);
        } else {
            let magnitude = honest.below(17);
            let bytes = 1 + honest.below(8 << magnitude);
            let text = stage::filler(n, usize::try_from(bytes).unwrap());
            stage.done(&format!("c{n}"), &text);
            n += 1;
        }
        assert!(n < 1_000, "the run does not end");
    }
    (stage, honest)
}

fn tokens(limit: u64, at_limit: AtLimit) -> ExecutionLimits {
    ExecutionLimits {
        max_total_tokens: Some(Tokens(limit)),
        at_limit: Some(at_limit),
        ..ExecutionLimits::turns(1_000)
    }
}

#[test]
fn a_limit_on_tokens_is_never_exceeded() {
    for (window, limit) in [(10_000, 30_000), (200_000, 50_000), (50_000, 200_000)] {
        for seed in 0..12 {
            for at_limit in [AtLimit::Finalize, AtLimit::Stop] {
                let setup = limited(window, tokens(limit, at_limit));
                let (stage, honest) = play(setup, seed % 2 == 0, seed);
                let told = format!("{window} {limit} {seed} {at_limit:?}: {}", honest.used);
                assert!(honest.used <= limit, "{told}");
                assert!(honest.used > limit / 4, "{told}");
                let reason = &stage.outcome().reason;
                assert!(
                    matches!(
                        reason,
                        EndReason::Limit {
                            kind: LimitKind::MaxTokens,
                            ..
                        }
                    ),
                    "{reason:?}"
                );
                if at_limit == AtLimit::Finalize {
                    let last = stage.requests.last().unwrap().request.tool_choice;
                    assert_eq!(last, ToolChoice::None, "{told}");
                    assert!(!stage.outcome().text.contains("[Agent stopped"), "{told}");
                }
                if window == 10_000 && seed == 0 {
                    audit(&stage);
                }
            }
        }
    }
}

#[test]
fn a_limit_on_money_is_never_exceeded() {
    for (window, limit) in [(10_000, 0.1), (200_000, 0.2), (50_000, 0.5)] {
        for seed in 0..12 {
            for at_limit in [AtLimit::Finalize, AtLimit::Stop] {
                let max_cost = Money::from_dollars(limit).unwrap();
                let limits = ExecutionLimits {
                    max_cost: Some(max_cost),
                    at_limit: Some(at_limit),
                    ..ExecutionLimits::turns(1_000)
                };
                let (stage, honest) = play(limited(window, limits), seed % 2 == 0, seed);
                let spent = Money(honest.spent);
                let told = format!("{window} {limit} {seed} {at_limit:?}: {spent}");
                assert!(spent <= max_cost && spent.0 > max_cost.0 / 4, "{told}");
                assert_eq!(stage.outcome().cost.whole(), Some(spent), "{told}");
                let reason = &stage.outcome().reason;
                assert!(
                    matches!(
                        reason,
                        EndReason::Limit {
                            kind: LimitKind::MaxCost,
                            ..
                        }
                    ),
                    "{reason:?}"
                );
                if at_limit == AtLimit::Finalize {
                    assert!(!stage.outcome().text.contains("[Agent stopped"), "{told}");
                }
                if window == 10_000 && seed == 0 {
                    audit(&stage);
                }
            }
        }
    }
}

/// A result of 640 KB under a limit of 50,000 tokens: what is sent of it is 8,000 tokens at most.
#[test]
fn a_large_result_is_forecast_as_it_will_be_sent() {
    for count_tokens in [CountTokens::Processed, CountTokens::Growth] {
        let limits = ExecutionLimits {
            count_tokens: Some(count_tokens),
            ..tokens(50_000, AtLimit::Finalize)
        };
        let mut stage = Stage::new(limited(200_000, limits));
        stage.say("count the words").calls(&["a:read"]);
        stage.done("a", &stage::filler(1, 640_000));
        let sent = &stage.requests.last().unwrap().request;
        assert_eq!(sent.tool_choice, ToolChoice::Auto, "{}", sent.counted);
        assert!(sent.counted < Tokens(9_000), "{}", sent.counted);
        stage.text("as many as there are");
        assert_eq!(stage.outcome().reason, EndReason::Answered);
        audit(&stage);
    }
}

/// A request that does not even fit is not made.
#[test]
fn a_first_call_that_does_not_fit_is_not_made() {
    let mut stage = Stage::new(limited(200_000, tokens(1_000, AtLimit::Finalize)));
    stage.say(&stage::filler(1, 100_000));
    assert!(stage.requests.is_empty());
    assert_eq!(
        stage.outcome().text,
        "[Agent stopped: Max tokens reached (0/1000, and the next call would exceed it)]"
    );
    audit(&stage);
}

/// A summary is not asked for if it would take what the last answer needs.
#[test]
fn a_summary_leaves_enough_for_the_last_answer() {
    let mut setup = stage::summarizing(8_000, 20_000);
    setup.limits = Arc::new(tokens(60_000, AtLimit::Finalize));
    let mut stage = Stage::new(setup);
    stage.say("go");
    let mut used = 0;
    let mut n = 0;
    while stage.outcomes.is_empty() {
        if let Some(request) = stage.summaries.front() {
            let usage = Usage {
                input: request.counted,
                output: Tokens(300),
                ..Usage::default()
            };
            used += usage.total_tokens().0;
            let text = stage::good_summary("done");
            stage.summary_reply(Ok(plimsoll_context::Reply {
                parts: vec![Part::text(text)],
                stop: StopReason::Stop,
                usage: Some(usage),
                model: None,
            }));
            continue;
        }
        let request = &stage.requests.last().unwrap().request;
        let usage = Usage {
            input: request.counted,
            output: Tokens(20),
            ..Usage::default()
        };
        used += usage.total_tokens().0;
        match request.tool_choice {
            ToolChoice::None => {
                stage.reply(vec![Part::text("enough")], Some(usage));
            }
            ToolChoice::Auto => {
                let id = format!("c{n}");
                let call = stage::words::call(&format!("{id}:read:{{\"n\":{n}}}"));
                stage.reply(vec![call], Some(usage));
                stage.done(&id, &stage::filler(n, 6_000));
                n += 1;
            }
        }
    }
    assert!(used <= 60_000 && used > 30_000, "{used}");
    assert_eq!(stage.outcome().text, "enough");
    audit(&stage);
}
