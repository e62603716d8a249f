//! One session over thousands of turns, with a model that fails, hangs, loops and overflows, a user
//! who steers, interrupts and undoes, limits of every kind, and a process that dies. A strict
//! server accepts every request, the log folds to the view, and memory stays flat. A single test,
//! because it measures the whole process.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use peak_alloc::PeakAlloc;
use plimsoll_agent::{AtLimit, Entry, ExecutionLimits, Failure, FilterResult, Request, State};
use plimsoll_context::{
    CallId, Chars4, ContextStrategy, Delta, Money, Part, PriceSheet, Rates, Reply, StopReason,
    Tokens, ToolCall, Usage,
};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AllowAll, Error, Lease, LogEntry, Provider, Remote, Session, SessionId, SessionInfo,
    SessionStore, StoreError, ToolError, Window, tool,
};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Turns in an everyday run; `PLIMSOLL_TURNS` asks for another number.
const TURNS: u64 = 400;
const WINDOW: Tokens = Tokens(6_000);

/// SplitMix64, shared: one seed, one play.
#[derive(Clone)]
struct Random(Arc<AtomicU64>);

impl Random {
    fn next(&self) -> u64 {
        let step = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn text(&self, most: u64) -> String {
        let word = ["word ", "汉字", "🦀", "line\n"][self.below(4) as usize];
        word.repeat(1 + self.below(most) as usize)
    }
}

/// A log in a file, so that it is not in memory.
struct FileStore(PathBuf);

#[async_trait]
impl SessionStore for FileStore {
    async fn acquire(&self, session: &SessionId) -> Result<Lease, StoreError> {
        Ok(Lease::new(session.clone(), Box::new(())))
    }
    async fn read(
        &self,
        _: &SessionId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<LogEntry>, StoreError> {
        let Ok(file) = File::open(&self.0) else {
            return Ok(Vec::new());
        };
        let lines = (1..).zip(BufReader::new(file).lines());
        Ok(lines
            .skip(after as usize)
            .take(limit)
            .map(|(n, line)| LogEntry {
                n,
                at: 0,
                entry: serde_json::from_str(&line.unwrap()).unwrap(),
            })
            .collect())
    }
    async fn append(&self, _: &Lease, entries: &[Entry]) -> Result<(), StoreError> {
        let mut lines = String::new();
        for entry in entries {
            lines.push_str(&serde_json::to_string(entry).unwrap());
            lines.push('\n');
        }
        let file = OpenOptions::new().create(true).append(true).open(&self.0);
        file.unwrap().write_all(lines.as_bytes()).unwrap();
        Ok(())
    }
    async fn list(&self) -> Result<Vec<SessionInfo>, StoreError> {
        Ok(Vec::new())
    }
}

/// A model that does anything, judged by `ScriptedProvider`, which refuses what a server would.
struct AnyModel {
    random: Random,
    calls: AtomicU64,
    refused: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Provider for AnyModel {
    fn model(&self) -> &str {
        "test/any"
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let random = &self.random;
        let transient = |message: &str| Failure::Transient {
            status: Some(503),
            retry_after_ms: None,
            message: message.into(),
        };
        let turn = match random.below(100) {
            0..4 => Turn::Fail(transient("overloaded")),
            4..6 => Turn::Fail(Failure::Auth {
                message: "no key".into(),
            }),
            // Now and then for no reason at all.
            6..9 if random.chance(10) || request.counted > Tokens(WINDOW.0 / 2) => {
                Turn::Fail(Failure::Overflow {
                    used: random.chance(50).then(|| request.counted + Tokens(500)),
                    window: None,
                    message: "prompt is too long".into(),
                })
            }
            9..12 => Turn::Hang,
            _ => Turn::Reply(self.reply(request)),
        };
        let judge = ScriptedProvider::new([turn]);
        let said = judge.call(request, deltas).await;
        if let Err(Failure::Refused { message, .. }) = &said {
            self.refused.lock().unwrap().push(message.clone());
        }
        said
    }

    async fn window(&self) -> Option<Tokens> {
        Some(WINDOW)
    }
}

impl AnyModel {
    fn reply(&self, request: &Request) -> Reply {
        let random = &self.random;
        let mut parts = Vec::new();
        if random.chance(30) {
            parts.push(Part::text(random.text(60)));
        }
        if random.chance(80) {
            for _ in 0..1 + random.below(4) {
                let n = self.calls.fetch_add(1, Ordering::Relaxed);
                let name = ["read", "write", "slow", "raed", "nothing"][random.below(5) as usize];
                let arguments = match random.below(12) {
                    0 => "{\"n\":".to_owned(),
                    1 => "{\"n\": \"7\"}".to_owned(),
                    // The same again and again.
                    2..6 => "{\"n\": 1}".to_owned(),
                    _ => format!("{{\"n\": {n}}}"),
                };
                parts.push(Part::ToolCall(ToolCall {
                    id: CallId(format!("call_{n}")),
                    name: name.to_owned(),
                    arguments,
                    opaque: None,
                }));
            }
        } else if random.chance(90) {
            parts.push(Part::text(random.text(100)));
        }
        Reply {
            parts,
            stop: StopReason::Stop,
            usage: random.chance(80).then(|| Usage {
                input: request.counted,
                output: Tokens(20),
                ..Usage::default()
            }),
            model: None,
        }
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: u64,
}

/// One of several agents, each with limits of its own.
fn agent(
    random: &Random,
    model: &Arc<AnyModel>,
    store: &Arc<FileStore>,
    remote: &Arc<Mutex<Option<Remote>>>,
) -> Agent {
    let sizes = random.clone();
    let read = tool("read", "Reads a page.", move |input: Number| {
        let text = format!("{}: {}", input.n % 5, sizes.text(800));
        async move { Ok::<_, ToolError>(text) }
    })
    .idempotent();
    let chance = random.clone();
    let person = Arc::clone(remote);
    let write = tool("write", "Writes a page.", move |_: Number| {
        let (fails, steers) = (chance.chance(20), chance.chance(10));
        let (stops, remote) = (chance.chance(3), person.lock().unwrap().clone());
        async move {
            if let Some(remote) = remote {
                if steers {
                    remote.steer("look here").await;
                    remote.follow_up("and then there").await;
                }
                if stops {
                    remote.interrupt().await;
                }
            }
            if fails {
                Err(ToolError("the disk is full".into()))
            } else {
                Ok("written")
            }
        }
    });
    let hangs = random.clone();
    let slow = tool("slow", "Takes its time.", move |_: Number| {
        let wait = Duration::from_secs([1, 20, 2_000][hangs.below(3) as usize]);
        async move {
            tokio::time::sleep(wait).await;
            Ok::<_, ToolError>("at last")
        }
    })
    .timeout(Duration::from_secs(1_000))
    .idempotent();
    let limits = ExecutionLimits {
        max_turns: Some(1 + random.below(20)),
        max_total_tokens: random
            .chance(30)
            .then(|| Tokens(5_000 + random.below(200_000))),
        max_duration: Some(Duration::from_secs(10 + random.below(5_000))),
        max_cost: random
            .chance(30)
            .then(|| Money(1_000_000 + random.below(100_000_000))),
        max_tool_calls: random.chance(40).then(|| random.below(20)),
        max_identical_tool_calls: random.chance(60).then(|| 1 + random.below(4)),
        at_limit: Some(
            [AtLimit::Finalize, AtLimit::Stop, AtLimit::Rollback][random.below(3) as usize],
        ),
        ..ExecutionLimits::default()
    };
    let strategies = [
        ContextStrategy::Evict { max_tokens: None },
        ContextStrategy::SlidingWindow { max_tokens: None },
        ContextStrategy::Summarize { max_tokens: None },
    ];
    let rates = Rates {
        input: Money(1_000_000_000),
        output: Money(2_000_000_000),
        cache_read: None,
        cache_write: None,
    };
    let (vetoes, guards) = (random.clone(), random.clone());
    Agent::builder_shared(Arc::clone(model) as Arc<dyn Provider>)
        .system("You are patient.")
        .tool(read)
        .tool(write)
        .tool(slow)
        .counter(Arc::new(Chars4))
        .window(Window::Known(WINDOW))
        .context_strategy(strategies[random.below(3) as usize])
        .prices(PriceSheet::of(rates))
        .execution_limits(limits)
        .max_parallel_tools(1 + random.below(4) as usize)
        .input_filter(|text: &str| match text.len() % 11 {
            0 => FilterResult::Reject("eleven".into()),
            1 => FilterResult::Warn("one".into()),
            _ => FilterResult::Pass,
        })
        .before_turn(move |_, _| !vetoes.chance(1))
        .before_tool_execution(move |_: String, _: CallId, _: serde_json::Value| {
            let no = guards.chance(5);
            async move { !no }
        })
        .gate(AllowAll)
        .store(Arc::clone(store) as Arc<dyn SessionStore>)
        .build()
        .unwrap()
}

/// The wall is around the product; a test may ask its environment.
fn how_many() -> u64 {
    let asked = std::env::var("PLIMSOLL_TURNS").ok();
    asked.and_then(|turns| turns.parse().ok()).unwrap_or(TURNS)
}

/// The log folds to the view that the session has.
async fn folds(store: &FileStore, session: &Session) {
    let log = store.load(session.id()).await.unwrap();
    let state = State::fold(Arc::new(Chars4), &log).unwrap();
    let view = |state: &State| {
        let items = state.transcript().items().iter();
        let items = items.map(|item| serde_json::to_string(&(item.seq, &item.message)).unwrap());
        items.collect::<Vec<_>>()
    };
    assert_eq!(view(&state), view(session.view()));
    assert_eq!(state.usage(), session.view().usage());
}

#[tokio::test(start_paused = true)]
async fn a_session_lives_through_everything() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(FileStore(folder.path().join("log.jsonl")));
    let random = Random(Arc::new(AtomicU64::new(4)));
    let refused = Arc::new(Mutex::new(Vec::new()));
    let model = Arc::new(AnyModel {
        random: random.clone(),
        calls: AtomicU64::new(0),
        refused: Arc::clone(&refused),
    });
    let remote = Arc::new(Mutex::new(None));
    let next = || agent(&random, &model, &store, &remote);
    let id = SessionId::new("soak").unwrap();
    let most = how_many();
    let mut session = next().session(id.clone()).await.unwrap();
    let (mut turns, mut runs, mut died, mut undone) = (0, 0_u64, 0, 0);
    let mut ends = BTreeMap::new();
    let mut live = Vec::new();
    while turns < most {
        runs += 1;
        *remote.lock().unwrap() = Some(session.remote());
        // Now and then the process dies in the middle of a run.
        let dies = random
            .chance(10)
            .then(|| Duration::from_secs(random.below(60)));
        let text = random.text(40);
        let goes_on = runs > 1 && random.chance(15);
        let run = async {
            let output = if goes_on {
                session.carry_on().await
            } else {
                session.run(&text).await
            };
            output.or_else(Error::into_output)
        };
        let output = match dies {
            None => Some(run.await.unwrap()),
            Some(after) => tokio::time::timeout(after, run)
                .await
                .ok()
                .map(Result::unwrap),
        };
        match output {
            Some(output) => {
                turns += output.turns;
                assert!(!output.text.trim().is_empty());
                *ends.entry(output.reason.word()).or_insert(0) += 1;
            }
            None => {
                died += 1;
                drop(session);
                session = next().session(id.clone()).await.unwrap();
            }
        }
        if random.chance(5) && session.undo().await.is_ok() {
            undone += 1;
        }
        if random.chance(30) {
            session.switch(&next()).await.unwrap();
        }
        if runs.is_multiple_of(25) {
            folds(&store, &session).await;
            live.push(ALLOCATOR.current_usage());
        }
        assert_eq!(
            refused.lock().unwrap().as_slice(),
            <[String; 0]>::default().as_slice()
        );
    }
    folds(&store, &session).await;
    println!("{turns} turns in {runs} runs, {died} of them died, {undone} were undone; {ends:?}");
    let (early, late) = live.split_at(live.len() / 2);
    let peak = |span: &[usize]| span.iter().max().copied().unwrap_or_default() as f64;
    println!(
        "live bytes at most: {:.2} MB in the first half, {:.2} MB in the second",
        peak(early) / 1e6,
        peak(late) / 1e6
    );
    if turns >= 2_000 {
        assert!(peak(late) < peak(early) * 1.2, "memory grows");
    }
    for word in [
        "answered",
        "interrupted",
        "failed",
        "max_turns",
        "tool_limit",
    ] {
        assert!(
            ends.contains_key(word),
            "no run ended with {word}: {ends:?}"
        );
    }
}
