//! [`Located`]: a text of TOML as JSON values that know their origin.

use std::path::Path;
use std::sync::Arc;

use plimsoll_context::{Bytes, clip};
use serde_json::{Number, Value as Json, json};
use toml::de::{DeTable, DeValue};

use super::fault::{Faults, Origin, Place};

/// In place of a number that JSON does not have, or a whole one that TOML does not have. No setting takes it.
pub(crate) const OUT_OF_RANGE: f64 = 1e24;

/// A value with its origin: that of its key, or of the value itself in a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Located {
    pub(crate) origin: Origin,
    /// A text, a number or a boolean; dates are texts. A list or a table is empty, and has parts.
    plain: Json,
    /// The entries of a table, from its top, or the items of a list, without names.
    parts: Vec<(String, Located)>,
}

impl Located {
    /// Parses a text, or the text of a file, to a table. Reports every syntax error, not only the first.
    pub(crate) fn parse(text: &str, path: Option<&Path>, faults: &mut Faults) -> Option<Self> {
        let places = Places::of(text, path);
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let start = error.span().map_or(0, |span| span.start);
            let text = format!("this is no TOML: {}", error.message());
            faults.push(&places.at(start), text);
        }
        let table = DeValue::Table(table.into_inner());
        let is_good = errors.is_empty();
        is_good.then(|| Self::read(&table, places.at(0), &places))
    }

    /// Creates a value all of whose parts have one origin.
    pub(crate) fn new(mut value: Json, origin: &Origin) -> Self {
        let parts: Vec<(String, Json)> = match &mut value {
            Json::Array(items) => items.drain(..).map(|it| (String::new(), it)).collect(),
            Json::Object(table) => std::mem::take(table).into_iter().collect(),
            _ => Vec::new(),
        };
        let parts = parts
            .into_iter()
            .map(|(name, value)| (name, Self::new(value, origin)));
        Self {
            origin: origin.clone(),
            plain: value,
            parts: parts.collect(),
        }
    }

    /// Returns the value without origins.
    pub(crate) fn value(&self) -> Json {
        let parts = self.parts.iter();
        match &self.plain {
            Json::Array(_) => parts.map(|(_, it)| it.value()).collect(),
            Json::Object(_) => parts.map(|(name, it)| (name.clone(), it.value())).collect(),
            plain => plain.clone(),
        }
    }

    /// Returns the entries of a table, from its top. `None` if it is no table.
    pub(crate) fn entries(&self) -> Option<&[(String, Self)]> {
        self.plain.is_object().then_some(&self.parts)
    }

    /// Returns the items of a list. `None` if it is no list.
    pub(crate) fn items(&self) -> Option<impl Iterator<Item = &Self>> {
        let items = self.parts.iter().map(|(_, item)| item);
        self.plain.is_array().then_some(items)
    }

    /// Returns the value if it is a text.
    pub(crate) fn text(&self) -> Option<&str> {
        self.plain.as_str()
    }

    /// Returns an entry of a table.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let mut entries = self.entries()?.iter();
        entries.find(|(key, _)| key == name).map(|(_, it)| it)
    }

    /// Returns the origin of an entry of a table, or else that of the table.
    pub(crate) fn origin_of(&self, name: &str) -> &Origin {
        &self.get(name).unwrap_or(self).origin
    }

    /// Adds the items of another list behind its own.
    pub(crate) fn append(&mut self, other: Self) {
        if self.plain.is_array() && other.plain.is_array() {
            self.parts.extend(other.parts);
        }
    }

    /// Makes a path, or each path of a list, relative to the folder of the file that it stands in.
    pub(crate) fn put_beside_file(&mut self) {
        let folder = self.origin.path().and_then(Path::parent);
        if let (Json::String(path), Some(folder)) = (&mut self.plain, folder)
            && !path.trim().is_empty()
        {
            *path = folder.join(&*path).display().to_string();
        } else if self.plain.is_array() {
            self.parts
                .iter_mut()
                .for_each(|(_, item)| item.put_beside_file());
        }
    }

    /// Describes the value in a few words, for a fault.
    pub(crate) fn describe(&self) -> String {
        match &self.plain {
            Json::String(text) => format!("{:?}", clip(text, Bytes(64))),
            Json::Array(_) if self.parts.is_empty() => "an empty list".to_owned(),
            Json::Array(_) => "a list".to_owned(),
            Json::Object(_) => "a table".to_owned(),
            number if number.as_f64() == Some(OUT_OF_RANGE) => "a number out of range".to_owned(),
            other => other.to_string(),
        }
    }

    fn read(value: &DeValue<'_>, origin: Origin, places: &Places<'_>) -> Self {
        let mut parts = Vec::new();
        let plain = match value {
            DeValue::Array(list) => {
                for item in list.iter() {
                    let origin = places.at(item.span().start);
                    parts.push((String::new(), Self::read(item.get_ref(), origin, places)));
                }
                json!([])
            }
            DeValue::Table(table) => {
                for (key, value) in table.iter() {
                    let origin = places.at(key.span().start);
                    let value = Self::read(value.get_ref(), origin, places);
                    parts.push((key.get_ref().to_string(), value));
                }
                // The parser sorts by name; faults are reported from the top of the file.
                parts.sort_by_key(|(_, it)| it.origin.place());
                json!({})
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
        };
        Self {
            origin,
            plain,
            parts,
        }
    }
}

/// Parses one value of a flag or of the environment, as TOML or JSON. Anything else is a text.
pub(crate) fn parse_value(text: &str) -> Json {
    match DeValue::parse(text.trim()) {
        Ok(value) => Located::read(value.get_ref(), Origin::Default, &Places::of("", None)).value(),
        Err(_) => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
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

    fn at(&self, byte: usize) -> Origin {
        let line = self.lines.partition_point(|begin| *begin <= byte).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or_default();
        let before = self.text.get(start..byte).unwrap_or_default();
        // The mark of the byte order has no column.
        let column = before.trim_start_matches('\u{feff}').chars().count() + 1;
        Origin::File(Arc::clone(&self.path), Place { line, column })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(given: &Located) -> usize {
        given.origin.place().unwrap().line
    }

    fn column(given: &Located) -> usize {
        given.origin.place().unwrap().column
    }

    #[test]
    fn every_key_knows_its_place() {
        let text = "a = 1\n\n[b]\nc = [\n  1,\n  2,\n]\n[[d]]\ne = 0x10\n[[d]]\nf = 1_000\nb.c = 1\n é.x = { y = 1 }\n";
        let text = text.replace('é', "\"é\"");
        let document = Located::parse(&text, None, &mut Faults::default()).unwrap();
        let entries = document.entries().unwrap();
        let lines: Vec<_> = entries
            .iter()
            .map(|(key, given)| (key.as_str(), line(given)))
            .collect();
        assert_eq!(lines, [("a", 1), ("b", 3), ("d", 8)]);
        let items: Vec<_> = document.get("d").unwrap().items().unwrap().collect();
        assert_eq!(line(items[1]), 10);
        let second = items[1].entries().unwrap();
        assert_eq!(line(&second[0].1), 11);
        assert_eq!(second[0].1.value(), 1_000);
        let x = items[1].get("é").unwrap().get("x").unwrap();
        assert_eq!((line(x), column(x)), (13, 6));
        assert_eq!(column(x.get("y").unwrap()), 12);
        assert_eq!(items[0].get("e").unwrap().value(), 16);
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
        let columns = ["b", "c"].map(|key| column(document.get("a").unwrap().get(key).unwrap()));
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
