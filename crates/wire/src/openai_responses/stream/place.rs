//! Finds the output item that an event is about.
//!
//! Most servers send the item's index in the output. Some send none, or always 0; then the id or the
//! type decides. `stream.rs` assembles the text.

use plimsoll_context::Part;
use serde_json::Value;

use super::super::items;
use super::super::reply::{output_parts, text};
use super::item::{OpenItem, content};
use crate::open_reply::OpenContent;

/// An event's data about its item.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventItem<'e> {
    /// The item's index in the output.
    pub(super) place: Option<u64>,
    /// The item's type.
    pub(super) kind: &'e str,
    /// The item's id, if the event contains a piece.
    pub(super) id: Option<&'e str>,
    /// The item, if the event contains it.
    pub(super) item: Option<&'e Value>,
}

/// Checks whether an item of the whole output, at its index, may be one that has arrived.
type PlaceRule<'w> = dyn Fn(usize, &OpenItem, &Value) -> bool + 'w;

/// The relation between two items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tie {
    Same,
    Unknown,
    Other,
}

/// Returns the item that begins with this event, if it is known already: because a piece came before,
/// or because it begins twice.
pub(super) fn begun(items: &[OpenItem], about: EventItem<'_>) -> Option<usize> {
    let item = about.item?;
    let waits = |open: &OpenItem| open.is(about.kind) && open.state.raw.is_none();
    let at_place = |open: &OpenItem| {
        about.place.is_some() && open.state.place == about.place && open.tie(item) != Tie::Other
    };
    let free = |open: &OpenItem| about.place.is_none() || open.state.place.is_none();
    let same = |open: &OpenItem| free(open) && open.tie(item) == Tie::Same;
    // A piece only tells the type of its item.
    let piece = |open: &OpenItem| free(open) && waits(open) && open.is_unnamed();
    let last = items.len().checked_sub(1);
    let last = last.filter(|last| items.get(*last).is_some_and(piece));
    let find =
        |fits: &dyn Fn(&OpenItem) -> bool| items.iter().rposition(|open| waits(open) && fits(open));
    find(&at_place).or_else(|| find(&same)).or(last)
}

/// Returns the item that this event's piece belongs to.
pub(super) fn of_piece(items: &[OpenItem], about: EventItem<'_>) -> Option<usize> {
    let named = |open: &OpenItem| about.id.is_some_and(|id| open.is_named(id));
    let at_place = |open: &OpenItem| open.is(about.kind) && open.state.place == about.place;
    let waits = |open: &OpenItem| open.state.raw.is_none();
    // An item that is whole and has another id is finished.
    let maybe = |open: &OpenItem| waits(open) || about.id.is_none() || open.is_unnamed();
    let last = |fits: &dyn Fn(&OpenItem) -> bool| items.iter().rposition(fits);
    let placed = || {
        last(&|open| at_place(open) && named(open))
            .or_else(|| last(&|open| at_place(open) && waits(open)))
            .or_else(|| last(&|open| at_place(open) && maybe(open)))
    };
    let unplaced = |open: &OpenItem| {
        let free = about.place.is_none() || open.state.place.is_none();
        free && open.is(about.kind)
    };
    about
        .place
        .and_then(|_| placed())
        .or_else(|| last(&|open| unplaced(open) && named(open) && waits(open)))
        .or_else(|| last(&|open| unplaced(open) && named(open)))
        .or_else(|| last(&|open| unplaced(open) && waits(open)))
}

/// Returns the item that this event completes.
pub(super) fn of_whole(items: &[OpenItem], about: EventItem<'_>) -> Option<usize> {
    let item = about.item?;
    let of_kind = |open: &&OpenItem| open.is(about.kind);
    let at_place = |open: &OpenItem| about.place.is_some() && open.state.place == about.place;
    let waits = |open: &OpenItem| open.state.raw.is_none();
    let first = |fits: &dyn Fn(&OpenItem, Tie) -> bool| {
        let fits = |open: &OpenItem| of_kind(&open) && fits(open, open.tie(item));
        items.iter().position(fits)
    };
    let free = |open: &OpenItem| about.place.is_none() || open.state.place.is_none();
    first(&|open, tie| at_place(open) && tie == Tie::Same)
        .or_else(|| first(&|open, tie| waits(open) && tie == Tie::Same))
        .or_else(|| first(&|open, tie| at_place(open) && waits(open) && tie == Tie::Unknown))
        .or_else(|| first(&|open, _| at_place(open) && waits(open) && open.grows_to(item)))
        .or_else(|| first(&|open, tie| at_place(open) && tie == Tie::Unknown))
        .or_else(|| first(&|open, tie| free(open) && tie == Tie::Same))
        .or_else(|| first(&|open, tie| free(open) && waits(open) && tie == Tie::Unknown))
        .or_else(|| first(&|open, _| free(open) && waits(open) && open.grows_to(item)))
}

