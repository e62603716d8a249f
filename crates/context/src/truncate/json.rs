//! Shortens a JSON list or object so that it remains one: long values are shortened themselves, and
//! whole items are removed from the middle. Kept values keep their bytes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::marker::{Hole, Marker, OPENING, read_opening};
use super::{TRIES, cut, level, scaled};

/// The maximum depth at which values are shortened. A deeper value is removed as a whole. Each
/// level reads its text once more, so this limits the work on a text that consists of brackets.
const DEPTH_MAX: u32 = 16;
/// An item of a list is shortened itself if it exceeds this fraction of the list's allowed size. So
/// records stay whole, and a giant one does not displace the others.
const LIST_SHARE: usize = 4;
/// The minimum size to which a value is shortened. Below it, whole items are removed instead.
const VALUE_MIN: usize = 64;

/// A parsed list or object.
#[derive(Debug)]
pub(super) struct Container<'a> {
    is_list: bool,
    children: Vec<Child<'a>>,
}

/// An item of a list or a member of an object.
#[derive(Debug)]
struct Child<'a> {
    /// The key of a member with its colon; empty for an item.
    key: String,
    value: &'a str,
}

/// The members of an object in order, including repeated keys.
#[derive(Debug)]
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'a> Container<'a> {
    /// Parses a container. Returns `None` unless the whole `text` is one list or object.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let text = text.trim_matches([' ', '\t', '\n', '\r']);
        let is_list = text.starts_with('[');
        let children = if is_list {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            let item = |value: &'a RawValue| Child {
                key: String::new(),
                value: value.get(),
            };
            items.into_iter().map(item).collect()
        } else if text.starts_with('{') {
            let Members(members) = serde_json::from_str(text).ok()?;
            let member = |(key, value): (String, &'a RawValue)| Child {
                key: quoted(&key) + ":",
                value: value.get(),
            };
            members.into_iter().map(member).collect()
        } else {
            return None;
        };
        Some(Self { is_list, children })
    }

    /// Shortens the container to at most `max` bytes. Returns `None` if no item would be left.
    pub(super) fn shorten(&self, max: usize, marker: &Marker) -> Option<String> {
        self.within(max, marker, DEPTH_MAX)
    }

    fn within(&self, max: usize, marker: &Marker, depth: u32) -> Option<String> {
        let share = if self.is_list { max / LIST_SHARE } else { 0 };
        let level = self.level(max).max(share).max(VALUE_MIN);
        let children = self.children.iter();
        let children: Vec<Cow<'_, str>> = children
            .map(|child| child.within(level, marker, depth))
            .collect();
        let whole = self.write(&children);
        if whole.len() <= max {
            return Some(whole);
        }
        self.without_middle(children, max, marker)
    }

    /// Returns the largest maximum size of the children for which the container has at most `max`
    /// bytes.
    fn level(&self, max: usize) -> usize {
        let sizes = self.children.iter().map(|child| child.len() as u64);
        let room = max.saturating_sub(self.children.len() + 1);
        usize::try_from(level(sizes.collect(), room as u64)).unwrap_or(usize::MAX)
    }

    /// Keeps as many children as fit at the beginning and at the end, with about the same number of
    /// bytes, and a marker between them.
    fn without_middle(
        &self,
        mut children: Vec<Cow<'_, str>>,
        max: usize,
        marker: &Marker,
    ) -> Option<String> {
        let count = self.children.len();
        // The marker of an earlier cut is part of the new hole.
        let earlier = self
            .children
            .iter()
            .position(|child| child.hole().is_some());
        let (low_max, high_min) = match earlier {
            Some(at) => (at, at + 1),
            None => (count.checked_sub(1)?, 1),
        };
        let longest = self.marker(0..count, marker);
        let mut room = max.checked_sub(2 + longest.len())?;
        let (mut low, mut high, mut head, mut tail) = (0, count, 0, 0);
        loop {
            let cost = |at: usize| children.get(at).map_or(0, |child| child.len() + 1);
            let fits = |cost: &usize| low + 1 < high && *cost <= room;
            let next_head = Some(cost(low)).filter(|cost| low < low_max && fits(cost));
            let next_tail = Some(cost(high - 1)).filter(|cost| high > high_min && fits(cost));
            match (next_head, next_tail) {
                (Some(cost), other) if head <= tail || other.is_none() => {
                    (low, head, room) = (low + 1, head + cost, room - cost);
                }
                (_, Some(cost)) => (high, tail, room) = (high - 1, tail + cost, room - cost),
                _ => break,
            }
        }
        if low == 0 && high == count {
            return None;
        }
        let words = Cow::Owned(self.marker(low..high, marker));
        children.splice(low..high, [words]);
        Some(self.write(&children))
    }

    fn write(&self, children: &[Cow<'_, str>]) -> String {
        let (open, close) = if self.is_list { ("[", "]") } else { ("{", "}") };
        [open, &children.join(","), close].concat()
    }

    /// Returns the marker that replaces these children.
    fn marker(&self, dropped: std::ops::Range<usize>, marker: &Marker) -> String {
        let (mut bytes, mut items) = (dropped.len().saturating_sub(1) as u64, 0);
        for child in self.children.get(dropped).unwrap_or_default() {
            let hole = child.hole();
            items += hole.and_then(|hole| hole.items).unwrap_or(1);
            bytes += match hole {
                Some(hole) => hole.bytes,
                None => child.key.len() as u64 + original_len(child.value),
            };
        }
        let items = Some(items);
        let words = quoted(&marker.words(Hole { bytes, items }));
        if self.is_list { words } else { words + ":null" }
    }
}

