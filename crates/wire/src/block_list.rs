//! [`BlockWriter`]: writes turns for protocols whose messages are a role and a list of blocks.

use std::borrow::Cow;

use crate::compose::{Spot, Spots, TurnWriter};
use crate::object::{Object, push_text};
use crate::turns::{AnsweredCall, Block, Content, Role, Turn, TurnCall};

/// Writes the blocks of a protocol whose messages are a role and a list of blocks.
pub(crate) trait BlockWriter {
    /// The role of the model.
    const ASSISTANT: &'static str = "assistant";
    /// The key of the list.
    const LIST: &'static str = "content";
    /// The number of bytes of a block behind its breakpoint: 1 if the breakpoint is a member of the
    /// block.
    const BEHIND_BREAKPOINT: usize = 0;

    /// Returns the JSON of a text.
    fn text(&self, text: &str) -> String {
        Object::new().text("text", text).end()
    }

    /// Returns the JSON of a call.
    fn call(&self, call: &TurnCall, is_first: bool) -> String;

    /// Returns the JSON of a tool result.
    fn result(&self, answer: &AnsweredCall, blocks: &[Block]) -> String;

    /// Returns the JSON of a breakpoint, to be inserted into the body.
    fn breakpoint(&self, mark: &str) -> String {
        format!(r#","cache_control":{mark}"#)
    }

    /// Returns the JSON of a block, without a breakpoint. Returns `None` for a kind of block that these
    /// protocols do not have.
    fn block<'b>(&self, block: &'b Block, is_first_call: bool) -> Option<Cow<'b, str>> {
        Some(match &block.content {
            Content::Text(text) => self.text(text).into(),
            Content::Json(json) | Content::Thinking(json) | Content::Item(json) => json.into(),
            Content::Call(call) => self.call(call, is_first_call).into(),
            Content::Result(answer, blocks) => self.result(answer, blocks).into(),
            Content::Keys(_) => return None,
        })
    }
}

impl<W: BlockWriter> TurnWriter for W {
    fn write(&self, turn: &Turn, out: &mut Vec<u8>, spots: &mut Spots) {
        let role = match turn.role {
            Role::Assistant => W::ASSISTANT,
            Role::System | Role::User | Role::Tool => "user",
        };
        out.extend_from_slice(br#"{"role":"#);
        push_text(out, role);
        out.extend_from_slice(format!(r#","{}":["#, W::LIST).as_bytes());
        let (mut is_first, mut is_first_call) = (true, true);
        for block in &turn.blocks {
            let Some(json) = self.block(block, is_first_call) else {
                continue;
            };
            if !std::mem::take(&mut is_first) {
                out.push(b',');
            }
            out.extend_from_slice(json.as_bytes());
            is_first_call &= !matches!(block.content, Content::Call(_));
            if !matches!(block.content, Content::Thinking(_)) {
                let end = out.len().saturating_sub(W::BEHIND_BREAKPOINT);
                spots.block(block, Spot { end, text: None });
            }
        }
        out.extend_from_slice(b"]}");
    }

    fn breakpoint(&self, mark: &str) -> String {
        BlockWriter::breakpoint(self, mark)
    }
}
