//! A server's usage, converted to Plimsoll's definition: cached input is not fresh input, reasoning is
//! part of the output, and no token counts twice.

use plimsoll_context::{Tokens, Usage};
use serde_json::Value;

use super::response::WireUsage;

impl WireUsage {
    /// Returns the usage in Plimsoll's definition, or `None` if the server reported no counts.
    ///
    /// `prompt_tokens` includes the tokens read from and written to a cache, unless there are more of
    /// these. `completion_tokens` includes reasoning, except at servers (xAI) whose total shows
    /// otherwise.
    #[must_use]
    pub(crate) fn normalized(&self) -> Option<Usage> {
        let prompt = self.prompt_tokens;
        let written = self.completion_tokens;
        if prompt.is_none() && written.is_none() && self.total_tokens.is_none() {
            return None;
        }
        let prompt = prompt.unwrap_or_default();
        let (read, write) = (self.cache_read(), self.cache_write());
        let (output, reasoning) = self.output(prompt);
        // A part cannot be larger than the whole: some gateways count it separately, as Anthropic does.
        let (fresh, read, write) = if read > prompt || write > prompt {
            (prompt, read, write)
        } else {
            let write = write.min(prompt - read);
            (prompt - read - write, read, write)
        };
        Some(Usage {
            input: Tokens(fresh),
            output: Tokens(output),
            reasoning: Tokens(reasoning.min(output)),
            cache_read: Tokens(read),
            cache_write: Tokens(write),
            ..Usage::default()
        })
    }

    fn cache_read(&self) -> u64 {
        let details = self.prompt_tokens_details.as_ref();
        details
            .and_then(|details| details.cached_tokens)
            .or(self.prompt_cache_hit_tokens)
            .or(self.cached_tokens)
            .or_else(|| self.extra("cache_read_input_tokens"))
            .unwrap_or_default()
    }

    fn cache_write(&self) -> u64 {
        let details = self.prompt_tokens_details.as_ref();
        details
            .and_then(|details| details.cache_write_tokens)
            .or_else(|| self.extra("cache_creation_input_tokens"))
            .unwrap_or_default()
    }

    /// Returns the output tokens, and the reasoning tokens among them.
    fn output(&self, prompt: u64) -> (u64, u64) {
        let details = self.completion_tokens_details.as_ref();
        let reasoning = details
            .and_then(|details| details.reasoning_tokens)
            .or_else(|| self.extra("reasoning_tokens"))
            .unwrap_or_default();
        let rest = self
            .total_tokens
            .map(|total| total.saturating_sub(prompt))
            .unwrap_or_default();
        let written = self.completion_tokens.unwrap_or(rest);
        let apart = written.saturating_add(reasoning);
        if reasoning > 0 && (rest == apart || reasoning > written) {
            return (apart, reasoning);
        }
        (written, reasoning)
    }

    fn extra(&self, key: &str) -> Option<u64> {
        self.extra.get(key).and_then(Value::as_u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_work_is_the_same_usage() {
        let rows = [
            // OpenAI: 1000 input, 800 of them cached; 50 output, 30 of them reasoning.
            r#"{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,
                "prompt_tokens_details":{"cached_tokens":800,"audio_tokens":0},
                "completion_tokens_details":{"reasoning_tokens":30}}"#,
            // DeepSeek.
            r#"{"prompt_tokens":1000,"completion_tokens":50,"total_tokens":1050,
                "prompt_cache_hit_tokens":800,"prompt_cache_miss_tokens":200,
                "completion_tokens_details":{"reasoning_tokens":30}}"#,
            // Kimi; reasoning at the top.
            r#"{"prompt_tokens":1000,"completion_tokens":50,"cached_tokens":800,
                "reasoning_tokens":30}"#,
            // xAI: reasoning is not in completion_tokens.
            r#"{"prompt_tokens":1000,"completion_tokens":20,"total_tokens":1050,
                "prompt_tokens_details":{"cached_tokens":800},
                "completion_tokens_details":{"reasoning_tokens":30}}"#,
            // Counts as floats, details as null, no completion count.
            r#"{"prompt_tokens":1000.0,"total_tokens":1050,"prompt_tokens_details":null,
                "cache_read_input_tokens":800,"reasoning_tokens":30}"#,
        ];
        for row in rows {
            let usage: WireUsage = serde_json::from_str(row).unwrap();
            let usage = usage.normalized().unwrap();
            let expected = Usage {
                input: Tokens(200),
                output: Tokens(50),
                reasoning: Tokens(30),
                cache_read: Tokens(800),
                cache_write: Tokens(0),
                ..Usage::default()
            };
            assert_eq!(usage, expected, "{row}");
            assert_eq!(usage.total_tokens(), Tokens(1050), "{row}");
        }
    }

    #[test]
    fn cache_writes_are_not_fresh_input_and_nothing_is_negative() {
        let usage: WireUsage = serde_json::from_str(
            r#"{"prompt_tokens":100,"completion_tokens":1,
                "prompt_tokens_details":{"cached_tokens":90,"cache_write_tokens":50}}"#,
        )
        .unwrap();
        let usage = usage.normalized().unwrap();
        assert_eq!((usage.input, usage.cache_write), (Tokens(0), Tokens(10)));
        assert_eq!(usage.processed(), Tokens(100));
        for (json, expected) in [
            (
                r#"{"prompt_tokens":120,"cache_read_input_tokens":9000,"cache_creation_input_tokens":300}"#,
                (120, 9_000, 300),
            ),
            (
                r#"{"prompt_tokens":4,"prompt_tokens_details":{"cached_tokens":0,"cache_write_tokens":5000}}"#,
                (4, 0, 5_000),
            ),
        ] {
            let usage: WireUsage = serde_json::from_str(json).unwrap();
            let usage = usage.normalized().unwrap();
            let (input, read, write) = expected;
            assert_eq!(usage.input, Tokens(input), "{json}");
            assert_eq!(
                (usage.cache_read, usage.cache_write),
                (Tokens(read), Tokens(write))
            );
        }
        let nothing: WireUsage = serde_json::from_str(r#"{"prompt_tokens":"many"}"#).unwrap();
        assert_eq!(nothing.normalized(), None);
    }
}
