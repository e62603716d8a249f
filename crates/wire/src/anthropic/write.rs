//! The messages of a Messages request: the parts that only this protocol has, and how a turn is written.

use std::borrow::Cow;

use plimsoll_context::{Opaque, Part, ToolCall};

use super::pause::{At, is_passed_through};
use super::read_block::{further_keys, unmarked};
use super::thinking::LocatedThinking;
use super::{ORIGIN, media};
use crate::block_list::BlockWriter;
use crate::normalize::{Converted, Native};
use crate::object::Object;
use crate::raw::{self, RawObject};
use crate::request::LeftOut;
use crate::server_rules::ServerRules;
use crate::turns::{AnsweredCall, Block, Content, Role, TurnCall};

/// The requirements of the API for the messages of a request. Whether the last message may be the
/// assistant's depends on the model and on its thinking.
pub(super) const RULES: ServerRules = ServerRules {
    media_in_results: true,
    assistant_last: true,
    ..ServerRules::BLOCKS
};

/// Converts the parts of messages.
#[derive(Debug, Default)]
pub(super) struct MessagesParts<'m> {
    /// The reason why the thinking of each message is left out. `None` if it is sent.
    pub(super) without: &'m [Option<LeftOut>],
    /// The calls and results of the provider's own tools that are left out, because the other is missing.
    pub(super) unpaired: &'m [(At, &'m Opaque)],
    /// Whether a file is named by an id of the provider.
    pub(super) files: bool,
}

impl Native for MessagesParts<'_> {
    fn part(&mut self, part: &Part, role: Role, message: usize) -> Converted {
        match part {
            Part::Thinking(thinking) => {
                if let Some(why) = self.without.get(message).copied().flatten() {
                    return Err(why);
                }
                let bound = thinking.opaque.as_ref().and_then(LocatedThinking::of);
                Ok(bound.map(|bound| Content::Thinking(bound.block.to_owned())))
            }
            Part::Opaque(opaque) => {
                let object = sent(opaque, role == Role::Assistant, self.unpaired)?;
                Ok(Some(Content::Json(unmarked(&object, &opaque.data))))
            }
            media => {
                self.files |= media::is_file(media);
                let block = media::block(media).ok_or(LeftOut::Attachment)?;
                Ok(Some(Content::Json(block)))
            }
        }
    }

    fn call(&mut self, call: &ToolCall) -> (bool, String, Option<String>) {
        let keys = call.opaque.as_ref().and_then(own);
        let keys = keys.as_ref().and_then(further_keys);
        let members = keys.as_ref().and_then(|keys| {
            let members = keys.data.strip_prefix('{')?;
            members.strip_suffix('}')
        });
        (false, members.unwrap_or_default().to_owned(), None)
    }
}

/// Writes the turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessagesWriter;

impl BlockWriter for MessagesWriter {
    const BEHIND_BREAKPOINT: usize = 1;

    fn text(&self, text: &str) -> String {
        Object::of("text").text("text", text).end()
    }

    fn call(&self, call: &TurnCall, _: bool) -> String {
        Object::of("tool_use")
            .text("id", &call.id)
            .text("name", &call.name)
            .raw("input", &call.arguments)
            .members(&call.members)
            .end()
    }

    fn result(&self, answer: &AnsweredCall, blocks: &[Block]) -> String {
        let mut result = Object::of("tool_result").text("tool_use_id", &answer.id);
        match blocks {
            [] => {}
            [block] if block.as_text().is_some() => {
                result = result.text("content", block.as_text().unwrap_or_default());
            }
            blocks => {
                let blocks: Vec<Cow<'_, str>> = blocks.iter().map(block_json).collect();
                result = result.list("content", blocks.iter().map(AsRef::as_ref));
            }
        }
        if answer.is_error {
            result = result.value("is_error", true);
        }
        result.end()
    }
}

/// Returns the JSON of a block, without a breakpoint.
pub(super) fn block_json(block: &Block) -> Cow<'_, str> {
    let json = MessagesWriter.block(block, false);
    json.unwrap_or(Cow::Borrowed("{}"))
}

/// Returns the JSON object of a block of this protocol.
pub(super) fn own(opaque: &Opaque) -> Option<RawObject<'_>> {
    raw::own(opaque, ORIGIN)
}

/// Returns a block that is sent, or the reason why it is left out. An answer has only types of the API.
pub(super) fn sent<'o>(
    opaque: &'o Opaque,
    is_answer: bool,
    unpaired: &[(At, &Opaque)],
) -> Result<RawObject<'o>, LeftOut> {
    if { unpaired.iter() }.any(|(_, block)| std::ptr::eq(*block, opaque)) {
        return Err(LeftOut::ServerCall);
    }
    let object = own(opaque).ok_or(LeftOut::ForeignBlock)?;
    let kind = object.text("type");
    let is_there = !kind.is_empty() && (!is_answer || kind == "text" || is_passed_through(&kind));
    is_there.then_some(object).ok_or(LeftOut::ForeignBlock)
}

/// Returns `true` if a text contains more than white space. The API refuses others (AM6).
pub(super) fn says(text: &str) -> bool {
    !text.trim().is_empty()
}
