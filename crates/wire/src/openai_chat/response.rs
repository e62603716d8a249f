//! The JSON that Chat Completions servers answer with as types: responses, stream chunks, usage
//! and error bodies. Lenient where servers differ; unknown keys are kept in `extra`.
//! Not the neutral reply; `reply.rs` and `stream.rs` make that.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// Keys that this crate does not know, kept as they came.
pub type Extra = Map<String, Value>;

/// A whole response, or one chunk of a streamed one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The id of the response; the same in all chunks.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub id: Option<String>,
    /// The model that answered.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub model: Option<String>,
    /// The alternatives; this crate reads the first. Some servers send null for none.
    #[serde(default, deserialize_with = "list")]
    pub choices: Vec<Choice>,
    /// What was used; null in all chunks but the last.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub usage: Option<WireUsage>,
    /// An error in place of, or in the middle of, a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One alternative of a response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// Its number, where the server gives it one.
    #[serde(
        default,
        deserialize_with = "count",
        skip_serializing_if = "Option::is_none"
    )]
    pub index: Option<u64>,
    /// The message of a whole response.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub message: Option<MessagePiece>,
    /// The piece of a message in a chunk.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub delta: Option<MessagePiece>,
    /// Why the model stopped; null while it goes on.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub finish_reason: Option<String>,
    /// Where some servers put the usage.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub usage: Option<WireUsage>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a model said, whole or in a piece. Lenient: compatible servers differ in the types.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MessagePiece {
    /// `assistant`, or absent.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub role: Option<String>,
    /// A text, null, or a list of parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// Reasoning, as DeepSeek and most others spell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<Value>,
    /// Reasoning, as OpenRouter and some others spell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Value>,
    /// What the model says when it refuses.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub refusal: Option<String>,
    /// Tool calls or pieces of them.
    #[serde(
        default,
        deserialize_with = "list",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub tool_calls: Vec<CallPiece>,
    /// The one tool call of the older form.
    #[serde(
        rename = "function_call", // tidy:allow(function call)
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub legacy_call: Option<FunctionPiece>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool call of a reply, or a piece of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallPiece {
    /// Which call of the message it belongs to.
    #[serde(
        default,
        deserialize_with = "count",
        skip_serializing_if = "Option::is_none"
    )]
    pub index: Option<u64>,
    /// Its id; in most streams only in the first piece.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub id: Option<String>,
    /// Name and arguments.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub function: Option<FunctionPiece>,
    /// Name and text, of a call of a tool that takes a text of any form.
    #[serde(
        default,
        deserialize_with = "lenient",
        skip_serializing_if = "Option::is_none"
    )]
    pub custom: Option<CustomPiece>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Name and arguments of a tool call of a reply, or a piece of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionPiece {
    /// The tool's name.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub name: Option<String>,
    /// JSON text; some servers send the object itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

/// Name and text of a call of a tool that takes a text of any form, or a piece of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CustomPiece {
    /// The tool's name.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub name: Option<String>,
    /// What the tool is given.
    #[serde(
        default,
        deserialize_with = "text",
        skip_serializing_if = "Option::is_none"
    )]
    pub input: Option<String>,
}

/// Usage as the servers spell it. Numbers of the wrong type are read as absent: a count is
/// never worth a reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WireUsage {
    /// Everything read, cached or not.
    #[serde(deserialize_with = "count")]
    pub prompt_tokens: Option<u64>,
    /// Everything written.
    #[serde(deserialize_with = "count")]
    pub completion_tokens: Option<u64>,
    /// Both.
    #[serde(deserialize_with = "count")]
    pub total_tokens: Option<u64>,
    /// What of the prompt came from a cache.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub prompt_tokens_details: Option<PromptDetails>,
    /// What of the completion was reasoning.
    #[serde(deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name for the cached part of the prompt.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub prompt_cache_hit_tokens: Option<u64>,
    /// Kimi's name for the cached part of the prompt.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What of the prompt came from a cache or went into one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptDetails {
    /// Read from the cache.
    #[serde(deserialize_with = "count")]
    pub cached_tokens: Option<u64>,
    /// Written to the cache.
    #[serde(deserialize_with = "count", skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What of the completion was reasoning.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CompletionDetails {
    /// Reasoning.
    #[serde(deserialize_with = "count")]
    pub reasoning_tokens: Option<u64>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An error body.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// The error.
    pub error: ErrorDetail,
}

/// What an error body says.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorDetail {
    /// For people.
    pub message: String,
    /// Its class, such as `invalid_request_error`.
    #[serde(rename = "type", default)]
    pub kind: Option<String>,
    /// The parameter that is wrong.
    #[serde(default)]
    pub param: Option<String>,
    /// For programs: a text, a number or null.
    #[serde(default)]
    pub code: Value,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A list; one entry is a list of one, and anything else is empty.
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

/// A value; what is none of its kind is absent, and never costs the reply.
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

/// A text; a number is the text that it is, anything else is absent.
fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// A count; anything that is not one is absent.
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
        assert_eq!(serde_json::to_string(&response).unwrap(), text);
        let text = r#"{"error":{"message":"m","type":"t","param":null,"code":400,"n_ctx":5}}"#;
        let error: ErrorBody = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&error).unwrap(), text);
    }
}
