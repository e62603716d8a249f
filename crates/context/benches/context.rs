//! What the context costs a turn, whatever the length of the view: side by side a view of 10,000
//! messages and one of 100, and a clamp of 4,000 messages.
//! Rows for the table of `cargo xtask bench`. Not a test of what the plans are.

#[path = "counting/corpus.rs"]
mod corpus;
mod figure;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{
    Bpe, Calibration, CallId, Chars4, ContextStrategy, Memo, Message, Part, Policy,
    SessionPruneConfig, SummaryConfig, Threshold, TokenCounter, Tokens, ToolCall, Transcript,
    Trigger, ViewLimits,
};

use corpus::Corpus;
use figure::{Amount, Requirement, Unit, median, ratio, row, sections, time};

/// A call and its result: what one turn adds.
type Exchange = [Arc<Message>; 2];
type Counter = fn() -> Arc<dyn TokenCounter>;

/// Turns a view takes in before the other's turn comes.
const CHUNK: usize = 100;
/// Turns of one experiment: several plans on the long view, whose cost is spread over them.
const TURNS: usize = 10_000;
/// Experiments, of which the middle ratio counts.
const EXPERIMENTS: usize = 5;
const ROUNDS: usize = 21;

fn main() {
    sections(&[
        ("turns_counted_exactly", turns_counted_exactly),
        ("turns_counted_for_nothing", turns_counted_for_nothing),
        ("clamp", clamp),
        ("sent_again", sent_again),
    ]);
}

/// A turn's whole work on the context, on a long view and on a short one, with the counter that an
/// agent has where nothing else is said.
fn turns_counted_exactly() {
    for strategy in strategies() {
        let required = Requirement::AtMost(2.0);
        turns(strategy, "o200k", required, || {
            Arc::new(Memo::new(Bpe::o200k()))
        });
    }
}

/// The same where counting costs next to nothing, so that the rest of the work stands out: what is
/// left of the ratio is a long view's memory, which no cache holds. Told only.
fn turns_counted_for_nothing() {
    for strategy in strategies() {
        turns(strategy, "chars4", Requirement::Nothing, || {
            Arc::new(Chars4)
        });
    }
}

fn turns(strategy: ContextStrategy, counting: &str, required: Requirement, counter: Counter) {
    let name = strategy.name();
    let (mut ratios, mut per_turn, mut longest) = (Vec::new(), Vec::new(), Vec::new());
    let mut plans = 0;
    for _ in 0..EXPERIMENTS {
        let mut long = View::new(strategy, 10_000, counter());
        let mut short = View::new(strategy, 100, counter());
        for _ in 0..TURNS / CHUNK {
            long.work();
            short.work();
        }
        ratios.push(long.spent.as_secs_f64() / short.spent.as_secs_f64());
        per_turn.push(long.spent.as_secs_f64() * 1e6 / TURNS as f64);
        longest.push(long.longest.as_secs_f64() * 1e3);
        plans = long.plans;
    }
    let what = format!(
        "`{name}`, {counting}: push, check, plan and view a turn, 10,000 messages beside 100"
    );
    let ratio = Amount(median(ratios), Unit::Times);
    row(&what, ratio, required);
    let what = format!(
        "`{name}`, {counting}: that work on 10,000 messages, {plans} plans in {TURNS} turns"
    );
    let spent = Amount(median(per_turn), Unit::Micros);
    row(&what, spent, Requirement::Nothing);
    let what = format!("`{name}`, {counting}: the longest of those turns, which makes a plan");
    let longest = Amount(median(longest), Unit::Millis);
    row(&what, longest, Requirement::Nothing);
}

/// A view between its target and its trigger, and the turns that it takes in.
struct View {
    transcript: Transcript,
    policy: Policy,
    line: ViewLimits,
    exchanges: std::vec::IntoIter<Exchange>,
    spent: Duration,
    longest: Duration,
    plans: usize,
}

impl View {
    /// A view whose trigger lies at `messages` messages, and that is near it.
    fn new(strategy: ContextStrategy, messages: usize, counter: Arc<dyn TokenCounter>) -> Self {
        let transcript = history(messages, counter);
        let line = ViewLimits {
            window: None,
            trigger: Threshold::Sent(transcript.tokens()),
            ..ViewLimits::default()
        };
        let exchanges: Vec<Exchange> = (0..TURNS).map(|n| exchange(messages + n)).collect();
        Self {
            transcript,
            policy: strategy.policy(None, SummaryConfig::default()),
            line,
            exchanges: exchanges.into_iter(),
            spent: Duration::ZERO,
            longest: Duration::ZERO,
            plans: 0,
        }
    }

    fn work(&mut self) {
        for _ in 0..CHUNK {
            let spent = time(|| self.turn());
            self.spent += spent;
            self.longest = self.longest.max(spent);
        }
    }

