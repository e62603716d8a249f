//! Servers that count differently: with any tokenizer and any hidden prompt, a session continues as
//! long as the server has space, and its advice works.

use plimsoll_agent::{EndReason, Event, Failure, Request, Setup};
use plimsoll_context::{ContextStrategy, Ppm, Tokens, Usage, ViewLimits};
use proptest::prelude::*;

use crate::stage::words::call;
use crate::stage::{Stage, setup, strategy};

/// A server that counts so many tokens for each of ours, beside a prompt that we do not see.
#[derive(Debug, Clone, Copy)]
struct CountingServer {
    ratio: Ppm,
    hidden: u64,
    window: u64,
    /// Whether its refusals say how long the request was.
    says_used: bool,
}

impl CountingServer {
    fn count(self, request: &Request) -> u64 {
        self.of(request.counted)
    }

    fn of(self, counted: Tokens) -> u64 {
        counted.share(self.ratio).0 + self.hidden
    }

    /// Answers the request that is out, or refuses it. Returns whether it was answered.
    fn answer(self, stage: &mut Stage, parts: Vec<plimsoll_context::Part>) -> bool {
        let request = &stage.requests.last().unwrap().request;
        let used = self.count(request);
        let answer = request.max_output.map_or(1, |tokens| tokens.0);
        if used + answer > self.window {
            stage.refuse(Failure::Overflow {
                used: self.says_used.then_some(Tokens(used)),
                window: Some(Tokens(self.window)),
                message: "too long".into(),
            });
            return false;
        }
        let usage = Usage {
            input: Tokens(used),
            output: Tokens(50),
            ..Usage::default()
        };
        stage.reply(parts, Some(usage));
        true
    }
}

/// One run: what is said, and the size of each tool result, in characters.
type SimulatedRun = (usize, Vec<usize>);

fn text(characters: usize) -> String {
    "the harbour ledger "
        .chars()
        .cycle()
        .take(characters)
        .collect()
}

/// The most refusals in a row.
fn run(
    stage: &mut Stage,
    server: CountingServer,
    number: usize,
    (said, results): &SimulatedRun,
) -> usize {
    let (mut row, mut most) = (0, 0);
    let mut results = results.iter().enumerate();
    let mut next = results.next();
    stage.say(&text(*said));
    while stage.run.is_running() {
        let (id, parts) = match next {
            Some((turn, _)) => {
                let id = format!("c{number}-{turn}");
                (id.clone(), vec![call(&format!("{id}:read"))])
            }
            None => (String::new(), vec![plimsoll_context::Part::text("done")]),
        };
        if !server.answer(stage, parts) {
            row += 1;
            most = most.max(row);
            continue;
        }
        row = 0;
        if let Some((_, characters)) = next {
            stage.done(&id, &text(*characters));
            next = results.next();
        }
    }
    most
}

fn with_window(window: u64) -> Setup {
    Setup {
        line: ViewLimits {
            window: Some(Tokens(window)),
            ..ViewLimits::default()
        },
        ..setup()
    }
}

/// What may be said is small, so that what has to stay is: about this many of our tokens.
const LEAST: u64 = 1_200;

fn runs() -> impl Strategy<Value = Vec<SimulatedRun>> {
    let results = proptest::collection::vec(0..30_000_usize, 0..8);
    proptest::collection::vec((1..800_usize, results), 1..5)
}

fn server() -> impl Strategy<Value = CountingServer> {
    let hidden = prop_oneof![Just(0), 0..20_000_u64];
    (300_000..6_000_000_u64, hidden, 0..60_000_u64, any::<bool>()).prop_map(
        |(ratio, hidden, more, says_used)| {
            let ratio = Ppm(ratio);
            let least = Tokens(LEAST).share(ratio).0.max(LEAST) + hidden;
            CountingServer {
                ratio,
                hidden,
                // Beside an answer, which takes a quarter at most.
                window: least * 4 / 3 + 512 + more,
                says_used,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(100) })]

    #[test]
    fn a_session_goes_on_while_there_is_room_on_the_server(server in server(), runs in runs()) {
        let mut stage = Stage::new(with_window(server.window));
        for (number, said) in runs.iter().enumerate() {
            let most = self::run(&mut stage, server, number, said);
            let reason = &stage.outcome().reason;
            prop_assert_eq!(reason, &EndReason::Answered, "{:?} {:?}", server, stage.run.tokens());
            let allowed = if server.says_used { 2 } else { 3 };
            prop_assert!(most <= allowed, "{} refusals in a row: {:?}", most, server);
        }
    }

    #[test]
    fn the_window_that_is_advised_works_at_the_first_try(
        server in server(),
        mut before in runs(),
        said in 3_000..60_000_usize,
        share in 1..90_u64,
    ) {
        // The session has begun on a larger server, and has seen how that counts.
        before.insert(0, (1, vec![2_400, 1_200]));
        let mut stage = Stage::new(with_window(server.window));
        for (number, said) in before.iter().enumerate() {
            self::run(&mut stage, server, number, said);
        }
        let small = CountingServer { window: server.window * share / 100, ..server };
        let mut stage = Stage::resume(stage.log, with_window(small.window));
        self::run(&mut stage, small, 90, &(said, Vec::new()));
        let EndReason::CannotFit { cannot_fit } = stage.outcome().reason else {
            return Ok(());
        };
        let window = cannot_fit.window(None).0;
        let enough = CountingServer { window, ..server };
        let mut stage = Stage::resume(stage.log, with_window(window));
        stage.go_on();
        prop_assert!(stage.calling, "{:?} of {:?}: {:?}", cannot_fit, small, stage.outcome().reason);
        prop_assert!(enough.answer(&mut stage, vec![plimsoll_context::Part::text("ok")]), "{:?}", cannot_fit);
    }
}

