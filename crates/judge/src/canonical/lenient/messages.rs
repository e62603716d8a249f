//! Converts the values of one message of Anthropic Messages.

use super::part::{Author, Wire, content};
use super::{Notes, ObjectConversion, id, list, name, note, object, quoted, text};

/// Converts a message. Returns `None` if nothing has to be converted.
pub(in crate::canonical) fn message(raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
    let message = object(raw)?;
    // A result in the format of Chat Completions.
    if message.get("role") == Some("\"tool\"") {
        note(
            notes,
            place,
            "wrote it as a result in a message of the user's",
        );
        let call = message.get("tool_call_id").or(message.get("tool_use_id"));
        let block = super::RawObject::default().with(&[
            ("type", Some(quoted("tool_result"))),
            ("tool_use_id", call.map(str::to_owned)),
            ("content", message.get("content").map(str::to_owned)),
        ]);
        let new = super::RawObject::default().with(&[
            ("role", Some(quoted("user"))),
            ("content", Some(format!("[{block}]"))),
        ]);
        return Some(self::message(&new, place, notes).unwrap_or(new));
    }
    let raw = message.get("content")?;
    let place = format!("{place}.content");
    let author = (Wire::Messages, Author::of(message.get("role")));
    let converted = content(raw, &place, author, notes);
    let blocks = list(converted.as_deref().unwrap_or(raw));
    let mut changed = false;
    let mut all: Vec<String> = Vec::new();
    for (index, raw) in blocks.into_iter().flatten().enumerate() {
        let new = block(raw, &format!("{place}[{index}]"), notes);
        changed |= new.is_some();
        all.push(new.unwrap_or_else(|| raw.to_owned()));
    }
    let new = if changed {
        format!("[{}]", all.join(","))
    } else {
        converted?
    };
    Some(message.with(&[("content", Some(new))]))
}

/// Converts a call or a result.
fn block(raw: &str, place: &str, notes: &mut Notes) -> Option<String> {
    let block = object(raw)?;
    let mut converted = ObjectConversion::new(&block, place, notes);
    match block.get("type") {
        Some("\"tool_use\"") => {
            converted.value("id", id);
            converted.value("name", name);
            converted.value("input", input);
        }
        Some("\"tool_result\"") => {
            converted.value("tool_use_id", id);
            converted.value("content", |raw, place, notes| {
                content(raw?, place, (Wire::Messages, Author::Tool), notes)
            });
        }
        _ => {}
    }
    converted.end()
}

/// Converts an input that is the text of an object, as in other protocols.
fn input(raw: Option<&str>, place: &str, notes: &mut Notes) -> Option<String> {
    let inner = match raw {
        None | Some("null") => {
            note(notes, place, "put in `{}`: there was no input");
            return Some("{}".to_owned());
        }
        raw => text(raw)?,
    };
    let inner = inner.trim();
    object(inner)?;
    // The whole text is parsed, because invalid numbers or escapes would otherwise be sent.
    serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(inner).ok()?;
    note(notes, place, "took the object out of its text");
    Some(inner.to_owned())
}

/// Returns the system prompt beside the messages as readers expect it, if it differs.
pub(in crate::canonical) fn system(raw: &str, notes: &mut Notes) -> Option<String> {
    content(raw, "system", (Wire::Messages, Author::Heard), notes)
}
