//! Spans and events of a run, sent through the `tracing` crate and named after OpenTelemetry's
//! conventions for generative AI.
//!
//! Without a subscriber, they cost almost nothing. There is no exporter: a program adds the layers
//! that it wants, for example `tracing-opentelemetry`'s. Message contents are only included on
//! request.

/// Begins a span with the attributes that all spans have. Those that stay empty are not exported.
macro_rules! span {
    ($name:literal, $kind:literal, $($attribute:tt)*) => {
        tracing::info_span!(
            target: $crate::telemetry::TARGET,
            $name,
            otel.kind = $kind,
            otel.status_code = tracing::field::Empty,
            "error.type" = tracing::field::Empty,
            gen_ai.operation.name = $name,
            gen_ai.usage.input_tokens = tracing::field::Empty,
            gen_ai.usage.output_tokens = tracing::field::Empty,
            gen_ai.usage.cache_read.input_tokens = tracing::field::Empty,
            gen_ai.usage.cache_creation.input_tokens = tracing::field::Empty,
            gen_ai.usage.reasoning.output_tokens = tracing::field::Empty,
            plimsoll.cost = tracing::field::Empty,
            $($attribute)*
        )
    };
}

mod call;
mod contents;
mod fields;
mod run;
mod session;
mod tool;

use plimsoll_context::PriceSheet;
use tracing::Span;

use crate::store::SessionId;

pub(crate) use call::{retried, trace_call};
pub use contents::{MAX_CONTENT, MAX_CONTENT_TEXT};
pub(crate) use run::RunSpan;
pub(crate) use session::record;
pub(crate) use tool::ToolSpan;

/// The target of spans and events.
pub const TARGET: &str = "plimsoll";
/// The environment variable that turns on contents in spans.
pub const CAPTURE_VARIABLE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// The address of a model's server. Contains neither a path nor a key, since a URL may include
/// secrets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    /// Host name or IP address.
    pub host: String,
    /// TCP port.
    pub port: u16,
}

/// The purpose of a call, and its session.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpanContext {
    /// `turn`, `summary` or `choice`.
    pub(crate) purpose: &'static str,
    /// `None` if the call belongs to no session.
    pub(crate) session: Option<SessionId>,
    /// Whether spans contain messages, cut to [`MAX_CONTENT`]. Every reader of the spans can then
    /// read them.
    pub(crate) contents: bool,
    /// The prices of the called model, for the cost of the call.
    pub(crate) prices: Option<PriceSheet>,
}

/// Marks a span as failed, with one word for the cause.
pub(crate) fn fail(span: &Span, error: &'static str) {
    span.record("error.type", error);
    span.record("otel.status_code", "ERROR");
}

/// Converts a number to the integer type of OpenTelemetry. Other types are exported as text.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Reads [`CAPTURE_VARIABLE`]: whether spans contain messages, arguments, results and the system
/// prompt. Unknown values, and `event_only`, which is not supported, record nothing.
pub(crate) fn captures_contents() -> bool {
    std::env::var(CAPTURE_VARIABLE).is_ok_and(|value| says_capture(&value))
}

fn says_capture(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    ["true", "span", "span_only", "span_and_event"].contains(&value.as_str())
}

/// Splits `provider/name` into the provider's name in the conventions and the model's name.
pub(crate) fn names(model: &str) -> (&str, &str) {
    let (provider, name) = model.split_once('/').unwrap_or(("_OTHER", model));
    let provider = match provider {
        "openai-responses" => "openai",
        "mistral" => "mistral_ai",
        "xai" => "x_ai",
        "kimi" | "moonshot" => "moonshot_ai",
        "gemini" => "gcp.gemini",
        "vertex" => "gcp.vertex_ai",
        "bedrock" => "aws.bedrock",
        other => other,
    };
    (provider, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_left_unless_the_variable_says_otherwise() {
        for value in ["true", "TRUE", "span", "span_only", " SPAN_AND_EVENT "] {
            assert!(says_capture(value), "{value}");
        }
        for value in ["", "false", "0", "no_content", "event_only", "yes please"] {
            assert!(!says_capture(value), "{value}");
        }
    }

    #[test]
    fn providers_have_the_names_of_the_conventions() {
        for (model, named) in [
            ("openai-responses/gpt-5", ("openai", "gpt-5")),
            ("mistral/large", ("mistral_ai", "large")),
            ("openrouter/qwen/qwen3", ("openrouter", "qwen/qwen3")),
            ("scripted", ("_OTHER", "scripted")),
        ] {
            assert_eq!(names(model), named);
        }
    }
}
