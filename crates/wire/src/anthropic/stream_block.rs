//! The state of a block while it arrives, and the parts that it becomes. `stream.rs` processes the
//! events.

use plimsoll_context::{Part, StopReason, Thinking};

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
    Text,
    Thinking {
        signature: String,
        grew: bool,
    },
    Redacted,
    Call {
        /// Whether the arguments are those of the block's beginning. The first piece replaces them.
        is_whole: bool,
    },
    /// The provider's own: passed through.
    Other {
        pieces: String,
    },
}

impl OpenBlock<MessagesBlock> {
    /// Returns the parts of the block for a transcript.
    pub(super) fn parts(&self, stop: StopReason) -> Vec<Part> {
        let mut parts: Vec<Part> = self.part(stop).into_iter().collect();
        match &self.state.kind {
            BlockKind::Text | BlockKind::Call { .. } => {}
            BlockKind::Thinking { signature, grew } => {
                // Thinking without a signature cannot be sent back.
                if !signature.is_empty() {
                    let text = self.text().to_owned();
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
            BlockKind::Other { pieces } => {
                let whole = serde_json::from_str::<serde::de::IgnoredAny>(pieces).is_ok();
                let start = serde_json::from_str::<RawObject<'_>>(&self.state.start).ok();
                let start = start.filter(|_| whole);
                let block = start.map(|start| start.with(&[("input", Some(pieces.clone()))]));
                let block = block.unwrap_or_else(|| self.state.start.clone());
                parts.push(Part::Opaque(raw::opaque(ORIGIN, block)));
            }
        }
        parts
    }
}
