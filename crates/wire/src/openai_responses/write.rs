//! The input of a Responses request: the parts that only this protocol has, and how an item is written.

use std::borrow::Cow;

use plimsoll_context::{File, Image, Opaque, Part, Source, Thinking, ToolCall};
use serde_json::{Map, Value};

use super::items;
use super::reply::OF_MESSAGE;
use super::{ReasoningItems, ResponsesProfile};
use crate::call_ids::CallIdForm;
use crate::compose::{Spots, TurnWriter};
use crate::normalize::Native;
use crate::object::{Object, members};
use crate::openai_chat::parts::address;
use crate::request::LeftOut;
use crate::server_rules::{
    Arguments, Neighbors, ResultContent, Results, ServerRules, SystemMessages,
};
use crate::turns::{AnsweredCall, Block, Content, Role, Turn, TurnCall};

/// The detail for an image without one: the published types require it.
pub(super) const AUTO: &str = "auto";
/// The maximum length of an item's id.
const MAX_ITEM_ID: usize = 64;
/// The type of calls of tools that take free text.
const CUSTOM: &str = "custom_tool_call";

/// The requirements of the API for the items of a request.
pub(super) const RULES: ServerRules = ServerRules {
    ids: CallIdForm::Visible,
    arguments: Arguments::AnyText,
    system: SystemMessages::Anywhere,
    neighbors: Neighbors::Keep,
    results: Results::OwnTurn,
    result_content: ResultContent::Any,
    blank_texts: true,
    user_first: false,
    assistant_last: true,
    items: true,
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

    fn reasoning(&mut self, json: &str, blocks: &mut Vec<Block>) -> Result<(), LeftOut> {
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
        blocks.push(Content::Thinking(json.to_owned()).into());
        Ok(())
    }

    /// Returns the id of a call's item if it may be sent: the API then requires the reasoning before it.
    fn item_id(&self, id: Option<Value>, prefix: &str) -> Option<String> {
        let Some(Value::String(id)) = id else {
            return None;
        };
        let paired = self.reasoned || self.profile.reasoning != ReasoningItems::Encrypted;
        (paired && id.starts_with(prefix) && id.len() <= MAX_ITEM_ID).then_some(id)
    }
}

impl Native for ResponsesParts<'_> {
    fn media(&mut self, part: &Part, role: Role) -> Option<String> {
        match part {
            _ if role == Role::Assistant => None,
            Part::Image(image) => Some(image_part(image)),
            Part::File(file) => Some(file_part(file)),
            _ => None,
        }
    }

    fn opaque(
        &mut self,
        opaque: &Opaque,
        role: Role,
        blocks: &mut Vec<Block>,
    ) -> Result<(), LeftOut> {
        let (kind, raw) = items::own(opaque).ok_or(LeftOut::ForeignBlock)?;
        let json = raw.get();
        if role != Role::Assistant {
            blocks.push(match (items::is_content(&kind), role) {
                (true, _) if items::is_heard(&kind) => Content::Json(json.to_owned()).into(),
                (false, Role::System | Role::User) => Content::Item(json.to_owned()).into(),
                _ => return Err(LeftOut::ForeignBlock),
            });
            return Ok(());
        }
        match kind.as_str() {
            "" => {
                let mut keys: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
                keys.retain(|key, _| !OF_MESSAGE.contains(&key.as_str()));
                blocks.push(Content::Keys(keys).into());
            }
            "reasoning" => return self.reasoning(json, blocks),
            kind if items::is_said(kind) => blocks.push(Content::Json(json.to_owned()).into()),
            kind if !items::is_item(kind) || is_unreadable(kind, json) => {
                return Err(LeftOut::ForeignBlock);
            }
            kind => {
                let item = items::with_own_id(kind, json);
                blocks.push(Content::Item(item.into_owned()).into());
            }
        }
        Ok(())
    }

    fn thinking(
        &mut self,
        _: usize,
        thinking: &Thinking,
        blocks: &mut Vec<Block>,
    ) -> Result<(), LeftOut> {
        match thinking.opaque.as_ref().and_then(items::own) {
            Some((kind, raw)) if kind == "reasoning" => self.reasoning(raw.get(), blocks),
            // Only its own provider can read reasoning.
            _ => {
                self.reasoned = false;
                Err(LeftOut::Reasoning)
            }
        }
    }

    fn call(&mut self, call: &ToolCall) -> (bool, String, Option<String>) {
        let own = call.opaque.as_ref().and_then(items::own);
        let custom = own.as_ref().is_some_and(|(kind, _)| kind == CUSTOM);
        let keys = own.and_then(|(_, raw)| serde_json::from_str(raw.get()).ok());
        let mut keys: Map<String, Value> = keys.unwrap_or_default();
        keys.shift_remove("type");
        let id = keys.shift_remove("id");
        let item = self.item_id(id, if custom { "ctc" } else { "fc" });
        (custom, members(&keys), item)
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
    let parts = blocks.iter().filter_map(|block| match &block.content {
        Content::Text(content) => Some(Object::of(text).text("text", content).end().into()),
        Content::Json(json) => Some(Cow::Borrowed(json.as_str())),
        _ => None,
    });
    let parts: Vec<Cow<'_, str>> = parts.collect();
    item.list(key, parts.iter().map(AsRef::as_ref))
}

fn call_item(call: &TurnCall) -> String {
    let (kind, taken) = if call.custom {
        (CUSTOM, "input")
    } else {
        ("function_call", "arguments")
    };
    let mut item = Object::of(kind);
    if let Some(id) = &call.item {
        item = item.text("id", id);
    }
    item.text("call_id", &call.id)
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
    let mut part = Object::of("input_file");
    if let Some(name) = &file.name {
        part = part.text("filename", name);
    }
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
