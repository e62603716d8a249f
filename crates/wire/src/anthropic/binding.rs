//! The origin of a thinking block: the model that wrote it and the prefix that the model had read.
//! Stored beside the block, and compared before the block is sent back (AM10). `loops.rs` decides about
//! sending.

use plimsoll_context::{Message, Opaque, Part, Reply, ToolSpec};
use serde::Serialize;

use super::{MessagesProfile, ORIGIN};
use crate::object::Object;
use crate::raw::RawObject;
use crate::request::RenderInput;

/// The number of digits that identify a prefix: 128 bits, to rule out collisions in a session.
const DIGITS: usize = 32;

/// The prefix of one request, for the thinking in the reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix {
    /// The requested model.
    pub(super) model: String,
    /// The hash of the prefix, if the model's thinking is bound to it.
    pub(super) hash: Option<String>,
}

/// A thinking block, with its model and prefix if they are known.
#[derive(Debug)]
pub(super) struct LocatedThinking<'a> {
    pub(super) block: &'a str,
    pub(super) model: Option<String>,
    pub(super) hash: Option<String>,
}

impl<'a> LocatedThinking<'a> {
    /// Parses a block. Returns `None` for another provider's data, and for data that is not a block.
    pub(super) fn of(opaque: &'a Opaque) -> Option<Self> {
        if opaque.origin != ORIGIN {
            return None;
        }
        let object: RawObject<'a> = serde_json::from_str(&opaque.data).ok()?;
        let text = |key| {
            object
                .get(key)
                .and_then(|raw| serde_json::from_str(raw).ok())
        };
        match object.get("block") {
            Some(block) => Some(Self {
                block,
                model: text("model"),
                hash: text("prefix"),
            }),
            // The bare block, from a request of another client.
            None => object.get("type").map(|_| Self {
                block: opaque.data.trim(),
                model: None,
                hash: None,
            }),
        }
    }
}

impl Prefix {
    /// Returns the reply to the request with this prefix. Its thinking blocks store what they are bound
    /// to.
    #[must_use]
    pub fn bind(&self, mut reply: Reply) -> Reply {
        for part in &mut reply.parts {
            if let Part::Thinking(thinking) = part
                && let Some(opaque) = &mut thinking.opaque
                && opaque.origin == ORIGIN
            {
                let object = Object::new().text("model", &self.model);
                let object = match &self.hash {
                    Some(hash) => object.text("prefix", hash),
                    None => object,
                };
                opaque.data = object.raw("block", &opaque.data).end();
            }
        }
        reply
    }
}

/// A running hash of the request. Does nothing if the model's thinking is not bound to its prefix.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    hasher: Option<blake3::Hasher>,
}

impl Trace {
    pub(super) fn new(
        input: &RenderInput<'_>,
        tools: &[&ToolSpec],
        profile: &MessagesProfile,
    ) -> Self {
        let bound = profile.binds_prefix;
        let mut trace = Self {
            hasher: bound.then(blake3::Hasher::new),
        };
        trace.take(&input.system);
        trace.take(&tools);
        if !input.hosted_tools.is_empty() {
            trace.take(&input.hosted_tools);
        }
        trace
    }

    /// Adds a message, with or without its thinking.
    pub(super) fn message(&mut self, message: &Message, thinking: ThinkingIncluded) {
        match (message, thinking) {
            (Message::Assistant { parts }, ThinkingIncluded::No) => {
                let is_sent = |part: &&Part| !matches!(part, Part::Thinking(_));
                let parts: Vec<&Part> = parts.iter().filter(is_sent).collect();
                self.take(&("assistant", parts));
            }
            (Message::Assistant { parts }, ThinkingIncluded::Yes) => {
                self.take(&("assistant", parts))
            }
            (message, _) => self.take(message),
        }
    }

    /// Adds the context that follows the messages in this request only.
    pub(super) fn context(&mut self, context: &str) {
        self.take(&("context", context));
    }

    /// Returns the prefix that a model's thinking is bound to.
    pub(super) fn prefix(&self, model: &str) -> Prefix {
        Prefix {
            model: model.to_owned(),
            hash: self.hash(),
        }
    }

    /// Returns the hash, or `None` if nothing is bound to the prefix.
    pub(super) fn hash(&self) -> Option<String> {
        let hash = self.hasher.as_ref()?.finalize().to_hex();
        hash.as_str().get(..DIGITS).map(str::to_owned)
    }

    fn take(&mut self, value: &impl Serialize) {
        if let Some(hasher) = &mut self.hasher {
            // Plain data can always be serialized. Many short updates would be slower.
            let mut json = serde_json::to_vec(value).unwrap_or_default();
            json.push(b'\n');
            hasher.update(&json);
        }
    }
}

/// Whether thinking is included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ThinkingIncluded {
    Yes,
    No,
}
