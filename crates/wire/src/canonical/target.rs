//! [`Target`]: who is to accept a transcript. Data only; each wire's profile says what that means.

use serde_json::Value;

use crate::fault::Fault;
use crate::openai_chat::Dialect;
use crate::{anthropic, openai_chat, openai_responses};

/// Who is to accept a transcript: a wire, and what one server or model wants on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// OpenAI Chat Completions, and those who speak it.
    Chat(Dialect),
    /// OpenAI Responses.
    Responses(openai_responses::Profile),
    /// Anthropic Messages.
    Messages(anthropic::Profile),
}

/// What protocols are called, as in `plimsoll mock --protocol`.
const PROTOCOLS: [&str; 3] = ["openai", "openai-responses", "anthropic"];

impl Target {
    /// The names that [`Target::of_protocol`] knows.
    pub const PROTOCOLS: [&'static str; 3] = PROTOCOLS;

    /// The protocol of that name, as its own vendor speaks it; `model` says which of Anthropic's
    /// models, whose rules differ.
    #[must_use]
    pub fn of_protocol(name: &str, model: Option<&str>) -> Option<Self> {
        match name {
            "openai" => Some(Self::Chat(Dialect::openai())),
            "openai-responses" => Some(Self::Responses(openai_responses::Profile::openai())),
            "anthropic" => Some(Self::Messages(
                model.map_or_else(anthropic::Profile::compatible, anthropic::Profile::of_model),
            )),
            _ => None,
        }
    }

    /// The protocol of a request by its shape: `input` is Responses'; a system prompt beside the
    /// messages, and blocks that only Anthropic has, are Messages'; all else is Chat Completions.
    #[must_use]
    pub fn of_request(request: &Value) -> Self {
        let model = request.get("model").and_then(Value::as_str);
        let list = match request {
            Value::Array(list) => Some(list),
            _ if request.get("input").is_some() => {
                return Self::Responses(openai_responses::Profile::openai());
            }
            _ => request.get("messages").and_then(Value::as_array),
        };
        let list = list.map(Vec::as_slice).unwrap_or_default();
        let typed = |item: &Value, kinds: &[&str]| {
            let kind = item.get("type").and_then(Value::as_str);
            kind.is_some_and(|kind| kinds.contains(&kind))
        };
        let items = ["function_call", "function_call_output", "reasoning"];
        if list.iter().any(|item| typed(item, &items)) {
            return Self::Responses(openai_responses::Profile::openai());
        }
        let blocks = [
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "server_tool_use",
        ];
        let content = |item: &Value| {
            let blocks_of = item.get("content").and_then(Value::as_array);
            blocks_of.is_some_and(|list| list.iter().any(|block| typed(block, &blocks)))
        };
        let beside = request.get("system").is_some();
        if beside || list.iter().any(content) || model.is_some_and(is_claude) {
            let named = model.filter(|model| is_claude(model));
            return Self::Messages(
                named.map_or_else(anthropic::Profile::compatible, anthropic::Profile::of_model),
            );
        }
        Self::Chat(Dialect::openai())
    }

    /// The protocol's name.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        let [chat, responses, messages] = PROTOCOLS;
        match self {
            Self::Chat(_) => chat,
            Self::Responses(_) => responses,
            Self::Messages(_) => messages,
        }
    }

    /// The rules that a request breaks, as the wire's own validator judges it.
    #[must_use]
    pub fn validate(&self, request: &Value) -> Vec<Fault> {
        match self {
            Self::Chat(dialect) => openai_chat::validate(request, dialect),
            Self::Responses(profile) => openai_responses::validate(request, profile),
            Self::Messages(profile) => anthropic::validate(request, profile),
        }
    }

    /// The key of a request under which its messages stand.
    #[must_use]
    pub fn list(&self) -> &'static str {
        match self {
            Self::Responses(_) => "input",
            Self::Chat(_) | Self::Messages(_) => "messages",
        }
    }
}

/// A model of Anthropic's on its own API: with a vendor before it, another wire may be meant.
fn is_claude(model: &str) -> bool {
    model.starts_with("claude")
}
