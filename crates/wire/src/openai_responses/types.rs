//! The JSON of a Responses request as types, for writing: what is read is read from its raw text,
//! see `read.rs`. No rules here; see `validate.rs`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::openai_chat::Extra;

/// A request. The order of the fields is the order of the keys on the wire: everything that may
/// change from turn to turn stands after `input`, so that an older request, up to the end of its
/// input, is a byte prefix of a newer one.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Request<'a> {
    /// The model's name.
    pub model: Cow<'a, str>,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Cow<'a, str>>,
    /// The tools that may be called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool<'a>>,
    /// The history.
    pub input: Vec<Item<'a>>,
    /// `auto`, `none`, `required` or one tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<Value>,
    /// Whether one turn may call several tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// Output limit in tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
    /// How the model reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<Reasoning>,
    /// The form of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Value>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Which requests belong together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_cache_key: Option<Cow<'a, str>>,
    /// Whether the server keeps the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store: Option<bool>,
    /// What the response carries besides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<Cow<'a, str>>,
    /// Whether the response is streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<bool>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// How the model reasons.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Reasoning {
    /// How hard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Cow<'static, str>>,
    /// Which summary of it is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<Cow<'static, str>>,
}

/// One item of the input.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Item<'a> {
    /// What somebody says.
    Message(InputMessage<'a>),
    /// A tool call.
    Call(Call<'a>),
    /// A call of a tool that takes a text of any form.
    Custom(CustomCall<'a>),
    /// What a tool call returned.
    Output(Output<'a>),
    /// An item that is passed through byte for byte: reasoning, calls of the provider's own
    /// tools, its compactions.
    Raw(Block<'a>),
}

/// JSON text that is passed through byte for byte.
pub type Block<'a> = &'a RawValue;

/// What somebody says.
#[derive(Debug, Clone, Serialize)]
pub struct InputMessage<'a> {
    /// Always `message`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// `user`, `assistant`, `developer` or `system`.
    pub role: Cow<'a, str>,
    /// What is said.
    pub content: Words<'a>,
    /// All other keys, such as `phase`.
    #[serde(flatten)]
    pub extra: Extra,
}

/// One part of what is said or returned.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Content<'a> {
    /// A text, an image or a file.
    Part(Box<ContentPart<'a>>),
    /// A part that is passed through byte for byte.
    Raw(Block<'a>),
}

/// A text, an image or a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ContentPart<'a> {
    /// `input_text`, `output_text`, `input_image` or `input_file`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// The image's address; a `data:` address carries its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_url: Option<Cow<'a, str>>,
    /// `low`, `high` or `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
    /// The file's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<Cow<'a, str>>,
    /// The file's bytes as a `data:` address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_data: Option<Cow<'a, str>>,
    /// The file's address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_url: Option<Cow<'a, str>>,
    /// The image's or file's id at the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_id: Option<Cow<'a, str>>,
}

/// A tool call.
#[derive(Debug, Clone, Serialize)]
pub struct Call<'a> {
    /// Always `function_call`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The item's id, where it may be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// The call's id.
    pub call_id: Cow<'a, str>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The arguments as JSON text.
    pub arguments: Cow<'a, str>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A call of a tool that takes a text of any form.
#[derive(Debug, Clone, Serialize)]
pub struct CustomCall<'a> {
    /// Always `custom_tool_call`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The item's id, where it may be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    /// The call's id.
    pub call_id: Cow<'a, str>,
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The text.
    pub input: Cow<'a, str>,
    /// All other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// What a tool call returned.
#[derive(Debug, Clone, Serialize)]
pub struct Output<'a> {
    /// `function_call_output` or `custom_tool_call_output`.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The call's id.
    pub call_id: Cow<'a, str>,
    /// A text, or a list of parts.
    pub output: Words<'a>,
}

/// A text, or a list of parts.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Words<'a> {
    /// One text.
    Text(Cow<'a, str>),
    /// Several texts, images or files.
    Parts(Vec<Content<'a>>),
}

/// A tool's definition.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Tool<'a> {
    /// A tool of ours.
    Function {
        /// Always `function`.
        #[serde(rename = "type")]
        kind: Cow<'a, str>,
        /// What the model calls it by.
        name: Cow<'a, str>,
        /// What it does.
        description: Cow<'a, str>,
        /// JSON Schema of its input.
        parameters: Cow<'a, Value>,
        /// Whether the model is held to the schema.
        strict: bool,
    },
    /// A tool of the provider's own, passed through byte for byte.
    Raw(Block<'a>),
}
