//! The protocol's usage, converted to Plimsoll's definition. The counts have other names than in Chat
//! Completions and the same meaning.

use plimsoll_context::Usage;
use serde_json::Value;

use crate::openai_chat::usage;

/// The names here and in Chat Completions.
const NAMES: [(&str, &str); 4] = [
    ("input_tokens", "prompt_tokens"),
    ("output_tokens", "completion_tokens"),
    ("input_tokens_details", "prompt_tokens_details"),
    ("output_tokens_details", "completion_tokens_details"),
];

/// Returns the usage of a response. `None` if it has no counts.
pub(super) fn usage(reported: &Value) -> Option<Usage> {
    usage::usage(reported.as_object()?, &NAMES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_context::Tokens;
    use serde_json::json;

    #[test]
    fn cached_is_part_of_input_and_reasoning_of_output() {
        let used = usage(&json!({
            "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 800},
            "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 30},
            "total_tokens": 1050
        }));
        let expected = Usage {
            input: Tokens(200),
            output: Tokens(50),
            reasoning: Tokens(30),
            cache_read: Tokens(800),
            cache_write: Tokens(0),
            ..Usage::default()
        };
        assert_eq!(used, Some(expected));
        let written = usage(&json!({
            "input_tokens": 1000, "output_tokens": 5,
            "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 700},
        }));
        let written = written.unwrap();
        assert_eq!(
            (written.input, written.cache_write),
            (Tokens(200), Tokens(700))
        );
        assert_eq!(written.processed(), Tokens(1000));
    }

    #[test]
    fn what_is_no_usage_is_none() {
        for value in [
            json!(null),
            json!({}),
            json!({"input_tokens": "many"}),
            json!([1]),
        ] {
            assert_eq!(usage(&value), None, "{value}");
        }
        let lenient = json!({"input_tokens": 3, "input_tokens_details": null});
        assert_eq!(usage(&lenient).unwrap().input, Tokens(3));
    }
}
