//! One output item while it arrives: its content so far, and the part that has been reported.

use plimsoll_context::{Part, StopReason, ToolCall};
use serde_json::{Value, json};

use crate::open_reply::{OpenBlock, OpenContent, OpenReply};
use crate::openai_responses::items;
use crate::openai_responses::reply::{output_parts, tool_call, with_extra_keys};

/// An output item while it arrives.
pub(super) type OpenItem = OpenBlock<ItemState>;

/// The state of an item besides its pieces.
#[derive(Debug, Clone)]
pub struct ItemState {
    /// The item's index in the output, as reported by the server.
    pub(super) place: Option<u64>,
    /// The id of its first piece, if that came before the item.
    pub(super) named: Option<String>,
    /// The latest version of the item: nearly empty at first, whole at its end.
    pub(super) item: Value,
    /// The JSON text of the item, once it is whole.
    pub(super) raw: Option<String>,
}

impl ItemState {
    /// Creates an empty item of a type.
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

/// Returns empty content for a type of item.
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
    /// Returns the parts of the item so far.
    pub(super) fn parts(&self) -> Vec<Part> {
        if let Some(raw) = &self.state.raw {
            return output_parts(&self.state.item, raw);
        }
        match &self.content {
            OpenContent::Text(text) => {
                with_extra_keys(&self.state.item, text.parts().map(Part::text).collect())
            }
            OpenContent::Call(open) => vec![Part::ToolCall(open.call.clone())],
            // Thinking that was cut is of no use to the provider.
            _ => self.part(StopReason::Other).into_iter().collect(),
        }
    }

    /// Takes the latest version of the item.
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

/// Reports that a tool call has begun, once its name is known.
pub(super) fn tell_call(at: usize, reply: &mut OpenReply<ItemState>) {
    let call = reply.blocks().get(at).and_then(OpenItem::call);
    if call.is_some_and(|call| !call.name.is_empty()) {
        reply.tell_call(at);
    }
}

/// Reports the text of a whole item that its pieces did not contain. Does nothing when the same item
/// arrives again.
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
