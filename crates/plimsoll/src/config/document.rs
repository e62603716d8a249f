//! [`Document`]: a text of TOML as values, with the line of every key.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

use super::fault::{ConfigFault, Faults};

/// A parsed text. The meaning of its keys is defined elsewhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Document {
    pub(crate) table: Table,
    lines: BTreeMap<Vec<String>, usize>,
}

/// A value of a document, with its line.
#[derive(Debug, Clone)]
pub(crate) struct Located<'a> {
    pub(crate) value: &'a Value,
    /// The line of its key, or of the value itself in a list.
    pub(crate) line: usize,
    document: &'a Document,
    path: Vec<String>,
}

impl Document {
    /// Parses a text. Reports every syntax error, not only the first.
    pub(crate) fn parse(text: &str) -> Result<Self, Faults> {
        let starts = LineStarts::of(text);
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            let faults = errors.iter().map(|error| ConfigFault {
                line: error.span().map(|span| starts.at(span.start)),
                text: format!("this is no TOML: {}", error.message()),
            });
            return Err(Faults(faults.collect()));
        }
        let mut document = Self::default();
        document.table = document.read_table(table.get_ref(), &[], &starts);
        Ok(document)
    }

    /// Creates a document from values and the lines of their keys.
    pub(crate) fn new(table: Table, lines: BTreeMap<Vec<String>, usize>) -> Self {
        Self { table, lines }
    }

    /// Returns the keys at the top, from the first line to the last.
    pub(crate) fn entries(&self) -> Vec<(&str, Located<'_>)> {
        self.located(&self.table, &[])
    }

    /// Returns a value at the top.
    pub(crate) fn get(&self, name: &str) -> Option<Located<'_>> {
        let mut entries = self.entries().into_iter();
        let entry = entries.find(|(key, _)| *key == name);
        entry.map(|(_, value)| value)
    }

    fn located<'a>(&'a self, table: &'a Table, path: &[String]) -> Vec<(&'a str, Located<'a>)> {
        let entries = table
            .iter()
            .map(|(key, value)| (key.as_str(), self.locate(path, key, value)));
        let mut entries: Vec<_> = entries.collect();
        // The parser sorts by name; faults are reported from the top of the file.
        entries.sort_by_key(|(_, located)| located.line);
        entries
    }

    fn locate<'a>(&'a self, path: &[String], key: &str, value: &'a Value) -> Located<'a> {
        let path: Vec<String> = path.iter().cloned().chain([key.to_owned()]).collect();
        let mut ends = (1..=path.len()).rev();
        let line = ends.find_map(|end| self.lines.get(path.get(..end)?));
        Located {
            value,
            line: line.copied().unwrap_or(1),
            document: self,
            path,
        }
    }

    fn read_table(&mut self, table: &DeTable<'_>, path: &[String], starts: &LineStarts) -> Table {
        let entries = table.iter().map(|(key, value)| {
            let name = key.get_ref().to_string();
            let path: Vec<String> = path.iter().cloned().chain([name.clone()]).collect();
            self.lines.insert(path.clone(), starts.at(key.span().start));
            (name, self.read_value(value.get_ref(), &path, starts))
        });
        entries.collect()
    }

    fn read_value(&mut self, value: &DeValue<'_>, path: &[String], starts: &LineStarts) -> Value {
        match value {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(whole) => {
                let parsed = i64::from_str_radix(whole.as_str(), whole.radix());
                // No setting takes a larger number. As a float it has no digits to lose.
                parsed.map_or(Value::Float(f64::MAX), Value::Integer)
            }
            // Invalid numbers have been refused by the TOML parser.
            DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(flag) => Value::Boolean(*flag),
            DeValue::Datetime(date) => Value::Datetime(*date),
            DeValue::Array(list) => {
                let items = list.iter().enumerate().map(|(at, item)| {
                    let path: Vec<String> = path.iter().cloned().chain([at.to_string()]).collect();
                    self.lines
                        .insert(path.clone(), starts.at(item.span().start));
                    self.read_value(item.get_ref(), &path, starts)
                });
                Value::Array(items.collect())
            }
            DeValue::Table(table) => Value::Table(self.read_table(table, path, starts)),
        }
    }
}

impl<'a> Located<'a> {
    /// Returns the entries of a table, from the first line to the last. `None` if it is no table.
    pub(crate) fn entries(&self) -> Option<Vec<(&'a str, Located<'a>)>> {
        let table = self.value.as_table()?;
        Some(self.document.located(table, &self.path))
    }

    /// Returns the items of a list. `None` if it is no list.
    pub(crate) fn items(&self) -> Option<Vec<Located<'a>>> {
        let items = self.value.as_array()?.iter().enumerate();
        let items = items.map(|(at, item)| self.document.locate(&self.path, &at.to_string(), item));
        Some(items.collect())
    }
}

/// Parses one value of a flag or of the environment. Invalid TOML is treated as a text.
pub(crate) fn parse_value(text: &str) -> Value {
    let mut document = Document::default();
    match DeValue::parse(text.trim()) {
        Ok(value) => document.read_value(value.get_ref(), &[], &LineStarts::of("")),
        Err(_) => Value::String(text.to_owned()),
    }
}

/// Describes a given value in a few words, for a fault.
pub(crate) fn describe(value: &Value) -> String {
    match value {
        Value::Float(f64::MAX) => "a number that is too large".to_owned(),
        Value::Float(number) => number.to_string(),
        Value::String(text) => {
            let clipped = plimsoll_context::clip(text, plimsoll_context::Bytes(64));
            format!("{clipped:?}")
        }
        Value::Array(_) => "a list".to_owned(),
        Value::Table(_) => "a table".to_owned(),
        other => other.to_string(),
    }
}

/// Returns a text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

/// The first byte of each line of a text.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(ends.map(|(at, _)| at + 1));
        Self(starts.collect())
    }

    /// Returns the line of a byte, from 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|begin| *begin <= byte).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_knows_its_line() {
        let text =
            "a = 1\n\n[b]\nc = [\n  1,\n  2,\n]\n[[d]]\ne = 0x10\n[[d]]\nf = 1_000\nb.c = 1\n";
        let document = Document::parse(text).unwrap();
        let entries = document.entries();
        let lines: Vec<_> = entries
            .iter()
            .map(|(key, given)| (*key, given.line))
            .collect();
        assert_eq!(lines, [("a", 1), ("b", 3), ("d", 8)]);
        let items = entries[2].1.items().unwrap();
        assert_eq!(items[1].line, 10);
        let second = items[1].entries().unwrap();
        assert_eq!(
            (second[0].1.line, second[0].1.value),
            (11, &Value::Integer(1_000))
        );
        let first = items[0].entries().unwrap();
        assert_eq!(first[0].1.value, &Value::Integer(16));
    }

    #[test]
    fn every_mistake_in_the_form_is_said() {
        let faults = Document::parse("a = \nb = 1\nb = 2\n[c\n").unwrap_err().0;
        let mut lines: Vec<Option<usize>> = faults.iter().map(|fault| fault.line).collect();
        lines.sort();
        assert_eq!(lines, [Some(1), Some(3), Some(4)], "{faults:?}");
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
