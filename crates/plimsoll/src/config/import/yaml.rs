//! Parses YAML with the place of each key. Aliases (`*name`) are not followed, because a few lines
//! of them can expand to a file of any size.

use std::str::Chars;

use toml::Value;
use yaml_rust2::parser::{Event, Parser};
use yaml_rust2::scanner::{Marker, TScalarStyle};

use super::super::document::{Data, Located};
use super::super::fault::{Faults, Place};
use super::{MAX_DEPTH, unusable};

/// A fault with its place.
type Fault = (Place, String);

/// Parses the first document of a text.
pub(super) fn read(text: &str, faults: &mut Faults) -> Option<Located> {
    let mut parser = Parser::new_from_str(text);
    let document = loop {
        match next(&mut parser) {
            Ok((Event::StreamStart | Event::DocumentStart | Event::Nothing, _)) => {}
            Ok((event, place)) => break node(&mut parser, event, place, 0),
            Err(fault) => break Err(fault),
        }
    };
    document
        .map_err(|(place, text)| faults.push(place, text))
        .ok()
}

fn next(parser: &mut Parser<Chars<'_>>) -> Result<(Event, Place), Fault> {
    let place = |mark: &Marker| Place {
        line: mark.line(),
        column: mark.col() + 1,
    };
    match parser.next_token() {
        Ok((event, mark)) => Ok((event, place(&mark))),
        Err(error) => Err((
            place(error.marker()),
            format!("this is no YAML: {}", error.info()),
        )),
    }
}

/// Reads the value that begins with an event.
fn node(
    parser: &mut Parser<Chars<'_>>,
    event: Event,
    place: Place,
    depth: usize,
) -> Result<Located, Fault> {
    if depth > MAX_DEPTH {
        let text = format!("tables stand in each other more than {MAX_DEPTH} deep");
        return Err((place, text));
    }
    let data = match event {
        Event::Scalar(text, style, ..) => Data::Plain(scalar(text, style == TScalarStyle::Plain)),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match next(parser)? {
                    (Event::SequenceEnd, _) => break Data::List(items),
                    (event, place) => items.push(node(parser, event, place, depth + 1)?),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut entries = Vec::new();
            loop {
                let (event, place) = next(parser)?;
                if event == Event::MappingEnd {
                    break Data::Table(entries);
                }
                let key = node(parser, event, place, depth + 1)?;
                let key = match key.data {
                    Data::Plain(Value::String(text)) => text,
                    _ => key.describe(),
                };
                let (event, at) = next(parser)?;
                let value = node(parser, event, at, depth + 1)?;
                // Nothing is no value.
                if value.data != Data::Plain(String::new().into()) {
                    entries.push((key, Located { place, ..value }));
                }
            }
        }
        _ => Data::Plain(unusable()),
    };
    Ok(Located { place, data })
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
