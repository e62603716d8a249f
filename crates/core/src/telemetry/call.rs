//! The span `chat {model}` of a model call, and its metrics. Each attempt has its own span.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_agent::{Failure, Request};
use plimsoll_context::{Reply, Usage};
use tracing::field::Empty;
use tracing::{Span, info_span};

use super::contents::{self, finish};
use super::{ServerAddress, SpanContext, TARGET, names};
use crate::provider::Provider;

/// Maximum number of response models with their own metric labels. Each label creates a separate
/// time series, and servers may return arbitrary names.
const MAX_ANSWERING: usize = 64;
/// Maximum length of such a name in bytes. Real names are at most about half as long.
const MAX_ANSWERING_NAME: usize = 128;
/// The label for all other models, as in the conventions.
const OTHER: &str = "_OTHER";

/// The response models so far.
static ANSWERING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A turn of a run.
    Turn,
    /// A summary.
    Summary,
    /// A choice between answers.
    Choice,
}

/// A call in progress. If it is dropped before its end, it was cut off.
pub(crate) struct CallSpan<'a> {
    span: Span,
    model: &'a str,
    server: Option<ServerAddress>,
    contents: bool,
    began: Instant,
    first: OnceLock<Duration>,
    /// Usage so far, as reported before the reply is complete.
    used: Mutex<Option<Usage>>,
    /// The HTTP status of a rejection by the server.
    refused: OnceLock<u16>,
    ended: bool,
}

/// Records a metric of a call with the common labels.
macro_rules! metric {
    ($call:expr, $of:expr, $name:literal = $value:expr $(, $label:literal = $is:expr)*) => {{
        let (provider, model) = names($call.model);
        let host = $call.server.as_ref().map(|server| server.host.as_str());
        let port = $call.server.as_ref().map(|server| u64::from(server.port));
        measure!(
            $name = $value,
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = provider,
            gen_ai.request.model = model,
            gen_ai.response.model = $of,
            server.address = host,
            server.port = port,
            $($label = $is,)*
        );
    }};
}

impl Purpose {
    fn word(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Summary => "summary",
            Self::Choice => "choice",
        }
    }
}

/// Begins the span of a call.
pub(crate) fn trace_call<'a>(
    provider: &'a dyn Provider,
    request: &Request,
    context: &SpanContext,
    purpose: Purpose,
    attempt: u32,
) -> CallSpan<'a> {
    let model = provider.model();
    let server = provider.server();
    let (vendor, name) = names(model);
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
        gen_ai.request.max_tokens = request.max_output.map(|most| most.0),
        gen_ai.request.temperature = request.sampling.temperature,
        gen_ai.request.seed = request.sampling.seed,
        server.address = server.as_ref().map(|server| server.host.as_str()),
        server.port = server.as_ref().map(|server| u64::from(server.port)),
        plimsoll.purpose = purpose.word(),
        plimsoll.attempt = u64::from(attempt),
        plimsoll.request.tokens = request.counted.0,
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
        model,
        server,
        contents: context.contents,
        began: Instant::now(),
        first: OnceLock::new(),
        used: Mutex::new(None),
        refused: OnceLock::new(),
        ended: false,
    }
}

impl CallSpan<'_> {
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Records the arrival of a piece of the reply.
    pub(crate) fn chunk(&self) {
        self.first.get_or_init(|| self.began.elapsed());
    }

    /// Records the reported usage so far.
    pub(crate) fn used(&self, usage: Usage) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
    }

    /// Records that the server has rejected the call with this HTTP status.
    pub(crate) fn refused(&self, status: u16) {
        self.refused.get_or_init(|| status);
    }

    fn used_so_far(&self) -> Option<Usage> {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the span with the result of the call.
    pub(crate) fn end(mut self, reply: &Result<Reply, Failure>) {
        self.ended = true;
        let span = &self.span;
        match reply {
            Ok(reply) => {
                let model = reply.model.as_deref();
                span.record("gen_ai.response.finish_reasons", finish(reply.stop));
                if let Some(model) = model {
                    span.record("gen_ai.response.model", model);
                }
                if self.contents && !span.is_disabled() {
                    let output = contents::output(&reply.parts, reply.stop);
                    span.record("gen_ai.output.messages", output);
                }
                self.close(model.map(answering).as_deref(), reply.usage, None);
            }
            Err(failure) => {
                if let Some(status) = status(failure).or(self.refused.get().copied()) {
                    span.record("http.response.status_code", u64::from(status));
                }
                let usage = failure.usage().or(self.used_so_far());
                self.close(None, usage, Some(error_type(failure)));
            }
        }
    }

    fn close(&self, model: Option<&str>, usage: Option<Usage>, error: Option<&'static str>) {
        let span = &self.span;
        if let Some(error) = error {
            span.record("error.type", error);
            span.record("otel.status_code", "ERROR");
        }
        let took = self.began.elapsed().as_secs_f64();
        metric!(
            self,
            model,
            "histogram.gen_ai.client.operation.duration" = took,
            "error.type" = error
        );
        if let Some(first) = self.first.get() {
            let first = first.as_secs_f64();
            span.record("gen_ai.response.time_to_first_chunk", first);
            metric!(
                self,
                model,
                "histogram.gen_ai.client.operation.time_to_first_chunk" = first
            );
        }
        let Some(usage) = usage else { return };
        record_usage(span, &usage);
        let read = usage.processed().0;
        metric!(
            self,
            model,
            "histogram.gen_ai.client.token.usage" = read,
            "gen_ai.token.type" = "input"
        );
        metric!(
            self,
            model,
            "histogram.gen_ai.client.token.usage" = usage.output.0,
            "gen_ai.token.type" = "output"
        );
        for (kind, tokens) in [("read", usage.cache_read), ("write", usage.cache_write)] {
            if tokens.0 > 0 {
                metric!(
                    self,
                    model,
                    "monotonic_counter.plimsoll.cache.tokens" = tokens.0,
                    "plimsoll.cache.kind" = kind
                );
            }
        }
    }
}

