//! The messages of a transcript as the turns that one dialect accepts: roles merged, bridged and
//! moved as it demands. Every decision looks only at what came before, so that a longer
//! transcript begins with the same turns. Not JSON yet; `render.rs` writes it.

use std::borrow::Cow;
use std::collections::VecDeque;

use plimsoll_context::{Breakpoint, Message, Part, ToolCall, ToolResult};

use super::details::{self, AUDIO};
use super::dialect::{
    Arguments, Dialect, EchoReasoning, EmptyReasoning, Images, ParallelCalls, Prefill, SameRole,
    SystemPlace, UserAfterTool, UserMessage,
};
use super::parts::{
    CUSTOM, call_name, file_part, image_part, is_elsewhere, json_object, object_of, own,
};
use super::types::{Call, CallCustom, CallFunction, ContentPart, Extra, Text};
use crate::call_ids::CallIdMap;
use crate::frames;
use crate::request::{LeftOut, Note};

/// One message as it will be sent.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) role: Role,
    pub(super) pieces: Vec<Piece<'a>>,
    pub(super) reasoning: Option<Text<'a>>,
    pub(super) calls: Vec<Call<'a>>,
    pub(super) answers: Option<Text<'a>>,
    /// Further keys of the message.
    pub(super) extra: Extra,
    /// Whether the request is cached up to its end.
    pub(super) cached: bool,
    /// The messages that it says; none where it only makes room between others.
    pub(super) from: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Debug)]
