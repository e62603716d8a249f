//! The run's calls of models: its turns and its summaries. The machine decides when a call is
//! made, `retry.rs` whether it is repeated.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use plimsoll_agent::{Event, Failure, Input, Request};
use plimsoll_context::{Delta, Reply};
use tracing::Instrument;

use crate::error::contained;
use crate::parts::Parts;
use crate::run_usage::CallUsage;
use crate::session::Session;
use crate::settings::SUMMARY_TIMEOUT;
use crate::silent_overflow::refuse_truncated;
use crate::telemetry::{SpanContext, retried, trace_call};

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

/// Calls a model until a reply is accepted or no further attempt is allowed. If the call is a turn of a run, its
/// events are sent to the observers of `parts`, and a reply to a request that was cut counts as a failure.
async fn call_with_retries(
    parts: &Parts,
    request: &Request,
    call_usage: &CallUsage,
    context: SpanContext,
) -> Result<Reply, Failure> {
    let is_turn = context.purpose == "turn";
    let provider = if is_turn {
        &*parts.provider
    } else {
        parts.summarizer()
    };
    let retry = &parts.settings.retry;
    let tell = |event| {
        if is_turn {
            parts.tell(event);
        }
    };
    let mut request = Cow::Borrowed(request);
    let mut attempt = 1;
    loop {
        let max_output = call_usage.max_output(request.max_output);
        if max_output != request.max_output {
            request.to_mut().max_output = max_output;
        }
        let request = &*request;
        let traced = trace_call(provider, request, &context, attempt);
        let deltas = |delta| {
            if matches!(delta, Delta::Used { usage } if !usage.is_plausible()) {
                return;
            }
            call_usage.record(&delta);
            match delta {
                Delta::Used { .. } => {}
                Delta::Refused { status } => traced.refused(status),
                Delta::Warning { text } => tell(Event::Warning { text }),
                delta => {
                    traced.chunk();
                    tell(Event::Delta(delta));
                }
            }
        };
        call_usage.sent();
        let call = contained(async { provider.call(request, &deltas).await });
        let outcome = call.instrument(traced.span.clone()).await;
        let has_panicked = outcome.is_err();
        let reply = outcome.unwrap_or_else(|panic| {
            Err(Failure::Transient {
                status: None,
                retry_after_ms: None,
                message: format!("its client broke down: {panic}"),
            })
        });
        let reply = reply.map(|mut reply| {
            // Our own count takes its place.
            if let Some(usage) = reply.usage.take_if(|usage| !usage.is_plausible()) {
                let tokens = usage.total_tokens();
                tell(Event::Warning {
                    text: format!(
                        "the provider reports {tokens} tokens for one call, which is not \
                         possible; our own count is used"
                    ),
                });
            }
            reply
        });
        let reply = reply.and_then(|reply| {
            if !is_turn {
                return Ok(reply);
            }
            // It is charged, even if the answer cannot be used.
            if let Some(usage) = reply.usage {
                call_usage.record(&Delta::Used { usage });
            }
            refuse_truncated(reply, request)
        });
        traced.end(&reply, call_usage.reported());
        let failure = match reply {
            Ok(reply) => {
                call_usage.answered();
                return Ok(reply);
            }
            Err(failure) => failure,
        };
        call_usage.failed(false);
        // A panic is a bug of the client, which waiting does not cure.
        let wait = retry.wait(attempt, &failure).filter(|_| !has_panicked);
        let Some(wait) = wait else {
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
