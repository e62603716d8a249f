//! A run ends in time, whatever hangs.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::{EndReason, Failure, FilterResult, InputFilter, Request};
use plimsoll_context::{Delta, FALLBACK_WINDOW, Reply, Tokens};
use plimsoll_core::testing::{ScriptedProvider, Turn};
use plimsoll_core::{Agent, AgentLoopConfig, Provider, agent_loop};

use crate::id;

/// Returns a filter that blocks its thread for as long as the sender exists.
fn blocks() -> (mpsc::Sender<()>, Arc<dyn InputFilter>) {
    let (release, released) = mpsc::channel();
    let released = Mutex::new(released);
    let filter = move |_: &str| {
        let _ = released.lock().unwrap().recv();
        FilterResult::Pass
    };
    (release, Arc::new(filter))
}

#[tokio::test]
async fn a_filter_that_blocks_rejects_its_input_in_time() {
    let limit = Duration::from_millis(200);
    for by_run in [false, true] {
        let (release, filter) = blocks();
        let provider = ScriptedProvider::new([Turn::say("hello")]);
        let builder = Agent::builder(provider.clone()).max_duration(limit);
        let output = if by_run {
            let config = AgentLoopConfig {
                input_filters: Some(vec![filter]),
                ..AgentLoopConfig::default()
            };
            let agent = builder.build().unwrap();
            let mut session = agent.session(id()).await.unwrap();
            agent_loop(&mut session, "hi", &config).await.unwrap()
        } else {
            let agent = builder.input_filters([filter]).build().unwrap();
            agent.run("hi").await.unwrap()
        };
        let EndReason::Refused { by, why } = &output.reason else {
            panic!("{:?}", output.reason);
        };
        assert_eq!(by, "input_filter");
        assert_eq!(why, "an input filter did not come back within 0.2 s");
        assert!(provider.requests().is_empty());
        drop(release);
    }
}

#[tokio::test]
async fn a_filter_that_panics_rejects_its_input() {
    let panics = |_: &str| -> plimsoll_agent::FilterResult { panic!("out of rum") };
    let builder = Agent::builder(ScriptedProvider::new([])).input_filter(panics);
    let output = builder.build().unwrap().run("hi").await.unwrap();
    let EndReason::Refused { why, .. } = &output.reason else {
        panic!("{:?}", output.reason);
    };
    assert_eq!(why, "an input filter broke down: out of rum");
}

/// A provider that never reports its window.
struct SilentWindow(ScriptedProvider);

#[async_trait]
impl Provider for SilentWindow {
    fn model(&self) -> &str {
        self.0.model()
    }

    async fn window(&self) -> Option<Tokens> {
        std::future::pending().await
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        self.0.call(request, deltas).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_reports_its_window_delays_nothing() {
    for limit in [None, Some(Duration::from_secs(2))] {
        let start = tokio::time::Instant::now();
        let provider = SilentWindow(ScriptedProvider::new([Turn::say("hello")]));
        let agent = Agent::builder(provider)
            .max_duration(limit)
            .build()
            .unwrap();
        let mut session = agent.session(id()).await.unwrap();
        assert!(start.elapsed() <= limit.unwrap_or(Duration::from_secs(10)));
        assert_eq!(session.window(), Some(FALLBACK_WINDOW));
        let output = session.run("hi").await.unwrap();
        assert_eq!(output.text, "hello");
    }
}
