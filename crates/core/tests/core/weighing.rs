//! Token counts by the provider: a count is used and logged. A missing or late count only causes a
//! note.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plimsoll_agent::{EndReason, Entry, Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, MemoryStore, Provider, SessionId, SessionStore, Window};
use plimsoll_testkit::Warnings;

/// What it says of weights.
#[derive(Clone, Copy)]
enum CountReply {
    Half,
    Nothing,
    No,
    Never,
    Panic,
}

/// A model that is asked, and how often it was.
#[derive(Clone)]
struct CountingProvider {
    inner: ScriptedProvider,
    says: CountReply,
    asked: Arc<Mutex<Vec<u64>>>,
}

#[async_trait]
impl Provider for CountingProvider {
    fn model(&self) -> &str {
        self.inner.model()
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        self.inner.call(request, deltas).await
    }

    async fn count(&self, request: &Request) -> Result<Option<Tokens>, Failure> {
        self.asked.lock().unwrap().push(request.counted.0);
        match self.says {
            CountReply::Half => Ok(Some(Tokens(request.counted.0 / 2))),
            CountReply::Nothing => Ok(None),
            CountReply::No => Err(Failure::Auth {
                message: "invalid x-api-key".to_owned(),
            }),
            CountReply::Never => std::future::pending().await,
            CountReply::Panic => panic!("out of order"),
        }
    }
}

/// The end of a run whose task has 9,000 tokens by our count, of 12,000 that may be sent in a window
/// of 16,000; how often the provider was asked, what was warned of, and what it said by the log.
async fn run(says: CountReply) -> (EndReason, usize, Vec<String>, Vec<Entry>) {
    let provider = CountingProvider {
        inner: ScriptedProvider::new([Turn::say("Done.")]),
        says,
        asked: Arc::default(),
    };
    let warned = Warnings::default();
    let store = Arc::new(MemoryStore::default());
    let agent = Agent::builder(provider.clone())
        .window(Window::Known(Tokens(16_000)))
        .store(Arc::clone(&store) as Arc<dyn SessionStore>)
        .observer(warned.observer())
        .build()
        .unwrap();
    let id = SessionId::new("weighed").unwrap();
    let mut session = agent.session(id.clone()).await.unwrap();
    let output = session.run(&"tok ".repeat(9_000)).await.unwrap();
    let log = store.load(&id).await.unwrap();
    let measured = log.into_iter();
    let measured = measured.filter(|entry| matches!(entry, Entry::Measured { .. }));
    let asked = provider.asked.lock().unwrap().len();
    let warned = warned.all();
    (output.reason, asked, warned, measured.collect())
}

#[tokio::test]
async fn what_it_says_is_heard_and_logged() {
    let (reason, asked, warned, measured) = run(CountReply::Half).await;
    assert_eq!((reason, asked), (EndReason::Answered, 1));
    assert!(warned.is_empty(), "{warned:?}");
    let [Entry::Measured { counted, reported }] = measured[..] else {
        panic!("{measured:?}")
    };
    assert_eq!(reported, Tokens(counted.0 / 2));
}

#[tokio::test(start_paused = true)]
async fn what_it_does_not_say_costs_a_note_at_most() {
    for (says, words) in [
        (CountReply::Nothing, None),
        (CountReply::No, Some("invalid x-api-key")),
        (CountReply::Never, Some("no answer within 10 s")),
        (
            CountReply::Panic,
            Some("its client broke down: out of order"),
        ),
    ] {
        let (reason, asked, warned, measured) = run(says).await;
        assert_eq!((reason, asked), (EndReason::Answered, 1));
        assert_eq!(measured, []);
        match words {
            None => assert!(warned.is_empty(), "{warned:?}"),
            Some(words) => {
                assert_eq!(warned.len(), 1);
                assert!(warned[0].contains(words), "{warned:?}");
                assert!(warned[0].contains("our own count is used"), "{warned:?}");
            }
        }
    }
}
