//! The servers of all protocols behind one type, as a case names them.

use plimsoll_context::Message;
use plimsoll_mock::rules::{Fault, anthropic, bedrock, gemini, openai_chat, openai_responses};
use plimsoll_wire::anthropic::MessagesProfile;
use plimsoll_wire::bedrock::ConverseProfile;
use plimsoll_wire::gemini::GeminiProfile;
use plimsoll_wire::openai_chat::{Dialect, Template, render};
use plimsoll_wire::openai_responses::ResponsesProfile;
use plimsoll_wire::{EncodedRequest, RenderInput};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A server, with the strictness of a dialect or a model.
pub(crate) enum Server {
    Chat(Dialect),
    Responses(ResponsesProfile),
    Messages(MessagesProfile),
    Gemini(GeminiProfile),
    Converse(ConverseProfile),
}

impl Server {
    /// Creates the server of a protocol by the name of a dialect, a profile or a model. Behind `+` it may
    /// have a template, and behind a space a JSON object with other values for some of its fields.
    pub(crate) fn new(protocol: &str, spec: &str) -> Self {
        let (name, changes) = spec.split_once(' ').unwrap_or((spec, "{}"));
        match protocol {
            "chat" => Self::Chat(changed(dialect(name), changes)),
            "responses" => Self::Responses(changed(responses(name), changes)),
            "messages" => Self::Messages(changed(MessagesProfile::of_model(name), changes)),
            "gemini" => Self::Gemini(changed(GeminiProfile::of_model(name), changes)),
            "converse" => Self::Converse(changed(ConverseProfile::of_model(name), changes)),
            other => panic!("no protocol {other}"),
        }
    }

    /// Returns the key of a request's list of messages.
    pub(crate) fn list(&self) -> &'static str {
        match self {
            Self::Responses(_) => "input",
            Self::Gemini(_) => "contents",
            Self::Chat(_) | Self::Messages(_) | Self::Converse(_) => "messages",
        }
    }

    /// Returns the rules that a request breaks. `betas` is the header of Messages.
    pub(crate) fn faults(&self, request: &Value, betas: &str) -> Vec<Fault> {
        match self {
            Self::Chat(dialect) => openai_chat::validate(request, dialect),
            Self::Responses(profile) => openai_responses::validate(request, profile),
            Self::Messages(profile) => anthropic::validate_announced(request, profile, betas),
            Self::Gemini(profile) => gemini::validate(request, profile),
            Self::Converse(profile) => bedrock::validate(request, profile),
        }
    }

    /// Returns the status and the body of the refusal for a fault.
    pub(crate) fn refusal(&self, fault: &Fault) -> (u16, Value) {
        match self {
            Self::Chat(dialect) => openai_chat::refusal(fault, dialect),
            Self::Responses(_) => openai_responses::refusal(fault),
            Self::Messages(_) => anthropic::refusal(fault),
            Self::Gemini(_) => gemini::refusal(fault),
            Self::Converse(_) => bedrock::refusal(fault),
        }
    }

    pub(crate) fn render(&self, input: &RenderInput<'_>, messages: &[Message]) -> EncodedRequest {
        let rendered = match self {
            Self::Chat(dialect) => render(input, messages, dialect),
            Self::Responses(profile) => render(input, messages, profile),
            Self::Messages(profile) => render(input, messages, profile),
            Self::Gemini(profile) => render(input, messages, profile),
            Self::Converse(profile) => render(input, messages, profile),
        };
        rendered.unwrap()
    }

    /// Reads a body back. The protocols without a reader return nothing.
    pub(crate) fn read(&self, body: &str) -> Vec<Message> {
        match self {
            Self::Chat(_) => plimsoll_wire::openai_chat::read(body).unwrap().messages,
            Self::Responses(_) => {
                plimsoll_wire::openai_responses::read(body)
                    .unwrap()
                    .messages
            }
            Self::Messages(_) => plimsoll_wire::anthropic::read(body).unwrap().messages,
            Self::Gemini(_) | Self::Converse(_) => Vec::new(),
        }
    }
}

fn dialect(name: &str) -> Dialect {
    let (name, template) = name.split_once('+').unwrap_or((name, ""));
    let dialect = crate::named(name);
    match template {
        "" => dialect,
        "gemma" => dialect.with_template(Template::Gemma),
        "mistral" => dialect.with_template(Template::Mistral),
        "qwen" => dialect.with_template(Template::Qwen),
        "llama31" => dialect.with_template(Template::Llama31),
        other => panic!("no template {other}"),
    }
}

fn responses(name: &str) -> ResponsesProfile {
    match name {
        "openai" => ResponsesProfile::openai(),
        "plain" => ResponsesProfile::plain(),
        "compatible" => ResponsesProfile::compatible(),
        other => panic!("no profile {other}"),
    }
}

/// Returns a profile with other values for some fields.
fn changed<P: Serialize + DeserializeOwned>(profile: P, changes: &str) -> P {
    let mut fields = serde_json::to_value(profile).unwrap();
    let changes: Value = serde_json::from_str(changes).unwrap();
    for (field, value) in changes.as_object().unwrap() {
        fields[field] = value.clone();
    }
    serde_json::from_value(fields).unwrap()
}