impl Drop for CallSpan<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.close(None, self.used_so_far(), Some("cancelled"));
        }
    }
}

/// Records a retry.
pub(crate) fn retried(provider: &dyn Provider, attempt: u32, wait: Duration, failure: &Failure) {
    let (vendor, model) = names(provider.model());
    tell!(
        WARN,
        "retry",
        plimsoll.attempt = u64::from(attempt),
        plimsoll.wait = wait.as_secs_f64(),
        "error.type" = error_type(failure),
        gen_ai.request.model = model
    );
    measure!(
        "monotonic_counter.plimsoll.retries" = 1_u64,
        gen_ai.provider.name = vendor,
        gen_ai.request.model = model,
        "error.type" = error_type(failure),
    );
}

/// Records token usage.
pub(super) fn record_usage(span: &Span, usage: &Usage) {
    span.record("gen_ai.usage.input_tokens", usage.processed().0);
    span.record("gen_ai.usage.output_tokens", usage.output.0);
    span.record("gen_ai.usage.cache_read.input_tokens", usage.cache_read.0);
    span.record(
        "gen_ai.usage.cache_creation.input_tokens",
        usage.cache_write.0,
    );
    span.record("gen_ai.usage.reasoning.output_tokens", usage.reasoning.0);
}

/// Returns one word for the cause of a failure. Never contains the provider's text, which may quote
/// the request.
pub(super) fn error_type(failure: &Failure) -> &'static str {
    match failure {
        Failure::Overflow { .. } => "overflow",
        Failure::Cut { .. } => "cut",
        Failure::SoftWindow { .. } => "soft_window",
        Failure::BodyTooLarge { .. } => "body_too_large",
        Failure::OutputTooLarge { .. } => "output_too_large",
        Failure::Auth { .. } => "auth",
        Failure::RateLimited { .. } => "rate_limited",
        Failure::Refused { .. } => "refused",
        Failure::Transient { .. } => "transient",
        Failure::ContentFilter => "content_filter",
        Failure::Garbled { .. } => "garbled",
        _ => "_OTHER",
    }
}

/// Returns the metric label for a response model.
fn answering(name: &str) -> Cow<'_, str> {
    let mut known = ANSWERING.lock().unwrap_or_else(PoisonError::into_inner);
    if known.contains(name) {
        return name.into();
    }
    if name.len() > MAX_ANSWERING_NAME || known.len() >= MAX_ANSWERING {
        return OTHER.into();
    }
    known.insert(name.to_owned());
    name.into()
}

fn status(failure: &Failure) -> Option<u16> {
    match failure {
        Failure::Refused { status, .. } | Failure::Transient { status, .. } => *status,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_do_not_make_labels_without_end() {
        let long = "m".repeat(MAX_ANSWERING_NAME + 1);
        assert_eq!(answering(&long), OTHER);
        let names: Vec<String> = (0..3 * MAX_ANSWERING).map(|n| format!("m-{n}")).collect();
        let labels: BTreeSet<String> = names.iter().map(|name| answering(name).into()).collect();
        assert!(labels.len() <= MAX_ANSWERING + 1 && labels.contains(OTHER));
        assert_eq!(answering("m-0"), "m-0", "who was there stays");
    }
}
