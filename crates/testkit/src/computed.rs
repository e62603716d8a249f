//! A provider whose replies are computed from the requests, for models that no script describes.
//! Tests that only need certain replies take `ScriptedProvider`, which judges the requests too.

use async_trait::async_trait;
use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Delta, Part, Reply, StopReason};
use plimsoll_core::Provider;

/// A provider that answers each request with the result of a function.
#[derive(Clone)]
pub struct ComputedProvider<F> {
    model: &'static str,
    answer: F,
}

impl<F> ComputedProvider<F>
where
    F: Fn(&Request, &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, Failure> + Send + Sync,
{
    /// Creates a provider of the model with this name.
    pub fn new(model: &'static str, answer: F) -> Self {
        Self { model, answer }
    }
}

#[async_trait]
impl<F> Provider for ComputedProvider<F>
where
    F: Fn(&Request, &(dyn Fn(Delta) + Send + Sync)) -> Result<Reply, Failure> + Send + Sync,
{
    fn model(&self) -> &str {
        self.model
    }

    async fn call(
        &self,
        request: &Request,
        deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        (self.answer)(request, deltas)
    }
}

/// Returns a whole reply with these parts, whose usage is not reported.
pub fn reply(parts: Vec<Part>) -> Reply {
    Reply {
        parts,
        stop: StopReason::Stop,
        usage: None,
        model: None,
    }
}
