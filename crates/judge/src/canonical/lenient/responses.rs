//! One item of Responses. Not its ids, which it shares with others.

use super::part::{Voice, Wire, content};
use super::{Notes, arguments, id, name, note, object, quoted, text};

/// The item as the wire has it; `None` where it is that already.
pub(in crate::canonical) fn item(raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
    let item = object(raw)?;
    let mut changes: Vec<(&str, Option<String>)> = Vec::new();
    let kind = text(item.get("type"));
    match kind.as_deref() {
        // A result in the words of Chat Completions.
        None | Some("message") if item.get("role") == Some("\"tool\"") => {
            note(notes, place, "wrote it as the output of a call");
            let call = item.get("tool_call_id").or(item.get("call_id"));
            let output = item.get("content").or(item.get("output"));
            let new = super::RawObject::default().with(&[
                ("type", Some(quoted("function_call_output"))), // tidy:allow(function call)
                ("call_id", call.map(str::to_owned)),
                ("output", Some(output.unwrap_or("null").to_owned())),
            ]);
            return Some(self::item(&new, place, notes).unwrap_or(new));
        }
        None | Some("message") if item.get("role").is_some() => {
            said(&item, "content", place, notes, &mut changes);
        }
        Some("function_call") => called(&item, "arguments", place, notes, &mut changes), // tidy:allow(function call)
        Some("custom_tool_call") => called(&item, "input", place, notes, &mut changes),
        Some("function_call_output" | "custom_tool_call_output") => {
            // tidy:allow(function call)
            said(&item, "output", place, notes, &mut changes);
            let new = id(item.get("call_id"), &format!("{place}.call_id"), notes);
            changes.extend(new.map(|new| ("call_id", Some(new))));
        }
        _ => {}
    }
    (!changes.is_empty()).then(|| item.with(&changes))
}

type Changes<'c> = Vec<(&'c str, Option<String>)>;

/// A content that may not be null.
fn said<'c>(
    item: &super::RawObject<'_>,
    key: &'c str,
    place: &str,
    notes: &mut Notes,
    changes: &mut Changes<'c>,
) {
    let place = format!("{place}.{key}");
    match item.get(key) {
        None | Some("null") => {
            note(notes, place, "put in an empty text: there was none");
            changes.push((key, Some(quoted(""))));
        }
        Some(raw) => {
            let voice = match key {
                "output" => Voice::Tool,
                _ => Voice::of(item.get("role")),
            };
            let new = content(raw, &place, (Wire::Responses, voice), notes);
            changes.extend(new.map(|new| (key, Some(new))));
        }
    }
}

fn called<'c>(
    item: &super::RawObject<'_>,
    key: &'c str,
    place: &str,
    notes: &mut Notes,
    changes: &mut Changes<'c>,
) {
    let new = id(item.get("call_id"), &format!("{place}.call_id"), notes);
    changes.extend(new.map(|new| ("call_id", Some(new))));
    let new = name(item.get("name"), &format!("{place}.name"), notes);
    changes.extend(new.map(|new| ("name", Some(new))));
    let new = arguments(item.get(key), &format!("{place}.{key}"), notes);
    changes.extend(new.map(|new| (key, Some(new))));
}