    /// What the machine does in a turn, as far as it concerns the view.
    fn turn(&mut self) {
        let budget = self
            .line
            .budget(Tokens(1_000), Tokens::ZERO, Calibration::default());
        let budget = budget.expect("there is room beside the overhead");
        let plan = self
            .policy
            .plan(&self.transcript, &budget, Trigger::Request)
            .expect("it fits");
        if let Some(plan) = plan {
            self.transcript.replay(&plan).expect("made for this view");
            self.plans += 1;
        }
        black_box(self.transcript.items());
        self.transcript.mark_sent();
        let [call, result] = self.exchanges.next().expect("one a turn");
        self.transcript.push(call);
        self.transcript.mark_sent();
        self.transcript.push(result);
    }
}

/// 4,000 messages that are counted already, brought down to 2,000 tokens.
fn clamp() {
    let full = history(4_000, Arc::new(Memo::new(Bpe::o200k())));
    let line = ViewLimits {
        window: None,
        trigger: Threshold::Sent(Tokens(2_000)),
        ..ViewLimits::default()
    };
    let presets = strategies().map(|strategy| {
        let policy = strategy.policy(None, SummaryConfig::default());
        (strategy.name(), policy, line)
    });
    let filter = Policy::evict(SessionPruneConfig::default()).for_filter();
    let filter = ("compact", filter, ViewLimits::exactly(Tokens(2_000)));
    for (name, policy, line) in presets.into_iter().chain([filter]) {
        let budget = line.budget(Tokens::ZERO, Tokens::ZERO, Calibration::default());
        let budget = budget.expect("there is room");
        let once = |_| {
            let mut view = full.clone();
            let spent = time(|| {
                let plan = policy.plan(&view, &budget, Trigger::Request);
                let plan = plan.expect("it fits").expect("a plan is due");
                view.apply(&plan).expect("made for this view")
            });
            assert!(view.tokens() <= Tokens(2_000));
            spent.as_secs_f64() * 1e3
        };
        let what = format!("`{name}`: 4,000 counted messages clamped to 2,000 tokens");
        let spent = median((0..ROUNDS).map(once).collect());
        row(&what, Amount(spent, Unit::Millis), Requirement::AtMost(5.0));
    }
}

/// A history that is sent again, beside its hashes alone and beside counting it.
fn sent_again() {
    for corpus in Corpus::ALL {
        let messages = corpus.messages();
        let (bpe, memo) = (Bpe::o200k(), Memo::new(Bpe::o200k()));
        let count = |counter: &dyn TokenCounter| -> Tokens {
            let weights = messages.iter().map(|text| counter.text(black_box(text)));
            weights.sum()
        };
        count(&memo);
        let hash = || {
            for text in &messages {
                black_box(blake3::hash(black_box(text.as_bytes())));
            }
        };
        let beside_hashes = ratio(ROUNDS, || time(|| count(&memo)), || time(hash));
        let what = format!("{corpus:?}: a history sent again, beside its hashes alone");
        row(
            &what,
            Amount(beside_hashes, Unit::Times),
            Requirement::AtMost(1.5),
        );
        let faster = ratio(ROUNDS, || time(|| count(&bpe)), || time(|| count(&memo)));
        let what = format!("{corpus:?}: the same, how many times faster than counting it");
        row(&what, Amount(faster, Unit::Times), Requirement::Nothing);
    }
}

fn strategies() -> [ContextStrategy; 2] {
    [
        ContextStrategy::Evict { max_tokens: None },
        ContextStrategy::SlidingWindow { max_tokens: None },
    ]
}

/// A task and exchanges, `messages` in all or one more.
fn history(messages: usize, counter: Arc<dyn TokenCounter>) -> Transcript {
    let mut transcript = Transcript::new(counter);
    transcript.push(Message::user(
        "Find out why the harbour's books do not add up.",
    ));
    for n in 0..messages / 2 {
        for message in exchange(n) {
            transcript.push(message);
        }
        transcript.mark_sent();
    }
    transcript
}

fn exchange(n: usize) -> Exchange {
    let id = CallId(format!("call_{n}"));
    let call = Message::Assistant {
        parts: vec![
            Part::text(format!("Now the books of ship {n}, page by page.")),
            Part::ToolCall(ToolCall {
                id: id.clone(),
                name: "read".to_owned(),
                arguments: format!(r#"{{"path":"books/ship-{n}.txt","offset":{}}}"#, n * 7),
                opaque: None,
            }),
        ],
    };
    let lines = (0..12).map(|line| format!("{line}: ship {n} took on {} barrels\n", n * 31 + line));
    let result = Message::result(id, lines.collect::<String>());
    [Arc::new(call), Arc::new(result)]
}
