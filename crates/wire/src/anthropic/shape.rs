//! The messages of a transcript as the turns that the API accepts: user and assistant in turn, the
//! results of a batch first in what follows it, nothing empty. Every decision looks only at what
//! came before, so that a longer transcript begins with the same turns; thinking is `loops.rs`'s.

use std::borrow::Cow;

use plimsoll_context::{
    Breakpoint, CacheRetention, MAX_BREAKPOINTS, Message, Opaque, Part, ToolCall, ToolResult,
};

use super::binding::Bound;
use super::media;
use super::render::retention;
use super::turn::{Block, Role, Ttl, Turn, What};
use crate::arguments;
use crate::call_ids::{CallIdForm, CallIdMap};
use crate::frames;
use crate::object::{Object, array};
use crate::raw::RawObject;
use crate::request::{LeftOut, Note, RenderInput};

/// Whose blocks this wire gives back.
pub const ORIGIN: &str = "anthropic";
/// The longest name of a tool.
const MAX_NAME: usize = 128;
/// The key of a breakpoint.
pub(crate) const MARK: &str = "cache_control";

/// Takes messages one by one and keeps the turns.
#[derive(Debug)]
pub(super) struct Shaper<'a, 'd> {
    /// Up to where the request is cached.
    marks: &'d [Breakpoint],
    retention: CacheRetention,
    /// Why each message loses its thinking.
    without: &'d [Option<LeftOut>],
    system: Vec<Block<'a>>,
    turns: Vec<Turn<'a>>,
    /// Attachments of failed results; they follow the batch.
    attachments: Vec<Block<'a>>,
    /// The results that they are of.
    attached: Vec<usize>,
    ids: CallIdMap,
    /// Calls of the provider's own tools that nobody answered.
    unanswered: Vec<&'a Opaque>,
    notes: Vec<Note>,
    /// Whether files are named by ids of the provider.
    files: bool,
    index: usize,
}

/// What came out of a transcript.
#[derive(Debug)]
pub(super) struct Shaped<'a> {
    pub(super) system: Vec<Block<'a>>,
    pub(super) turns: Vec<Turn<'a>>,
    pub(super) notes: Vec<Note>,
    /// Whether files are named by ids of the provider.
    pub(super) files: bool,
}

impl<'a, 'd> Shaper<'a, 'd> {
    pub(super) fn new(
        input: &RenderInput<'d>,
        without: &'d [Option<LeftOut>],
        unanswered: Vec<&'a Opaque>,
    ) -> Self {
        let marks = input.cache.map_or(&[][..], |plan| &plan.breakpoints);
        Self {
            marks: newest(marks),
            retention: retention(input),
            without,
            system: Vec::new(),
            turns: Vec::new(),
            attachments: Vec::new(),
            attached: Vec::new(),
            ids: CallIdMap::new(CallIdForm::Word),
            unanswered,
            notes: Vec::new(),
            files: false,
            index: 0,
        }
    }

    pub(super) fn system(&mut self, text: &'a str) {
        if says(text) {
            self.system.push(Block::text(text));
        }
        if self.marks.contains(&Breakpoint::System)
            && let Some(last) = self.system.last_mut()
        {
            last.mark = Some(Ttl::of_head(self.retention));
        }
    }

    pub(super) fn message(&mut self, message: &'a Message) {
        if !matches!(message, Message::ToolResult(_)) {
            self.end_batch();
        }
        match message {
            Message::System { parts } if self.turns.is_empty() => {
                let blocks = self.texts(parts);
                self.system.extend(blocks);
            }
            Message::System { parts } => {
                let mut blocks = self.texts(parts);
                if let Some(first) = blocks.first_mut() {
                    first.open_with(frames::LATER_SYSTEM);
                }
                self.say(Role::User, blocks);
            }
            Message::User { parts } => {
                let blocks = self.blocks(parts, Role::User);
                self.say(Role::User, blocks);
            }
            Message::Summary { text } => {
                let framed = Block::text(frames::framed_summary(text));
                self.say(Role::User, vec![framed]);
            }
            Message::Notice { text } => {
                let text = says(text).then(|| Block::text(text.as_str()));
                self.say(Role::User, text.into_iter().collect());
            }
            Message::Assistant { parts } => self.assistant(parts),
            Message::ToolResult(result) => self.result(result),
        }
        self.cache_up_to_here();
        self.index += 1;
    }

