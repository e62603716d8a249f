//! Arranges the messages of a transcript as the turns that a server accepts.
//!
//! [`Normalizer`] takes messages one by one. It converts their parts, rewrites ids, names and arguments
//! of tool calls, and notes omitted parts. [`OpenTurns`] joins and bridges neighbours, orders the
//! results of a batch, and moves attachments of results behind it. [`ServerRules`] are the server's
//! requirements. Each decision depends only on earlier messages, so a longer transcript begins with the
//! same turns, and every turn but the last is final.
//!
//! # Adding a protocol
//!
//! A protocol is three things: the [`ServerRules`] that its profile yields, a [`Native`] that converts the
//! parts only it knows (media, signed thinking, its own blocks), and a
//! [`Writer`](crate::compose::TurnWriter) that writes one turn as JSON. `openai_chat/write.rs` is
//! the example of all three; [`Composer`](crate::compose::Composer) turns messages into bytes with
//! them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use plimsoll_context::{Message, Part, ToolCall, ToolResult};
use serde_json::{Map, Value};

use crate::call_ids::CallIdMap;
use crate::open_turns::OpenTurns;
use crate::prompt_texts;
use crate::request::{LeftOut, Note};
use crate::server_rules::{MessageForm, ServerRules};
use crate::tools::{legal_name, object, object_of, object_text};
use crate::turns::{AnsweredCall, Block, Content, Role, Turn, TurnCall};

/// The content that a part becomes. `None` if nothing is sent of it, and nothing is lost.
pub(crate) type Converted = Result<Option<Content>, LeftOut>;

/// The conversion of parts that only one protocol knows.
pub(crate) trait Native {
    /// Converts an image, a file, a block of a provider, or the model's thinking in the message with this
    /// index.
    ///
    /// # Errors
    ///
    /// The reason why it is left out.
    fn part(&mut self, part: &Part, role: Role, message: usize) -> Converted;

    /// Arranges the blocks of an assistant message.
    fn arrange(&self, _blocks: &mut Vec<Block>) {}

    /// Returns the protocol's data of a call: whether the tool takes free text, the additional members
    /// of the JSON object, and the id of the item.
    fn call(&mut self, _call: &ToolCall) -> (bool, String, Option<String>) {
        (false, String::new(), None)
    }
}

/// Takes messages one by one and keeps the turns that are not final.
#[derive(Debug)]
pub(crate) struct Normalizer {
    rules: ServerRules,
    pub(crate) open: OpenTurns,
    /// The system messages, if they are sent separately.
    pub(crate) system: Vec<Block>,
    pub(crate) notes: Vec<Note>,
    ids: CallIdMap,
    /// The names of called tools by the ids of the calls, and whether they take free text.
    called: BTreeMap<String, (String, bool)>,
    index: usize,
}

impl Normalizer {
    pub(crate) fn new(rules: ServerRules) -> Self {
        Self {
            rules,
            open: OpenTurns::new(rules),
            system: Vec::new(),
            notes: Vec::new(),
            ids: CallIdMap::new(rules.ids),
            called: BTreeMap::new(),
            index: 0,
        }
    }

    /// Takes the system prompt.
    pub(crate) fn prompt(&mut self, text: &str) {
        let blocks = self.text(text);
        if self.rules.has_blocks() {
            self.system.extend(blocks);
        } else {
            self.open.emit(Turn::new(Role::System, blocks));
        }
    }

    /// Returns the system messages as one text, if they are sent separately.
    pub(crate) fn system_text(&self) -> Option<String> {
        let texts = self.system.iter().filter_map(Block::as_text);
        let texts: Vec<&str> = texts.collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }

    /// Takes the next message.
    pub(crate) fn message(&mut self, message: &Message, native: &mut impl Native) {
        if !matches!(message, Message::ToolResult(_)) {
            self.open.end_batch();
        }
        match message {
            Message::System { parts } => self.instructions(parts, native),
            Message::User { parts } => {
                let blocks = self.blocks(parts, Role::User, native);
                self.add_turns(Role::User, blocks);
            }
            Message::Summary { text } => {
                let framed = Block::text(prompt_texts::framed_summary(text));
                self.add_turns(Role::User, vec![framed]);
            }
            Message::Notice { text } => {
                let blocks = self.text(text);
                self.add_turns(Role::User, blocks);
            }
            Message::Assistant { parts } => self.assistant(parts, native),
            Message::ToolResult(result) => self.result(result, native),
        }
        self.index += 1;
    }