pub(super) enum Piece<'a> {
    Text(Text<'a>),
    Block(Box<ContentPart<'a>>),
}

/// Takes messages one by one and keeps the turns.
#[derive(Debug)]
pub(super) struct Shaper<'a, 'd> {
    dialect: &'d Dialect,
    /// Up to where the request is cached.
    marks: &'d [Breakpoint],
    turns: Vec<Turn<'a>>,
    /// Attachments of tool results; they follow the batch in a user message.
    attachments: Vec<Piece<'a>>,
    /// The results that they are of.
    attached: Vec<usize>,
    /// Calls of a batch that wait for the one before them to be answered.
    waiting: VecDeque<Call<'a>>,
    /// The message that they are of.
    asked: usize,
    /// The message that is under way.
    whose: Option<usize>,
    ids: CallIdMap,
    notes: Vec<Note>,
    index: usize,
}

impl<'a, 'd> Shaper<'a, 'd> {
    pub(super) fn new(dialect: &'d Dialect, marks: &'d [Breakpoint]) -> Self {
        Self {
            dialect,
            marks,
            turns: Vec::new(),
            attachments: Vec::new(),
            attached: Vec::new(),
            waiting: VecDeque::new(),
            asked: 0,
            whose: None,
            ids: CallIdMap::new(dialect.call_ids.form()),
            notes: Vec::new(),
            index: 0,
        }
    }

    pub(super) fn system(&mut self, text: &'a str) {
        self.emit(Turn::of(Role::System, vec![Piece::Text(text.into())]));
        self.cache_up_to(Breakpoint::System);
    }

    pub(super) fn message(&mut self, message: &'a Message) {
        if !matches!(message, Message::ToolResult(_)) {
            self.end_batch();
        }
        self.whose = Some(self.index);
        match message {
            Message::System { parts } => {
                let pieces = self.pieces(parts);
                self.emit(Turn::of(Role::System, pieces));
            }
            Message::User { parts } => {
                let pieces = self.pieces(parts);
                self.emit(Turn::of(Role::User, pieces));
            }
            Message::Summary { text } => {
                let framed = Piece::Text(frames::framed_summary(text).into());
                self.emit(Turn::of(Role::User, vec![framed]));
            }
            Message::Notice { text } => {
                self.emit(Turn::of(Role::User, vec![Piece::Text(text.into())]));
            }
            Message::Assistant { parts } => self.assistant(parts),
            Message::ToolResult(result) => self.result(result),
        }
        self.cache_up_to(Breakpoint::Message(self.index));
        self.whose = None;
        self.index += 1;
    }

    /// Marks the last turn so far, where the request is to be cached up to here. A turn without a
    /// text has nothing to mark; then it is the one before it.
    fn cache_up_to(&mut self, place: Breakpoint) {
        if !self.marks.contains(&place) {
            return;
        }
        if let Some(turn) = self
            .turns
            .iter_mut()
            .rev()
            .find(|turn| turn.says_something())
        {
            turn.cached = true;
        }
    }

    /// Ends the history; `context` is said after it, in the user's role.
    pub(super) fn finish(mut self, context: Option<&'a str>) -> (Vec<Turn<'a>>, Vec<Note>) {
        self.end_batch();
        if let Some(context) = context {
            self.emit(Turn::of(Role::User, vec![Piece::Text(context.into())]));
        }
        if self.dialect.prefill == Prefill::Refused && self.last() == Some(Role::Assistant) {
            self.emit(Turn::fixed(Role::User, frames::GO_ON));
        }
        let only_systems = self.leading_systems() == self.turns.len();
        let needed = self.dialect.user == UserMessage::Required && only_systems;
        // A list of no messages is refused by all.
        if needed || self.turns.is_empty() {
            self.emit(Turn::fixed(Role::User, frames::OPENING));
        }
        (self.turns, self.notes)
    }

    fn assistant(&mut self, parts: &'a [Part]) {
        self.ids.batch();
        let mut calls: VecDeque<Call<'a>> = VecDeque::new();
        for part in parts {
            if let Part::ToolCall(call) = part {
                let call = self.call(call);
                calls.push_back(call);
            }
        }
        let pieces: Vec<Piece<'a>> = self
            .pieces(parts)
            .into_iter()
            .filter(|piece| !matches!(piece, Piece::Text(text) if text.is_empty()))
            .collect();
        let extra = self.keys(parts);
        if pieces.is_empty() && calls.is_empty() && !extra.contains_key(AUDIO) {
            self.note(LeftOut::SilentAssistant);
            return;
        }
        if self.dialect.parallel_calls == ParallelCalls::OneAtATime && calls.len() > 1 {
            self.waiting = calls.split_off(1);
            self.asked = self.index;
        }
        let calls = Vec::from(calls);
        let reasoning = self.reasoning(parts, calls.len());
        self.emit(Turn {
            reasoning,
            calls,
            extra,
            ..Turn::of(Role::Assistant, pieces)
        });
    }

    /// What stands in the message besides content and calls.
    fn keys(&self, parts: &[Part]) -> Extra {
        let keys = parts.iter().filter_map(|part| match part {
            Part::Opaque(opaque) => details::keys(opaque),
            _ => None,
        });
        details::read_by(self.dialect, keys.flatten().collect())
    }

    fn result(&mut self, result: &'a ToolResult) {
        let answers = self.ids.result(&result.call.0);
        let asked = self.waiting.iter().position(|call| call.id == answers);
        if let Some(call) = asked.and_then(|at| self.waiting.remove(at)) {
            self.emit_call(call);
        }
        let mut texts = Vec::new();
        for piece in self.pieces(&result.parts) {
            match piece {
                Piece::Text(_) => texts.push(piece),
                Piece::Block(_) => {
                    self.attachments.push(piece);
                    self.attached.push(self.index);
                }
            }
        }
        self.emit(Turn {
            answers: Some(answers),
            ..Turn::of(Role::Tool, texts)
        });
    }

    fn end_batch(&mut self) {
        while let Some(call) = self.waiting.pop_front() {
            self.emit_call(call);
        }
        if !self.attachments.is_empty() {
            let mut pieces = vec![Piece::Text(frames::ATTACHMENTS.into())];
            pieces.append(&mut self.attachments);
            let from = std::mem::take(&mut self.attached);
            self.emit(Turn {
                from,
                ..Turn::of(Role::User, pieces)
            });
        }
    }

    fn emit_call(&mut self, call: Call<'a>) {
        let reasoning = self.reasoning(&[], 1);
        self.emit(Turn {
            reasoning,
            calls: vec![call],
            from: vec![self.asked],
            ..Turn::of(Role::Assistant, Vec::new())
        });
    }

    /// The one place where turns meet: what the dialect demands of neighbours is done here.
    fn emit(&mut self, mut turn: Turn<'a>) {
        let dialect = self.dialect;
        if turn.from.is_empty() {
            turn.from.extend(self.whose);
        }
        let only_systems = self.leading_systems() == self.turns.len();
        if turn.role == Role::System && dialect.system == SystemPlace::First {
            if let Some(first) = self.turns.last_mut().filter(|_| only_systems) {
                first.absorb(turn);
                return;
            }
            if !only_systems {
                turn.role = Role::User;
                turn.open_with(frames::LATER_SYSTEM);
            }
        }
        if turn.role == Role::User
            && self.last() == Some(Role::Tool)
            && dialect.user_after_tool == UserAfterTool::Bridge
        {
            let reasoning = self.reasoning(&[], 0);
            self.turns.push(Turn {
                reasoning,
                ..Turn::fixed(Role::Assistant, frames::BRIDGE)
            });
        }
        let user_first =
            dialect.same_role == SameRole::Merge || dialect.user == UserMessage::Required;
        if user_first && turn.role == Role::Assistant && only_systems {
            self.turns.push(Turn::fixed(Role::User, frames::OPENING));
        }
        if dialect.same_role == SameRole::Merge {
            let merges = matches!(turn.role, Role::User | Role::Assistant);
            if let Some(last) = self.turns.last_mut()
                && merges
                && last.role == turn.role
                && last.calls.is_empty()
            {
                last.absorb(turn);
                return;
            }
        }
        self.turns.push(turn);
    }

    fn last(&self) -> Option<Role> {
        self.turns.last().map(|turn| turn.role)
    }

    fn leading_systems(&self) -> usize {
        let leading = self.turns.iter();
        leading.take_while(|turn| turn.role == Role::System).count()
    }

    fn pieces(&mut self, parts: &'a [Part]) -> Vec<Piece<'a>> {
        let mut pieces = Vec::with_capacity(parts.len());
        for part in parts {
            match part {
                Part::Text { text } => pieces.push(Piece::Text(Cow::Borrowed(text))),
                Part::Image(_) | Part::File(_) if self.dialect.images == Images::Unsupported => {
                    self.note(LeftOut::Attachment);
                    pieces.push(Piece::Text(frames::LEFT_OUT.into()));
                }
                // The wire has files by their ids and their bytes, and by no address.
                Part::File(file) if is_elsewhere(file) => {
                    self.note(LeftOut::Attachment);
                    pieces.push(Piece::Text(frames::LEFT_OUT.into()));
                }
                Part::Image(image) => pieces.push(Piece::Block(Box::new(image_part(image)))),
                Part::File(file) => pieces.push(Piece::Block(Box::new(file_part(file)))),
                Part::Opaque(opaque) if details::keys(opaque).is_some() => {}
                Part::Opaque(opaque) => match own(opaque) {
                    Some(block) => pieces.push(Piece::Block(Box::new(block))),
                    None => self.note(LeftOut::ForeignBlock),
                },
                Part::Thinking(_) | Part::ToolCall(_) => {}
            }
        }
        pieces
    }

    fn call(&mut self, call: &'a ToolCall) -> Call<'a> {
        let mut extra: Extra = call.opaque.as_ref().and_then(own).unwrap_or_default();
        let kind = extra.shift_remove("type");
        let is_custom = kind.is_some_and(|kind| kind == CUSTOM);
        let name = call_name(&call.name, self.dialect);
        if name != call.name {
            self.note(LeftOut::Name);
        }
        let text = call.arguments.as_str();
        let (function, custom) = match self.dialect.arguments {
            Arguments::AnyText if is_custom => {
                let input = Cow::Borrowed(text);
                (None, Some(CallCustom { name, input }))
            }
            Arguments::AnyText => {
                let arguments = Cow::Borrowed(text);
                (Some(CallFunction { name, arguments }), None)
            }
            Arguments::JsonObject => {
                let arguments = match is_custom {
                    true => object_of("input", text),
                    false => json_object(text),
                };
                if matches!(arguments, Cow::Owned(_)) {
                    self.note(LeftOut::BrokenArguments);
                }
                (Some(CallFunction { name, arguments }), None)
            }
        };
        let kind = if custom.is_some() { CUSTOM } else { "function" };
        Call {
            id: self.ids.call(&call.id.0),
            kind: kind.into(),
            function,
            custom,
            extra,
        }
    }

    /// The reasoning that goes back with an assistant message, or what stands for it.
    fn reasoning(&self, parts: &'a [Part], calls: usize) -> Option<Text<'a>> {
        match self.dialect.echo_reasoning {
            EchoReasoning::Never => return None,
            EchoReasoning::ToolTurns if calls == 0 => return None,
            EchoReasoning::ToolTurns | EchoReasoning::ToolExchanges | EchoReasoning::Always => {}
        }
        let mut texts = parts.iter().filter_map(|part| match part {
            // Signed reasoning is bound to the provider that signed it.
            Part::Thinking(thinking) if thinking.opaque.is_none() => Some(thinking.text.as_str()),
            _ => None,
        });
        let mut text: Text<'a> = texts.next().unwrap_or_default().into();
        for more in texts {
            text.to_mut().push_str(more);
        }
        if !text.is_empty() {
            return Some(text);
        }
        match self.dialect.empty_reasoning {
            EmptyReasoning::Omit => None,
            EmptyReasoning::Empty => Some("".into()),
            EmptyReasoning::Space => Some(" ".into()),
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

impl<'a> Turn<'a> {
    fn of(role: Role, pieces: Vec<Piece<'a>>) -> Self {
        Self {
            role,
            pieces,
            reasoning: None,
            calls: Vec::new(),
            answers: None,
            extra: Extra::new(),
            cached: false,
            from: Vec::new(),
        }
    }

    fn says_something(&self) -> bool {
        let says =
            |piece: &Piece<'_>| matches!(piece, Piece::Text(text) if !text.trim().is_empty());
        self.pieces.last().is_some_and(says)
    }

    fn fixed(role: Role, text: &'static str) -> Self {
        Self::of(role, vec![Piece::Text(text.into())])
    }

    /// Puts a line before what the turn says.
    fn open_with(&mut self, line: &str) {
        match self.pieces.first_mut() {
            Some(Piece::Text(text)) => *text = format!("{line}\n\n{text}").into(),
            _ => self.pieces.insert(0, Piece::Text(line.to_owned().into())),
        }
    }

    /// Takes over what another turn says.
    fn absorb(&mut self, other: Self) {
        for piece in other.pieces {
            match (self.pieces.last_mut(), piece) {
                (Some(Piece::Text(text)), Piece::Text(more)) => {
                    let text = text.to_mut();
                    text.push_str("\n\n");
                    text.push_str(&more);
                }
                (_, piece) => self.pieces.push(piece),
            }
        }
        self.calls.extend(other.calls);
        self.extra.extend(other.extra);
        self.from.extend(other.from);
        self.from.dedup();
        // It ends elsewhere now.
        self.cached = other.cached;
        match (&mut self.reasoning, other.reasoning) {
            (Some(text), Some(more)) if !more.trim().is_empty() => {
                text.to_mut().push_str(&more);
            }
            (none @ None, more) => *none = more,
            _ => {}
        }
    }
}
