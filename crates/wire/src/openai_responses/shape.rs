//! The messages of a transcript as the items of a request: reasoning with what came of it, ids
//! where they may stand. Every decision looks only at what came before, so that a longer
//! transcript begins with the same items. Not a request yet; `render.rs` writes it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use plimsoll_context::{
    File, Image, Message, Opaque, Part, Source, Thinking, ToolCall, ToolResult,
};
use serde_json::Value;

use super::ids;
use super::items;
use super::profile::{Profile, ReasoningItems};
use super::reply::OF_MESSAGE;
use super::types::{
    Block, Call, Content, ContentPart, CustomCall, InputMessage, Item, Output, Words,
};
use crate::call_ids::{CallIdForm, CallIdMap};
use crate::frames;
use crate::openai_chat::{Extra, Images, SystemRole};
use crate::request::{LeftOut, Note};

/// The detail of an image of which none is asked for.
pub(super) const AUTO: &str = "auto";

/// Whose texts a list of parts holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Everybody's but the model's.
    Input,
    /// The model's.
    Output,
}

/// Whether the items of the model's turn follow reasoning that is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reasoned {
    No,
    Yes,
}

/// Takes messages one by one and keeps the items.
#[derive(Debug)]
pub(super) struct Shaper<'a, 'p> {
    profile: &'p Profile,
    items: Vec<Item<'a>>,
    /// How many items there were after each message.
    ends: Vec<usize>,
    /// Reasoning that waits for what came of it: it may not be sent alone.
    waiting: Vec<Block<'a>>,
    reasoned: Reasoned,
    ids: CallIdMap,
    /// Calls of tools that take a text of any form, by their ids in the request.
    custom: BTreeSet<Cow<'a, str>>,
    notes: Vec<Note>,
    index: usize,
}

impl<'a, 'p> Shaper<'a, 'p> {
    pub(super) fn new(profile: &'p Profile) -> Self {
        Self {
            profile,
            items: Vec::new(),
            ends: Vec::new(),
            waiting: Vec::new(),
            reasoned: Reasoned::No,
            ids: CallIdMap::new(CallIdForm::UpTo64),
            custom: BTreeSet::new(),
            notes: Vec::new(),
            index: 0,
        }
    }

    /// These calls, which stand elsewhere, are of tools that take a text of any form.
    pub(super) fn knows(&mut self, custom: impl IntoIterator<Item = &'a str>) {
        let custom = custom.into_iter().map(|id| self.ids.result(id));
        self.custom.extend(custom);
    }

    pub(super) fn message(&mut self, message: &'a Message) {
        match message {
            Message::System { parts } => {
                let role = match self.profile.system_role {
                    SystemRole::System => "system",
                    SystemRole::Developer => "developer",
                };
                self.said(role, parts);
            }
            Message::User { parts } => self.said("user", parts),
            Message::Summary { text } => {
                let framed = frames::framed_summary(text);
                self.emit_message("user", vec![text_part("input_text", framed.into())]);
            }
            Message::Notice { text } => {
                self.emit_message("user", vec![text_part("input_text", text.into())]);
            }
            Message::Assistant { parts } => self.assistant(parts),
            Message::ToolResult(result) => self.result(result),
        }
        self.index += 1;
        self.ends.push(self.items.len());
    }

    /// The message of each item so far.
    pub(super) fn from(&self) -> Vec<Vec<usize>> {
        let mut from = Vec::with_capacity(self.items.len());
        for (index, end) in self.ends.iter().enumerate() {
            from.resize(*end, vec![index]);
        }
        from
    }

