//! [`Block`]: one block of a reply while it arrives, and the parts that it is in the end. Takes no
//! events; `stream.rs` does.

use plimsoll_context::{CallId, Opaque, Part, StopReason, Thinking, ToolCall};

use serde_json::Value;

use super::ORIGIN;
use crate::object::{Object, array};
use crate::raw::RawObject;

/// One block while it arrives.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) index: u64,
    /// Its JSON as it began.
    pub(super) began: String,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Text {
        text: String,
        citations: Vec<String>,
    },
    Thinking {
        text: String,
        signature: String,
        grew: bool,
    },
    Redacted,
    Call {
        id: String,
        name: String,
        /// The arguments that its beginning had, and those that came after it.
        whole: String,
        pieces: String,
        further: Option<Opaque>,
    },
    /// What the provider has made of all that stood before it.
    Compaction {
        content: Option<String>,
        encrypted: Option<String>,
    },
    /// The provider's own: passed through.
    Other {
        pieces: String,
    },
}

impl Block {
    /// What the model has written in it so far.
    pub(super) fn said(&self) -> &str {
        match &self.kind {
            Kind::Text { text, .. } | Kind::Thinking { text, .. } => text,
            Kind::Call { pieces, .. } | Kind::Other { pieces } => pieces,
            Kind::Compaction { content, .. } => content.as_deref().unwrap_or_default(),
            Kind::Redacted => &self.began,
        }
    }

    /// What it is in a transcript.
    pub(super) fn parts(&self, stop: StopReason, parts: &mut Vec<Part>) {
        match &self.kind {
            Kind::Text { text, .. } if text.is_empty() => {}
            Kind::Text { text, citations } => {
                parts.push(Part::text(text.as_str()));
                if !citations.is_empty() {
                    let citations = array(citations.iter().map(String::as_str));
                    let block = Object::of("text")
                        .text("text", text)
                        .raw("citations", &citations);
                    parts.push(opaque(block.end()));
                }
            }
            Kind::Thinking {
                text,
                signature,
                grew,
            } => {
                let block = match grew {
                    false => self.began.clone(),
                    true => Object::of("thinking")
                        .text("thinking", text)
                        .text("signature", signature)
                        .end(),
                };
                // What was not signed cannot go back.
                let opaque = (!signature.is_empty()).then(|| own(block));
                if opaque.is_some() || !text.is_empty() {
                    parts.push(Part::Thinking(Thinking {
                        text: text.clone(),
                        opaque,
                    }));
                }
            }
            Kind::Redacted => parts.push(Part::Thinking(Thinking {
                text: String::new(),
                opaque: Some(own(self.began.clone())),
            })),
            Kind::Call {
                id,
                name,
                whole,
                pieces,
                further,
            } => {
                let arguments = match pieces.is_empty() {
                    false => pieces,
                    true => whole,
                };
                // No arguments at all is how some servers write none; a cut call stays cut.
                let none = arguments.trim().is_empty() && stop == StopReason::ToolCalls;
                parts.push(Part::ToolCall(ToolCall {
                    id: CallId(id.clone()),
                    name: name.clone(),
                    arguments: if none { "{}".into() } else { arguments.clone() },
                    opaque: further.clone(),
                }));
            }
            Kind::Compaction { content, encrypted } => {
                let began: Result<RawObject<'_>, _> = serde_json::from_str(&self.began);
                let quoted = |text: &String| Value::from(text.as_str()).to_string();
                let content = content.as_ref().map_or("null".into(), quoted);
                let changes = [
                    ("content", Some(content)),
                    // It may not go back as a null.
                    ("encrypted_content", encrypted.as_ref().map(quoted)),
                ];
                let block = began.map_or(self.began.clone(), |began| began.with(&changes));
                parts.push(opaque(block));
            }
            Kind::Other { pieces } => {
                let whole = serde_json::from_str::<serde::de::IgnoredAny>(pieces).is_ok();
                let began: Result<RawObject<'_>, _> = serde_json::from_str(&self.began);
                let block = match began {
                    Ok(began) if whole => began.with(&[("input", Some(pieces.clone()))]),
                    _ => self.began.clone(),
                };
                parts.push(opaque(block));
            }
        }
    }
}

fn opaque(data: String) -> Part {
    Part::Opaque(own(data))
}

fn own(data: String) -> Opaque {
    Opaque {
        origin: ORIGIN.into(),
        data,
    }
}
