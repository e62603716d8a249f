//! The messages of a request while they are put together: the form between a transcript and the JSON of
//! a protocol.
//!
//! [`normalize`](crate::normalize) arranges [`Turn`]s according to the server's requirements, and each
//! protocol writes them as its JSON. Content that only one protocol supports is JSON already.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::object::Object;
use crate::prompt_texts;

/// The text of a result without text.
const NO_RESULT: &str = "(nothing)";

/// The role of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    /// A tool result that is a separate turn.
    Tool,
}

/// One message of a request, or one item.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) role: Role,
    pub(crate) blocks: Vec<Block>,
    /// The number of tool results at the beginning.
    pub(crate) results: usize,
    /// The call that a turn of the role [`Role::Tool`] answers.
    pub(crate) answers: Option<AnsweredCall>,
    /// Reasoning in plain text that is sent back with the turn.
    pub(crate) reasoning: Option<String>,
    /// Additional keys of the message.
    pub(crate) keys: Map<String, Value>,
}

/// One block of a turn.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) content: Content,
    /// The breakpoints of the prompt cache that end with this block: 0 is the system prompt, `n` the
    /// message `n - 1`.
    pub(crate) breakpoints: Vec<usize>,
}

/// The content of a block.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Text(String),
    /// A block in the protocol's JSON.
    Json(String),
    /// Signed thinking in the protocol's JSON.
    Thinking(String),
    Call(TurnCall),
    /// A tool result among the blocks of a user turn.
    Result(AnsweredCall, Vec<Block>),
    /// An item of the protocol that is a separate turn, as JSON.
    Item(String),
    /// Additional keys of the message. If turns are items, the next block begins another turn.
    Keys(Map<String, Value>),
}

/// A tool call.
#[derive(Debug, Clone)]
pub(crate) struct TurnCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments as JSON text, or the text that a custom tool takes.
    pub(crate) arguments: String,
    /// Whether the tool takes free text.
    pub(crate) custom: bool,
    /// Additional members of the call's JSON object, without braces.
    pub(crate) members: String,
    /// The id of the call's item, if it may be sent.
    pub(crate) item: Option<String>,
}

/// The call that a result belongs to.
#[derive(Debug, Clone)]
pub(crate) struct AnsweredCall {
    pub(crate) id: String,
    /// The tool's name. Empty if no call has this id.
    pub(crate) name: String,
    /// Whether the tool takes free text.
    pub(crate) custom: bool,
    pub(crate) is_error: bool,
    /// Whether the result is one text.
    pub(crate) is_text: bool,
    /// Whether blocks of the result follow the batch.
    pub(crate) attached: bool,
}

impl Turn {
    pub(crate) fn new(role: Role, blocks: Vec<Block>) -> Self {
        Self {
            role,
            blocks,
            results: 0,
            answers: None,
            reasoning: None,
            keys: Map::new(),
        }
    }

    /// Returns a turn with one fixed text.
    pub(crate) fn fixed(role: Role, text: &str) -> Self {
        Self::new(role, vec![Block::text(text)])
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &TurnCall> {
        self.blocks.iter().filter_map(|block| match &block.content {
            Content::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Inserts a line before the first text.
    pub(crate) fn open_with(&mut self, line: &str) {
        match self.blocks.first_mut().map(|block| &mut block.content) {
            Some(Content::Text(text)) => *text = format!("{line}\n\n{text}"),
            _ => self.blocks.insert(0, Block::text(line)),
        }
    }

    /// Removes the blocks behind the results and returns them as a separate turn.
    pub(crate) fn split_results(&mut self) -> Option<Self> {
        if self.results == 0 || self.results == self.blocks.len() {
            return None;
        }
        let rest = self.blocks.split_off(self.results.min(self.blocks.len()));
        Some(Self::new(self.role, rest))
    }

    /// Appends another turn. Consecutive texts become one.
    pub(crate) fn absorb(&mut self, other: Self) {
        // A breakpoint within a joined text is lost.
        for block in &mut self.blocks {
            block.breakpoints.clear();
        }
        for block in other.blocks {
            let last = self.blocks.last_mut().map(|last| &mut last.content);
            match (last, block.content) {
                (Some(Content::Text(text)), Content::Text(more)) => {
                    text.push_str("\n\n");
                    text.push_str(&more);
                }
                (_, content) => self.blocks.push(content.into()),
            }
        }
        self.keys.extend(other.keys);
        match (&mut self.reasoning, other.reasoning) {
            (Some(text), Some(more)) if !more.trim().is_empty() => text.push_str(&more),
            (none @ None, more) => *none = more,
            _ => {}
        }
    }
}

impl AnsweredCall {
    /// Returns the texts of a result as one, for protocols that refuse a result without text.
    pub(crate) fn text(&self, blocks: &[Block]) -> String {
        let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
        match (texts.as_slice(), self.attached) {
            ([], true) => prompt_texts::ATTACHMENTS.to_owned(),
            ([], false) => NO_RESULT.to_owned(),
            (texts, _) => texts.join("\n"),
        }
    }
}

impl Block {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Content::Text(text.into()).into()
    }

    /// Returns the JSON of a part of a content. `kind` is the type of a text. `None` for other blocks.
    pub(crate) fn part(&self, kind: &str) -> Option<Cow<'_, str>> {
        match &self.content {
            Content::Text(text) => Some(Object::of(kind).text("text", text).end().into()),
            Content::Json(json) => Some(Cow::Borrowed(json)),
            _ => None,
        }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<Content> for Block {
    fn from(content: Content) -> Self {
        Self {
            content,
            breakpoints: Vec::new(),
        }
    }
}