    /// The items of each message.
    pub(super) fn by_message(self) -> Vec<Vec<Item<'a>>> {
        let mut items = self.items.into_iter();
        let mut taken = 0;
        let of = |end: usize| {
            let count = end.saturating_sub(taken);
            taken = end;
            items.by_ref().take(count).collect()
        };
        self.ends.into_iter().map(of).collect()
    }

    /// Ends the history; `context` is said after it, in the user's role.
    pub(super) fn finish(mut self, context: Option<&'a str>) -> (Vec<Item<'a>>, Vec<Note>) {
        if let Some(context) = context {
            self.emit_message("user", vec![text_part("input_text", context.into())]);
        }
        if self.items.is_empty() {
            let opening = frames::OPENING.into();
            self.emit_message("user", vec![text_part("input_text", opening)]);
        }
        (self.items, self.notes)
    }

    /// What somebody else than the model says.
    fn said(&mut self, role: &'static str, parts: &'a [Part]) {
        let mut content = Vec::new();
        let before = self.items.len();
        for part in parts {
            // An item of its own parts what is said.
            if let Part::Opaque(opaque) = part
                && let Some((kind, raw)) = items::own(opaque)
                && !items::is_content(&kind)
            {
                if !content.is_empty() {
                    self.emit_message(role, std::mem::take(&mut content));
                }
                self.items.push(Item::Raw(raw));
                continue;
            }
            content.extend(self.content(part, Side::Input));
        }
        if content.is_empty() && self.items.len() == before {
            content.push(text_part("input_text", "".into()));
        }
        if !content.is_empty() {
            self.emit_message(role, content);
        }
    }

    fn assistant(&mut self, parts: &'a [Part]) {
        self.ids.batch();
        let before = self.items.len();
        let mut turn = Said::default();
        self.reasoned = Reasoned::No;
        for part in parts {
            match part {
                Part::Text { text } if text.is_empty() => {}
                Part::Thinking(thinking) => {
                    self.end_said(&mut turn);
                    self.thinking(thinking);
                }
                Part::ToolCall(call) => {
                    self.end_said(&mut turn);
                    self.flush();
                    let call = self.call(call);
                    self.items.push(call);
                }
                Part::Opaque(opaque) => self.block(opaque, &mut turn),
                part => turn.content.extend(self.content(part, Side::Output)),
            }
        }
        self.end_said(&mut turn);
        if !self.waiting.is_empty() {
            self.waiting.clear();
            self.note(LeftOut::LoneReasoning);
        }
        if self.items.len() == before {
            self.note(LeftOut::SilentAssistant);
        }
    }

    /// A block of the provider's in a turn of the model's.
    fn block(&mut self, opaque: &'a Opaque, turn: &mut Said<'a>) {
        let Some((kind, raw)) = items::own(opaque) else {
            self.note(LeftOut::ForeignBlock);
            return;
        };
        match kind.as_str() {
            // What stands beside the content of the message that follows.
            "" => {
                self.end_said(turn);
                turn.extra = serde_json::from_str(raw.get()).unwrap_or_default();
                turn.extra
                    .retain(|key, _| !OF_MESSAGE.contains(&key.as_str()));
            }
            "reasoning" => {
                self.end_said(turn);
                self.reasoning(raw);
            }
            kind if items::is_said(kind) => turn.content.push(Content::Raw(raw)),
            // What only others say.
            kind if items::is_content(kind) => self.note(LeftOut::ForeignBlock),
            _ => {
                self.end_said(turn);
                self.flush();
                self.items.push(Item::Raw(raw));
            }
        }
    }

    fn end_said(&mut self, turn: &mut Said<'a>) {
        if turn.content.is_empty() {
            return;
        }
        self.flush();
        let said = std::mem::take(turn);
        self.items.push(Item::Message(InputMessage {
            kind: "message".into(),
            role: "assistant".into(),
            content: words(said.content),
            extra: said.extra,
        }));
    }

    fn thinking(&mut self, thinking: &'a Thinking) {
        let own = thinking.opaque.as_ref().and_then(items::own);
        match own {
            Some((kind, raw)) if kind == "reasoning" => self.reasoning(raw),
            // Nobody but its own provider can read what is signed, and this one wants no other.
            _ => self.without_reasoning(),
        }
    }

    fn reasoning(&mut self, raw: Block<'a>) {
        let sent = match self.profile.reasoning {
            ReasoningItems::None => false,
            ReasoningItems::Plain => true,
            ReasoningItems::Encrypted => {
                let item: Value = serde_json::from_str(raw.get()).unwrap_or_default();
                items::is_encrypted(&item) && items::is_reasoning(&item)
            }
        };
        if sent {
            self.waiting.push(raw);
        } else {
            self.without_reasoning();
        }
    }

    /// What comes next came of reasoning that is not sent.
    fn without_reasoning(&mut self) {
        self.reasoned = Reasoned::No;
        self.note(LeftOut::Reasoning);
    }

    /// Sends the reasoning that waits, because what came of it comes next.
    fn flush(&mut self) {
        if !self.waiting.is_empty() {
            self.reasoned = Reasoned::Yes;
            let waiting = std::mem::take(&mut self.waiting);
            self.items.extend(waiting.into_iter().map(Item::Raw));
        }
    }

    fn call(&mut self, call: &'a ToolCall) -> Item<'a> {
        let own = call.opaque.as_ref().and_then(items::own);
        let (kind, raw) = match own {
            Some((kind, raw)) => (kind, Some(raw)),
            None => (String::new(), None),
        };
        let mut extra: Extra = raw
            .and_then(|raw| serde_json::from_str(raw.get()).ok())
            .unwrap_or_default();
        extra.shift_remove("type");
        let id = extra.shift_remove("id");
        let call_id = self.ids.call(&call.id.0);
        let name = ids::name(&call.name);
        if name != call.name {
            self.note(LeftOut::Name);
        }
        if kind == "custom_tool_call" {
            self.custom.insert(call_id.clone());
            return Item::Custom(CustomCall {
                kind: "custom_tool_call".into(),
                id: self.item_id(id, "ctc"),
                call_id,
                name,
                input: Cow::Borrowed(&call.arguments),
                extra,
            });
        }
        // Its id may be that of a call which stands elsewhere.
        self.custom.remove(&call_id);
        Item::Call(Call {
            kind: "function_call".into(),
            id: self.item_id(id, "fc"),
            call_id,
            name,
            arguments: Cow::Borrowed(&call.arguments),
            extra,
        })
    }

    /// The id of an item, where it may be sent: it says that there was reasoning, which has to
    /// stand before it then.
    fn item_id(&self, id: Option<Value>, prefix: &str) -> Option<Cow<'a, str>> {
        let Some(Value::String(id)) = id else {
            return None;
        };
        let paired =
            self.reasoned == Reasoned::Yes || self.profile.reasoning != ReasoningItems::Encrypted;
        (paired && id.starts_with(prefix) && ids::fits(&id)).then_some(Cow::Owned(id))
    }

    fn result(&mut self, result: &'a ToolResult) {
        let call_id = self.ids.result(&result.call.0);
        let kind = match self.custom.contains(&call_id) {
            true => "custom_tool_call_output",
            false => "function_call_output",
        };
        let output = match result.parts.as_slice() {
            [] => Words::Text("".into()),
            [Part::Text { text }] => Words::Text(Cow::Borrowed(text)),
            parts => {
                let mut content = Vec::new();
                for part in parts {
                    content.extend(self.content(part, Side::Input));
                }
                match content.is_empty() {
                    true => Words::Text("".into()),
                    false => Words::Parts(content),
                }
            }
        };
        self.items.push(Item::Output(Output {
            kind: kind.into(),
            call_id,
            output,
        }));
    }

    fn emit_message(&mut self, role: &'static str, content: Vec<Content<'a>>) {
        self.items.push(Item::Message(InputMessage {
            kind: "message".into(),
            role: role.into(),
            content: Words::Parts(content),
            extra: Extra::new(),
        }));
    }

    /// One part of what is said or returned.
    fn content(&mut self, part: &'a Part, side: Side) -> Option<Content<'a>> {
        let text = match side {
            Side::Input => "input_text",
            Side::Output => "output_text",
        };
        match part {
            Part::Text { text: said } => Some(text_part(text, said.into())),
            Part::Image(_) | Part::File(_)
                if self.profile.images == Images::Unsupported || side == Side::Output =>
            {
                self.note(LeftOut::Attachment);
                Some(text_part(text, frames::LEFT_OUT.into()))
            }
            Part::Image(image) => Some(Content::Part(Box::new(image_part(image)))),
            Part::File(file) => Some(Content::Part(Box::new(file_part(file)))),
            Part::Opaque(opaque) => match items::own(opaque) {
                Some((kind, raw)) if items::is_heard(&kind) => Some(Content::Raw(raw)),
                _ => {
                    self.note(LeftOut::ForeignBlock);
                    None
                }
            },
            Part::Thinking(_) | Part::ToolCall(_) => None,
        }
    }

    fn note(&mut self, what: LeftOut) {
        let note = Note {
            message: Some(self.index),
            what,
        };
        if self.notes.last() != Some(&note) {
            self.notes.push(note);
        }
    }
}

