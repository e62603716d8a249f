//! The span `chat {model}` of a model call. Each attempt has its own span.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{PriceSheet, Reply, Usage};
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::contents::{self, finish};
use super::fields::{dollars, record_usage};
use super::{SpanContext, TARGET, fail, int, names};
use crate::provider::Provider;

/// A call in progress. If it is dropped before its end, it was cut off.
pub(crate) struct CallSpan {
    span: Span,
    contents: bool,
    prices: Option<PriceSheet>,
    began: Instant,
    seen: Mutex<CallProgress>,
    ended: bool,
}

/// The progress of a call before its end.
#[derive(Debug, Clone, Copy, Default)]
struct CallProgress {
    /// The time until the first piece of the reply.
    first: Option<Duration>,
    /// The reported usage so far.
    used: Option<Usage>,
    /// The HTTP status of a rejection by the server.
    refused: Option<u16>,
}

/// Begins the span of a call.
pub(crate) fn trace_call(
    provider: &dyn Provider,
    request: &Request,
    context: &SpanContext,
    attempt: u32,
) -> CallSpan {
    let server = provider.server();
    let (vendor, name) = names(provider.model());
    let span = info_span!(
        target: TARGET,
        "chat",
        otel.name = %format_args!("chat {name}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = vendor,
        gen_ai.conversation.id = context.session.as_ref().map(|session| session.as_str()),
        gen_ai.request.model = name,
        gen_ai.request.stream = true,
        gen_ai.request.max_tokens = request.max_output.map(|most| int(most.0)),
        gen_ai.request.temperature = request.sampling.temperature,
        gen_ai.request.seed = request.sampling.seed.map(int),
        server.address = server.as_ref().map(|server| server.host.as_str()),
        server.port = server.as_ref().map(|server| i64::from(server.port)),
        plimsoll.purpose = context.purpose,
        plimsoll.attempt = i64::from(attempt),
        plimsoll.request.tokens = int(request.counted.0),
        plimsoll.cost = Empty,
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        gen_ai.usage.cache_creation.input_tokens = Empty,
        gen_ai.usage.reasoning.output_tokens = Empty,
        gen_ai.system_instructions = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        http.response.status_code = Empty,
        "error.type" = Empty,
    );
    if context.contents && !span.is_disabled() {
        if let Some(system) = contents::system(&request.system) {
            span.record("gen_ai.system_instructions", system);
        }
        span.record("gen_ai.input.messages", contents::input(request));
    }
    CallSpan {
        span,
        contents: context.contents,
        prices: context.prices,
        began: Instant::now(),
        seen: Mutex::default(),
        ended: false,
    }
}

impl CallSpan {
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records the arrival of a piece of the reply.
    pub(crate) fn chunk(&self) {
        self.seen()
            .first
            .get_or_insert_with(|| self.began.elapsed());
    }

    /// Records the reported usage so far.
    pub(crate) fn used(&self, usage: Usage) {
        self.seen().used = Some(usage);
    }

    /// Records that the server has rejected the call with this HTTP status.
    pub(crate) fn refused(&self, status: u16) {
        self.seen().refused.get_or_insert(status);
    }

    fn seen(&self) -> MutexGuard<'_, CallProgress> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the span with the result of the call.
    pub(crate) fn end(mut self, reply: &Result<Reply, Failure>) {
        self.ended = true;
        let span = &self.span;
        match reply {
            Ok(reply) => {
                span.record("gen_ai.response.finish_reasons", finish(reply.stop));
                if let Some(model) = &reply.model {
                    span.record("gen_ai.response.model", model.as_str());
                }
                if self.contents && !span.is_disabled() {
                    let output = contents::output(&reply.parts, reply.stop);
                    span.record("gen_ai.output.messages", output);
                }
                self.close(reply.usage, None);
            }
            Err(failure) => {
                if let Some(status) = status(failure).or(self.seen().refused) {
                    span.record("http.response.status_code", i64::from(status));
                }
                self.close(failure.usage(), Some(failure.word()));
            }
        }
    }

    fn close(&self, usage: Option<Usage>, error: Option<&'static str>) {
        let span = &self.span;
        if let Some(error) = error {
            fail(span, error);
        }
        let CallProgress { first, used, .. } = *self.seen();
        if let Some(first) = first {
            span.record("gen_ai.response.time_to_first_chunk", first.as_secs_f64());
        }
        let Some(usage) = usage.or(used) else { return };
        record_usage(span, &usage);
        let cost = self.prices.as_ref().and_then(|prices| prices.cost(usage));
        if let Some(cost) = cost {
            span.record("plimsoll.cost", dollars(cost));
        }
    }
}

impl Drop for CallSpan {
    fn drop(&mut self) {
        if !self.ended {
            self.close(None, Some("cancelled"));
        }
    }
}

/// Records a retry.
pub(crate) fn retried(provider: &dyn Provider, attempt: u32, wait: Duration, failure: &Failure) {
    tell!(
        WARN,
        "retry",
        plimsoll.attempt = i64::from(attempt),
        plimsoll.wait = wait.as_secs_f64(),
        "error.type" = failure.word(),
        gen_ai.request.model = names(provider.model()).1
    );
}

fn status(failure: &Failure) -> Option<u16> {
    match failure {
        Failure::Refused { status, .. } | Failure::Transient { status, .. } => *status,
        _ => None,
    }
}
