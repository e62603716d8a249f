//! Converts the values of one message of Chat Completions.

use super::part::{Author, Wire, content};
use super::{Notes, ObjectConversion, RawObject, id, is_set, list, name, note, object};

/// Converts a message. Returns `None` if nothing has to be converted.
pub(in crate::canonical) fn message(raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
    let message = object(raw)?;
    let author = (Wire::Chat, Author::of(message.get("role")));
    let mut converted = ObjectConversion::new(&message, place, notes);
    converted.value("content", |raw, place, notes| {
        content(raw?, place, author, notes)
    });
    if let Some(tool_calls) = message.get("tool_calls").filter(|calls| *calls != "null") {
        let new = calls(tool_calls, &format!("{place}.tool_calls"), converted.notes);
        converted.changes.extend(new.map(|new| ("tool_calls", new)));
    }
    converted.value("tool_call_id", id);
    converted.end()
}

/// Converts the calls of a message. The inner `Option` is `None` if no call is left.
fn calls(raw: &str, place: &str, notes: &mut Notes) -> Option<Option<String>> {
    if object(raw).is_some() {
        note(notes, place, "put its one call into a list");
        let new = match call(raw, place, notes) {
            Some(call) => call,
            None => Some(raw.to_owned()),
        };
        return Some(new.map(|call| format!("[{call}]")));
    }
    let Some(list) = list(raw) else {
        note(notes, place, "left it out: it is no list of calls");
        return Some(None);
    };
    if list.is_empty() {
        note(notes, place, "left it out: it is an empty list");
        return Some(None);
    }
    let mut changed = false;
    let mut all: Vec<String> = Vec::with_capacity(list.len());
    for (index, raw) in list.into_iter().enumerate() {
        match call(raw, &format!("{place}[{index}]"), notes) {
            None => all.push(raw.to_owned()),
            Some(new) => {
                changed = true;
                all.extend(new);
            }
        }
    }
    changed.then(|| (!all.is_empty()).then(|| format!("[{}]", all.join(","))))
}

/// Converts a call. The inner `Option` is `None` if it calls no tool.
fn call(raw: &str, place: &str, notes: &mut Notes) -> Option<Option<String>> {
    let Some(call) = object(raw) else {
        note(notes, place, "left it out: it calls nothing");
        return Some(None);
    };
    let is_custom = call.get("type") == Some("\"custom\"");
    let (key, taken) = if is_custom {
        ("custom", "input")
    } else {
        ("function", "arguments")
    };
    let mut converted = ObjectConversion::new(&call, place, notes);
    converted.value("id", id);
    match call.get(key).and_then(object) {
        Some(function) => converted.value(key, |_, place, notes| {
            function_of(&function, taken, place, notes)
        }),
        // Some clients write the name and the arguments directly into the call.
        None if is_set(call.get("name")) && !is_set(call.get(key)) => {
            note(
                converted.notes,
                place,
                "put its name and its arguments where they belong",
            );
            let inner = RawObject::default().with(&[
                ("name", call.get("name").map(str::to_owned)),
                ("arguments", call.get("arguments").map(str::to_owned)),
            ]);
            let function = object(&inner);
            let function = function
                .and_then(|function| function_of(&function, "arguments", place, converted.notes));
            converted.changes.extend([
                ("name", None),
                ("arguments", None),
                ("type", Some("\"function\"".to_owned())),
                (key, Some(function.unwrap_or(inner))),
            ]);
        }
        None => {
            note(converted.notes, place, "left it out: it calls nothing");
            return Some(None);
        }
    }
    converted.end().map(Some)
}

/// Converts the name and the arguments of a call.
fn function_of(
    function: &RawObject<'_>,
    taken: &'static str,
    place: &str,
    notes: &mut Notes,
) -> Option<String> {
    let mut converted = ObjectConversion::new(function, place, notes);
    converted.value("name", name);
    converted.value(taken, arguments);
    converted.end()
}

/// Converts arguments to a text. An object is accepted unchanged.
fn arguments(raw: Option<&str>, place: &str, notes: &mut Notes) -> Option<String> {
    match raw {
        None | Some("null") => None,
        Some(raw) if raw.starts_with('{') => None,
        raw => super::arguments(raw, place, notes),
    }
}
