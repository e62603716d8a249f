//! The run's calls of models: its turns, its summaries and counts of tokens. The machine decides when a call is
//! made; `retry.rs` repeats it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::{Event, Failure, Request};
use plimsoll_context::{Reply, Tokens};

use super::{CallUsage, Parts};
use crate::agent::SUMMARY_TIMEOUT;
use crate::panic_guard::panic_message;
use crate::provider::Provider;
use crate::retry::{CallReceivers, RetryConfig, call_with_retries};
use crate::silent_overflow::refuse_truncated;
use crate::telemetry::{Purpose, SpanContext};

/// Timeout for counting the tokens of a request. The run waits for it, and the number is not worth
/// more.
const COUNT_TIMEOUT: Duration = Duration::from_secs(10);

/// Calls the run's own model and reports its deltas as they arrive.
pub(super) async fn call(
    parts: Arc<Parts>,
    request: Box<Request>,
    context: SpanContext,
    call_usage: Arc<CallUsage>,
) -> Result<Reply, Failure> {
    let tell = |event| parts.tell(event);
    let receivers = CallReceivers {
        check: refuse_truncated,
        tell: &tell,
        call_usage: &call_usage,
    };
    let traced_as = (context, Purpose::Turn);
    call_with_retries(
        &*parts.provider,
        &request,
        &parts.settings.retry,
        receivers,
        traced_as,
    )
    .await
}

/// Calls the summarizer. Retries like any other call, but with an overall timeout, since the run
/// waits.
pub(super) async fn summarize(
    parts: Arc<Parts>,
    request: Box<Request>,
    context: SpanContext,
    call_usage: Arc<CallUsage>,
) -> Result<Reply, Failure> {
    let wait = parts.settings.summary_timeout.unwrap_or(SUMMARY_TIMEOUT);
    let traced_as = (context, Purpose::Summary);
    let receivers = CallReceivers::quiet(&call_usage);
    let work = call_with_retries(
        &*parts.summarizer,
        &request,
        &parts.settings.retry,
        receivers,
        traced_as,
    );
    tokio::time::timeout(wait, work).await.unwrap_or_else(|_| {
        let failure = Failure::Transient {
            status: None,
            retry_after_ms: None,
            message: format!("there was no summary within {} s", wait.as_secs_f32()),
        };
        call_usage.cut_off();
        Err(failure)
    })
}

/// Returns the tokens of a request as counted by the provider. Without it, our own count is used.
pub(super) async fn count(parts: Arc<Parts>, request: Box<Request>) -> Option<Tokens> {
    let counting = AssertUnwindSafe(async { parts.provider.count(&request).await });
    let counting = tokio::time::timeout(COUNT_TIMEOUT, counting.catch_unwind());
    let why = match counting.await {
        Ok(Ok(Ok(reported))) => return reported,
        Ok(Ok(Err(failure))) => failure.to_string(),
        Ok(Err(panic)) => format!("its client broke down: {}", panic_message(&*panic)),
        Err(_) => format!("no answer within {} s", COUNT_TIMEOUT.as_secs()),
    };
    parts.tell(Event::Warning {
        text: format!("the provider did not count the request, so our own count is used: {why}"),
    });
    None
}

/// Makes a call outside of a run, with the usual retries. `call_usage` receives the usage of attempts
/// without a reply, even if the future is dropped.
pub(crate) async fn ask(
    provider: &dyn Provider,
    request: &Request,
    retry: &RetryConfig,
    call_usage: &CallUsage,
) -> Result<Reply, Failure> {
    let traced_as = (SpanContext::default(), Purpose::Choice);
    call_with_retries(
        provider,
        request,
        retry,
        CallReceivers::quiet(call_usage),
        traced_as,
    )
    .await
}
