//! The span `chat {model}` of a model call. Each attempt has its own span.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{PriceSheet, Reply, Usage};
use tracing::field::Empty;
use tracing::{Span, warn};

use super::contents::{self, finish};
use super::fields::{dollars, record_usage};
use super::{SpanContext, TARGET, fail, int, names};
use crate::provider::Provider;

/// A call in progress.
pub(crate) struct CallSpan {
    pub(crate) span: Span,
    contents: bool,
    prices: Option<PriceSheet>,
    began: Instant,
    has_begun_reply: AtomicBool,
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
    let span = span!(
        "chat",
        "client",
        otel.name = %format_args!("chat {name}"),
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
        gen_ai.response.model = Empty,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.response.time_to_first_chunk = Empty,
        gen_ai.system_instructions = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        http.response.status_code = Empty,
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
        has_begun_reply: AtomicBool::new(false),
    }
}

impl CallSpan {
    /// Records the arrival of a piece of the reply.
    pub(crate) fn chunk(&self) {
        if !self.has_begun_reply.swap(true, Ordering::Relaxed) {
            let first = self.began.elapsed().as_secs_f64();
            let span = &self.span;
            span.record("gen_ai.response.time_to_first_chunk", first);
        }
    }

    /// Records that the server has rejected the call with this HTTP status.
    pub(crate) fn refused(&self, status: u16) {
        let span = &self.span;
        span.record("http.response.status_code", i64::from(status));
    }

    /// Ends the span with the result of the call, and the usage that was reported until then.
    pub(crate) fn end(self, reply: &Result<Reply, Failure>, used: Option<Usage>) {
        let span = &self.span;
        let mut usage = used;
        match reply {
            Ok(reply) => {
                let reasons = serde_json::json!([finish(reply.stop)]);
                span.record("gen_ai.response.finish_reasons", reasons.to_string());
                if let Some(model) = &reply.model {
                    span.record("gen_ai.response.model", model.as_str());
                }
                if self.contents && !span.is_disabled() {
                    let output = contents::output(&reply.parts, reply.stop);
                    span.record("gen_ai.output.messages", output);
                }
                usage = reply.usage.or(used);
            }
            Err(failure) => fail(span, failure.word()),
        }
        if let Some(usage) = usage {
            record_usage(span, &usage);
            let cost = self.prices.as_ref().and_then(|prices| prices.cost(usage));
            span.record("plimsoll.cost", cost.map(dollars));
        }
    }
}

/// Records a retry.
pub(crate) fn retried(provider: &dyn Provider, attempt: u32, wait: Duration, failure: &Failure) {
    warn!(
        target: TARGET,
        message = "retry",
        plimsoll.attempt = i64::from(attempt),
        plimsoll.wait = wait.as_secs_f64(),
        "error.type" = failure.word(),
        gen_ai.request.model = names(provider.model()).1
    );
}
