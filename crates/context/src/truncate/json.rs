//! Shortens a JSON list or object so that it remains one: first long values are shortened, then
//! whole items are removed from the middle.
//!
//! Kept text keeps its bytes, including blanks and number formats: only spans of the text are
//! removed.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::marker::{Hole, Marker, OPENING, find_central};
use super::{Script, cut};

/// The maximum depth at which values are shortened. A deeper value is removed as a whole. Each
/// level reads its text once more, so this limits the work on a text that consists of brackets.
const DEPTH_MAX: u32 = 16;
/// An item of a list is shortened itself if it exceeds this fraction of the list's allowed size. So
/// records stay whole, and a giant one does not displace the others.
const LIST_SHARE: usize = 4;
/// The minimum size to which a value is shortened. Below it, whole items are removed instead.
const VALUE_MIN: usize = 64;

/// A text that is a JSON list or object.
#[derive(Debug)]
pub(super) struct Document<'a> {
    /// Blanks before the value.
    before: &'a str,
    value: &'a str,
    /// Blanks after the value.
    after: &'a str,
}

/// A parsed list or object.
#[derive(Debug)]
struct Container<'a> {
    raw: &'a str,
    kind: ContainerKind,
    children: Vec<Child>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContainerKind {
    List,
    Object,
}

/// An item of a list or a member of an object, as offsets into the container's text.
#[derive(Debug)]
struct Child {
    /// The beginning of the key, or of the value for an item of a list.
    start: usize,
    value: Range<usize>,
    /// The content of a marker from an earlier cut, if this child is one.
    hole: Option<Hole>,
}

/// The members of an object in order, including repeated keys.
#[derive(Debug)]
struct Members<'a>(Vec<(String, &'a RawValue)>);

/// Returns `text` as the inside of a JSON string.
pub(super) fn escaped(text: &str) -> String {
    let quoted = quoted(text);
    let inside = quoted.get(1..quoted.len().saturating_sub(1));
    inside.unwrap_or_default().to_owned()
}

impl<'a> Document<'a> {
    /// Parses a document. Returns `None` unless the whole `text` is one list or object.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let blank = [' ', '\t', '\n', '\r'];
        let from_value = text.trim_start_matches(blank);
        if !from_value.starts_with(['[', '{']) {
            return None;
        }
        let value = from_value.trim_end_matches(blank);
        serde_json::from_str::<&RawValue>(value).ok()?;
        Some(Self {
            before: text.get(..text.len() - from_value.len())?,
            value,
            after: from_value.get(value.len()..)?,
        })
    }

    /// Shortens the document to at most `max` bytes. Returns `None` if no item would be left.
    pub(super) fn shrink(&self, max: usize, marker: &Marker) -> Option<String> {
        let room = max.checked_sub(self.before.len() + self.after.len())?;
        let value = Container::open(self.value)?.shrink(room, marker, DEPTH_MAX)?;
        Some([self.before, &value, self.after].concat())
    }
}

impl<'a> Container<'a> {
    fn open(raw: &'a str) -> Option<Self> {
        let offset = |value: &RawValue| {
            // `value` was read from `raw` without copying, so it lies within it.
            let start = value.get().as_ptr().addr() - raw.as_ptr().addr();
            start..start + value.get().len()
        };
        let mut children = Vec::new();
        let kind = if raw.starts_with('[') {
            let items: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
            for item in items {
                let value = offset(item);
                let hole = read_item_marker(item.get());
                let start = value.start;
                children.push(Child { start, value, hole });
            }
            ContainerKind::List
        } else {
            let Members(members) = serde_json::from_str(raw).ok()?;
            let mut from = 1;
            for (key, value) in members {
                let hole = Hole::read(&key).filter(|_| value.get() == "null");
                let value = offset(value);
                // Between two members there are only blanks and a comma, so the next quotation mark
                // opens the key.
                let start = from + raw.get(from..)?.find('"')?;
                from = value.end;
                children.push(Child { start, value, hole });
            }
            ContainerKind::Object
        };
        Some(Self {
            raw,
            kind,
            children,
        })
    }

