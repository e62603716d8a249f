//! Parses YAML with the line of each key. Aliases (`*name`) are not followed, because a few lines
//! of them can expand to a file of any size.

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::TScalarStyle;

use super::super::document::{Node, Table, TableEntry, WrittenValue};
use super::super::fault::{ConfigFault, Faults};
use super::MAX_DEPTH;

/// An incomplete list or table.
enum OpenNode {
    List(Vec<Node>),
    /// With the key that waits for its value.
    Table(Table, Option<(String, usize)>),
}

/// Parses the first document of a text. Returns `None` if it is not a table.
pub(super) fn read(text: &str) -> Result<Option<Table>, Faults> {
    let fault = |line: usize, text: String| {
        let line = Some(line);
        Faults(vec![ConfigFault { line, text }])
    };
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<(OpenNode, usize)> = Vec::new();
    loop {
        let (event, mark) = parser.next_token().map_err(|error| {
            fault(
                error.marker().line(),
                format!("this is no YAML: {}", error.info()),
            )
        })?;
        let line = mark.line();
        let value = match event {
            Event::SequenceStart(..) | Event::MappingStart(..) if open.len() == MAX_DEPTH => {
                return Err(fault(
                    line,
                    format!("tables stand in each other more than {MAX_DEPTH} deep"),
                ));
            }
            Event::SequenceStart(..) => {
                open.push((OpenNode::List(Vec::new()), line));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((OpenNode::Table(Table::default(), None), line));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((OpenNode::List(nodes), line)) => Some((line, WrittenValue::List(nodes))),
                Some((OpenNode::Table(table, _), _)) if open.is_empty() => return Ok(Some(table)),
                Some((OpenNode::Table(table, _), line)) => Some((line, WrittenValue::Table(table))),
                None => None,
            },
            Event::Scalar(text, style, ..) => {
                Some((line, scalar(text, style == TScalarStyle::Plain)))
            }
            Event::Alias(_) => Some((line, WrittenValue::Code)),
            Event::StreamEnd => return Ok(None),
            _ => None,
        };
        if let Some((line, value)) = value {
            put(&mut open, line, value);
        }
    }
}

fn put(open: &mut [(OpenNode, usize)], line: usize, value: WrittenValue) {
    let is_nothing = value == WrittenValue::Text(String::new());
    match open.last_mut() {
        Some((OpenNode::List(nodes), _)) => nodes.push(Node { line, value }),
        Some((OpenNode::Table(table, waiting), _)) => match waiting.take() {
            Some(_) if is_nothing => {}
            Some((key, at)) => table.0.push(TableEntry {
                key,
                line: at,
                node: Node { line, value },
            }),
            None => {
                let key = match value {
                    WrittenValue::Text(text) => text,
                    other => other.to_string(),
                };
                *waiting = Some((key, line));
            }
        },
        None => {}
    }
}

fn scalar(text: String, is_plain: bool) -> WrittenValue {
    match text.as_str() {
        _ if !is_plain => WrittenValue::Text(text),
        "true" | "True" | "TRUE" => WrittenValue::Flag(true),
        "false" | "False" | "FALSE" => WrittenValue::Flag(false),
        "~" | "null" | "Null" | "NULL" => WrittenValue::Text(String::new()),
        plain if plain.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => {
            match (plain.parse(), plain.parse()) {
                (Ok(whole), _) => WrittenValue::Whole(Some(whole)),
                (_, Ok(number)) => WrittenValue::Number(number),
                _ => WrittenValue::Text(text),
            }
        }
        _ => WrittenValue::Text(text),
    }
}
