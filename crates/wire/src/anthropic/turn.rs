//! [`Turn`] and [`Block`]: one message of a request while it is put together, and one piece of it.
//! Knows how it is written and where a breakpoint may stand, and no rule of order.

use std::borrow::Cow;

use plimsoll_context::CacheRetention;

use crate::object::{self, Object};

/// One message as it will be sent.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) role: Role,
    pub(super) blocks: Vec<Block<'a>>,
    /// Blocks at its beginning that are tool results.
    pub(super) results: usize,
    /// The messages that it says; none where it only makes room between others.
    pub(super) from: Vec<usize>,
}

/// How long the cache up to a breakpoint is kept. A longer time never follows a shorter one (AM11),
/// because tools and system prompt come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ttl {
    FiveMinutes,
    Hour,
}

impl Ttl {
    pub(super) fn of_head(retention: CacheRetention) -> Self {
        match retention {
            CacheRetention::Usual => Self::FiveMinutes,
            CacheRetention::Head | CacheRetention::Long => Self::Hour,
        }
    }

    pub(super) fn of_messages(retention: CacheRetention) -> Self {
        match retention {
            CacheRetention::Usual | CacheRetention::Head => Self::FiveMinutes,
            CacheRetention::Long => Self::Hour,
        }
    }

    fn json(self) -> &'static str {
        match self {
            Self::FiveMinutes => r#"{"type":"ephemeral"}"#,
            Self::Hour => r#"{"type":"ephemeral","ttl":"1h"}"#,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    User,
    Assistant,
}

/// One block of a message.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) what: What<'a>,
    /// Whether the request is cached up to its end, and for how long.
    pub(super) mark: Option<Ttl>,
}

/// What a block is: a text, or JSON by what may be done with it.
#[derive(Debug)]
pub(super) enum What<'a> {
    Text(Cow<'a, str>),
    Thinking(Cow<'a, str>),
    Call(String),
    Result(String),
    Other(Cow<'a, str>),
}

impl Role {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl<'a> Block<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        What::Text(text.into()).into()
    }

    /// Whether a breakpoint may stand behind it: not behind thinking.
    pub(super) fn is_markable(&self) -> bool {
        !matches!(self.what, What::Thinking(_))
    }

    pub(super) fn json(&self) -> Cow<'_, str> {
        let json = match &self.what {
            What::Text(text) => Cow::Owned(Object::of("text").text("text", text).end()),
            What::Thinking(json) | What::Other(json) => Cow::Borrowed(json.as_ref()),
            What::Call(json) | What::Result(json) => Cow::Borrowed(json.as_str()),
        };
        match self.mark {
            None => json,
            Some(ttl) => Cow::Owned(marked(&json, ttl)),
        }
    }
}

impl<'a> From<What<'a>> for Block<'a> {
    fn from(what: What<'a>) -> Self {
        Self { what, mark: None }
    }
}

impl Turn<'_> {
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            blocks: Vec::new(),
            results: 0,
            from: Vec::new(),
        }
    }

    pub(super) fn json(&self) -> String {
        let content = blocks(&self.blocks);
        Object::new()
            .text("role", self.role.name())
            .raw("content", &content)
            .end()
    }

    /// Whether its first block is thinking.
    pub(super) fn starts_with_thinking(&self) -> bool {
        let first = self.blocks.first().map(|block| &block.what);
        matches!(first, Some(What::Thinking(_)))
    }
}

/// A list of blocks.
pub(super) fn blocks(blocks: &[Block<'_>]) -> String {
    let blocks: Vec<Cow<'_, str>> = blocks.iter().map(Block::json).collect();
    object::array(blocks.iter().map(AsRef::as_ref))
}

/// A JSON object with a breakpoint in it.
pub(super) fn marked(json: &str, ttl: Ttl) -> String {
    let open = json.trim_end().strip_suffix('}').unwrap_or(json);
    let comma = if open.trim_end().ends_with('{') {
        ""
    } else {
        ","
    };
    format!("{open}{comma}\"cache_control\":{}}}", ttl.json())
}