/// Returns, for each item of a whole output, the item that has arrived. The id decides first, then the
/// index, and then the order among items of one type.
pub(super) fn of_output(items: &[OpenItem], output: &[Value]) -> Vec<Option<usize>> {
    let mut found: Vec<Option<usize>> = vec![None; output.len()];
    let mut taken = vec![false; items.len()];
    let by_tie = |_: usize, open: &OpenItem, item: &Value| open.tie(item) == Tie::Same;
    let by_place = |at: usize, open: &OpenItem, _: &Value| open.state.place == Some(at as u64);
    let by_order = |_: usize, _: &OpenItem, _: &Value| true;
    // Two items with the same id are distinguished by their indices.
    let by_both = |at: usize, open: &OpenItem, item: &Value| {
        by_tie(at, open, item) && by_place(at, open, item)
    };
    let rules: [&PlaceRule<'_>; 4] = [&by_both, &by_tie, &by_place, &by_order];
    for rule in rules {
        for (at, (item, found)) in output.iter().zip(&mut found).enumerate() {
            if found.is_some() {
                continue;
            }
            let kind = items::kind(item);
            let mut free = items.iter().zip(&mut taken).enumerate();
            let one =
                free.find(|(_, (open, taken))| !**taken && open.is(kind) && rule(at, open, item));
            if let Some((index, (_, taken))) = one {
                *taken = true;
                *found = Some(index);
            }
        }
    }
    found
}

/// Returns the index for a new item: before those with a higher place in the output, if its own place
/// is free.
pub(super) fn new(items: &[OpenItem], place: Option<u64>) -> (usize, Option<u64>) {
    let held = items.iter().any(|open| open.state.place == place);
    let Some(place) = place.filter(|_| !held) else {
        return (items.len(), place);
    };
    let after = |open: &OpenItem| open.state.place.is_some_and(|other| other > place);
    let at = items.iter().position(after).unwrap_or(items.len());
    (at, Some(place))
}

impl OpenItem {
    fn is(&self, kind: &str) -> bool {
        let is_like = self.content.is_like(&content(kind));
        match self.content {
            OpenContent::Opaque { .. } => is_like && items::kind(&self.state.item) == kind,
            _ => is_like,
        }
    }

    fn is_named(&self, id: &str) -> bool {
        is_named(&self.state.item, id) || self.state.named.as_deref() == Some(id)
    }

    fn is_unnamed(&self) -> bool {
        self.state.named.is_none()
            && ["id", "call_id"]
                .iter()
                .all(|key| id(&self.state.item, key).is_none())
    }

    /// Compares two items by id. A call's `call_id` comes first, because items of one reply have been
    /// seen to share their `id`.
    fn tie(&self, item: &Value) -> Tie {
        for key in ["call_id", "id"] {
            if let (Some(own), Some(other)) = (id(&self.state.item, key), id(item, key)) {
                return if own == other { Tie::Same } else { Tie::Other };
            }
        }
        match &self.state.named {
            Some(named) if is_named(item, named) => Tie::Same,
            _ => Tie::Unknown,
        }
    }

    /// Returns `true` if the content so far is the beginning of an item.
    fn grows_to(&self, item: &Value) -> bool {
        match &self.content {
            OpenContent::Call(open) => {
                let name = |item| text(Value::get(item, "name")).unwrap_or_default();
                let whole = text(item.get("arguments")).or_else(|| text(item.get("input")));
                let so_far = open.call.arguments.as_str();
                let begins = whole.is_none_or(|whole| whole.starts_with(so_far));
                begins && ["", name(item)].contains(&name(&self.state.item))
            }
            OpenContent::Text(_) => {
                let parts = output_parts(item, "");
                let all: String = parts.iter().filter_map(Part::as_text).collect();
                all.starts_with(&self.text())
            }
            OpenContent::Thinking(_) => items::reasoning_text(item).starts_with(&self.text()),
            OpenContent::Opaque { .. } => true,
        }
    }
}

fn id<'i>(item: &'i Value, key: &str) -> Option<&'i str> {
    text(item.get(key)).filter(|id| !id.is_empty())
}

fn is_named(item: &Value, name: &str) -> bool {
    ["id", "call_id"]
        .iter()
        .any(|key| id(item, key) == Some(name))
}
