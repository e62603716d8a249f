//! [`Located`]: a text of TOML as values that know their place.

use toml::Value;
use toml::de::{DeTable, DeValue};

use super::fault::{Faults, Place};

/// Number of bytes in a block of [`Places`].
const BLOCK: usize = 256;

/// A value with its place: that of its key, or of the value itself in a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Located {
    pub(crate) place: Place,
    pub(crate) data: Data,
}

/// The content of a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    /// A text, a number, a date or a boolean.
    Plain(Value),
    List(Vec<Located>),
    /// Keys and values, from the top of the text.
    Table(Vec<(String, Located)>),
}

impl Located {
    /// Parses a text to a table. Reports every syntax error, not only the first.
    pub(crate) fn parse(text: &str, faults: &mut Faults) -> Option<Self> {
        let places = Places::of(text);
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let start = error.span().map_or(0, |span| span.start);
            let text = format!("this is no TOML: {}", error.message());
            faults.push(places.at(start), text);
        }
        let table = DeValue::Table(table.into_inner());
        errors
            .is_empty()
            .then(|| Self::read(&table, Place::START, &places))
    }

    /// Places a value and all of its parts.
    pub(crate) fn new(value: Value, place: Place) -> Self {
        let inner = |value| Self::new(value, place);
        let data = match value {
            Value::Array(list) => Data::List(list.into_iter().map(inner).collect()),
            Value::Table(table) => {
                let entries = table.into_iter();
                Data::Table(entries.map(|(key, value)| (key, inner(value))).collect())
            }
            plain => Data::Plain(plain),
        };
        Self { place, data }
    }

    /// Returns the value without places.
    pub(crate) fn value(&self) -> Value {
        match &self.data {
            Data::Plain(value) => value.clone(),
            Data::List(list) => Value::Array(list.iter().map(Self::value).collect()),
            Data::Table(entries) => {
                let entries = entries.iter();
                Value::Table(entries.map(|(key, it)| (key.clone(), it.value())).collect())
            }
        }
    }

    /// Returns the entries of a table, from its top. `None` if it is no table.
    pub(crate) fn entries(&self) -> Option<&[(String, Self)]> {
        match &self.data {
            Data::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the items of a list. `None` if it is no list.
    pub(crate) fn items(&self) -> Option<&[Self]> {
        match &self.data {
            Data::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns an entry of a table.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        let mut entries = self.entries()?.iter();
        entries.find(|(key, _)| key == name).map(|(_, it)| it)
    }

    /// Describes the value in a few words, for a fault.
    pub(crate) fn describe(&self) -> String {
        match &self.data {
            Data::Plain(Value::Float(f64::MAX)) => "a number that is too large".to_owned(),
            Data::Plain(Value::Float(number)) => number.to_string(),
            Data::Plain(Value::String(text)) => {
                let clipped = plimsoll_context::clip(text, plimsoll_context::Bytes(64));
                format!("{clipped:?}")
            }
            Data::Plain(other) => other.to_string(),
            Data::List(list) if list.is_empty() => "an empty list".to_owned(),
            Data::List(_) => "a list".to_owned(),
            Data::Table(_) => "a table".to_owned(),
        }
    }

    fn read(value: &DeValue<'_>, place: Place, places: &Places<'_>) -> Self {
        let data = match value {
            DeValue::Array(list) => {
                let item = |item: &toml::Spanned<DeValue<'_>>| {
                    Self::read(item.get_ref(), places.at(item.span().start), places)
                };
                Data::List(list.iter().map(item).collect())
            }
            DeValue::Table(table) => {
                let entries = table.iter().map(|(key, value)| {
                    let place = places.at(key.span().start);
                    let name = key.get_ref().to_string();
                    (name, Self::read(value.get_ref(), place, places))
                });
                let mut entries: Vec<_> = entries.collect();
                // The parser sorts by name; faults are reported from the top of the file.
                entries.sort_by_key(|(_, it)| it.place);
                Data::Table(entries)
            }
            plain => Data::Plain(plain_value(plain)),
        };
        Self { place, data }
    }
}

/// Parses one value of a flag or of the environment. Invalid TOML is treated as a text.
pub(crate) fn parse_value(text: &str) -> Value {
    match DeValue::parse(text.trim()) {
        Ok(value) => Located::read(value.get_ref(), Place::START, &Places::of("")).value(),
        Err(_) => Value::String(text.to_owned()),
    }
}

/// Returns a text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn plain_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(whole) => {
            let parsed = i64::from_str_radix(whole.as_str(), whole.radix());
            // No setting takes a larger number. As a float it has no digits to lose.
            parsed.map_or(Value::Float(f64::MAX), Value::Integer)
        }
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Datetime(date) => Value::Datetime(*date),
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Array(_) | DeValue::Table(_) => Value::Float(f64::NAN),
    }
}