    /// Ends the history; `context` is said after it, in the user's role.
    pub(super) fn finish(mut self, context: Option<&'a str>) -> Shaped<'a> {
        self.end_batch();
        if let Some(context) = context.filter(|context| says(context)) {
            self.put(Role::User, vec![Block::text(context)], []);
        }
        if self.turns.is_empty() {
            self.put(Role::User, vec![Block::text(frames::OPENING)], []);
        }
        Shaped {
            system: self.system,
            turns: self.turns,
            notes: self.notes,
            files: self.files,
        }
    }

    /// The one place where turns meet: neighbours of one role become one, the user speaks first.
    fn say(&mut self, role: Role, blocks: Vec<Block<'a>>) {
        if blocks.is_empty() {
            return;
        }
        if self.turns.is_empty() && role == Role::Assistant {
            self.put(Role::User, vec![Block::text(frames::OPENING)], []);
        }
        self.put(role, blocks, [self.index]);
    }

    /// The same, and which messages it says.
    fn put(&mut self, role: Role, blocks: Vec<Block<'a>>, from: impl IntoIterator<Item = usize>) {
        let turn = self.turn(role);
        turn.blocks.extend(blocks);
        turn.from.extend(from);
        turn.from.dedup();
    }

    /// The turn that goes on in this role.
    fn turn(&mut self, role: Role) -> &mut Turn<'a> {
        let goes_on = self.turns.last().is_some_and(|turn| turn.role == role);
        let at = if goes_on {
            self.turns.len() - 1
        } else {
            self.turns.len()
        };
        if !goes_on {
            self.turns.push(Turn::new(role));
        }
        // One was there or has just been put there.
        #[allow(clippy::indexing_slicing)]
        &mut self.turns[at]
    }

    fn assistant(&mut self, parts: &'a [Part]) {
        self.ids.batch();
        let mut blocks = self.blocks(parts, Role::Assistant);
        while blocks.last().is_some_and(|block| !block.is_markable()) {
            blocks.pop();
            self.note(LeftOut::LastThinking);
        }
        if blocks.is_empty() {
            self.note(LeftOut::SilentAssistant);
        }
        self.say(Role::Assistant, blocks);
    }

    fn result(&mut self, result: &'a ToolResult) {
        let id = self.ids.result(&result.call.0);
        let (mut inside, mut beside) = (Vec::new(), Vec::new());
        for block in self.blocks(&result.parts, Role::User) {
            // What failed may be told in words only.
            match block.what {
                What::Text(_) => inside.push(block),
                _ if result.is_error => {
                    beside.push(block);
                    self.attached.push(self.index);
                }
                _ => inside.push(block),
            }
        }
        self.attachments.append(&mut beside);
        let object = Object::of("tool_result").text("tool_use_id", &id);
        let object = match inside.as_slice() {
            [] => object,
            [
                Block {
                    what: What::Text(text),
                    ..
                },
            ] => object.text("content", text),
            many => {
                let many: Vec<Cow<'_, str>> = many.iter().map(Block::json).collect();
                object.raw("content", &array(many.iter().map(AsRef::as_ref)))
            }
        };
        let object = if result.is_error {
            object.value("is_error", true)
        } else {
            object
        };
        let block = Block::from(What::Result(object.end()));
        let at = self.index;
        let turn = self.turn(Role::User);
        // Before what was said between call and result.
        turn.blocks.insert(turn.results, block);
        turn.results += 1;
        turn.from.push(at);
        turn.from.dedup();
    }

    fn end_batch(&mut self) {
        if !self.attachments.is_empty() {
            let mut blocks = vec![Block::text(frames::ATTACHMENTS)];
            blocks.append(&mut self.attachments);
            let from = std::mem::take(&mut self.attached);
            self.put(Role::User, blocks, from);
        }
    }

    /// Marks the last block so far that may be marked, where the request is to be cached up to here.
    fn cache_up_to_here(&mut self) {
        if !self.marks.contains(&Breakpoint::Message(self.index)) {
            return;
        }
        let blocks = self.turns.iter_mut().rev();
        let mut blocks = blocks.flat_map(|turn| turn.blocks.iter_mut().rev());
        if let Some(block) = blocks.find(|block| block.is_markable()) {
            block.mark = Some(Ttl::of_messages(self.retention));
        }
    }

