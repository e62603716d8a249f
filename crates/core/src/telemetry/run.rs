//! The span `invoke_agent {name}`: one run, from the user's message to its outcome.

use plimsoll_agent::{EndReason, Outcome, Setup};
use tracing::Span;
use tracing::field::Empty;

use super::fields::{dollars, record_usage};
use super::{fail, int, names};
use crate::error::Error;
use crate::store::SessionId;

/// A run in progress.
pub(crate) struct RunSpan(pub(crate) Span);

impl RunSpan {
    /// Begins the span of a session's new run. `called` is the name of a sub-agent.
    pub(crate) fn begin(
        setup: &Setup,
        called: Option<&str>,
        session: &SessionId,
        run: u64,
    ) -> Self {
        let agent = match setup.config_id.as_str() {
            plimsoll_agent::DEFAULT_CONFIG => called,
            id => Some(id),
        };
        let (vendor, model) = names(&setup.model);
        let span = span!(
            "invoke_agent",
            "internal",
            otel.name = agent.map(|agent| format!("invoke_agent {agent}")),
            gen_ai.provider.name = vendor,
            gen_ai.agent.name = agent,
            gen_ai.conversation.id = session.as_str(),
            gen_ai.request.model = model,
            plimsoll.run = int(run),
            plimsoll.outcome = Empty,
            plimsoll.limit_hit = Empty,
            plimsoll.turns = Empty,
            plimsoll.tool_calls = Empty,
            plimsoll.plans = Empty,
            plimsoll.plan.tokens_freed = Empty,
        );
        Self(span)
    }

    /// Ends the span with the outcome of the run.
    pub(crate) fn end(self, outcome: &Result<Outcome, Error>) {
        // Ending because of a limit or a user is not an error.
        let span = &self.0;
        let error = match outcome.as_ref().map(|it| &it.reason) {
            Ok(EndReason::Failed { failure }) => Some(failure.word()),
            Ok(EndReason::CannotFit { .. }) => Some("cannot_fit"),
            Ok(_) => None,
            // The log could not be written, so the outcome is unknown.
            Err(_) => Some("session"),
        };
        if let Some(error) = error {
            fail(span, error);
        }
        let Ok(outcome) = outcome else { return };
        span.record("plimsoll.outcome", outcome.reason.word());
        span.record("plimsoll.turns", int(outcome.turns));
        span.record("plimsoll.tool_calls", int(outcome.tool_calls));
        span.record("plimsoll.plans", int(outcome.plans));
        span.record("plimsoll.plan.tokens_freed", int(outcome.freed.0));
        if let Some(cost) = outcome.cost.whole() {
            span.record("plimsoll.cost", dollars(cost));
        }
        record_usage(span, &outcome.tokens_used);
        span.record("plimsoll.limit_hit", outcome.reason.is_limit());
    }
}