    fn shrink(&self, max: usize, marker: &Marker, depth: u32) -> Option<String> {
        let level = self.level(max);
        let share = (max / LIST_SHARE).max(VALUE_MIN);
        let all_stay = match self.kind {
            ContainerKind::List => level >= share,
            ContainerKind::Object => level >= VALUE_MIN,
        };
        let all = if all_stay {
            self.join(None, level, marker, depth)
        } else {
            None
        };
        all.filter(|all| all.len() <= max)
            .or_else(|| self.drop_middle(max, level.max(share), marker, depth))
    }

    /// Returns the largest maximum size of the children for which the container has at most `max`
    /// bytes.
    fn level(&self, max: usize) -> usize {
        let sizes = || self.children.iter().map(Child::len);
        let between = self.raw.len() - sizes().sum::<usize>();
        let fits =
            |level: usize| between + sizes().map(|size| size.min(level)).sum::<usize>() <= max;
        let (mut low, mut high) = (0, max + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                low = middle
            } else {
                high = middle
            }
        }
        low
    }

    /// Keeps as many children as fit at the beginning and at the end, with about the same number of
    /// bytes, and a marker between them.
    fn drop_middle(&self, max: usize, level: usize, marker: &Marker, depth: u32) -> Option<String> {
        let count = self.children.len();
        let earlier = self.children.iter().position(|child| child.hole.is_some());
        // The children up to `low` and from `high` on are kept. The position of an earlier hole is
        // never kept.
        let (mut low, mut high) = (0, count);
        let (low_max, high_min) = (
            earlier.unwrap_or(count.saturating_sub(1)),
            earlier.map_or(1, |at| at + 1),
        );
        let widest_gap = (0..count).map(|at| self.gap(at).len()).max()?;
        let fixed = 1 + self.closing().len() + widest_gap + self.longest_marker(marker);
        let mut room = max.checked_sub(fixed)?;
        let (mut head, mut tail) = (0, 0);
        loop {
            let cost = |at: usize| {
                self.gap(at).len() + self.children.get(at).map_or(0, |c| c.len().min(level))
            };
            let next_head = (low < low_max && low + 1 < high)
                .then(|| cost(low))
                .filter(|cost| *cost <= room);
            let next_tail = (high > high_min && low + 1 < high)
                .then(|| cost(high - 1))
                .filter(|cost| *cost <= room);
            match (next_head, next_tail) {
                (Some(cost), other) if head <= tail || other.is_none() => {
                    (low, head, room) = (low + 1, head + cost, room - cost);
                }
                (_, Some(cost)) => {
                    (high, tail, room) = (high - 1, tail + cost, room - cost);
                }
                _ => break,
            }
        }
        if low == 0 && high == count {
            return None;
        }
        self.join(Some(low..high), level, marker, depth)
            .filter(|joined| joined.len() <= max)
    }

    /// Returns the children except those in `dropped`, each with at most `level` bytes.
    fn join(
        &self,
        dropped: Option<Range<usize>>,
        level: usize,
        marker: &Marker,
        depth: u32,
    ) -> Option<String> {
        let mut out = String::from(self.raw.get(..1)?);
        let mut at = 0;
        while let Some(child) = self.children.get(at) {
            out.push_str(self.gap(at));
            match &dropped {
                Some(dropped) if dropped.start == at => {
                    out.push_str(&self.marker_child(dropped.clone(), marker)?);
                    at = dropped.end;
                }
                // An earlier marker is not shortened; only a larger hole may replace it.
                _ if child.hole.is_some() => {
                    out.push_str(self.raw.get(child.start..child.value.end)?);
                    at += 1;
                }
                _ => {
                    out.push_str(self.raw.get(child.start..child.value.start)?);
                    let room = level.checked_sub(child.value.start - child.start);
                    let value = self.raw.get(child.value.clone())?;
                    out.push_str(&shrink_value(value, room, marker, depth)?);
                    at += 1;
                }
            }
        }
        out.push_str(self.closing());
        Some(out)
    }

    /// Returns the text before a child: blanks, and the comma after the previous child.
    fn gap(&self, at: usize) -> &'a str {
        let before = at.checked_sub(1).and_then(|at| self.children.get(at));
        let from = before.map_or(1, |child| child.value.end);
        let to = self.children.get(at).map_or(from, |child| child.start);
        self.raw.get(from..to).unwrap_or_default()
    }

    fn closing(&self) -> &'a str {
        let from = self.children.last().map_or(1, |child| child.value.end);
        self.raw.get(from..).unwrap_or_default()
    }

    fn marker_child(&self, dropped: Range<usize>, marker: &Marker) -> Option<String> {
        let children = self.children.get(dropped)?;
        let span = self
            .raw
            .get(children.first()?.start..children.last()?.value.end)?;
        let mut hole = Hole {
            bytes: span.len() as u64,
            items: Some(children.len() as u64),
        };
        for child in children {
            let of = self.raw.get(child.start..child.value.end)?;
            if let Some(earlier) = child.hole {
                hole.bytes = (hole.bytes + earlier.bytes).saturating_sub(of.len() as u64);
                hole.items = hole
                    .items
                    .map(|items| items - 1 + earlier.items.unwrap_or(1));
            } else if of.contains(OPENING) {
                let value = self.raw.get(child.value.clone())?;
                hole.bytes = (hole.bytes + original_len(value, DEPTH_MAX))
                    .saturating_sub(value.len() as u64);
            }
        }
        Some(self.write_marker(hole, marker))
    }

    fn write_marker(&self, hole: Hole, marker: &Marker) -> String {
        let words = quoted(&marker.words(hole));
        match self.kind {
            ContainerKind::List => words,
            ContainerKind::Object => words + ":null",
        }
    }

    /// Returns an upper bound for the length of a marker in this container, for any dropped
    /// children.
    fn longest_marker(&self, marker: &Marker) -> usize {
        let bytes = original_len(self.raw, DEPTH_MAX);
        let earlier = self.children.iter().filter_map(|child| child.hole);
        let items = earlier.filter_map(|hole| hole.items).sum::<u64>() + self.children.len() as u64;
        let items = Some(items);
        self.write_marker(Hole { bytes, items }, marker).len()
    }
}