impl Child<'_> {
    fn len(&self) -> usize {
        self.key.len() + self.value.len()
    }

    /// Returns what the marker of an earlier cut says, if the child is one.
    fn hole(&self) -> Option<Hole> {
        let words = match self.key.strip_suffix(':') {
            None => self.value,
            Some(key) if self.value == "null" => key,
            Some(_) => return None,
        };
        let hole = Hole::read(words.strip_prefix('"')?.strip_suffix('"')?)?;
        hole.items.is_some().then_some(hole)
    }

    /// Returns the child within `max` bytes: unchanged, shortened, or with a marker as its value. A
    /// key is never shortened.
    fn within(&self, max: usize, marker: &Marker, depth: u32) -> Cow<'_, str> {
        if self.len() <= max || self.hole().is_some() {
            return match self.key.as_str() {
                "" => Cow::Borrowed(self.value),
                key => Cow::Owned([key, self.value].concat()),
            };
        }
        let room = max.saturating_sub(self.key.len());
        let short = if self.value.starts_with('"') {
            short_string(self.value, room, marker)
        } else {
            let container = depth.checked_sub(1).zip(Container::read(self.value));
            container.and_then(|(depth, container)| container.within(room, marker, depth))
        };
        let short = short.unwrap_or_else(|| {
            let bytes = original_len(self.value);
            quoted(&marker.words(Hole { bytes, items: None }))
        });
        Cow::Owned([self.key.as_str(), &short].concat())
    }
}

/// Returns head and tail of a string, with its quotation marks, in at most `max` bytes.
fn short_string(value: &str, max: usize, marker: &Marker) -> Option<String> {
    let text: String = serde_json::from_str(value).ok()?;
    // Escapes make the string longer than its text.
    let mut bytes = scaled(text.len(), max.checked_sub(2)?, value.len());
    for _ in 0..TRIES {
        let short = quoted(&cut(&text, bytes, marker)?);
        if short.len() <= max {
            return Some(short);
        }
        bytes -= bytes / 8;
    }
    None
}

/// Returns the number of bytes of a value before markers replaced some of them.
fn original_len(value: &str) -> u64 {
    let mut len = value.len() as u64;
    for (at, _) in value.match_indices(OPENING) {
        let (before, marker) = value.split_at_checked(at).unwrap_or_default();
        if let Some((hole, after)) = read_opening(marker) {
            let is_in_string = before.ends_with("\\n") && after.starts_with("\\n");
            let line_ends = if is_in_string { 4 } else { 0 };
            let words = (marker.len() - after.len()) as u64 + line_ends;
            len = (len + hole.bytes).saturating_sub(words);
        }
    }
    len
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
