//! Journaled runs: after any crash of a worker another one continues, and nothing is sent, called
//! or counted twice. A journal that does not belong to the log is refused.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use plimsoll_agent::{EndReason, Entry, ExecutionLimits, LimitKind, UserMessage};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentLoopConfig, AgentOutput, Error, JOURNAL_FORMAT, Journal, JournalFault,
    JournaledRun, LocalJournal, MemoryStore, RunStart, SessionStore, StepEnd, Tool, ToolContext,
    ToolError, ToolOutput, tool,
};
use serde_json::{Value, json};

use crate::{Nothing, id};

fn request(key: &str) -> JournaledRun {
    JournaledRun {
        key: key.to_owned(),
        message: "do it".into(),
        config: AgentLoopConfig::default(),
    }
}

/// A journal in memory, whose worker dies in the step `dies_in`: before the journal has it, or behind that.
#[derive(Default)]
struct Tape {
    start: Mutex<Option<RunStart>>,
    steps: Mutex<Vec<StepEnd>>,
    dies_in: Option<u64>,
    has_it: bool,
}

#[async_trait::async_trait]
impl Journal for Tape {
    async fn begin(&self, start: RunStart) -> Result<RunStart, Error> {
        Ok(self.start.lock().unwrap().get_or_insert(start).clone())
    }

    async fn step(
        &self,
        number: u64,
        work: BoxFuture<'_, Result<StepEnd, Error>>,
    ) -> Result<StepEnd, Error> {
        let journaled = self.steps.lock().unwrap().get(number as usize - 1).cloned();
        if let Some(end) = journaled {
            return Ok(end);
        }
        let dies = self.dies_in == Some(number);
        let end = work.await?;
        if !dies || self.has_it {
            self.steps.lock().unwrap().push(end.clone());
        }
        if dies { Err(Error::Stale) } else { Ok(end) }
    }
}

fn agent(provider: &ScriptedProvider, store: &MemoryStore) -> Agent {
    let look = |_: Nothing| async { Ok::<_, ToolError>("a line") };
    Agent::builder(provider.clone())
        .tool(tool("look", "Looks.", look))
        .store(Arc::new(store.clone()))
        .build()
        .unwrap()
}

fn script() -> ScriptedProvider {
    ScriptedProvider::new([
        Turn::calls([("look", json!({})), ("look", json!({}))]),
        Turn::call("look", json!({})),
        Turn::say("done"),
    ])
}

/// A worker that opens the session and runs the request.
async fn work(agent: &Agent, journal: &dyn Journal) -> Result<AgentOutput, Error> {
    let mut session = agent.session(id()).await?;
    session.run_journaled(&request("r1"), journal).await
}