/// A message of the model's while its parts come.
#[derive(Debug, Default)]
struct Said<'a> {
    content: Vec<Content<'a>>,
    extra: Extra,
}

/// What the model said: a single text is sent as one, since servers that follow the published types
/// take a list only with ids, which say more than may be said.
fn words(mut content: Vec<Content<'_>>) -> Words<'_> {
    if let [Content::Part(part)] = content.as_mut_slice()
        && let Some(text) = part.text.take()
    {
        return Words::Text(text);
    }
    Words::Parts(content)
}

fn text_part<'a>(kind: &'static str, text: Cow<'a, str>) -> Content<'a> {
    Content::Part(Box::new(ContentPart {
        kind: kind.into(),
        text: Some(text),
        ..ContentPart::default()
    }))
}

fn image_part(image: &Image) -> ContentPart<'_> {
    let (image_url, file_id) = match &image.source {
        Source::Url { url } if !is_address(url) => (None, Some(Cow::Borrowed(url.as_str()))),
        source => (Some(address(source)), None),
    };
    ContentPart {
        kind: "input_image".into(),
        image_url,
        file_id,
        // The published types want one.
        detail: Some(image.detail.as_deref().unwrap_or(AUTO).into()),
        ..ContentPart::default()
    }
}

fn file_part(file: &File) -> ContentPart<'_> {
    let part = ContentPart {
        kind: "input_file".into(),
        filename: file.name.as_deref().map(Cow::Borrowed),
        ..ContentPart::default()
    };
    match &file.source {
        source @ Source::Data { .. } => ContentPart {
            file_data: Some(address(source)),
            ..part
        },
        Source::Url { url } if is_address(url) => ContentPart {
            file_url: Some(url.into()),
            ..part
        },
        Source::Url { url } => ContentPart {
            file_id: Some(url.into()),
            ..part
        },
    }
}

/// Whether it is an address, and no id of the provider's.
fn is_address(url: &str) -> bool {
    url.contains("://") || url.starts_with("data:")
}

fn address(source: &Source) -> Cow<'_, str> {
    match source {
        Source::Url { url } => Cow::Borrowed(url),
        Source::Data { media_type, base64 } => {
            Cow::Owned(format!("data:{media_type};base64,{base64}"))
        }
    }
}