/// The places in a text. A column is found in one step, because a line can be a whole file.
struct Places<'a> {
    text: &'a str,
    /// The first byte of each line.
    lines: Vec<usize>,
    /// The number of characters before each block of bytes.
    blocks: Vec<usize>,
}

impl<'a> Places<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0).chain(ends.map(|(at, _)| at + 1));
        let chunks = text.as_bytes().chunks(BLOCK);
        let counted = chunks.scan(0, |count, chunk| {
            *count += chars(chunk);
            Some(*count)
        });
        let blocks = std::iter::once(0).chain(counted);
        Self {
            text,
            lines: lines.collect(),
            blocks: blocks.collect(),
        }
    }

    fn at(&self, byte: usize) -> Place {
        let line = self.lines.partition_point(|begin| *begin <= byte).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or_default();
        // The mark of the byte order has no column.
        let mark = usize::from(line == 1 && byte > 0 && self.text.starts_with('\u{feff}'));
        let column = self.before(byte) - self.before(start) - mark + 1;
        Place { line, column }
    }

    /// Returns the number of characters before a byte.
    fn before(&self, byte: usize) -> usize {
        let block = byte / BLOCK;
        let rest = self.text.as_bytes().get(block * BLOCK..byte);
        let begin = self.blocks.get(block).copied().unwrap_or_default();
        begin + chars(rest.unwrap_or_default())
    }
}

/// Returns the number of characters that begin in a part of a text.
fn chars(bytes: &[u8]) -> usize {
    let begins = bytes.iter().filter(|byte| **byte & 0xC0 != 0x80);
    begins.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_knows_its_place() {
        let text = "a = 1\n\n[b]\nc = [\n  1,\n  2,\n]\n[[d]]\ne = 0x10\n[[d]]\nf = 1_000\nb.c = 1\n é.x = { y = 1 }\n";
        let text = text.replace('é', "\"é\"");
        let document = Located::parse(&text, &mut Faults::default()).unwrap();
        let entries = document.entries().unwrap();
        let lines: Vec<_> = entries
            .iter()
            .map(|(key, given)| (key.as_str(), given.place.line))
            .collect();
        assert_eq!(lines, [("a", 1), ("b", 3), ("d", 8)]);
        let items = document.get("d").unwrap().items().unwrap();
        assert_eq!(items[1].place.line, 10);
        let second = items[1].entries().unwrap();
        assert_eq!(second[0].1.place, Place::line(11));
        assert_eq!(second[0].1.value(), Value::Integer(1_000));
        let x = items[1].get("é").unwrap().get("x").unwrap();
        assert_eq!((x.place.line, x.place.column), (13, 6));
        assert_eq!(x.get("y").unwrap().place.column, 12);
        assert_eq!(items[0].get("e").unwrap().value(), Value::Integer(16));
    }

    #[test]
    fn every_mistake_in_the_form_is_said() {
        let mut faults = Faults::of_file(None);
        Located::parse("a = \nb = 1\nb = 2\n[c\n", &mut faults);
        let lines = faults.list.iter();
        let lines = lines.map(|fault| fault.origin.place().map(|place| place.line));
        let mut lines: Vec<Option<usize>> = lines.collect();
        lines.sort();
        assert_eq!(lines, [Some(1), Some(3), Some(4)], "{faults:?}");
    }

    #[test]
    fn columns_are_counted_in_a_line_of_any_length() {
        let text = format!("a = \"{}\"; b = 1", "é".repeat(5_000));
        let mut faults = Faults::of_file(None);
        assert!(Located::parse(&text, &mut faults).is_none());
        assert_eq!(faults.list[0].origin.place().unwrap().column, 5_007);
        let text = format!("\u{feff}a = {{ b = \"{}\", c = 1 }}", "é".repeat(5_000));
        let document = Located::parse(&text, &mut faults).unwrap();
        let places = ["b", "c"].map(|key| document.get("a").unwrap().get(key).unwrap().place);
        assert_eq!(places.map(|place| place.column), [7, 5_015]);
    }

    #[test]
    fn numbers_without_end_are_numbers() {
        for (text, value) in [
            (
                "99999999999999999999999999999999999999999999",
                Value::Float(f64::MAX),
            ),
            ("-1", Value::Integer(-1)),
            ("1e400", Value::Float(f64::INFINITY)),
            ("read", Value::String("read".into())),
            ("\"read\"", Value::String("read".into())),
            ("", Value::String(String::new())),
        ] {
            assert_eq!(parse_value(text), value, "{text}");
        }
    }
}