    fn instructions(&mut self, parts: &[Part], native: &mut impl Native) {
        let mut blocks = self.blocks(parts, Role::System, native);
        if !self.rules.has_blocks() {
            return self.add_turns(Role::System, blocks);
        }
        let all = blocks.len();
        blocks.retain(|block| block.as_text().is_some());
        if blocks.len() < all {
            self.note(LeftOut::Attachment);
        }
        if self.open.any() {
            self.add_turns(Role::System, blocks);
        } else {
            self.system.extend(blocks);
        }
    }

    fn assistant(&mut self, parts: &[Part], native: &mut impl Native) {
        self.ids.batch();
        let mut blocks = self.blocks(parts, Role::Assistant, native);
        native.arrange(&mut blocks);
        let says = |block: &Block| match &block.content {
            Content::Thinking(_) => false,
            Content::Keys(keys) => self.rules.form != MessageForm::Items && speaks(keys),
            _ => true,
        };
        let last = blocks.iter().rposition(says);
        let mut behind = blocks.split_off(last.map_or(0, |last| last + 1));
        let count = behind.len();
        behind.retain(|block| !matches!(block.content, Content::Thinking(_)));
        if behind.len() < count {
            self.note(LeftOut::LoneReasoning);
        }
        blocks.append(&mut behind);
        if last.is_none() {
            return self.note(LeftOut::SilentAssistant);
        }
        let is_call = |block: &Block| matches!(block.content, Content::Call(_));
        if !self.rules.parallel_calls {
            let (calls, rest): (Vec<Block>, Vec<Block>) = blocks.into_iter().partition(is_call);
            let mut calls = calls.into_iter();
            blocks = rest;
            blocks.extend(calls.next());
            let calls = calls.filter_map(|block| match block.content {
                Content::Call(call) => Some(call),
                _ => None,
            });
            self.open.hold_back(calls.collect());
        }
        let reasoning = self.reasoning(parts, blocks.iter().any(is_call));
        let turns = self.turns(Role::Assistant, blocks);
        for turn in turns {
            self.open.emit(Turn {
                reasoning: reasoning.clone(),
                ..turn
            });
        }
    }

    fn result(&mut self, result: &ToolResult, native: &mut impl Native) {
        let id = self.ids.result(&result.call.0).into_owned();
        self.open.ask(&id);
        let is_failed = self.rules.has_blocks() && result.is_error;
        let texts_only = is_failed || !self.rules.media_in_results;
        let blocks = self.blocks(&result.parts, Role::Tool, native);
        let (inside, outside): (Vec<Block>, Vec<Block>) = blocks
            .into_iter()
            .partition(|block| !texts_only || block.as_text().is_some());
        let attached = !outside.is_empty();
        let open = &mut self.open;
        open.attach(outside);
        let (name, custom) = self.called.get(&id).cloned().unwrap_or_default();
        let answer = AnsweredCall {
            custom,
            name,
            id,
            is_error: result.is_error,
            is_text: matches!(result.parts.as_slice(), [Part::Text { .. }]),
            attached,
        };
        if self.rules.has_blocks() {
            return open.put_result(answer, inside);
        }
        open.emit(Turn {
            answers: Some(answer),
            ..Turn::new(Role::Tool, inside)
        });
    }

    fn add_turns(&mut self, role: Role, blocks: Vec<Block>) {
        for turn in self.turns(role, blocks) {
            self.open.emit(turn);
        }
    }

