//! Values of the fields that several spans have.

use plimsoll_context::{Money, Usage};
use tracing::Span;

use super::int;

/// Converts billionths of a dollar to dollars.
pub(super) fn dollars(money: Money) -> f64 {
    money.0 as f64 / 1e9
}

/// Records token usage.
pub(super) fn record_usage(span: &Span, usage: &Usage) {
    for (field, tokens) in [
        ("gen_ai.usage.input_tokens", usage.processed()),
        ("gen_ai.usage.output_tokens", usage.output),
        ("gen_ai.usage.cache_read.input_tokens", usage.cache_read),
        (
            "gen_ai.usage.cache_creation.input_tokens",
            usage.cache_write,
        ),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning),
    ] {
        span.record(field, int(tokens.0));
    }
}