    /// The texts of a system message; the wire has no place for more there.
    fn texts(&mut self, parts: &'a [Part]) -> Vec<Block<'a>> {
        let blocks = self.blocks(parts, Role::User);
        let all = blocks.len();
        let texts = blocks.into_iter();
        let texts: Vec<Block<'a>> = texts
            .filter(|block| matches!(block.what, What::Text(_)))
            .collect();
        if texts.len() < all {
            self.note(LeftOut::Attachment);
        }
        texts
    }

    /// What parts are in a message of this role: only the user shows media, only the assistant thinks
    /// and calls.
    fn blocks(&mut self, parts: &'a [Part], role: Role) -> Vec<Block<'a>> {
        let mut blocks = Vec::with_capacity(parts.len());
        let mut previous = None;
        for part in parts {
            let block = match part {
                Part::Text { text } => says(text).then(|| Block::text(text.as_str())),
                Part::Image(_) | Part::File(_) if role == Role::Assistant => Some(self.media(None)),
                Part::Image(image) => {
                    self.files |= media::is_file(&image.source);
                    Some(self.media(media::image(image)))
                }
                Part::File(file) => {
                    self.files |= media::is_file(&file.source);
                    Some(self.media(media::document(file)))
                }
                Part::Thinking(_) | Part::ToolCall(_) if role == Role::User => None,
                Part::Thinking(thinking) => self.thinking(thinking.opaque.as_ref()),
                Part::ToolCall(call) => Some(self.call(call)),
                Part::Opaque(opaque) => self.own(opaque, previous, &mut blocks),
            };
            blocks.extend(block);
            previous = part.as_text().filter(|text| says(text));
        }
        blocks
    }

    fn media(&mut self, json: Option<String>) -> Block<'a> {
        match json {
            Some(json) => What::Other(json.into()).into(),
            None => {
                self.note(LeftOut::Attachment);
                Block::text(frames::LEFT_OUT)
            }
        }
    }

    fn thinking(&mut self, opaque: Option<&'a Opaque>) -> Option<Block<'a>> {
        if let Some(why) = self.without.get(self.index).copied().flatten() {
            self.note(why);
            return None;
        }
        let bound = opaque.and_then(Bound::of)?;
        Some(What::Thinking(bound.block.into()).into())
    }

    fn call(&mut self, call: &'a ToolCall) -> Block<'a> {
        let id = self.ids.call(&call.id.0);
        let name = legal_name(&call.name);
        if matches!(name, Cow::Owned(_)) {
            self.note(LeftOut::Name);
        }
        let input = arguments::object(&call.arguments);
        if matches!(input, Cow::Owned(_)) {
            self.note(LeftOut::BrokenArguments);
        }
        let json = Object::of("tool_use")
            .text("id", &id)
            .text("name", &name)
            .raw("input", &input)
            .end();
        What::Call(with_keys(json, call.opaque.as_ref())).into()
    }

    /// A block of this wire as it came; `None` for one of another.
    fn own(
        &mut self,
        opaque: &'a Opaque,
        previous: Option<&str>,
        blocks: &mut Vec<Block<'a>>,
    ) -> Option<Block<'a>> {
        let mut unanswered = self.unanswered.iter();
        if unanswered.any(|call| std::ptr::eq(*call, opaque)) {
            self.note(LeftOut::ServerCall);
            return None;
        }
        let object = (opaque.origin == ORIGIN)
            .then(|| serde_json::from_str::<RawObject<'a>>(&opaque.data).ok())
            .flatten();
        let kind = object.as_ref().and_then(|object| object.get("type"));
        // A block without a name is nobody's.
        let kind = kind.filter(|kind| kind.starts_with('"'));
        let (Some(object), Some(kind)) = (object, kind) else {
            self.note(LeftOut::ForeignBlock);
            return None;
        };
        if kind == "\"text\"" {
            let text = object.get("text");
            let text: Option<String> = text.and_then(|raw| serde_json::from_str(raw).ok());
            // It is the text before it once more, with its citations.
            if text.is_none() || text.as_deref() != previous || blocks.pop().is_none() {
                self.note(LeftOut::Citations);
                return None;
            }
        }
        let data = opaque.data.trim();
        let json = match object.get(MARK) {
            None => Cow::Borrowed(data),
            Some(_) => Cow::Owned(object.with(&[(MARK, None)])),
        };
        Some(What::Other(json).into())
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

impl Block<'_> {
    /// Puts a line before what it says.
    fn open_with(&mut self, line: &str) {
        if let What::Text(text) = &mut self.what {
            *text = format!("{line}\n\n{text}").into();
        }
    }
}

/// Whether a text says anything: white space alone is refused (AM6).
pub(super) fn says(text: &str) -> bool {
    !text.trim().is_empty()
}

/// The breakpoints that are set: a plan with too many loses the first ones, which the later ones
/// cover.
pub(super) fn newest(marks: &[Breakpoint]) -> &[Breakpoint] {
    let from = marks.len().saturating_sub(MAX_BREAKPOINTS);
    marks.get(from..).unwrap_or_default()
}

/// Returns a tool's name, in a call, in a choice and where it is declared, as the API accepts it.
pub(super) fn legal_name(name: &str) -> Cow<'_, str> {
    arguments::legal_name(name, MAX_NAME)
}

/// A call with the further keys that it came with.
fn with_keys(json: String, opaque: Option<&Opaque>) -> String {
    let own = opaque.filter(|opaque| opaque.origin == ORIGIN);
    let inner = own.and_then(|opaque| {
        let object: RawObject<'_> = serde_json::from_str(&opaque.data).ok()?;
        let clean = object.with(&["type", "id", "name", "input", MARK].map(|key| (key, None)));
        let inner = clean.strip_prefix('{')?.strip_suffix('}')?.to_owned();
        (!inner.is_empty()).then_some(inner)
    });
    match (inner, json.strip_suffix('}')) {
        (Some(inner), Some(open)) => format!("{open},{inner}}}"),
        _ => json,
    }
}
