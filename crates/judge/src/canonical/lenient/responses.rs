//! Converts the values of one item of Responses.

use super::part::{Author, Wire, content};
use super::{Notes, ObjectConversion, arguments, id, name, note, object, quoted, text};

/// Converts an item. Returns `None` if nothing has to be converted.
pub(in crate::canonical) fn item(raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
    let item = object(raw)?;
    let kind = text(item.get("type"));
    let is_message = matches!(kind.as_deref(), None | Some("message"));
    // A result in the format of Chat Completions.
    if is_message && item.get("role") == Some("\"tool\"") {
        note(notes, place, "wrote it as the output of a call");
        let call = item.get("tool_call_id").or(item.get("call_id"));
        let output = item.get("content").or(item.get("output"));
        let new = super::RawObject::default().with(&[
            ("type", Some(quoted("function_call_output"))),
            ("call_id", call.map(str::to_owned)),
            ("output", Some(output.unwrap_or("null").to_owned())),
        ]);
        return Some(self::item(&new, place, notes).unwrap_or(new));
    }
    let mut converted = ObjectConversion::new(&item, place, notes);
    match kind.as_deref() {
        _ if is_message && item.get("role").is_some() => {
            let voice = Author::of(item.get("role"));
            converted.value("content", |raw, place, notes| {
                required_content(raw, voice, place, notes)
            });
        }
        Some("function_call") => called(&mut converted, "arguments"),
        Some("custom_tool_call") => called(&mut converted, "input"),
        Some("function_call_output" | "custom_tool_call_output") => {
            converted.value("output", |raw, place, notes| {
                required_content(raw, Author::Tool, place, notes)
            });
            converted.value("call_id", id);
        }
        _ => {}
    }
    converted.end()
}

/// Converts a content that must not be null.
fn required_content(
    raw: Option<&str>,
    voice: Author,
    place: &str,
    notes: &mut Notes,
) -> Option<String> {
    match raw {
        None | Some("null") => {
            note(notes, place, "put in an empty text: there was none");
            Some(quoted(""))
        }
        Some(raw) => content(raw, place, (Wire::Responses, voice), notes),
    }
}

fn called(converted: &mut ObjectConversion<'_>, taken: &'static str) {
    converted.value("call_id", id);
    converted.value("name", name);
    converted.value(taken, arguments);
}
