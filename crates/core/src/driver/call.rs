//! Model calls with retries. The machine decides when a call is made.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use plimsoll_agent::{Event, Failure, Request};
use plimsoll_context::{Delta, Reply, Tokens};
use tracing::Instrument;

use super::{CallUsage, Parts};
use crate::agent::SUMMARY_TIMEOUT;
use crate::contained::said_by;
use crate::heard::heard;
use crate::provider::Provider;
use crate::retry::RetryConfig;
use crate::telemetry::{Purpose, SpanContext, retried, trace_call};

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
    let heard = CallReceivers {
        judge: heard,
        tell: &tell,
        call_usage: &call_usage,
    };
    let traced_as = (context, Purpose::Turn);
    attempts(
        &*parts.provider,
        &request,
        &parts.settings.retry,
        heard,
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
    let heard = CallReceivers::quiet(&call_usage);
    let work = attempts(
        &*parts.summarizer,
        &request,
        &parts.settings.retry,
        heard,
        traced_as,
    );
    tokio::time::timeout(wait, work).await.unwrap_or_else(|_| {
        let failure = Failure::Transient {
            status: None,
            retry_after_ms: None,
            message: format!("there was no summary within {} s", wait.as_secs_f32()),
        };
        call_usage.failed(&failure);
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
        Ok(Err(panic)) => format!("its client broke down: {}", said_by(&*panic)),
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
    attempts(
        provider,
        request,
        retry,
        CallReceivers::quiet(call_usage),
        traced_as,
    )
    .await
}

/// The receivers of a call's events.
struct CallReceivers<'a> {
    judge: fn(Reply, &Request) -> Result<Reply, Failure>,
    tell: &'a (dyn Fn(Event) + Send + Sync),
    call_usage: &'a CallUsage,
}

impl<'a> CallReceivers<'a> {
    /// Reports nothing and accepts every reply.
    fn quiet(call_usage: &'a CallUsage) -> Self {
        Self {
            judge: |reply, _| Ok(reply),
            tell: &|_| {},
            call_usage,
        }
    }
}

/// Calls until `judge` accepts a reply, or no further attempt is allowed.
async fn attempts(
    provider: &dyn Provider,
    request: &Request,
    retry: &RetryConfig,
    heard: CallReceivers<'_>,
    (context, purpose): (SpanContext, Purpose),
) -> Result<Reply, Failure> {
    let CallReceivers {
        judge,
        tell,
        call_usage,
    } = heard;
    let mut attempt = 1;
    loop {
        let traced = trace_call(provider, request, &context, purpose, attempt);
        let deltas = |delta| match delta {
            Delta::Used { usage } => {
                traced.used(usage);
                call_usage.hear(usage);
            }
            Delta::Refused { status } => traced.refused(status),
            Delta::Warning { text } => tell(Event::Warning { text }),
            delta => {
                traced.chunk();
                tell(Event::Delta(delta));
            }
        };
        // A panicking client is treated like an unreachable model.
        let call = AssertUnwindSafe(async { provider.call(request, &deltas).await });
        let call = call.catch_unwind().instrument(traced.span());
        let reply = call.await.unwrap_or_else(|panic| {
            Err(Failure::Transient {
                status: None,
                retry_after_ms: None,
                message: format!("its client broke down: {}", said_by(&*panic)),
            })
        });
        let reply = reply.and_then(|reply| judge(reply, request));
        traced.end(&reply);
        let failure = match reply {
            Ok(reply) => {
                call_usage.answered();
                return Ok(reply);
            }
            Err(failure) => failure,
        };
        call_usage.failed(&failure);
        let Some(wait) = retry.wait(attempt, &failure) else {
            return Err(retry.given_up(attempt, failure));
        };
        attempt += 1;
        retried(provider, attempt, wait, &failure);
        tell(Event::Retrying {
            attempt,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            why: failure.to_string(),
        });
        tokio::time::sleep(wait).await;
    }
}