/// The log without what a run that goes on writes besides.
async fn log(store: &MemoryStore) -> Vec<Entry> {
    let mut log = store.load(&id()).await.unwrap();
    let mut begun = false;
    log.retain(|entry| {
        !matches!(entry, Entry::RunStarted { .. }) || !std::mem::replace(&mut begun, true)
    });
    log
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_wherever_its_worker_died() {
    let (store, provider) = (MemoryStore::default(), script());
    let journal = Tape::default();
    let whole = work(&agent(&provider, &store), &journal).await.unwrap();
    assert_eq!(whole.text, "done");
    let (entries, requests) = (log(&store).await, provider.requests());
    let steps = journal.steps.lock().unwrap().len() as u64;
    // Three replies, three results, and the end.
    assert_eq!(steps, 7);

    for (dies_in, has_it) in (1..=steps).flat_map(|step| [(step, false), (step, true)]) {
        let (store, provider) = (MemoryStore::default(), script());
        let mut journal = Tape {
            dies_in: Some(dies_in),
            has_it,
            ..Tape::default()
        };
        let died = work(&agent(&provider, &store), &journal).await;
        assert_eq!(died.unwrap_err(), Error::Stale, "{dies_in}");
        journal.dies_in = None;
        let output = work(&agent(&provider, &store), &journal).await.unwrap();
        let case = format!("died in step {dies_in}, journaled: {has_it}");
        assert_eq!(output.text, "done", "{case}");
        assert_eq!((output.turns, output.tool_calls), (3, 3), "{case}");
        assert_eq!(provider.requests(), requests, "{case}");
        assert_eq!(log(&store).await, entries, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_not_run_twice_even_if_the_journal_has_forgotten_it() {
    let (store, provider) = (MemoryStore::default(), script());
    let agent = agent(&provider, &store);
    let first = work(&agent, &LocalJournal).await.unwrap();
    let again = work(&agent, &LocalJournal).await.unwrap();
    assert_eq!((&again.text, again.turns), (&first.text, first.turns));
    assert_eq!(provider.requests().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_journal_of_another_log_or_a_newer_version_is_refused() {
    let (store, provider) = (MemoryStore::default(), script());
    let journal = Tape {
        dies_in: Some(2),
        has_it: true,
        ..Tape::default()
    };
    let _ = work(&agent(&provider, &store), &journal).await;
    let named = journal.steps.lock().unwrap()[0].head.entries;

    let empty = MemoryStore::default();
    let refused = work(&agent(&provider, &empty), &journal).await;
    let error = refused.unwrap_err();
    assert!(!error.is_passing());
    assert_eq!(
        error.to_string(),
        format!(
            "the journal of session s names entry {named}, which the log does not contain: it is empty; nothing was run. Give the worker the database that the run started with, or cancel the run and \
             begin another"
        )
    );
    assert!(empty.load(&id()).await.unwrap().is_empty());

    let other = MemoryStore::default();
    let answers = ScriptedProvider::new([]).then_always(Turn::say("else"));
    let elsewhere = agent(&answers, &other);
    let mut session = elsewhere.session(id()).await.unwrap();
    for _ in 0..3 {
        session.run("something else").await.unwrap();
    }
    drop(session);
    let refused = work(&elsewhere, &journal).await.unwrap_err();
    let Error::Journal(JournalFault::Mismatch { why, .. }) = &refused else {
        panic!("{refused}");
    };
    assert_eq!(why, "another entry stands there, or before it");
    assert_eq!(answers.requests().len(), 3);

    journal.start.lock().unwrap().as_mut().unwrap().format = JOURNAL_FORMAT + 1;
    let refused = work(&agent(&provider, &store), &journal).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the journal of session s has format 2, and this worker reads up to 1; update it, and stop \
         workers of this version"
    );
    assert!(refused.is_passing(), "a newer worker may finish the run");
}

/// A tool that has begun and does not end by itself.
struct Hangs {
    spec: plimsoll_context::ToolSpec,
    is_idempotent: bool,
    keys: Arc<Mutex<Vec<String>>>,
}

#[async_trait::async_trait]
impl Tool for Hangs {
    fn spec(&self) -> &plimsoll_context::ToolSpec {
        &self.spec
    }

    fn idempotent(&self) -> bool {
        self.is_idempotent
    }

    async fn call(&self, _: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let first = {
            let mut keys = self.keys.lock().unwrap();
            keys.push(cx.key().unwrap().to_string());
            keys.len() == 1
        };
        if first {
            std::future::pending().await
        } else {
            Ok("went through".into())
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_cut_off_by_a_crash_is_repeated_only_if_it_is_idempotent() {
    for is_idempotent in [false, true] {
        let keys = Arc::new(Mutex::new(Vec::new()));
        let store = MemoryStore::default();
        let provider =
            ScriptedProvider::new([Turn::call("hangs", json!({})), Turn::say("understood")]);
        let hangs = Hangs {
            spec: plimsoll_context::ToolSpec {
                name: "hangs".to_owned(),
                description: "Hangs.".to_owned(),
                schema: json!({"type": "object", "properties": {}}),
            },
            is_idempotent,
            keys: Arc::clone(&keys),
        };
        let agent = Agent::builder(provider.clone()).tool(hangs);
        let agent = agent.store(Arc::new(store.clone())).build().unwrap();
        let journal = Tape::default();
        let killed = tokio::time::timeout(Duration::from_secs(1), work(&agent, &journal)).await;
        assert!(killed.is_err());
        let output = work(&agent, &journal).await.unwrap();
        assert_eq!(output.text, "understood");
        let told = provider.requests()[1].to_string();
        if is_idempotent {
            assert_eq!(*keys.lock().unwrap(), ["s.1-0", "s.1-0"]);
            assert!(told.contains("went through"), "{told}");
        } else {
            assert_eq!(*keys.lock().unwrap(), ["s.1-0"]);
            assert!(
                told.contains("it is not known whether this call ran to its end"),
                "{told}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn limits_are_those_of_the_whole_run() {
    let store = MemoryStore::default();
    let provider = ScriptedProvider::new([]).then_always(Turn::call("look", json!({})));
    let mut request = request("r1");
    request.config.execution_limits.max_turns = Some(4);
    let journal = Tape {
        dies_in: Some(4),
        ..Tape::default()
    };
    let agent = agent(&provider, &store);
    let mut session = agent.session(id()).await.unwrap();
    let died = session.run_journaled(&request, &journal).await;
    assert_eq!(died.unwrap_err(), Error::Stale);
    drop(session);
    let mut session = agent.session(id()).await.unwrap();
    let output = session.run_journaled(&request, &LocalJournal).await;
    let output = output.unwrap();
    assert_eq!(
        output.reason,
        EndReason::Limit {
            kind: LimitKind::MaxTurns,
            used: 4,
            limit: 4
        }
    );
    assert_eq!(provider.requests().len(), 4);

    // So is the time, which went on while nobody worked.
    let (store, provider) = (MemoryStore::default(), script());
    let long_ago = RunStart {
        format: JOURNAL_FORMAT,
        at_ms: 0,
        head: plimsoll_core::LogHead::default(),
    };
    let journal = Tape {
        start: Mutex::new(Some(long_ago)),
        ..Tape::default()
    };
    let agent = Agent::builder(provider.clone())
        .execution_limits(ExecutionLimits {
            max_duration: Some(Duration::from_secs(60)),
            ..ExecutionLimits::default()
        })
        .store(Arc::new(store.clone()))
        .build()
        .unwrap();
    let output = work(&agent, &journal).await.unwrap();
    assert!(matches!(
        output.reason,
        EndReason::Limit {
            kind: LimitKind::MaxDuration,
            limit: 60_000,
            ..
        }
    ));
    assert!(provider.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_message_with_a_key_is_said_once_to_all_workers() {
    let (store, provider) = (MemoryStore::default(), script());
    let remote = Arc::new(Mutex::new(None::<plimsoll_core::Remote>));
    let says = Arc::clone(&remote);
    let look = move |_: Nothing| {
        let remote = says.lock().unwrap().clone().unwrap();
        async move {
            for _ in 0..2 {
                let message = UserMessage::from("and quickly").with_key("m1");
                assert!(remote.steer(message).await);
            }
            Ok::<_, ToolError>("a line")
        }
    };
    let agent = Agent::builder(provider.clone())
        .tool(tool("look", "Looks.", look))
        .store(Arc::new(store.clone()))
        .build()
        .unwrap();
    let journal = Tape {
        dies_in: Some(2),
        ..Tape::default()
    };
    for journal in [&journal as &dyn Journal, &LocalJournal] {
        let mut session = agent.session(id()).await.unwrap();
        *remote.lock().unwrap() = Some(session.remote());
        let _ = session.run_journaled(&request("r1"), journal).await;
    }
    let log = store.load(&id()).await.unwrap();
    let queued = log.iter().filter(|it| matches!(it, Entry::Queued { .. }));
    assert_eq!(queued.count(), 1);
    let last = provider.requests().pop().unwrap().to_string();
    assert_eq!(provider.requests().len(), 3);
    assert_eq!(last.matches("and quickly").count(), 1, "{last}");
}
