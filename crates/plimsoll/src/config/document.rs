//! [`Located`]: a value of TOML, as JSON, that knows the origin of each of its parts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, clip};
use plimsoll_providers::Secret;
use serde_json::{Number, Value as Json};
use toml::de::{DeTable, DeValue};

use super::fault::{Faults, Origin, Place};

/// In place of a number that JSON does not have, or a whole one that TOML does not have. No setting takes it.
pub(crate) const OUT_OF_RANGE: f64 = 1e24;

/// A value with its origin: that of its key, or of the value itself in a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Located {
    pub(crate) value: Json,
    origins: Origins,
}

/// The origin of a value, and of its entries by name or its items by number. Parts without one have that of
/// the whole.
#[derive(Debug, Clone, Default, PartialEq)]
struct Origins {
    own: Origin,
    parts: BTreeMap<String, Origins>,
}

impl Located {
    /// Parses a text, or the text of a file, to a table. Reports every syntax error, not only the first.
    pub(crate) fn parse(text: &str, path: Option<&Path>, faults: &mut Faults) -> Option<Self> {
        let places = Places::of(text, path);
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let text = format!("this is no TOML: {}", error.message());
            faults.push(&places.at(error.span().unwrap_or_default()), text);
        }
        let table = DeValue::Table(table.into_inner());
        errors.is_empty().then(|| Self {
            value: json(&table),
            origins: places.origins(&table, 0..0),
        })
    }

    /// Creates a value all of whose parts have one origin.
    pub(crate) fn new(value: Json, origin: &Origin) -> Self {
        let own = origin.clone();
        let origins = Origins {
            own,
            ..Origins::default()
        };
        Self { value, origins }
    }

    /// Returns the origin of the value.
    pub(crate) fn origin(&self) -> &Origin {
        &self.origins.own
    }

    /// Returns the entries of a table, from its top. `None` if it is no table.
    pub(crate) fn entries(&self) -> Option<impl Iterator<Item = (&str, Self)>> {
        let entries = self.value.as_object()?.iter();
        Some(entries.map(|(name, value)| (name.as_str(), self.part(name, value))))
    }

    /// Returns the items of a list. `None` if it is no list.
    pub(crate) fn items(&self) -> Option<impl Iterator<Item = Self>> {
        let items = self.value.as_array()?.iter().enumerate();
        Some(items.map(|(at, value)| self.part(&at.to_string(), value)))
    }

    /// Returns an entry of a table.
    pub(crate) fn get(&self, name: &str) -> Option<Self> {
        Some(self.part(name, self.value.get(name)?))
    }

    /// Returns the origin of an entry of a table, or else that of the table.
    pub(crate) fn origin_of(&self, name: &str) -> &Origin {
        let part = self.origins.parts.get(name);
        &part.unwrap_or(&self.origins).own
    }

    fn part(&self, name: &str, value: &Json) -> Self {
        let mut part = Self::new(value.clone(), self.origin());
        if let Some(origins) = self.origins.parts.get(name) {
            part.origins.clone_from(origins);
        }
        part
    }
}

/// Describes a value in a few words, for a fault. A key is never printed.
pub(crate) fn describe(value: &Json) -> String {
    match value {
        Json::String(text) if Secret::new(text).looks_like_a_key() => "wrong".to_owned(),
        Json::String(text) => format!("{:?}", clip(text, Bytes(64))),
        Json::Array(items) if items.is_empty() => "an empty list".to_owned(),
        Json::Array(_) => "a list".to_owned(),
        Json::Object(_) => "a table".to_owned(),
        number if number.as_f64() == Some(OUT_OF_RANGE) => "a number out of range".to_owned(),
        other => other.to_string(),
    }
}

