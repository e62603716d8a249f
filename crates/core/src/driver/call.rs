//! The run's calls of models: its turns and its summaries. The machine decides when a call is
//! made; `retry.rs` repeats it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use plimsoll_agent::{Failure, Input, Request};

use crate::retry::call_with_retries;
use crate::session::Session;
use crate::settings::SUMMARY_TIMEOUT;

/// Calls the run's own model and reports its deltas as they arrive.
pub(super) fn call(session: &mut Session, request: Box<Request>) -> BoxFuture<'static, Input> {
    let (context, usage) = (session.span_context("turn"), session.usage.begin_call());
    let parts = Arc::clone(&session.parts);
    Box::pin(async move {
        let reply = call_with_retries(&parts, &request, &usage, context).await;
        Input::Reply(Box::new(reply))
    })
}

/// Calls the summarizer. Retries like any other call, but with an overall timeout, since the run
/// waits.
pub(super) fn summarize(session: &mut Session, request: Box<Request>) -> BoxFuture<'static, Input> {
    let (context, usage) = (session.span_context("summary"), session.usage.begin_call());
    let parts = Arc::clone(&session.parts);
    Box::pin(async move {
        let wait = parts.settings.summary_timeout.unwrap_or(SUMMARY_TIMEOUT);
        let work = call_with_retries(&parts, &request, &usage, context);
        let reply = tokio::time::timeout(wait, work).await.unwrap_or_else(|_| {
            usage.failed(true);
            Err(Failure::Transient {
                status: None,
                retry_after_ms: None,
                message: format!("there was no summary within {} s", wait.as_secs_f32()),
            })
        });
        Input::Summarized(Box::new(reply))
    })
}
