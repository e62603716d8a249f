//! A model that costs nothing: it asks for a tool as often as it was told to, then answers. Unlike
//! `ScriptedProvider` it does not look at the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request};
use plimsoll_context::{CallId, Delta, Part, Reply, StopReason, ToolCall};
use plimsoll_core::Provider;

/// The model.
pub(crate) struct Instantly {
    left: AtomicUsize,
    made: AtomicUsize,
}

/// What the tool is called with.
#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Nothing {}

impl Instantly {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            left: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
        })
    }

    /// So many tool calls from now on, one a turn; then the answer.
    pub(crate) fn calls(&self, calls: usize) {
        self.left.store(calls, Ordering::Relaxed);
    }
}

#[async_trait]
impl Provider for Instantly {
    fn model(&self) -> &str {
        "bench/instantly"
    }

    async fn call(
        &self,
        _request: &Request,
        _deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        let left = self.left.load(Ordering::Relaxed);
        let (part, stop) = if left == 0 {
            (Part::text("All pages are read."), StopReason::Stop)
        } else {
            self.left.store(left - 1, Ordering::Relaxed);
            let n = self.made.fetch_add(1, Ordering::Relaxed);
            let call = ToolCall {
                id: CallId(format!("call_{n}")),
                name: "read".to_owned(),
                arguments: "{}".to_owned(),
                opaque: None,
            };
            (Part::ToolCall(call), StopReason::ToolCalls)
        };
        Ok(Reply {
            parts: vec![part],
            stop,
            usage: None,
            model: None,
        })
    }
}