impl Child {
    fn len(&self) -> usize {
        self.value.end - self.start
    }
}

/// Returns a value within `room` bytes: unchanged, shortened, or replaced by a marker.
fn shrink_value<'a>(
    value: &'a str,
    room: Option<usize>,
    marker: &Marker,
    depth: u32,
) -> Option<Cow<'a, str>> {
    let room = room?;
    if value.len() <= room {
        return Some(Cow::Borrowed(value));
    }
    let shrunk = if let Some(inside) = inside(value) {
        cut(inside, room.checked_sub(2)?, marker, Script::JsonString)
            .map(|inside| format!("\"{inside}\""))
    } else if depth > 0 && value.starts_with(['[', '{']) {
        Container::open(value).and_then(|open| open.shrink(room, marker, depth - 1))
    } else {
        None
    };
    let shrunk = shrunk.unwrap_or_else(|| {
        let bytes = original_len(value, DEPTH_MAX);
        quoted(&marker.words(Hole { bytes, items: None }))
    });
    (shrunk.len() <= room).then_some(Cow::Owned(shrunk))
}

/// Returns the number of bytes of `value` before markers replaced some of them.
fn original_len(value: &str, depth: u32) -> u64 {
    let len = value.len() as u64;
    if depth == 0 || !value.contains(OPENING) {
        return len;
    }
    if let Some(inside) = inside(value) {
        if let Some(hole) = Hole::read(inside) {
            return hole.bytes;
        }
        let hole = find_central(inside, Script::JsonString.separator());
        return hole.map_or(len, |(range, hole)| len + hole.bytes - range.len() as u64);
    }
    let Some(open) = Container::open(value) else {
        return len;
    };
    open.children.iter().fold(len, |sum, child| {
        let (grows_to, from) = match child.hole {
            Some(hole) => (hole.bytes, child.len()),
            None => {
                let value = value.get(child.value.clone()).unwrap_or_default();
                (original_len(value, depth - 1), value.len())
            }
        };
        (sum + grows_to).saturating_sub(from as u64)
    })
}

fn read_item_marker(item: &str) -> Option<Hole> {
    let hole = Hole::read(inside(item)?)?;
    hole.items.is_some().then_some(hole)
}

/// Returns the text between the quotation marks of a string.
fn inside(value: &str) -> Option<&str> {
    value.strip_prefix('"')?.strip_suffix('"')
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor)
    }
}
