//! One output item while it arrives, and the item that an event is about.
//!
//! Most servers send the item's index in the output. Some send none, or always 0; then the id or the type
//! decides.

use plimsoll_context::{Part, StopReason, ToolCall};
use serde_json::{Value, json};

use crate::open_reply::{OpenBlock, OpenContent};
use crate::openai_responses::items;
use crate::openai_responses::reply::{output_parts, text, tool_call, with_extra_keys};

/// An output item while it arrives.
pub(super) type OpenItem = OpenBlock<ItemState>;

/// The state of an item besides its pieces.
#[derive(Debug, Clone, Default)]
pub struct ItemState {
    /// The item's index in the output, as reported by the server.
    pub(super) index: Option<u64>,
    /// The id in its first piece.
    pub(super) piece_id: String,
    /// The latest version of the item: nearly empty at first, whole at its end.
    pub(super) item: Value,
    /// The JSON text of the item, once it is whole.
    pub(super) raw: Option<String>,
    /// Whether it was in the whole output of the last event.
    pub(super) is_final: bool,
    /// The number of the part that its last piece continued.
    pub(super) part: u64,
    /// The number of bytes that were counted.
    pub(super) bytes: usize,
}

impl ItemState {
    /// Creates an empty item of a type.
    pub(super) fn of(kind: &str) -> (OpenContent, Self) {
        let item = json!({ "type": kind });
        let content = match kind {
            "message" => OpenContent::text(),
            "reasoning" => OpenContent::thinking(),
            "function_call" | "custom_tool_call" => OpenContent::from(ToolCall {
                arguments: String::new(),
                ..tool_call(&item)
            }),
            _ => OpenContent::opaque(),
        };
        let state = Self {
            item,
            ..Self::default()
        };
        (content, state)
    }
}

/// Returns the item that a piece with this id continues.
pub(super) fn of_piece(
    items: &[OpenItem],
    index: Option<u64>,
    kind: &str,
    id: &str,
) -> Option<usize> {
    let last = |fits: &dyn Fn(&OpenItem) -> bool| {
        let fits = |open: &OpenItem| open.is(kind) && open.may_be_at(index) && fits(open);
        items.iter().rposition(fits)
    };
    let named = last(&|open| !id.is_empty() && open.is_named(id));
    named.or_else(|| last(&|open| open.state.raw.is_none()))
}

/// Returns the item that an event updates: the one with its id or, if the item is whole, the first that may
/// still become it.
pub(super) fn of_item(
    items: &[OpenItem],
    index: Option<u64>,
    item: &Value,
    is_whole: bool,
) -> Option<usize> {
    let kind = items::kind(item);
    let first = |fits: &dyn Fn(&OpenItem) -> bool| {
        let fits = |open: &OpenItem| open.is(kind) && open.may_be_at(index) && fits(open);
        items.iter().position(fits)
    };
    let is_open = |open: &OpenItem| is_whole && open.state.raw.is_none();
    first(&|open| open.is_same(item) == Some(true))
        .or_else(|| first(&|open| is_open(open) && open.is_same(item).is_none()))
        // Some servers change the ids of an item.
        .or_else(|| first(&|open| is_open(open) && index.is_some()))
}

impl OpenItem {
    /// Returns `true` if it is of this type.
    pub(super) fn is(&self, kind: &str) -> bool {
        let own = items::kind(&self.state.item);
        match self.content {
            OpenContent::Call(_) => matches!(kind, "function_call" | "custom_tool_call"),
            _ => own == kind,
        }
    }

    fn may_be_at(&self, index: Option<u64>) -> bool {
        index.is_none() || self.state.index.is_none() || self.state.index == index
    }

    fn is_named(&self, id: &str) -> bool {
        let own = ["id", "call_id"].map(|key| self.state.item.get(key));
        self.state.piece_id == id || own.iter().any(|own| text(*own) == Some(id))
    }

    /// Compares two items by id. A call's `call_id` comes first, because items of one reply have been
    /// seen to share their `id`. Returns `None` if the ids do not tell.
    pub(super) fn is_same(&self, item: &Value) -> Option<bool> {
        let id = |item: &'_ Value, key| text(item.get(key)).unwrap_or_default().to_owned();
        for key in ["call_id", "id"] {
            let (own, other) = (id(&self.state.item, key), id(item, key));
            if !own.is_empty() && !other.is_empty() {
                return Some(own == other);
            }
        }
        let piece_id = &self.state.piece_id;
        let named = ["id", "call_id"]
            .iter()
            .any(|key| id(item, key) == *piece_id);
        (named && !piece_id.is_empty()).then_some(true)
    }

    /// Returns the parts of the item so far.
    pub(super) fn parts(&self) -> Vec<Part> {
        if let Some(raw) = &self.state.raw {
            return output_parts(&self.state.item, raw);
        }
        match &self.content {
            OpenContent::Text(_) => {
                let text = self.part(StopReason::Other);
                with_extra_keys(&self.state.item, text.into_iter().collect())
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
                ..tool_call(&item)
            };
        }
        self.state.item = item;
    }

    /// Returns the model's output in the latest version of the item. `None` for a block of the provider.
    pub(super) fn whole_text(&self) -> Option<String> {
        let item = &self.state.item;
        match self.content {
            OpenContent::Opaque { .. } => None,
            OpenContent::Call(_) => Some(tool_call(item).arguments),
            OpenContent::Thinking(_) => Some(items::reasoning_text(item)),
            OpenContent::Text(_) => {
                let parts = output_parts(item, "");
                Some(parts.iter().filter_map(Part::as_text).collect())
            }
        }
    }
}