    /// Returns the turns of one message.
    fn turns(&self, role: Role, blocks: Vec<Block>) -> Vec<Turn> {
        let items = self.rules.form == MessageForm::Items;
        let mut turns = Vec::new();
        let mut open = Turn::new(role, Vec::new());
        for block in blocks {
            let is_item = match &block.content {
                Content::Call(_) | Content::Item(_) | Content::Thinking(_) => items,
                _ => false,
            };
            let begins = is_item || items && matches!(block.content, Content::Keys(_));
            if begins && !open.blocks.is_empty() {
                turns.push(std::mem::replace(&mut open, Turn::new(role, Vec::new())));
            }
            match block.content {
                Content::Keys(keys) => open.keys.extend(keys),
                _ if is_item => turns.push(Turn::new(role, vec![block])),
                _ => open.blocks.push(block),
            }
        }
        if !open.blocks.is_empty() || turns.is_empty() {
            turns.push(open);
        }
        turns
    }

    /// Converts the parts of a message.
    fn blocks(&mut self, parts: &[Part], role: Role, native: &mut impl Native) -> Vec<Block> {
        let assistant = role == Role::Assistant;
        let calls_apart = self.rules.form == MessageForm::Chat;
        let mut blocks: Vec<Block> = Vec::with_capacity(parts.len());
        let mut calls: Vec<Block> = Vec::new();
        for part in parts {
            if let (Part::ToolCall(call), true) = (part, assistant && calls_apart) {
                calls.push(self.call(call, native));
            }
        }
        for part in parts {
            match part {
                Part::Text { text } => {
                    let is_sent = self.rules.accepts(text) && !(assistant && text.is_empty());
                    blocks.extend(is_sent.then(|| Block::text(text)));
                }
                Part::ToolCall(call) if assistant && !calls_apart => {
                    blocks.push(self.call(call, native));
                }
                Part::ToolCall(_) => {}
                Part::Thinking(_) if !assistant => {}
                part => {
                    let is_media = matches!(part, Part::Image(_) | Part::File(_));
                    let is_read = self.rules.images && (calls_apart || !assistant);
                    let converted = if is_media && !is_read {
                        Err(LeftOut::Attachment)
                    } else {
                        native.part(part, role, self.index)
                    };
                    match converted {
                        Ok(content) => blocks.extend(content.map(Block::from)),
                        Err(left_out) => {
                            self.note(left_out);
                            blocks.extend(is_media.then(|| Block::text(prompt_texts::LEFT_OUT)));
                        }
                    }
                }
            }
        }
        blocks.append(&mut calls);
        blocks
    }

    fn call(&mut self, call: &ToolCall, native: &mut impl Native) -> Block {
        let (custom, members, item) = native.call(call);
        let name = legal_name(&call.name);
        if name != call.name {
            self.note(LeftOut::Name);
        }
        let text = call.arguments.as_str();
        let arguments = if !self.rules.object_arguments {
            Cow::Borrowed(text)
        } else if self.rules.has_blocks() {
            object(text)
        } else if custom {
            Cow::Owned(object_of("input", text))
        } else {
            object_text(text)
        };
        if matches!(arguments, Cow::Owned(_)) {
            self.note(LeftOut::BrokenArguments);
        }
        let custom = custom && !self.rules.object_arguments;
        let id = self.ids.call(&call.id.0).into_owned();
        let name = name.into_owned();
        self.called.insert(id.clone(), (name.clone(), custom));
        Content::Call(TurnCall {
            id,
            name,
            arguments: arguments.into_owned(),
            custom,
            members,
            item,
        })
        .into()
    }

    /// Returns the reasoning that an assistant message repeats.
    fn reasoning(&self, parts: &[Part], calls: bool) -> Option<String> {
        let rule = self.rules.reasoning?;
        if rule.only_with_calls && !calls {
            return None;
        }
        let texts = parts.iter().filter_map(|part| match part {
            // Signed reasoning is bound to the provider that signed it.
            Part::Thinking(thinking) if thinking.opaque.is_none() => Some(thinking.text.as_str()),
            _ => None,
        });
        let text: String = texts.collect();
        if text.is_empty() {
            rule.placeholder.map(str::to_owned)
        } else {
            Some(text)
        }
    }

    fn text(&self, text: &str) -> Vec<Block> {
        let sent = self.rules.accepts(text).then(|| Block::text(text));
        sent.into_iter().collect()
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

/// Returns `true` if additional keys of a message are content, as audio is.
fn speaks(keys: &Map<String, Value>) -> bool {
    keys.contains_key(crate::openai_chat::details::AUDIO)
}
