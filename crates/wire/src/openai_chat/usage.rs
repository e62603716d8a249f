//! A server's usage, converted to Plimsoll's definition: cached input is not fresh input, reasoning is
//! part of the output, and no token counts twice.

use plimsoll_context::{Tokens, Usage};
use serde_json::Value;

use super::pieces::{Keys, count};

/// Returns the usage in Plimsoll's definition, or `None` if the server reported no counts. `names`
/// contains other names of counts, each before the name in Chat Completions.
///
/// `prompt_tokens` includes the tokens read from and written to a cache, unless there are more of these.
/// `completion_tokens` includes reasoning, except at servers (xAI) whose total shows otherwise.
pub(crate) fn usage(reported: &Keys, names: &[(&str, &str)]) -> Option<Usage> {
    let counts = Counts { reported, names };
    let prompt = counts.of("prompt_tokens");
    let written = counts.of("completion_tokens");
    let total = counts.of("total_tokens");
    if prompt.is_none() && written.is_none() && total.is_none() {
        return None;
    }
    let prompt = prompt.unwrap_or_default();
    let details = |key| counts.detail("prompt_tokens_details", key);
    let read = details("cached_tokens")
        // DeepSeek's and Kimi's names.
        .or_else(|| counts.of("prompt_cache_hit_tokens"))
        .or_else(|| counts.of("cached_tokens"))
        .or_else(|| counts.exactly("cache_read_input_tokens"))
        .unwrap_or_default();
    let write = details("cache_write_tokens")
        .or_else(|| counts.exactly("cache_creation_input_tokens"))
        .unwrap_or_default();
    let reasoning = counts
        .detail("completion_tokens_details", "reasoning_tokens")
        .or_else(|| counts.exactly("reasoning_tokens"))
        .unwrap_or_default();
    let rest = total.map_or(0, |total| total.saturating_sub(prompt));
    let written = written.unwrap_or(rest);
    let sum = written.saturating_add(reasoning);
    let output = if reasoning > 0 && (rest == sum || reasoning > written) {
        sum
    } else {
        written
    };
    // A part cannot be larger than the whole: some gateways count it separately, as Anthropic does.
    let (fresh, write) = if read > prompt || write > prompt {
        (prompt, write)
    } else {
        let write = write.min(prompt - read);
        (prompt - read - write, write)
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

/// The counts of a server. A value of the wrong type counts as absent, because a reply must not fail
/// because of a count.
struct Counts<'r> {
    reported: &'r Keys,
    names: &'r [(&'r str, &'r str)],
}

impl<'r> Counts<'r> {
    fn get(&self, key: &str) -> Option<&'r Value> {
        let other = self.names.iter().find(|(_, name)| *name == key);
        let other = other.and_then(|(other, _)| self.reported.get(*other));
        other.or_else(|| self.reported.get(key))
    }

    fn of(&self, key: &str) -> Option<u64> {
        count(self.get(key))
    }

    fn detail(&self, of: &str, key: &str) -> Option<u64> {
        count(self.get(of)?.as_object()?.get(key))
    }

    /// Returns a count that is only accepted as a number.
    fn exactly(&self, key: &str) -> Option<u64> {
        self.reported.get(key).and_then(Value::as_u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(row: &str) -> Option<Usage> {
        let reported: Keys = serde_json::from_str(row).unwrap();
        usage(&reported, &[])
    }

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
            let usage = normalized(row).unwrap();
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
        let usage = normalized(
            r#"{"prompt_tokens":100,"completion_tokens":1,
                "prompt_tokens_details":{"cached_tokens":90,"cache_write_tokens":50}}"#,
        );
        let usage = usage.unwrap();
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
            let usage = normalized(json).unwrap();
            let (input, read, write) = expected;
            assert_eq!(usage.input, Tokens(input), "{json}");
            assert_eq!(
                (usage.cache_read, usage.cache_write),
                (Tokens(read), Tokens(write))
            );
        }
        assert_eq!(normalized(r#"{"prompt_tokens":"many"}"#), None);
    }
}
