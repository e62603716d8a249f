//! The input of a Responses request: the parts that only this protocol has, and how an item is written.

use std::borrow::Cow;

use plimsoll_context::{File, Image, Part, Source, ToolCall};
use serde_json::{Map, Value};

use super::items;
use super::reply::OF_MESSAGE;
use super::{ReasoningItems, ResponsesProfile};
use crate::call_ids::CallIdForm;
use crate::compose::{Spots, TurnWriter};
use crate::normalize::{Converted, Native};
use crate::object::{Object, members};
use crate::openai_chat::parts::address;
use crate::request::LeftOut;
use crate::server_rules::{MessageForm, ServerRules};
use crate::turns::{AnsweredCall, Block, Content, Role, Turn, TurnCall};

/// The detail for an image without one: the published types require it.
pub(super) const AUTO: &str = "auto";
/// The type of calls of tools that take free text.
const CUSTOM: &str = "custom_tool_call";

/// The requirements of the API for the items of a request.
pub(super) const RULES: ServerRules = ServerRules {
    form: MessageForm::Items,
    ids: CallIdForm::Visible,
    object_arguments: false,
    merges_roles: false,
    media_in_results: true,
    user_first: false,
    assistant_last: true,
    ..ServerRules::BLOCKS
};

/// Converts the parts of one message.
#[derive(Debug)]
pub(super) struct ResponsesParts<'p> {
    profile: &'p ResponsesProfile,
    /// Whether the next items belong to reasoning that is sent.
    reasoned: bool,
}

impl<'p> ResponsesParts<'p> {
    pub(super) fn new(profile: &'p ResponsesProfile) -> Self {
        Self {
            profile,
            reasoned: false,
        }
    }

    fn reasoning(&mut self, json: &str) -> Converted {
        self.reasoned = match self.profile.reasoning {
            ReasoningItems::None => false,
            ReasoningItems::Plain => true,
            ReasoningItems::Encrypted => {
                let item: Value = serde_json::from_str(json).unwrap_or_default();
                items::is_encrypted(&item) && items::is_reasoning(&item)
            }
        };
        if !self.reasoned {
            return Err(LeftOut::Reasoning);
        }
        Ok(Some(Content::Thinking(json.to_owned())))
    }

    /// Returns the id of a call's item if it may be sent: the API then requires the reasoning before it.
    fn item_id(&self, id: Option<Value>, kind: &str) -> Option<String> {
        let Some(Value::String(id)) = id else {
            return None;
        };
        let paired = self.reasoned || self.profile.reasoning != ReasoningItems::Encrypted;
        (paired && items::accepts_id(kind, &id)).then_some(id)
    }
}

impl Native for ResponsesParts<'_> {
    fn part(&mut self, part: &Part, role: Role, _: usize) -> Converted {
        let (opaque, is_thinking) = match part {
            Part::Image(image) => return Ok(Some(Content::Json(image_part(image)))),
            Part::File(file) => return Ok(Some(Content::Json(file_part(file)))),
            Part::Thinking(thinking) => (thinking.opaque.as_ref(), true),
            Part::Opaque(opaque) => (Some(opaque), false),
            _ => return Ok(None),
        };
        match opaque.and_then(items::own) {
            Some((kind, json)) if kind == "reasoning" && role == Role::Assistant => {
                self.reasoning(json)
            }
            // Only its own provider can read reasoning.
            _ if is_thinking => {
                self.reasoned = false;
                Err(LeftOut::Reasoning)
            }
            Some((kind, json)) if role == Role::Assistant => model_block(&kind, json),
            Some((kind, json)) => client_block(&kind, json, role),
            None => Err(LeftOut::ForeignBlock),
        }
    }

    fn call(&mut self, call: &ToolCall) -> (bool, String, Option<String>) {
        let own = call.opaque.as_ref().and_then(items::own);
        let custom = own.as_ref().is_some_and(|(kind, _)| kind == CUSTOM);
        let keys = own.and_then(|(_, json)| serde_json::from_str(json).ok());
        let mut keys: Map<String, Value> = keys.unwrap_or_default();
        keys.shift_remove("type");
        let id = keys.shift_remove("id");
        let item = self.item_id(id, if custom { CUSTOM } else { "function_call" });
        (custom, members(&keys), item)
    }
}

/// Converts a block of a message that is not the model's.
fn client_block(kind: &str, json: &str, role: Role) -> Converted {
    match (items::is_content(kind), role) {
        (true, _) if items::is_heard(kind) => Ok(Some(Content::Json(json.to_owned()))),
        (false, Role::System | Role::User) => Ok(Some(Content::Item(json.to_owned()))),
        _ => Err(LeftOut::ForeignBlock),
    }
}

