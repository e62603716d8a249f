//! The run's calls of models: its turns and its summaries. The machine decides when a call is
//! made; `retry.rs` repeats it.

use std::sync::Arc;

use plimsoll_agent::{Failure, Input, Request};

use crate::parts::Parts;
use crate::retry::call_with_retries;
use crate::run_usage::CallUsage;
use crate::settings::SUMMARY_TIMEOUT;
use crate::telemetry::SpanContext;

/// Calls the run's own model and reports its deltas as they arrive.
pub(super) async fn call(
    parts: Arc<Parts>,
    request: Box<Request>,
    context: SpanContext,
    usage: Arc<CallUsage>,
) -> Input {
    let (provider, retry) = (&*parts.provider, &parts.settings.retry);
    let work = call_with_retries(provider, &request, retry, Some(&parts), &usage, context);
    Input::Reply(Box::new(work.await))
}

/// Calls the summarizer. Retries like any other call, but with an overall timeout, since the run
/// waits.
pub(super) async fn summarize(
    parts: Arc<Parts>,
    request: Box<Request>,
    context: SpanContext,
    usage: Arc<CallUsage>,
) -> Input {
    let wait = parts.settings.summary_timeout.unwrap_or(SUMMARY_TIMEOUT);
    let (provider, retry) = (parts.summarizer(), &parts.settings.retry);
    let work = call_with_retries(provider, &request, retry, None, &usage, context);
    let reply = tokio::time::timeout(wait, work).await.unwrap_or_else(|_| {
        let failure = Failure::Transient {
            status: None,
            retry_after_ms: None,
            message: format!("there was no summary within {} s", wait.as_secs_f32()),
        };
        usage.failed(true);
        Err(failure)
    });
    Input::Summarized(Box::new(reply))
}
