//! Parses YAML with the line of each key. Aliases (`*name`) are not followed, because a few lines
//! of them can expand to a file of any size.

use std::collections::BTreeMap;

use toml::{Table, Value};
use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::TScalarStyle;

use super::super::document::{Document, describe};
use super::super::fault::{ConfigFault, Faults};
use super::{MAX_DEPTH, unusable};

/// An incomplete list or table, with its path.
struct OpenNode {
    path: Vec<String>,
    value: Value,
    /// The key of a table that waits for its value.
    waiting: Option<String>,
}

/// Parses the first document of a text. Returns `None` if it is not a table.
pub(super) fn read(text: &str) -> Result<Option<Document>, Faults> {
    let fault = |line: usize, text: String| {
        let line = Some(line);
        Faults(vec![ConfigFault { line, text }])
    };
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<OpenNode> = Vec::new();
    let mut lines = BTreeMap::new();
    loop {
        let (event, mark) = parser.next_token().map_err(|error| {
            fault(
                error.marker().line(),
                format!("this is no YAML: {}", error.info()),
            )
        })?;
        let value = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == MAX_DEPTH => {
                return Err(fault(
                    mark.line(),
                    format!("tables stand in each other more than {MAX_DEPTH} deep"),
                ));
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                let path = open.last().map(OpenNode::next).unwrap_or_default();
                let value = match event {
                    Event::SequenceStart(..) => Value::Array(Vec::new()),
                    _ => Value::Table(Table::new()),
                };
                open.push(OpenNode {
                    path,
                    value,
                    waiting: None,
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop().map(|node| node.value) {
                Some(Value::Table(table)) if open.is_empty() => {
                    return Ok(Some(Document::new(table, lines)));
                }
                value => value,
            },
            Event::Scalar(text, style, ..) => Some(scalar(text, style == TScalarStyle::Plain)),
            Event::Alias(_) => Some(unusable()),
            Event::StreamEnd => return Ok(None),
            _ => None,
        };
        if let (Some(value), Some(node)) = (value, open.last_mut()) {
            node.put(value, mark.line(), &mut lines);
        }
    }
}

impl OpenNode {
    /// Returns the path of the next value.
    fn next(&self) -> Vec<String> {
        let name = match &self.value {
            Value::Array(items) => items.len().to_string(),
            _ => self.waiting.clone().unwrap_or_default(),
        };
        self.path.iter().cloned().chain([name]).collect()
    }

    fn put(&mut self, value: Value, line: usize, lines: &mut BTreeMap<Vec<String>, usize>) {
        let path = self.next();
        match (&mut self.value, self.waiting.take()) {
            (Value::Array(items), _) => {
                lines.entry(path).or_insert(line);
                items.push(value);
            }
            // Nothing is no value.
            (Value::Table(_), Some(_)) if value.as_str() == Some("") => {}
            (Value::Table(table), Some(key)) => _ = table.insert(key, value),
            (Value::Table(_), None) => {
                let key = match value {
                    Value::String(text) => text,
                    other => describe(&other),
                };
                self.waiting = Some(key);
                lines.insert(self.next(), line);
            }
            _ => {}
        }
    }
}

fn scalar(text: String, is_plain: bool) -> Value {
    match text.as_str() {
        _ if !is_plain => Value::String(text),
        "true" | "True" | "TRUE" => Value::Boolean(true),
        "false" | "False" | "FALSE" => Value::Boolean(false),
        "~" | "null" | "Null" | "NULL" => Value::String(String::new()),
        plain if plain.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => {
            match (plain.parse(), plain.parse()) {
                (Ok(whole), _) => Value::Integer(whole),
                (_, Ok(number)) => Value::Float(number),
                _ => Value::String(text),
            }
        }
        _ => Value::String(text),
    }
}
