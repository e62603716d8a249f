//! The state of a block while it arrives, and the parts that it becomes. `stream.rs` processes the
//! events.

use plimsoll_context::{Part, StopReason, Thinking};
use serde_json::Value;

use super::ORIGIN;
use crate::object::Object;
use crate::open_reply::OpenBlock;
use crate::raw::{self, RawObject};

/// The state of a block besides the model's output.
#[derive(Debug, Clone)]
pub struct MessagesBlock {
    pub(super) index: u64,
    /// The JSON of the block's beginning.
    pub(super) start: String,
    pub(super) kind: BlockKind,
}

#[derive(Debug, Clone)]
pub(super) enum BlockKind {
    Text {
        citations: Vec<String>,
    },
    Thinking {
        signature: String,
        grew: bool,
    },
    Redacted,
    Call {
        /// Whether the arguments are those of the block's beginning. The first piece replaces them.
        is_whole: bool,
    },
    /// The provider's compaction, which replaces all messages before it.
    Compaction {
        content: Option<String>,
        encrypted: Option<String>,
    },
    /// The provider's own: passed through.
    Other {
        pieces: String,
    },
}

impl OpenBlock<MessagesBlock> {
    /// Returns the model's output in the block so far.
    pub(super) fn wrote(&self) -> String {
        match &self.state.kind {
            BlockKind::Call { is_whole: true } => String::new(),
            BlockKind::Text { .. } | BlockKind::Thinking { .. } | BlockKind::Call { .. } => {
                self.text()
            }
            BlockKind::Other { pieces } => pieces.clone(),
            BlockKind::Compaction { content, .. } => content.clone().unwrap_or_default(),
            BlockKind::Redacted => self.state.start.clone(),
        }
    }

    /// Returns the parts of the block for a transcript.
    pub(super) fn parts(&self, stop: StopReason) -> Vec<Part> {
        let mut parts: Vec<Part> = self.part(stop).into_iter().collect();
        let start = || serde_json::from_str::<RawObject<'_>>(&self.state.start).ok();
        match &self.state.kind {
            BlockKind::Call { .. } => {}
            BlockKind::Text { citations } => {
                if !citations.is_empty() && !parts.is_empty() {
                    let block = Object::of("text")
                        .text("text", &self.text())
                        .list("citations", citations.iter().map(String::as_str));
                    parts.push(opaque(block.end()));
                }
            }
            BlockKind::Thinking { signature, grew } => {
                // Thinking without a signature cannot be sent back.
                if !signature.is_empty() {
                    let text = self.text();
                    let block = if *grew {
                        Object::of("thinking")
                            .text("thinking", &text)
                            .text("signature", signature)
                            .end()
                    } else {
                        self.state.start.clone()
                    };
                    let opaque = Some(raw::opaque(ORIGIN, block));
                    parts = vec![Part::Thinking(Thinking { text, opaque })];
                }
            }
            BlockKind::Redacted => parts.push(Part::Thinking(Thinking {
                text: String::new(),
                opaque: Some(raw::opaque(ORIGIN, self.state.start.as_str())),
            })),
            BlockKind::Compaction { content, encrypted } => {
                let quoted = |text: &String| Value::from(text.as_str()).to_string();
                let content = content.as_ref().map_or("null".into(), quoted);
                let changes = [
                    ("content", Some(content)),
                    // The API does not accept a null here.
                    ("encrypted_content", encrypted.as_ref().map(quoted)),
                ];
                let block = start().map(|start| start.with(&changes));
                parts.push(opaque(block.unwrap_or_else(|| self.state.start.clone())));
            }
            BlockKind::Other { pieces } => {
                let whole = serde_json::from_str::<serde::de::IgnoredAny>(pieces).is_ok();
                let start = start().filter(|_| whole);
                let block = start.map(|start| start.with(&[("input", Some(pieces.clone()))]));
                parts.push(opaque(block.unwrap_or_else(|| self.state.start.clone())));
            }
        }
        parts
    }
}

fn opaque(data: String) -> Part {
    Part::Opaque(raw::opaque(ORIGIN, data))
}
