//! The JSON of a Chat Completions request as types. Unknown keys are kept in `extra`.
//! No rules here; see `validate.rs`. What comes back is in `response.rs`.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// A text that is borrowed from a transcript while a request is rendered.
pub type Text<'a> = Cow<'a, str>;
/// Keys that this crate does not know, kept as they came.
pub type Extra = Map<String, Value>;

/// A request. The order of the fields is the order of the keys on the wire: everything that
/// may change from turn to turn stands after `messages`, so that an older request, up to the
/// end of its messages, is a byte prefix of a newer one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Request<'a> {
    /// The model's name.
    pub model: Text<'a>,
    /// The tools that may be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool<'a>>,
    /// The messages.
    pub messages: Vec<ChatMessage<'a>>,
    /// `auto`, `none`, `required` or one tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// Whether one turn may call several tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Output limit in tokens, as most servers spell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Output limit in tokens, reasoning included, as OpenAI spells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_completion_tokens: Option<u64>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Seed of the sampler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// A text, or a list of texts, that ends the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Value>,
    /// A schema that the reply must follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<Value>,
    /// Whether the reply is streamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// What a stream carries besides the reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_options: Option<StreamOptions>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a stream carries besides the reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamOptions {
    /// Whether a last chunk carries the usage.
    #[serde(default)]
    pub include_usage: bool,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One message of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage<'a> {
    /// `system`, `developer`, `user`, `assistant`, `tool` or, formerly, `function`.
    pub role: Text<'a>,
    /// Absent, null, a text or a list of parts.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub content: Option<Content<'a>>,
    /// The reasoning of an assistant's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<Text<'a>>,
    /// The tool calls of an assistant's message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<Call<'a>>,
    /// The call that a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Text<'a>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// The content of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Content<'a> {
    /// No content, said explicitly.
    Null,
    /// One text.
    Text(Text<'a>),
    /// A list of parts.
    Parts(Vec<ContentPart<'a>>),
}

/// One part of a message's content.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ContentPart<'a> {
    /// `text`, `image_url`, `file`, or one that this crate passes through.
    #[serde(rename = "type")]
    pub kind: Text<'a>,
    /// The text of a `text` part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Text<'a>>,
    /// The image of an `image_url` part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_url: Option<ImageUrl<'a>>,
    /// The file of a `file` part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FilePart<'a>>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// An image by address; a `data:` address carries the bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImageUrl<'a> {
    /// The address.
    pub url: Text<'a>,
    /// `low`, `high` or `auto`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Text<'a>>,
}

/// A file by id or by value.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FilePart<'a> {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filename: Option<Text<'a>>,
    /// Its bytes as a `data:` address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_data: Option<Text<'a>>,
    /// Its id at the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_id: Option<Text<'a>>,
}

/// A tool call in a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Call<'a> {
    /// Its id.
    pub id: Text<'a>,
    /// `function`, or `custom` for a tool that takes a text of any form.
    #[serde(rename = "type", default = "function")]
    pub kind: Text<'a>,
    /// Name and arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<CallFunction<'a>>,
    /// Name and text, of a `custom` one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<CallCustom<'a>>,
    /// All other keys; Gemini's servers keep a signature here.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Name and arguments of a tool call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallFunction<'a> {
    /// The tool's name.
    pub name: Text<'a>,
    /// The arguments as JSON text.
    pub arguments: Text<'a>,
}

/// Name and text of a call of a tool that takes a text of any form.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CallCustom<'a> {
    /// The tool's name.
    pub name: Text<'a>,
    /// What it is given.
    pub input: Text<'a>,
}

/// A tool's definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool<'a> {
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: Text<'a>,
    /// The definition itself.
    pub function: ToolFunction<'a>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// Name, description and schema of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolFunction<'a> {
    /// What the model calls it by.
    pub name: Text<'a>,
    /// What it does.
    #[serde(default)]
    pub description: Text<'a>,
    /// JSON Schema of its input.
    #[serde(default = "no_schema")]
    pub parameters: Cow<'a, Value>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

fn function() -> Text<'static> {
    Cow::Borrowed("function")
}

fn no_schema() -> Cow<'static, Value> {
    Cow::Owned(Value::Object(Map::new()))
}

/// Reads a key that is there, even as null; a missing one never comes here.
fn present<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_kept() {
        let text = concat!(
            r#"{"model":"m","tools":[{"type":"function","function":{"name":"f","description":"","#,
            r#""parameters":{"b":1,"a":2},"strict":true},"x":1}],"messages":["#,
            r#"{"role":"user","content":[{"type":"text","text":"a","cache_control":{}}],"name":"n"},"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","#,
            r#""function":{"name":"f","arguments":"{}"},"extra_content":{"z":0}}]},"#,
            r#"{"role":"assistant","content":"x","audio":{"id":"1"}}],"#,
            r#""stream":true,"stream_options":{"include_usage":true,"y":[]},"user":"u","logit_bias":{}}"#,
        );
        let request: Request<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&request).unwrap(), text);
    }
}
