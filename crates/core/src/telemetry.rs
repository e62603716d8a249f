//! What a run tells of itself as spans, events and metrics, named after OpenTelemetry's conventions
//! for generative AI, through the `tracing` crate: whoever subscribes hears it, and where nobody does
//! it costs next to nothing. No exporter, and nothing of what was said unless somebody asks for it.

/// Records a metric: see [`METRICS_TARGET`].
macro_rules! measure {
    ($($fields:tt)*) => {
        tracing::event!(
            target: $crate::telemetry::METRICS_TARGET,
            tracing::Level::INFO,
            { $($fields)* }
        )
    };
}

/// Records an event of the current span.
macro_rules! tell {
    ($level:ident, $said:literal $(, $($fields:tt)*)?) => {
        tracing::event!(
            target: $crate::telemetry::TARGET,
            tracing::Level::$level,
            { message = $said, $($($fields)*)? }
        )
    };
}

mod call;
mod contents;
mod run;
mod server;
mod session;
mod tool;

use std::sync::Arc;

use crate::store::SessionId;

pub(crate) use call::{Purpose, retried, trace_call};
pub use contents::{MAX_CONTENT, MAX_CONTENT_TEXT};
pub(crate) use run::{RunSpan, evaluation, timed};
pub use server::ServerAddress;
pub(crate) use session::Told;
pub(crate) use tool::{Fault, ToolSpan};

/// The target of spans and events.
pub const TARGET: &str = "plimsoll";
/// The target of events that are metrics: each has one field that begins with `histogram.` or
/// `monotonic_counter.`, as the metrics layer of `tracing-opentelemetry` reads them.
pub const METRICS_TARGET: &str = "plimsoll::metrics";
/// Where a person asks for contents in spans.
pub const CAPTURE_VARIABLE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// Whether spans hold what was said: messages, arguments, results and the system prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Contents {
    /// They do not.
    #[default]
    Left,
    /// They do, cut to [`MAX_CONTENT`]. Whoever reads the spans reads all of it.
    Recorded,
}

/// What all spans of an agent say alike.
#[derive(Debug, Clone, Default)]
pub(crate) struct Manner {
    pub(crate) contents: Contents,
    /// What its caller calls it, where it works for another.
    pub(crate) called: Option<Arc<str>>,
}

/// Of what session a span is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scene {
    /// `None` where no session makes the call.
    pub(crate) session: Option<SessionId>,
    pub(crate) contents: Contents,
}

impl Contents {
    /// As [`CAPTURE_VARIABLE`] says. `event_only` asks for something that there is not, and records
    /// nothing.
    #[must_use]
    pub fn asked_for() -> Self {
        let value = std::env::var(CAPTURE_VARIABLE);
        value.map_or(Self::Left, |value| Self::parse(&value))
    }

    /// As a value of [`CAPTURE_VARIABLE`] says. What is not known asks for nothing.
    #[must_use]
    pub fn parse(value: &str) -> Self {
        match value.trim().to_ascii_lowercase().as_str() {
            "true" | "span" | "span_only" | "span_and_event" => Self::Recorded,
            _ => Self::Left,
        }
    }
}

/// The provider's name in the conventions, and the model's, of a `provider/name`.
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
            assert_eq!(Contents::parse(value), Contents::Recorded, "{value}");
        }
        for value in ["", "false", "0", "no_content", "event_only", "yes please"] {
            assert_eq!(Contents::parse(value), Contents::Left, "{value}");
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