/// Parses one value of a flag or of the environment, as TOML or JSON. Anything else is a text.
pub(crate) fn parse_value(text: &str) -> Json {
    match DeValue::parse(text.trim()) {
        Ok(value) => json(value.get_ref()),
        Err(_) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

/// Converts a value. Dates become texts.
fn json(value: &DeValue<'_>) -> Json {
    match value {
        DeValue::Array(items) => items.iter().map(|item| json(item.get_ref())).collect(),
        DeValue::Table(table) => {
            let mut entries: Vec<_> = table.iter().collect();
            // The parser sorts by name; faults are reported from the top of the file.
            entries.sort_by_key(|(key, _)| key.span().start);
            let entries = entries.into_iter();
            entries
                .map(|(key, value)| (key.get_ref().to_string(), json(value.get_ref())))
                .collect()
        }
        DeValue::String(text) => text.as_ref().into(),
        DeValue::Boolean(flag) => (*flag).into(),
        DeValue::Datetime(date) => date.to_string().into(),
        DeValue::Float(number) => {
            let parsed = number.as_str().parse().ok().and_then(Number::from_f64);
            parsed.map_or(OUT_OF_RANGE.into(), Json::from)
        }
        DeValue::Integer(whole) => {
            let parsed = i64::from_str_radix(whole.as_str(), whole.radix());
            parsed.map_or(OUT_OF_RANGE.into(), Json::from)
        }
    }
}

/// The places in a text.
struct Places<'a> {
    text: &'a str,
    path: Arc<Path>,
    /// The first byte of each line.
    lines: Vec<usize>,
}

impl<'a> Places<'a> {
    fn of(text: &'a str, path: Option<&Path>) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1));
        Self {
            text,
            path: path.unwrap_or(Path::new("")).into(),
            lines: lines.collect(),
        }
    }

    fn at(&self, span: Range<usize>) -> Origin {
        let line = self.lines.partition_point(|begin| *begin <= span.start);
        let start = self.lines.get(line.saturating_sub(1)).copied();
        let before = self.text.get(start.unwrap_or_default()..span.start);
        // The mark of the byte order has no column.
        let before = before.unwrap_or_default().trim_start_matches('\u{feff}');
        let column = before.chars().count() + 1;
        Origin::File(Arc::clone(&self.path), Place { line, column })
    }

    /// Returns the origins of a value at this place, and of its parts.
    fn origins(&self, value: &DeValue<'_>, span: Range<usize>) -> Origins {
        let mut parts = BTreeMap::new();
        if let DeValue::Table(table) = value {
            for (key, value) in table.iter() {
                let origins = self.origins(value.get_ref(), key.span());
                parts.insert(key.get_ref().to_string(), origins);
            }
        } else if let DeValue::Array(items) = value {
            for (at, item) in items.iter().enumerate() {
                let origins = self.origins(item.get_ref(), item.span());
                parts.insert(at.to_string(), origins);
            }
        }
        let own = self.at(span);
        Origins { own, parts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(given: &Located) -> usize {
        given.origin().place().unwrap().line
    }

    fn column(given: &Located) -> usize {
        given.origin().place().unwrap().column
    }

    #[test]
    fn every_key_knows_its_place() {
        let text = "a = 1\n\n[b]\nc = [\n  1,\n  2,\n]\n[[d]]\ne = 0x10\n[[d]]\nf = 1_000\nb.c = 1\n é.x = { y = 1 }\n";
        let text = text.replace('é', "\"é\"");
        let document = Located::parse(&text, None, &mut Faults::default()).unwrap();
        let entries = document.entries().unwrap();
        let lines: Vec<_> = entries.map(|(key, given)| (key, line(&given))).collect();
        assert_eq!(lines, [("a", 1), ("b", 3), ("d", 8)]);
        let items: Vec<_> = document.get("d").unwrap().items().unwrap().collect();
        assert_eq!(line(&items[1]), 10);
        let (_, second) = items[1].entries().unwrap().next().unwrap();
        assert_eq!((line(&second), second.value), (11, 1_000.into()));
        let x = items[1].get("é").unwrap().get("x").unwrap();
        assert_eq!((line(&x), column(&x)), (13, 6));
        assert_eq!(column(&x.get("y").unwrap()), 12);
        assert_eq!(items[0].get("e").unwrap().value, 16);
    }

    #[test]
    fn every_mistake_in_the_form_is_said() {
        let mut faults = Faults::default();
        Located::parse("a = \nb = 1\nb = 2\n[c\n", None, &mut faults);
        let lines = faults.faults.iter();
        let lines = lines.map(|fault| fault.origin.place().map(|place| place.line));
        let mut lines: Vec<Option<usize>> = lines.collect();
        lines.sort();
        assert_eq!(lines, [Some(1), Some(3), Some(4)], "{faults:?}");
    }

    #[test]
    fn columns_are_counted_in_a_line_of_any_length() {
        let text = format!("a = \"{}\"; b = 1", "é".repeat(5_000));
        let mut faults = Faults::default();
        assert!(Located::parse(&text, None, &mut faults).is_none());
        assert_eq!(faults.faults[0].origin.place().unwrap().column, 5_007);
        let text = format!("\u{feff}a = {{ b = \"{}\", c = 1 }}", "é".repeat(5_000));
        let document = Located::parse(&text, None, &mut faults).unwrap();
        let columns = ["b", "c"].map(|key| column(&document.get("a").unwrap().get(key).unwrap()));
        assert_eq!(columns, [7, 5_015]);
    }

    #[test]
    fn numbers_that_json_does_not_have_are_out_of_range() {
        for (text, value) in [
            ("9999999999999999999", OUT_OF_RANGE.into()),
            ("-1", (-1).into()),
            ("1e400", OUT_OF_RANGE.into()),
            ("nan", OUT_OF_RANGE.into()),
            ("[{\"a\": 1}]", serde_json::json!([{ "a": 1 }])),
            ("read", Json::from("read")),
            ("\"read\"", "read".into()),
            ("", "".into()),
        ] {
            assert_eq!(parse_value(text), value, "{text}");
        }
    }
}
