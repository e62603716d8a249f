//! One output item while it arrives: what it says so far, and what of that is told.

use plimsoll_context::{Part, StopReason, ToolCall};
use serde_json::{Value, json};

use crate::open_reply::{OpenBlock, OpenContent, OpenReply};
use crate::openai_responses::items;
use crate::openai_responses::reply::{output_parts, tool_call, with_beside};

/// An output item while it arrives.
pub(super) type OpenItem = OpenBlock<ItemState>;

/// What is remembered of an item besides what came of it in pieces.
#[derive(Debug, Clone)]
pub struct ItemState {
    /// Its place in the output, as the server said it.
    pub(super) place: Option<u64>,
    /// The id that its first piece had, if it was there before the item.
    pub(super) named: Option<String>,
    /// The item as the server gave it last: first nearly empty, at its end whole.
    pub(super) item: Value,
    /// The same, byte for byte, once it is whole.
    pub(super) raw: Option<String>,
}

impl ItemState {
    /// An item of a kind of which nothing has come.
    pub(super) fn of(kind: &str) -> (OpenContent, Self) {
        let state = Self {
            place: None,
            named: None,
            item: json!({ "type": kind }),
            raw: None,
        };
        (content(kind), state)
    }
}

/// What an item of a kind can say.
pub(super) fn content(kind: &str) -> OpenContent {
    match kind {
        "message" => OpenContent::text(),
        "reasoning" => OpenContent::thinking(),
        "function_call" | "custom_tool_call" => OpenContent::from(ToolCall {
            arguments: String::new(),
            ..call_of(&json!({ "type": kind }))
        }),
        _ => OpenContent::opaque(),
    }
}

impl OpenItem {
    /// What the item says so far.
    pub(super) fn parts(&self) -> Vec<Part> {
        if let Some(raw) = &self.state.raw {
            return output_parts(&self.state.item, raw);
        }
        match &self.content {
            OpenContent::Text(said) => {
                with_beside(&self.state.item, said.parts().map(Part::text).collect())
            }
            OpenContent::Call(open) => vec![Part::ToolCall(open.call.clone())],
            // Cut in the middle, thinking is of no use to the provider.
            _ => self.part(StopReason::Other).into_iter().collect(),
        }
    }

    /// Takes the item as the server gives it now.
    pub(super) fn take_item(&mut self, item: Value) {
        if let OpenContent::Call(open) = &mut self.content {
            open.call = ToolCall {
                arguments: std::mem::take(&mut open.call.arguments),
                ..call_of(&item)
            };
        }
        self.state.item = item;
    }
}

fn call_of(item: &Value) -> ToolCall {
    match items::kind(item) {
        "custom_tool_call" => tool_call(item, "input"),
        _ => tool_call(item, "arguments"),
    }
}

/// Tells that a tool call has begun, once its name is known.
pub(super) fn tell_call(at: usize, reply: &mut OpenReply<ItemState>) {
    let call = reply.blocks().get(at).and_then(OpenItem::call);
    if call.is_some_and(|call| !call.name.is_empty()) {
        reply.tell_call(at);
    }
}

/// Tells what of a whole item has not come in pieces. The same item once more tells nothing.
pub(super) fn tell_rest(at: usize, reply: &mut OpenReply<ItemState>) {
    let Some(block) = reply.blocks().get(at) else {
        return;
    };
    let parts = block.parts();
    match block.content {
        OpenContent::Text(_) => {
            let all = parts.iter().filter_map(Part::as_text).collect();
            reply.settle(at, all);
        }
        OpenContent::Thinking(_) => {
            let all = items::reasoning_text(&block.state.item);
            reply.settle(at, all);
        }
        OpenContent::Call(_) => {
            let mut calls = parts.into_iter().filter_map(|part| match part {
                Part::ToolCall(call) => Some(call.arguments),
                _ => None,
            });
            reply.settle(at, calls.next().unwrap_or_default());
        }
        OpenContent::Opaque { .. } => reply.tell_hosted(at, &parts),
    }
}
