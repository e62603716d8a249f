//! Contents: a text, or a list of parts. Knows the parts of three wires by their kinds; what is in
//! them is read elsewhere.

use serde_json::Value;

use super::{Notes, is_said, list, note, object, quoted, text};

/// Whose content it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Responses,
    Messages,
}

/// What becomes of a part.
enum Part {
    Same,
    New(String),
    Gone,
}

/// A content as the wire has it; `None` where it is that already.
pub(super) fn content(raw: &str, place: &str, wire: Wire, notes: &mut Notes) -> Option<String> {
    if raw == "null" || raw.starts_with('"') {
        return None;
    }
    if let Some(parts) = list(raw) {
        let mut changed = false;
        let mut all: Vec<String> = Vec::with_capacity(parts.len());
        for (index, raw) in parts.into_iter().enumerate() {
            match part(raw, &format!("{place}[{index}]"), wire, notes) {
                Part::Same => all.push(raw.to_owned()),
                Part::New(raw) => {
                    changed = true;
                    all.push(raw);
                }
                Part::Gone => changed = true,
            }
        }
        let empty = all.is_empty();
        return changed.then(|| match empty {
            true => quoted(""),
            false => format!("[{}]", all.join(",")),
        });
    }
    let typed =
        object(raw).filter(|part| text(part.get("type")).or(text(part.get("text"))).is_some());
    if typed.is_some() {
        note(notes, place, "put its one part into a list");
        return Some(match part(raw, place, wire, notes) {
            Part::Same => format!("[{raw}]"),
            Part::New(raw) => format!("[{raw}]"),
            Part::Gone => quoted(""),
        });
    }
    note(notes, place, "wrote it as the text that it has to be");
    Some(quoted(raw))
}

fn part(raw: &str, place: &str, wire: Wire, notes: &mut Notes) -> Part {
    if raw.starts_with('"') {
        return Part::Same;
    }
    if raw == "null" {
        note(notes, place, "left it out: it says nothing");
        return Part::Gone;
    }
    let Some(part) = object(raw) else {
        note(notes, place, "made a part of it, with the text that it was");
        return Part::New(said(raw, wire));
    };
    let kind = text(part.get("type"));
    match kind.as_deref() {
        None if text(part.get("text")).is_some() => {
            note(notes, place, "gave it the type of a text");
            Part::New(part.with(&[("type", Some(quoted(text_kind(wire))))]))
        }
        None if wire == Wire::Chat && is_said(part.get("image_url")) => {
            note(notes, place, "gave it the type of an image");
            Part::New(part.with(&[("type", Some(quoted("image_url")))]))
        }
        None => {
            note(notes, place, "made a part of it, with the text that it was");
            Part::New(said(raw, wire))
        }
        Some("text" | "input_text" | "output_text") => match part.get("text") {
            Some(raw) if raw.starts_with('"') => Part::Same,
            None | Some("null") => {
                note(notes, place, "left it out: it says nothing");
                Part::Gone
            }
            Some(raw) => {
                note(notes, place, "wrote its text as the text that it has to be");
                Part::New(part.with(&[("text", Some(quoted(raw)))]))
            }
        },
        Some("image_url") if wire == Wire::Chat => {
            let image = part.get("image_url").unwrap_or("null");
            let address = object(image).map_or(text(Some(image)), |image| text(image.get("url")));
            match address {
                Some(_) => Part::Same,
                None => {
                    note(notes, place, "left it out: an image without an address");
                    Part::Gone
                }
            }
        }
        Some(kind) if wire == Wire::Responses && !is_known(kind) => {
            of_chat(raw, kind, place, notes)
        }
        Some(_) => Part::Same,
    }
}

/// A part in the words of Chat Completions, or of nobody.
fn of_chat(raw: &str, kind: &str, place: &str, notes: &mut Notes) -> Part {
    let value: Value = serde_json::from_str(raw).unwrap_or_default();
    let of = |key: &str| value.get(key).cloned();
    let new = match kind {
        "image_url" => of("image_url").and_then(|image| {
            let address = image.get("url").unwrap_or(&image).as_str()?.to_owned();
            let detail = image
                .get("detail")
                .and_then(Value::as_str)
                .unwrap_or("auto");
            Some(serde_json::json!({
                "type": "input_image", "image_url": address, "detail": detail
            }))
        }),
        "file" => of("file").and_then(|mut file| {
            file.as_object_mut()?
                .insert("type".into(), "input_file".into());
            Some(file)
        }),
        _ => None,
    };
    match new {
        Some(new) => {
            note(notes, place, format!("wrote `{kind}` as this API has it"));
            Part::New(new.to_string())
        }
        None => {
            note(
                notes,
                place,
                format!("left it out: this API has no part `{kind}`"),
            );
            Part::Gone
        }
    }
}

/// Whether a message of Responses may have a part of that kind.
fn is_known(kind: &str) -> bool {
    kind.starts_with("input_") || kind == "refusal"
}

fn text_kind(wire: Wire) -> &'static str {
    match wire {
        Wire::Responses => "input_text",
        Wire::Chat | Wire::Messages => "text",
    }
}

fn said(text: &str, wire: Wire) -> String {
    format!(
        "{{\"type\":\"{}\",\"text\":{}}}",
        text_kind(wire),
        quoted(text)
    )
}
