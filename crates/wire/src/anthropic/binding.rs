//! What a thinking block is bound to: the model that wrote it and what that model had read. Kept
//! beside the block, compared before the block goes back (AM10). Does not decide what is sent;
//! `loops.rs` does.

use plimsoll_context::{Message, Opaque, Part, Reply, ToolSpec};
use serde::Serialize;

use super::ORIGIN;
use super::profile::Profile;
use crate::object::Object;
use crate::raw::RawObject;
use crate::request::RenderInput;

/// Digits that name a prefix: 128 bits, so that no two of one session meet.
const DIGITS: usize = 32;

/// What one request says, for the thinking of the reply to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prefix {
    /// The model asked.
    pub(super) model: String,
    /// What it reads, where its thinking is bound to that.
    pub(super) hash: Option<String>,
}

/// A thinking block and what it is bound to, as far as that is known.
#[derive(Debug)]
pub(super) struct Bound<'a> {
    pub(super) block: &'a str,
    pub(super) model: Option<String>,
    pub(super) hash: Option<String>,
}

impl<'a> Bound<'a> {
    /// `None` for what is another provider's, or no block.
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
            // As it was received, from a request that somebody else wrote.
            None => object.get("type").map(|_| Self {
                block: opaque.data.trim(),
                model: None,
                hash: None,
            }),
        }
    }
}

impl Prefix {
    /// The reply to the request that this is of: its thinking remembers what it is bound to.
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

/// Names what was said so far. Counts nothing where the model's thinking is not bound to it.
#[derive(Debug, Clone)]
pub(super) struct Trace {
    hasher: Option<blake3::Hasher>,
}

impl Trace {
    pub(super) fn new(input: &RenderInput<'_>, tools: &[&ToolSpec], profile: &Profile) -> Self {
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

    /// What a message says, with or without its thinking.
    pub(super) fn message(&mut self, message: &Message, thinking: Told) {
        match (message, thinking) {
            (Message::Assistant { parts }, Told::No) => {
                let said = |part: &&Part| !matches!(part, Part::Thinking(_));
                let parts: Vec<&Part> = parts.iter().filter(said).collect();
                self.take(&("assistant", parts));
            }
            (Message::Assistant { parts }, Told::Yes) => self.take(&("assistant", parts)),
            (message, _) => self.take(message),
        }
    }

    /// What is said after the messages, in this request only.
    pub(super) fn context(&mut self, context: &str) {
        self.take(&("context", context));
    }

    /// Returns what thinking of a model is bound to.
    pub(super) fn prefix(&self, model: &str) -> Prefix {
        Prefix {
            model: model.to_owned(),
            hash: self.hash(),
        }
    }

    /// Its name; `None` where nothing is bound to it.
    pub(super) fn hash(&self) -> Option<String> {
        let hash = self.hasher.as_ref()?.finalize().to_hex();
        hash.as_str().get(..DIGITS).map(str::to_owned)
    }

    fn take(&mut self, value: &impl Serialize) {
        if let Some(hasher) = &mut self.hasher {
            // Plain data always is JSON. Many short updates would be slower.
            let mut json = serde_json::to_vec(value).unwrap_or_default();
            json.push(b'\n');
            hasher.update(&json);
        }
    }
}

/// Whether thinking is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Yes,
    No,
}
