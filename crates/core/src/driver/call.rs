//! The run's calls of models: its turns and its summaries. The machine decides when a call is
//! made; `retry.rs` repeats it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use plimsoll_agent::{Failure, Input, Request};

use crate::retry::call_with_retries;
use crate::session::Session;
use crate::settings::SUMMARY_TIMEOUT;

/// Calls the model for a purpose, `turn` or `summary`. A summary has an overall timeout, since the run
/// waits.
pub(super) fn call(
    session: &mut Session,
    request: Box<Request>,
    purpose: &'static str,
) -> BoxFuture<'static, Input> {
    let (context, usage) = (session.span_context(purpose), session.usage.begin_call());
    let parts = Arc::clone(&session.parts);
    Box::pin(async move {
        let work = call_with_retries(&parts, &request, &usage, context);
        if purpose == "turn" {
            return Input::Reply(Box::new(work.await));
        }
        let wait = parts.settings.summary_timeout.unwrap_or(SUMMARY_TIMEOUT);
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