/// Converts a block of the model other than reasoning. One without a type has the additional keys of a
/// message.
fn model_block(kind: &str, json: &str) -> Converted {
    match kind {
        "" => {
            let mut keys: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
            keys.retain(|key, _| !OF_MESSAGE.contains(&key.as_str()));
            Ok(Some(Content::Keys(keys)))
        }
        kind if items::is_said(kind) => Ok(Some(Content::Json(json.to_owned()))),
        kind if !items::is_item(kind) || is_unreadable(kind, json) => Err(LeftOut::ForeignBlock),
        kind => {
            let item = items::with_own_id(kind, json);
            Ok(Some(Content::Item(item.into_owned())))
        }
    }
}

/// Returns `true` for a compaction without its content, which no server accepts.
fn is_unreadable(kind: &str, json: &str) -> bool {
    let item = || serde_json::from_str(json).unwrap_or_default();
    kind == "compaction" && !items::is_encrypted(&item())
}

/// Writes for a server.
#[derive(Debug, Clone, Copy)]
pub(super) struct InputWriter<'p>(pub(super) &'p ResponsesProfile);

impl TurnWriter for InputWriter<'_> {
    fn write(&self, turn: &Turn, out: &mut Vec<u8>, _: &mut Spots) {
        let first = turn.blocks.first().map(|block| &block.content);
        let item = match (&turn.answers, first) {
            (Some(answer), _) => output(answer, &turn.blocks),
            (None, Some(Content::Item(json) | Content::Thinking(json))) => {
                return out.extend_from_slice(json.as_bytes());
            }
            (None, Some(Content::Call(call))) => call_item(call),
            _ => self.message(turn),
        };
        out.extend_from_slice(item.as_bytes());
    }
}

impl InputWriter<'_> {
    fn message(&self, turn: &Turn) -> String {
        let role = match (turn.role, self.0.developer_role) {
            (Role::System, false) => "system",
            (Role::System, true) => "developer",
            (Role::User | Role::Tool, _) => "user",
            (Role::Assistant, _) => "assistant",
        };
        let message = Object::of("message").text("role", role);
        let message = match (turn.role, turn.blocks.as_slice()) {
            // Servers that follow the published types require ids in a list.
            (Role::Assistant, [block]) if block.as_text().is_some() => {
                message.text("content", block.as_text().unwrap_or_default())
            }
            (Role::Assistant, blocks) => parts(message, "content", blocks, "output_text"),
            (_, []) => parts(message, "content", &[Block::text("")], "input_text"),
            (_, blocks) => parts(message, "content", blocks, "input_text"),
        };
        message.members(&members(&turn.keys)).end()
    }
}

/// Adds a list of content parts. `text` is the type of a text.
fn parts(item: Object, key: &str, blocks: &[Block], text: &str) -> Object {
    let parts = blocks.iter().filter_map(|block| block.part(text));
    let parts: Vec<Cow<'_, str>> = parts.collect();
    item.list(key, parts.iter().map(AsRef::as_ref))
}

fn call_item(call: &TurnCall) -> String {
    let (kind, taken) = if call.custom {
        (CUSTOM, "input")
    } else {
        ("function_call", "arguments")
    };
    Object::of(kind)
        .optional("id", call.item.as_deref())
        .text("call_id", &call.id)
        .text("name", &call.name)
        .text(taken, &call.arguments)
        .members(&call.members)
        .end()
}

fn output(answer: &AnsweredCall, blocks: &[Block]) -> String {
    let kind = if answer.custom {
        "custom_tool_call_output"
    } else {
        "function_call_output"
    };
    let item = Object::of(kind).text("call_id", &answer.id);
    let item = match blocks {
        [] => item.text("output", ""),
        [block] if answer.is_text => item.text("output", block.as_text().unwrap_or_default()),
        blocks => parts(item, "output", blocks, "input_text"),
    };
    item.end()
}

fn image_part(image: &Image) -> String {
    let part = Object::of("input_image");
    let detail = image.detail.as_deref().unwrap_or(AUTO);
    let part = match &image.source {
        Source::Url { url } if !is_address(url) => part.text("detail", detail).text("file_id", url),
        source => part
            .text("image_url", &address(source))
            .text("detail", detail),
    };
    part.end()
}

fn file_part(file: &File) -> String {
    let part = Object::of("input_file").optional("filename", file.name.as_deref());
    let key = match &file.source {
        Source::Data { .. } => "file_data",
        Source::Url { url } if is_address(url) => "file_url",
        Source::Url { .. } => "file_id",
    };
    part.text(key, &address(&file.source)).end()
}

/// Returns `false` for a file id of the provider.
fn is_address(url: &str) -> bool {
    url.contains("://") || url.starts_with("data:")
}
