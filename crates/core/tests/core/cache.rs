//! The prompt cache: the retention that requests ask for, and the reported usage.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use plimsoll_agent::{Entry, Event, Failure, Request, SessionEvent};
use plimsoll_context::{
    Breakpoint, CacheConfig, CacheRetention, CallId, Chars4, Delta, LongerCache, MessageList,
    Money, Part, PriceSheet, Rates, Reason, Reply, StopReason, TokenCounter, Tokens, ToolCall,
    Usage,
};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{
    Agent, AgentBuilder, MemoryStore, Provider, SessionId, SessionInfo, SessionStore, StoreError,
    ToolError, Window, tool,
};
use serde_json::json;

use crate::Nothing;

fn agent(provider: impl Provider + 'static) -> AgentBuilder {
    let long = |_: Nothing| async move { Ok::<_, ToolError>("all hands on deck ".repeat(100)) };
    Agent::builder(provider)
        .tool(tool("watch", "", long).idempotent())
        .counter(Arc::new(Chars4))
        .system("You keep watch. ".repeat(300))
}

/// A model that keeps watch, behind a cache that keeps the last request.
#[derive(Clone, Default)]
struct Caching {
    inner: Arc<Mutex<RecorderState>>,
}

#[derive(Default)]
struct RecorderState {
    last: MessageList,
    system: Arc<str>,
    requests: Vec<Request>,
    /// Calls, from 1, that are answered without a tool call.
    answers: Vec<usize>,
}

#[async_trait]
impl Provider for Caching {
    fn model(&self) -> &str {
        "caching/model"
    }

    fn keeps(&self, _: CacheRetention) -> bool {
        true
    }

    async fn call(
        &self,
        request: &Request,
        _: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let mut inner = self.inner.lock().unwrap();
        let number = inner.requests.len() + 1;
        if inner.system != request.system {
            inner.last = MessageList::default();
        }
        let weigh = |first: usize| -> Tokens {
            let messages = request.messages.iter().take(first);
            messages.map(|message| Chars4.message(message)).sum()
        };
        let pairs = inner.last.iter().zip(request.messages.iter());
        let same = pairs.take_while(|(then, now)| then == now).count();
        let head = Chars4.text(&request.system);
        let read = if inner.last.is_empty() {
            Tokens::ZERO
        } else {
            head + weigh(same)
        };
        let all = head + weigh(request.messages.len());
        inner.last.clone_from(&request.messages);
        inner.system = Arc::clone(&request.system);
        inner.requests.push(request.clone());
        let parts = if inner.answers.contains(&number) {
            vec![Part::text("All is well.")]
        } else {
            vec![Part::ToolCall(ToolCall {
                id: CallId(format!("c{number}")),
                name: "watch".into(),
                arguments: "{}".into(),
                opaque: None,
            })]
        };
        Ok(Reply {
            parts,
            stop: StopReason::Other,
            usage: Some(Usage {
                input: all.minus(read),
                cache_read: read,
                output: Tokens(10),
                ..Usage::default()
            }),
            model: None,
        })
    }
}

#[tokio::test]
async fn most_is_read_from_the_cache_also_with_plans() {
    let misses = Arc::new(Mutex::new(0));
    let missed = Arc::clone(&misses);
    let output = agent(Caching::default())
        .window(Window::Known(Tokens(12_000)))
        .max_turns(24)
        .observer(move |event: &SessionEvent| {
            let is_miss = matches!(event.event, Event::CacheMissed { .. });
            *missed.lock().unwrap() += usize::from(is_miss);
        })
        .build()
        .unwrap()
        .run("keep watch")
        .await
        .unwrap();
    assert!(output.plans >= 1);
    let rate = output.tokens_used.cache_hit_rate();
    assert!(rate > 0.7, "{rate}");
    assert_eq!(*misses.lock().unwrap(), 0, "plans are not missed");
}

/// A store that says when its logs were last written.
struct AgedStore {
    inner: MemoryStore,
    idle: Option<Duration>,
}

#[async_trait]
impl SessionStore for AgedStore {
    plimsoll_testkit::forward_store!(inner: acquire, read, append, list);
    async fn head(&self, session: &SessionId) -> Result<Option<SessionInfo>, StoreError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut info = self.inner.head(session).await?;
        if let (Some(info), Some(idle)) = (&mut info, self.idle) {
            info.updated = (now - idle).as_secs();
        }
        Ok(info)
    }
}

