//! The state of a block while it arrives, and the part that it becomes. `stream.rs` processes the
//! events.

use plimsoll_context::{Part, StopReason, Thinking};
use serde::de::IgnoredAny;

use super::ORIGIN;
use crate::object::Object;
use crate::open_reply::{OpenBlock, OpenContent};
use crate::raw::{self, RawObject};

/// The state of a block besides the model's output.
#[derive(Debug, Clone, Default)]
pub struct MessagesBlock {
    pub(super) index: u64,
    /// The JSON of the block's beginning.
    pub(super) start: String,
    /// The signature of thinking, or the input of a block of the provider.
    pub(super) pieces: String,
    /// Whether a piece followed the beginning.
    pub(super) grew: bool,
}

impl OpenBlock<MessagesBlock> {
    /// Returns the part of the block for a transcript. `None` if it is empty.
    pub(super) fn whole(&self, stop: StopReason) -> Option<Part> {
        let MessagesBlock {
            start,
            pieces,
            grew,
            ..
        } = &self.state;
        let thinking = |text: &str, block: String| {
            Part::Thinking(Thinking {
                text: text.to_owned(),
                opaque: Some(raw::opaque(ORIGIN, block)),
            })
        };
        match &self.content {
            // Thinking without a signature cannot be sent back.
            OpenContent::Thinking(text) if !pieces.is_empty() => {
                let block = Object::of("thinking")
                    .text("thinking", text)
                    .text("signature", pieces);
                Some(thinking(
                    text,
                    if *grew { block.end() } else { start.clone() },
                ))
            }
            OpenContent::Opaque { .. } => {
                let object: RawObject<'_> = serde_json::from_str(start).unwrap_or_default();
                if object.text("type") == "redacted_thinking" {
                    return Some(thinking("", start.clone()));
                }
                let is_whole = serde_json::from_str::<IgnoredAny>(pieces).is_ok();
                Some(Part::Opaque(raw::opaque(
                    ORIGIN,
                    if is_whole {
                        object.with(&[("input", Some(pieces.clone()))])
                    } else {
                        start.clone()
                    },
                )))
            }
            _ => self.part(stop),
        }
    }
}
