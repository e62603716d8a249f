//! Settings of hooks.

use std::future::Future;

use plimsoll_context::Tokens;

use super::AgentBuilder;
use crate::hooks::Evicted;
use crate::session::AgentState;

impl AgentBuilder {
    /// Asked before a plan is applied, with the request's tokens by our counter and the messages of
    /// the view; `false` leaves the view as it is for this request; where that is over its limit, the run
    /// ends with `CannotFit`.
    pub fn before_compaction_start(
        mut self,
        hook: impl Fn(Tokens, usize) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.hooks.set_before(hook);
        self
    }

    /// Told after a plan was applied: messages before and after, tokens before and after.
    pub fn after_compaction_end(
        mut self,
        hook: impl Fn(usize, usize, Tokens, Tokens) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.set_after(hook);
        self
    }

    /// Called once for every plan that takes something out of the view, with exactly what left.
    /// It may be async; if it fails, nothing is lost.
    pub fn on_evict<F, Fut>(mut self, hook: F) -> Self
    where
        F: Fn(&AgentState, Evicted) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.hooks.set_on_evict(hook);
        self
    }
}
