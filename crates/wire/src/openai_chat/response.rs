//! The JSON of a reply as types: whole responses, chunks of a stream, and usage.
//!
//! Compatible servers differ in types, so a field of the wrong type is read as absent. Unknown keys are
//! kept in `extra`. `stream.rs` makes a `Reply` of it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Unknown keys, unchanged.
pub(super) type Extra = Map<String, Value>;

/// A whole response, or one chunk of a streamed one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    /// The id of the response; the same in all chunks.
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    /// The model that answered.
    #[serde(deserialize_with = "text")]
    pub(super) model: Option<String>,
    /// The alternatives. Only the first is read. Some servers send `null` for an empty list.
    #[serde(deserialize_with = "list")]
    pub(super) choices: Vec<Choice>,
    /// The tokens used. `null` in all chunks but the last.
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<WireUsage>,
    /// An error in place of a reply, or in the middle of one.
    pub(super) error: Option<Value>,
    #[serde(flatten)]
    pub(super) extra: Extra,
}

/// One alternative of a response.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Choice {
    /// Its number, if the server gives it one.
    #[serde(deserialize_with = "count")]
    pub(super) index: Option<u64>,
    /// The message of a whole response.
    #[serde(deserialize_with = "lenient")]
    pub(super) message: Option<MessagePiece>,
    /// The piece of a message in a chunk.
    #[serde(deserialize_with = "lenient")]
    pub(super) delta: Option<MessagePiece>,
    /// The reason why the model stopped. `null` until then.
    #[serde(deserialize_with = "text")]
    pub(super) finish_reason: Option<String>,
    /// The tokens used, at servers that report them here.
    #[serde(deserialize_with = "lenient")]
    pub(super) usage: Option<WireUsage>,
    #[serde(flatten)]
    pub(super) extra: Extra,
}

/// A message of the model, or a piece of one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct MessagePiece {
    /// A text, null, or a list of parts.
    pub(super) content: Option<Value>,
    /// Reasoning under the key of DeepSeek and most others.
    pub(super) reasoning_content: Option<Value>,
    /// Reasoning under the key of OpenRouter and some others.
    pub(super) reasoning: Option<Value>,
    /// The text of a refusal by the model.
    #[serde(deserialize_with = "text")]
    pub(super) refusal: Option<String>,
    /// Tool calls or pieces of them.
    #[serde(deserialize_with = "list")]
    pub(super) tool_calls: Vec<CallPiece>,
    /// The single tool call of the older form.
    #[serde(rename = "function_call", deserialize_with = "lenient")]
    // tidy:allow(function call)
    pub(super) legacy_call: Option<FunctionPiece>,
    #[serde(flatten)]
    pub(super) extra: Extra,
}

/// A tool call of a reply, or a piece of one.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct CallPiece {
    /// The number of the call in its message.
    #[serde(deserialize_with = "count")]
    pub(super) index: Option<u64>,
    /// The id. In most streams, only the first piece has it.
    #[serde(deserialize_with = "text")]
    pub(super) id: Option<String>,
    /// Name and arguments.
    #[serde(deserialize_with = "lenient")]
    pub(super) function: Option<FunctionPiece>,
    /// The name and the text, for a tool that takes free text.
    #[serde(deserialize_with = "lenient")]
    pub(super) custom: Option<CustomPiece>,
    #[serde(flatten)]
    pub(super) extra: Extra,
}

/// Name and arguments of a tool call of a reply, or a piece of them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct FunctionPiece {
    #[serde(deserialize_with = "text")]
    pub(super) name: Option<String>,
    /// JSON text. Some servers send the object itself.
    pub(super) arguments: Option<Value>,
}

/// Name and input of a call of a tool that takes free text, or a piece of them.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct CustomPiece {
    #[serde(deserialize_with = "text")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "text")]
    pub(super) input: Option<String>,
}

/// Usage in the server's format. A number of the wrong type counts as absent, because a reply must not
/// fail because of a count.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct WireUsage {
    /// All input, cached or not.
    #[serde(deserialize_with = "count")]
    pub(super) prompt_tokens: Option<u64>,
    /// All output.
    #[serde(deserialize_with = "count")]
    pub(super) completion_tokens: Option<u64>,
    /// Input and output.
    #[serde(deserialize_with = "count")]
    pub(super) total_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    #[serde(deserialize_with = "lenient")]
    pub(super) completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for the cached part of the prompt.
    #[serde(deserialize_with = "count")]
    pub(super) prompt_cache_hit_tokens: Option<u64>,
    /// Kimi's name for the cached part of the prompt.
    #[serde(deserialize_with = "count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(flatten)]
    pub(super) extra: Extra,
}

/// The parts of the prompt that were read from a cache or written to it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct PromptDetails {
    #[serde(deserialize_with = "count")]
    pub(super) cached_tokens: Option<u64>,
    #[serde(deserialize_with = "count")]
    pub(super) cache_write_tokens: Option<u64>,
}

/// The part of the completion that was reasoning.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct CompletionDetails {
    #[serde(deserialize_with = "count")]
    pub(super) reasoning_tokens: Option<u64>,
}

/// Reads a list. A single object is a list of one, and anything else is empty.
fn list<'de, D, T>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let entries = match Value::deserialize(from)? {
        Value::Array(entries) => entries,
        one @ Value::Object(_) => vec![one],
        _ => Vec::new(),
    };
    let entries = entries.into_iter();
    Ok(entries.filter_map(|one| T::deserialize(one).ok()).collect())
}

/// Reads an object. Anything else counts as absent.
fn lenient<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(from)?;
    // A list would be read as the fields in their order.
    Ok(match value.is_object() {
        true => T::deserialize(value).ok(),
        false => None,
    })
}

/// Reads a text. A number becomes its text, and anything else counts as absent.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// Reads a count. Anything else counts as absent.
fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(from)?;
    Ok(match &value {
        Value::String(digits) => digits.trim().parse().ok(),
        value => value.as_u64().or_else(|| {
            let float = value.as_f64().filter(|float| *float >= 0.0)?;
            Some(float as u64)
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_kept() {
        let text = concat!(
            r#"{"id":"r","model":"m","choices":[{"index":0,"message":{"role":"assistant","#,
            r#""content":"x","annotations":[]},"finish_reason":"stop","logprobs":{"a":1}}],"#,
            r#""usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3,"#,
            r#""prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"cost":0.5},"#,
            r#""system_fingerprint":"f"}"#,
        );
        let response: Response = serde_json::from_str(text).unwrap();
        let kept = |extra: &Extra| Value::Object(extra.clone()).to_string();
        assert_eq!(kept(&response.extra), r#"{"system_fingerprint":"f"}"#);
        assert_eq!(kept(&response.usage.unwrap().extra), r#"{"cost":0.5}"#);
        let choice = &response.choices[0];
        assert_eq!(kept(&choice.extra), r#"{"logprobs":{"a":1}}"#);
        let message = choice.message.as_ref().unwrap();
        let unread = r#"{"role":"assistant","annotations":[]}"#;
        assert_eq!(kept(&message.extra), unread);
    }
}
