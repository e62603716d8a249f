//! [`Target`]: the [`Protocol`] and the server or model that a chat is written for.

use serde_json::Value;

use crate::document::DocumentFormat;
use crate::openai_chat::Dialect;
use crate::openai_responses::items;
use crate::value::{list, text};
use crate::{anthropic, openai_chat, openai_responses};

/// The protocol of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

impl Protocol {
    /// Returns the name, as in `--protocol`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "openai",
            Self::Responses => "openai-responses",
            Self::Messages => "anthropic",
        }
    }

    /// Returns the key of the list of messages or items in a request.
    #[must_use]
    pub fn list(self) -> &'static str {
        self.format().key
    }

    /// Returns the key of the system prompt beside the list, if the protocol has one.
    #[must_use]
    pub fn beside(self) -> Option<&'static str> {
        self.format().system
    }

    /// Returns how messages are read from a list, and written as such.
    #[must_use]
    pub fn format(self) -> &'static DocumentFormat {
        match self {
            Self::Chat => &openai_chat::FORMAT,
            Self::Responses => &openai_responses::FORMAT,
            Self::Messages => &anthropic::FORMAT,
        }
    }
}

/// A protocol, with the requirements of one server or model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// OpenAI Chat Completions, and compatible servers.
    Chat(Dialect),
    /// OpenAI Responses.
    Responses(openai_responses::ResponsesProfile),
    /// Anthropic Messages.
    Messages(anthropic::MessagesProfile),
}

/// OpenAI Chat Completions, as OpenAI serves them.
impl Default for Target {
    fn default() -> Self {
        Self::Chat(Dialect::openai())
    }
}

impl From<Dialect> for Target {
    fn from(dialect: Dialect) -> Self {
        Self::Chat(dialect)
    }
}

impl From<openai_responses::ResponsesProfile> for Target {
    fn from(profile: openai_responses::ResponsesProfile) -> Self {
        Self::Responses(profile)
    }
}

impl From<anthropic::MessagesProfile> for Target {
    fn from(profile: anthropic::MessagesProfile) -> Self {
        Self::Messages(profile)
    }
}

impl Target {
    /// The names that [`Target::of_protocol`] knows, as in `plimsoll-mock --protocol`.
    pub const PROTOCOLS: [&'static str; 3] = ["openai", "openai-responses", "anthropic"];

    /// Returns the protocol of that name, as used by its own vendor. `model` selects the rules of one
    /// of Anthropic's models.
    #[must_use]
    pub fn of_protocol(name: &str, model: Option<&str>) -> Option<Self> {
        match name {
            "openai" => Some(Self::default()),
            "openai-responses" => {
                Some(Self::Responses(openai_responses::ResponsesProfile::openai()))
            }
            "anthropic" => Some(Self::Messages(model.map_or_else(
                anthropic::MessagesProfile::compatible,
                anthropic::MessagesProfile::of_model,
            ))),
            _ => None,
        }
    }

    /// Detects the protocol of a request, or of a bare list of its messages, by its shape.
    ///
    /// Items belong to Responses. A system prompt beside the messages, and blocks and settings that
    /// only Anthropic has, belong to Messages. Everything else is Chat Completions.
    #[must_use]
    pub fn of_request(request: &Value) -> Self {
        Self::detect(request).unwrap_or_default()
    }

    /// Like [`Target::of_request`], but `None` if nothing speaks for a protocol, as in a chat of texts alone.
    #[must_use]
    pub fn detect(request: &Value) -> Option<Self> {
        let model = request.get("model").and_then(Value::as_str);
        let responses = Self::Responses(openai_responses::ResponsesProfile::openai());
        let list = match request {
            Value::Array(list) => list.as_slice(),
            _ if request.get("input").is_some() => return Some(responses),
            _ => list(request, "messages"),
        };
        if list.iter().any(is_item) || request.is_array() && list.iter().any(has_parts_of_items) {
            return Some(responses);
        }
        let named = model.filter(|model| is_claude(model));
        let chats = list.iter().any(is_of_chat);
        let is_of_messages = |message: &Value| is_of_messages(message, chats);
        let shaped = is_set_for_messages(request) || list.iter().any(is_of_messages);
        // Claude is also available through Chat Completions.
        if shaped || named.is_some() && !chats {
            return Some(Self::Messages(named.map_or_else(
                anthropic::MessagesProfile::compatible,
                anthropic::MessagesProfile::of_model,
            )));
        }
        if request.is_array() && list.iter().any(|item| text(item, "type") == "message") {
            return Some(responses);
        }
        list.iter().any(speaks_for_chat).then(Self::default)
    }

    /// Returns the protocol.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        match self {
            Self::Chat(_) => Protocol::Chat,
            Self::Responses(_) => Protocol::Responses,
            Self::Messages(_) => Protocol::Messages,
        }
    }
}

/// Returns `true` for a model name of Anthropic's own API. A name with a vendor prefix may belong to
/// another protocol.
fn is_claude(model: &str) -> bool {
    model.starts_with("claude")
}

/// Returns `true` if an entry is an item of Responses.
///
/// The type `message` alone does not decide, because Anthropic's replies have it as well.
fn is_item(item: &Value) -> bool {
    let kind = text(item, "type");
    let known = kind != "message" && items::is_item(kind);
    known || kind.ends_with("_call") || kind.ends_with("_call_output")
}

/// Returns `true` if a message consists of parts of Responses. `input_audio` does not count, because
/// Chat Completions has it, too.
fn has_parts_of_items(message: &Value) -> bool {
    let kinds = ["input_text", "input_image", "input_file", "output_text"];
    list(message, "content")
        .iter()
        .any(|part| kinds.contains(&text(part, "type")))
}

/// Returns `true` for a message that only Chat Completions has.
fn is_of_chat(message: &Value) -> bool {
    text(message, "role") == "tool" || message.get("tool_calls").is_some()
}

/// Returns `true` for a message whose role, calls or parts speak for Chat Completions.
fn speaks_for_chat(message: &Value) -> bool {
    let mut parts = list(message, "content").iter();
    message.get("tool_calls").is_some_and(Value::is_array)
        || ["tool", "function", "developer"].contains(&text(message, "role"))
        || parts.any(|part| ["image_url", "input_audio"].contains(&text(part, "type")))
}

/// Returns `true` for a message that only Anthropic has, by its blocks or because it is a reply.
///
/// If the list also contains messages of Chat Completions, blocks that other programs also add to those
/// do not count.
fn is_of_messages(message: &Value, chats: bool) -> bool {
    let speaks = !chats && matches!(text(message, "role"), "user" | "assistant");
    let answered = text(message, "type") == "message" && message.get("stop_reason").is_some();
    let is_own = |block: &Value| match text(block, "type") {
        "tool_use" | "tool_result" | "thinking" | "redacted_thinking" => true,
        "image" | "document" => speaks && block.get("source").is_some_and(Value::is_object),
        "search_result" => speaks && block.get("source").is_some(),
        "container_upload" => speaks && block.get("file_id").is_some(),
        "compaction" => speaks,
        kind => kind.ends_with("_tool_use") || kind.ends_with("_tool_result"),
    };
    answered || list(message, "content").iter().any(is_own)
}

/// Returns `true` if a request has settings that only Anthropic has.
fn is_set_for_messages(request: &Value) -> bool {
    let own = ["system", "stop_sequences", "anthropic_version"];
    let mut tools = list(request, "tools").iter();
    own.iter().any(|key| request.get(key).is_some())
        || tools.any(|tool| tool.get("input_schema").is_some())
}
