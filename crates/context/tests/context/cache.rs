//! Breakpoints against a simulation of Anthropic's cache: an entry at each breakpoint of each
//! request, found again from a later breakpoint at most 20 blocks after it.

use std::collections::HashSet;
use std::sync::Arc;

use plimsoll_context::{
    Breakpoint, CacheConfig, CacheRules, CacheStrategy, CacheView, Calibration, CallId, Chars4,
    ContextStrategy, Fingerprint, Item, LOOK_BACK, MAX_BREAKPOINTS, Message, Part, PlanContext,
    Seq, SummaryConfig, Tokens, ToolCall, Transcript, Trigger, ViewLimits, breakpoints,
};
use proptest::prelude::*;

const TOOLS: Tokens = Tokens(1_100);
const SYSTEM: Tokens = Tokens(900);
const RULES: CacheRules = CacheRules {
    max: MAX_BREAKPOINTS,
    look_back: LOOK_BACK,
    minimum: Tokens(1_024),
};

/// A turn: how many calls, and how large their results are.
type TurnShape = (usize, usize);

/// A provider that keeps what it was told to.
#[derive(Default)]
struct Cache {
    entries: HashSet<String>,
}

impl Cache {
    /// How many blocks of the messages are read from the cache; the entries are written.
    fn send(&mut self, items: &[Item], marks: &[Breakpoint]) -> usize {
        let mut blocks = vec![0];
        let mut hashes: Vec<String> = vec![String::new()];
        for (at, item) in items.iter().enumerate() {
            blocks.push(blocks[at] + item.message.parts().len().max(1));
            // Of the prefix that ends with this message.
            let chain = Message::user(format!(
                "{}{}",
                hashes[at],
                Fingerprint::of([&*item.message])
            ));
            hashes.push(Fingerprint::of([&chain]).to_string());
        }
        let hashes = &hashes[1..];
        let mut read = 0;
        let mut written = Vec::new();
        for mark in marks {
            let Breakpoint::Message(at) = mark else {
                continue;
            };
            written.push(hashes[*at].clone());
            let found = (0..=*at)
                .rev()
                .take_while(|earlier| blocks[at + 1] - blocks[earlier + 1] < LOOK_BACK)
                .find(|earlier| self.entries.contains(&hashes[*earlier]));
            read = read.max(found.map_or(0, |found| blocks[found + 1]));
        }
        self.entries.extend(written);
        read
    }
}

fn view(items: &[Item], sent: Option<Seq>) -> CacheView<'_> {
    CacheView {
        tools: TOOLS,
        system: SYSTEM,
        items,
        sent,
    }
}

fn last(items: &[Item]) -> Option<Seq> {
    items.last().map(|item| item.seq)
}

fn push_turn(view: &mut Transcript, number: usize, (calls, size): TurnShape) {
    let call = |at: usize| CallId(format!("call_{number}_{at}"));
    let parts = (0..calls).map(|at| {
        Part::ToolCall(ToolCall {
            id: call(at),
            name: "read".into(),
            arguments: "{}".into(),
            opaque: None,
        })
    });
    let parts: Vec<Part> = std::iter::once(Part::text("so")).chain(parts).collect();
    view.push(Message::Assistant { parts });
    for at in 0..calls {
        view.push(Message::result(call(at), format!("{number} ").repeat(size)));
    }
    if calls == 0 {
        view.push(Message::user("go on"));
    }
}

/// Plays turns and checks each request. Gives how many plans were applied, and after how many of
/// them something of the history was still read from the cache.
fn play(turns: &[TurnShape], strategy: ContextStrategy) -> (usize, usize) {
    let line = ViewLimits {
        window: Some(Tokens(24_000)),
        ..ViewLimits::default()
    };
    let budget = line
        .budget(TOOLS + SYSTEM, Tokens::ZERO, Calibration::default())
        .unwrap();
    let policy = strategy.policy(None, SummaryConfig::default());
    let mut cache = Cache::default();
    let mut sent = None;
    let mut transcript = Transcript::new(Arc::new(Chars4));
    transcript.push(Message::user("the task ".repeat(40)));
    let (mut before, mut sent_blocks) = (Vec::new(), 0);
    let (mut plans, mut kept) = (0, 0);
    for (number, turn) in turns.iter().enumerate() {
        let means = PlanContext::default();
        let proposal = policy.propose(&transcript, &budget, Trigger::Request, &means);
        let Ok(proposal) = proposal else {
            return (plans, kept);
        };
        let mut rewritten = false;
        if let Some(plan) = proposal.plan {
            transcript.apply(&plan).unwrap();
            sent = sent.and_then(|sent| plan.keeps(sent));
            rewritten = plan.rewrites_from.is_some();
            plans += usize::from(rewritten);
        }
        let items = transcript.items();
        let plan = breakpoints(&view(items, sent), &CacheConfig::default(), &RULES);
        let marks = plan.breakpoints;
        assert!(marks.len() <= MAX_BREAKPOINTS);
        assert!(marks.is_sorted_by(|one, next| one < next), "{marks:?}");
        assert_eq!(marks.last(), Some(&Breakpoint::Message(items.len() - 1)));
        let read = cache.send(items, &marks);
        if rewritten {
            kept += usize::from(read > 0);
        } else if !before.is_empty() {
            assert_eq!(
                read, sent_blocks,
                "turn {number}: {before:?} then {marks:?}"
            );
            // All but the last two stay; the last one moves forward.
            let gone = before.iter().filter(|mark| !marks.contains(mark)).count();
            assert!(gone <= 2, "{before:?} then {marks:?}");
            assert!(marks.last() > before.last());
        }
        sent_blocks = items
            .iter()
            .map(|item| item.message.parts().len().max(1))
            .sum();
        before = marks;
        sent = last(items);
        transcript.mark_sent();
        push_turn(&mut transcript, number, *turn);
    }
    (plans, kept)
}

