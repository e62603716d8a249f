//! [`Node`]: a TOML text as a tree with the line of every key. The meaning of keys is defined
//! elsewhere.

use std::fmt;

use toml::de::{DeTable, DeValue};

use super::fault::{ConfigFault, Faults};

/// A value with its first line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    pub(crate) line: usize,
    pub(crate) value: WrittenValue,
}

/// A value as written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WrittenValue {
    Flag(bool),
    /// A whole number; `None` if it exceeds the range of TOML.
    Whole(Option<i64>),
    Number(f64),
    Text(String),
    /// A date or a time. No setting has this type.
    Date(String),
    /// A value that no setting takes, in a file that is [imported](super::import).
    Code,
    List(Vec<Node>),
    Table(Table),
}

/// A table: its keys in their order in the text.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Table(pub(crate) Vec<TableEntry>);

/// A key of a table.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TableEntry {
    pub(crate) key: String,
    pub(crate) line: usize,
    pub(crate) node: Node,
}

impl Table {
    /// Removes and returns the entry of this name.
    pub(crate) fn take(&mut self, name: &str) -> Option<TableEntry> {
        let at = self.0.iter().position(|entry| entry.key == name)?;
        Some(self.0.remove(at))
    }
}

/// Parses a text. Reports every syntax error, not only the first.
pub(crate) fn parse(text: &str) -> Result<Table, Faults> {
    let lines = LineStarts::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(table_of(table.get_ref(), &lines));
    }
    let faults = errors.iter().map(|error| ConfigFault {
        line: error.span().map(|span| lines.at(span.start)),
        text: format!("this is no TOML: {}", error.message()),
    });
    Err(Faults(faults.collect()))
}

/// Parses one value of `--set` or of the environment. Invalid TOML is treated as a text.
pub(crate) fn parse_value(text: &str) -> Node {
    let line = 1;
    let text_node = || Node {
        line,
        value: WrittenValue::Text(text.to_owned()),
    };
    let trimmed = text.trim();
    match DeValue::parse(trimmed) {
        Ok(value) => node_of(value.get_ref(), line, &LineStarts::of("")),
        Err(_) => text_node(),
    }
}

/// The first byte of each line of a text.
struct LineStarts(Vec<usize>);

impl LineStarts {
    fn of(text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(
            std::iter::once(0)
                .chain(ends.map(|(at, _)| at + 1))
                .collect(),
        )
    }

    /// Returns the line of a byte, from 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|begin| *begin <= byte).max(1)
    }
}

fn table_of(table: &DeTable<'_>, lines: &LineStarts) -> Table {
    let entries = table.iter().map(|(key, value)| {
        let line = lines.at(key.span().start);
        // The line of a table is that of its header; any other value may begin further down.
        let at = match value.get_ref() {
            DeValue::Table(_) => line,
            _ => lines.at(value.span().start),
        };
        TableEntry {
            key: key.get_ref().to_string(),
            line,
            node: node_of(value.get_ref(), at, lines),
        }
    });
    let mut entries: Vec<TableEntry> = entries.collect();
    // The parser sorts by name; faults are reported from the top of the file.
    entries.sort_by_key(|entry| entry.line);
    Table(entries)
}

fn node_of(value: &DeValue<'_>, line: usize, lines: &LineStarts) -> Node {
    let value = match value {
        DeValue::String(text) => WrittenValue::Text(text.to_string()),
        DeValue::Integer(whole) => {
            WrittenValue::Whole(i64::from_str_radix(whole.as_str(), whole.radix()).ok())
        }
        DeValue::Float(number) => {
            // Invalid numbers have been refused by the TOML parser.
            WrittenValue::Number(number.as_str().parse().unwrap_or(f64::NAN))
        }
        DeValue::Boolean(flag) => WrittenValue::Flag(*flag),
        DeValue::Datetime(date) => WrittenValue::Date(date.to_string()),
        DeValue::Array(list) => {
            let nodes = list.iter().map(|item| {
                let line = lines.at(item.span().start).max(line);
                node_of(item.get_ref(), line, lines)
            });
            WrittenValue::List(nodes.collect())
        }
        DeValue::Table(table) => WrittenValue::Table(table_of(table, lines)),
    };
    Node { line, value }
}

impl fmt::Display for WrittenValue {
    /// Describes the given value in a few words, for a fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => flag.fmt(f),
            Self::Whole(Some(whole)) => whole.fmt(f),
            Self::Whole(None) => f.write_str("a number that is too large"),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => {
                write!(
                    f,
                    "{:?}",
                    plimsoll_context::clip(text, plimsoll_context::Bytes(64))
                )
            }
            Self::Date(date) => date.fmt(f),
            Self::Code => f.write_str("an expression"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_knows_its_line() {
        let text =
            "a = 1\n\n[b]\nc = [\n  1,\n  2,\n]\n[[d]]\ne = 0x10\n[[d]]\nf = 1_000\nb.c = 1\n";
        let table = parse(text).unwrap();
        let lines: Vec<(String, usize)> = table
            .0
            .iter()
            .map(|entry| (entry.key.clone(), entry.line))
            .collect();
        assert_eq!(lines, [("a".into(), 1), ("b".into(), 3), ("d".into(), 8)]);
        let WrittenValue::List(items) = &table.0[2].node.value else {
            panic!("{table:?}");
        };
        assert_eq!(items[1].line, 10);
        let WrittenValue::Table(second) = &items[1].value else {
            panic!("{items:?}");
        };
        assert_eq!(second.0[0].line, 11);
        assert_eq!(second.0[0].node.value, WrittenValue::Whole(Some(1_000)));
        let WrittenValue::Table(first) = &items[0].value else {
            panic!("{items:?}");
        };
        assert_eq!(first.0[0].node.value, WrittenValue::Whole(Some(16)));
    }

    #[test]
    fn every_mistake_in_the_form_is_said() {
        let faults = parse("a = \nb = 1\nb = 2\n[c\n").unwrap_err().0;
        let mut lines: Vec<Option<usize>> = faults.iter().map(|fault| fault.line).collect();
        lines.sort();
        assert_eq!(lines, [Some(1), Some(3), Some(4)], "{faults:?}");
    }

    #[test]
    fn numbers_without_end_are_numbers() {
        for (text, value) in [
            (
                "99999999999999999999999999999999999999999999",
                WrittenValue::Whole(None),
            ),
            ("-1", WrittenValue::Whole(Some(-1))),
            ("1e400", WrittenValue::Number(f64::INFINITY)),
            ("read", WrittenValue::Text("read".into())),
            ("\"read\"", WrittenValue::Text("read".into())),
            ("", WrittenValue::Text(String::new())),
        ] {
            assert_eq!(parse_value(text).value, value, "{text}");
        }
    }
}