#[tokio::test]
async fn a_session_that_is_opened_after_an_hour_is_cut_while_its_cache_is_cold() {
    let mut sheet = PriceSheet::of(Rates {
        input: Money(1_000_000_000),
        cache_read: Some(Money(100_000_000)),
        cache_write: Some(Money(1_250_000_000)),
        ..Rates::FREE
    });
    sheet.cache_lives = Some(Duration::from_secs(300));
    sheet.longer = Some(LongerCache {
        lives: Duration::from_secs(3_601),
        cache_write: Money(2_000_000_000),
    });
    let hour = Duration::from_secs(3_600);
    for (idle, retention) in [
        (Some(hour), CacheRetention::Usual),
        (Some(hour), CacheRetention::Head),
        (Some(hour), CacheRetention::Long),
        (Some(Duration::from_secs(1)), CacheRetention::Usual),
        (None, CacheRetention::Usual),
    ] {
        let provider = Caching::default();
        provider.inner.lock().unwrap().answers = vec![26, 28];
        let store = MemoryStore::default();
        let agent = |store: Arc<dyn SessionStore>| {
            agent(provider.clone())
                .window(Window::Known(Tokens(32_000)))
                .prices(sheet)
                .configure(|it| it.retention = retention)
                .max_turns(60)
                .store(store)
                .build()
                .unwrap()
        };
        let id = SessionId::new("s").unwrap();
        let first = agent(Arc::new(store.clone()));
        let mut session = first.session(id.clone()).await.unwrap();
        assert_eq!(session.run("keep watch").await.unwrap().plans, 0);
        drop(session);
        let aged = AgedStore {
            inner: store.clone(),
            idle,
        };
        let second = agent(Arc::new(aged));
        let mut session = second.session(id.clone()).await.unwrap();
        session.run("keep watch").await.unwrap();
        let log = store.load(&id).await.unwrap();
        let reasons = log.iter().filter_map(|entry| match entry {
            Entry::PlanApplied { plan } => Some(plan.price.unwrap().reason),
            _ => None,
        });
        let reasons: Vec<Reason> = reasons.collect();
        // By the second request the cache is warm again, whatever it was.
        let is_cold = idle == Some(hour) && retention != CacheRetention::Long;
        let wanted: &[Reason] = if is_cold { &[Reason::Cold] } else { &[] };
        assert_eq!(reasons, wanted, "{idle:?}");
    }
}

#[tokio::test]
async fn breakpoints_and_the_key_are_in_the_request() {
    let provider = Caching::default();
    let run = async |config: Option<CacheConfig>| {
        let mut agent = agent(provider.clone()).max_turns(3);
        if let Some(config) = config {
            agent = agent.cache_config(config);
        }
        let id = SessionId::new("s").unwrap();
        let agent = agent.build().unwrap();
        agent
            .session(id)
            .await
            .unwrap()
            .run("keep watch")
            .await
            .unwrap();
        std::mem::take(&mut provider.inner.lock().unwrap().requests)
    };
    for request in run(None).await {
        let end = Breakpoint::Message(request.messages.len() - 1);
        let marks = &request.cache.breakpoints;
        assert!(marks.contains(&end) && marks.contains(&Breakpoint::System));
        assert!(marks.len() <= 4, "{marks:?}");
        assert_eq!(request.cache.key.as_deref(), Some("s"));
    }
    for request in run(Some(CacheConfig::DISABLED)).await {
        assert_eq!(request.cache, plimsoll_context::CachePlan::default());
    }
}

#[tokio::test]
async fn a_key_is_never_longer_than_providers_take() {
    for (name, expected) in [("short", Some("short")), (&"long".repeat(32), None)] {
        let provider = ScriptedProvider::new([Turn::say("ok")]);
        let agent = Agent::builder(provider.clone()).build().unwrap();
        let id = SessionId::new(name).unwrap();
        agent.session(id).await.unwrap().run("hi").await.unwrap();
        let body = &provider.requests()[0];
        let key = body["prompt_cache_key"].as_str().unwrap();
        assert!(key.len() <= 64);
        assert_eq!(expected.unwrap_or(key), key);
        assert_ne!(body["messages"], json!([]));
    }
}