/// llama.cpp with a model whose tokenizer knows little: after two turns nothing was sent any more.
#[test]
fn a_dear_tokenizer_in_a_small_window_ends_no_session() {
    let server = CountingServer {
        ratio: Ppm(4_800_000),
        hidden: 0,
        window: 2_048,
        says_used: true,
    };
    let mut stage = Stage::new(with_window(server.window));
    for (number, characters) in [700, 500, 10, 10, 10].into_iter().enumerate() {
        run(&mut stage, server, number, &(characters, Vec::new()));
        assert_eq!(stage.outcome().reason, EndReason::Answered, "{number}");
    }
}

/// A provider that reports next to nothing.
#[test]
fn a_report_that_is_too_low_loosens_no_limit_and_is_told() {
    let mut stage = Stage::new(with_window(32_000));
    stage.say("the task");
    for turn in 0..40 {
        let id = format!("c{turn}");
        let usage = Usage {
            input: Tokens(5),
            ..Usage::default()
        };
        stage.reply(vec![call(&format!("{id}:read"))], Some(usage));
        stage.done(&id, &text(8_000));
        let counted = stage.requests.last().unwrap().request.counted;
        assert!(counted <= Tokens(32_000 - 4_096), "{counted}");
    }
    let warnings = stage.events.iter().filter(
        |event| matches!(event, Event::Warning { text } if text.contains("reports only 5 tokens")),
    );
    assert_eq!(warnings.count(), 1);
}

/// Many small calls, whose frames servers count in different ways, and then one message with many
/// large results.
#[derive(Debug, Clone)]
struct Burst {
    /// The share of our count that the server reports for each request, in percent.
    reports: Vec<Option<u64>>,
    small: usize,
    results: Vec<usize>,
    /// The explicit trigger; otherwise the window alone limits the requests.
    trigger: Option<u64>,
    window: u64,
}

fn burst() -> impl Strategy<Value = Burst> {
    let report = prop_oneof![4 => (50..=150_u64).prop_map(Some), 1 => Just(None)];
    // A server that always reports the same share, or any share each time.
    let reports = prop_oneof![
        report.clone().prop_map(|one| vec![one]),
        proptest::collection::vec(report, 1..8),
    ];
    let results = proptest::collection::vec(500..12_000_usize, 2..12);
    let trigger = proptest::option::of(4_000..20_000_u64);
    (reports, 0..40_usize, results, trigger, 8_000..32_000_u64).prop_map(
        |(reports, small, results, trigger, window)| Burst {
            reports,
            small,
            results,
            trigger,
            window,
        },
    )
}

fn strategies(trigger: Option<u64>) -> [ContextStrategy; 4] {
    let max_tokens = trigger.map(Tokens);
    [
        ContextStrategy::SlidingWindow { max_tokens },
        ContextStrategy::Evict { max_tokens },
        ContextStrategy::Summarize { max_tokens },
        ContextStrategy::Extract { max_tokens },
    ]
}

/// The most that may be sent, by our own count.
fn most(burst: &Burst) -> Tokens {
    let line = with_window(burst.window).line;
    let fits = Tokens(burst.window).minus(line.reserve());
    burst
        .trigger
        .map_or(fits, |trigger| fits.min(Tokens(trigger)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(60) })]

    #[test]
    fn no_request_exceeds_its_limit_whatever_a_server_reports(burst in burst()) {
        for policy in strategies(burst.trigger) {
            let mut stage = Stage::new(strategy(policy, Some(burst.window)));
            let mut reports = burst.reports.iter().cycle();
            let mut reply = |stage: &mut Stage, parts| {
                let counted = stage.requests.last().unwrap().request.counted;
                let report = *reports.next().unwrap();
                let usage = report.map(|percent| Usage {
                    input: Tokens(counted.0 * percent / 100),
                    output: Tokens(50),
                    ..Usage::default()
                });
                stage.reply(parts, usage);
            };
            stage.say("the task");
            for turn in 0..burst.small {
                reply(&mut stage, vec![call(&format!("s{turn}:read"))]);
                stage.done(&format!("s{turn}"), "");
            }
            let large = burst.results.iter().enumerate();
            let calls = large.clone().map(|(at, _)| call(&format!("b{at}:read")));
            reply(&mut stage, calls.collect());
            for (at, characters) in large {
                stage.done(&format!("b{at}"), &text(*characters));
            }
            reply(&mut stage, vec![plimsoll_context::Part::text("done")]);
            prop_assert_eq!(&stage.outcome().reason, &EndReason::Answered);
            for sent in &stage.requests {
                let counted = sent.request.counted;
                prop_assert!(counted <= most(&burst), "{} of {}", counted, most(&burst));
            }
        }
    }
}