fn turns() -> impl Strategy<Value = Vec<TurnShape>> {
    let turn = prop_oneof![
        8 => (0_usize..4, 1_usize..900),
        1 => (5_usize..40, 1_usize..60),
    ];
    prop::collection::vec(turn, 2..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn what_was_sent_is_found_again(turns in turns()) {
        play(&turns, ContextStrategy::default());
    }

    #[test]
    fn no_configuration_marks_what_it_must_not(
        turns in turns(),
        enabled: bool,
        cache_system: bool,
        cache_tools: bool,
        cache_messages: bool,
        minimum in 0_u64..20_000,
        max in 0_usize..6,
    ) {
        let config = CacheConfig {
            enabled,
            strategy: CacheStrategy::Manual { cache_system, cache_tools, cache_messages },
        };
        let rules = CacheRules { max, minimum: Tokens(minimum), ..RULES };
        let mut transcript = Transcript::new(Arc::new(Chars4));
        transcript.push(Message::user("task"));
        let mut sent = None;
        for (number, turn) in turns.iter().enumerate() {
            let items = transcript.items();
            let plan = breakpoints(&view(items, sent), &config, &rules);
            prop_assert!(plan.breakpoints.len() <= max);
            for mark in &plan.breakpoints {
                let (allowed, weight) = match mark {
                    Breakpoint::Tools => (cache_tools, TOOLS),
                    Breakpoint::System => (cache_system, TOOLS + SYSTEM),
                    Breakpoint::Message(at) => {
                        let messages: Tokens = items[..=*at].iter().map(|item| item.tokens).sum();
                        (cache_messages, TOOLS + SYSTEM + messages)
                    }
                };
                prop_assert!(enabled && allowed, "{mark:?}");
                prop_assert!(weight >= rules.minimum);
            }
            sent = last(items);
            transcript.mark_sent();
            push_turn(&mut transcript, number, *turn);
        }
    }
}

#[test]
fn a_plan_leaves_what_stands_before_it_in_the_cache() {
    let turns: Vec<TurnShape> = (0..120).map(|n| (1 + n % 3, 300 + 17 * (n % 11))).collect();
    for strategy in [
        ContextStrategy::default(),
        ContextStrategy::SlidingWindow { max_tokens: None },
    ] {
        let (plans, kept) = play(&turns, strategy);
        println!("{strategy:?}: {plans} plans, {kept} of them kept something");
        assert!(plans >= 3);
        // A plan may begin earlier than the one before it, for example the first of a session.
        assert!(kept * 4 >= plans * 3, "{kept} of {plans}");
    }
}

#[test]
fn a_long_turn_gets_a_breakpoint_where_the_last_request_ended() {
    let mut transcript = Transcript::new(Arc::new(Chars4));
    transcript.push(Message::user("the task ".repeat(200)));
    push_turn(&mut transcript, 0, (1, 1_000));
    let sent = last(transcript.items());
    push_turn(&mut transcript, 1, (30, 100));
    let marks = |sent| {
        let view = view(transcript.items(), sent);
        breakpoints(&view, &CacheConfig::default(), &RULES).breakpoints
    };
    use Breakpoint::{Message as At, System, Tools};
    // The tools give way: the system prompt's breakpoint covers them.
    assert_eq!(marks(sent), [System, At(0), At(2), At(33)]);
    assert_eq!(marks(None), [Tools, System, At(0), At(33)]);
}

#[test]
fn configurations_read_as_people_write_them() {
    for (json, expected) in [
        ("{}", CacheConfig::default()),
        (r#"{"strategy":"auto"}"#, CacheConfig::default()),
        (
            r#"{"enabled":false,"strategy":"disabled"}"#,
            CacheConfig::DISABLED,
        ),
        (
            r#"{"strategy":{"manual":{"cache_system":true,"cache_tools":false}}}"#,
            CacheConfig {
                enabled: true,
                strategy: CacheStrategy::Manual {
                    cache_system: true,
                    cache_tools: false,
                    cache_messages: false,
                },
            },
        ),
    ] {
        let read: CacheConfig = serde_json::from_str(json).unwrap();
        assert_eq!(read, expected, "{json}");
    }
    assert!(serde_json::from_str::<CacheConfig>(r#"{"stratgy":"auto"}"#).is_err());
    assert!(!CacheConfig::DISABLED.is_on() && CacheConfig::default().is_on());
}
