//! Parses YAML with the line of each key. Aliases (`*name`) are not followed, because a few lines
//! of them can expand to a file of any size.

use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::TScalarStyle;

use super::super::document::{Entry, Node, Table, Written};
use super::super::fault::{Fault, Faults};
use super::MAX_DEPTH;

/// An incomplete list or table.
enum Open {
    List(Vec<Node>),
    /// With the key that waits for its value.
    Table(Table, Option<(String, usize)>),
}

/// Parses the first document of a text. Returns `None` if it is not a table.
pub(super) fn read(text: &str) -> Result<Option<Table>, Faults> {
    let fault = |line: usize, text: String| {
        let line = Some(line);
        Faults(vec![Fault { line, text }])
    };
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<(Open, usize)> = Vec::new();
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
                open.push((Open::List(Vec::new()), line));
                continue;
            }
            Event::MappingStart(..) => {
                open.push((Open::Table(Table::default(), None), line));
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some((Open::List(nodes), line)) => Some((line, Written::List(nodes))),
                Some((Open::Table(table, _), _)) if open.is_empty() => return Ok(Some(table)),
                Some((Open::Table(table, _), line)) => Some((line, Written::Table(table))),
                None => None,
            },
            Event::Scalar(text, style, ..) => {
                Some((line, scalar(text, style == TScalarStyle::Plain)))
            }
            Event::Alias(_) => Some((line, Written::Code)),
            Event::StreamEnd => return Ok(None),
            _ => None,
        };
        if let Some((line, value)) = value {
            put(&mut open, line, value);
        }
    }
}

fn put(open: &mut [(Open, usize)], line: usize, value: Written) {
    let is_nothing = value == Written::Text(String::new());
    match open.last_mut() {
        Some((Open::List(nodes), _)) => nodes.push(Node { line, value }),
        Some((Open::Table(table, waiting), _)) => match waiting.take() {
            Some(_) if is_nothing => {}
            Some((key, at)) => table.0.push(Entry {
                key,
                line: at,
                node: Node { line, value },
            }),
            None => {
                let key = match value {
                    Written::Text(text) => text,
                    other => other.to_string(),
                };
                *waiting = Some((key, line));
            }
        },
        None => {}
    }
}

fn scalar(text: String, is_plain: bool) -> Written {
    match text.as_str() {
        _ if !is_plain => Written::Text(text),
        "true" | "True" | "TRUE" => Written::Flag(true),
        "false" | "False" | "FALSE" => Written::Flag(false),
        "~" | "null" | "Null" | "NULL" => Written::Text(String::new()),
        plain if plain.starts_with(|c: char| c.is_ascii_digit() || c == '-' || c == '.') => {
            match (plain.parse(), plain.parse()) {
                (Ok(whole), _) => Written::Whole(Some(whole)),
                (_, Ok(number)) => Written::Number(number),
                _ => Written::Text(text),
            }
        }
        _ => Written::Text(text),
    }
}
