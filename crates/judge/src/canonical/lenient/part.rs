//! Converts contents: a text, or a list of parts. Recognizes the kinds of parts of three protocols.

use serde_json::Value;

use super::{Notes, RawObject, is_set, list, note, object, quoted, text};

/// The protocol of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    Chat,
    Responses,
    Messages,
}

/// The author of the content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    /// A user, or the author of the system prompt.
    Heard,
    Model,
    /// A tool. Its output may be any JSON.
    Tool,
}

impl Author {
    /// Returns the author for the role of a message.
    pub(super) fn of(role: Option<&str>) -> Self {
        match role {
            Some("\"assistant\"") => Self::Model,
            Some("\"tool\"" | "\"function\"") => Self::Tool,
            _ => Self::Heard,
        }
    }
}

/// The result of converting a part.
enum PartConversion {
    Same,
    New(String),
    Gone,
}

/// Converts a content to the type that the protocol expects. Returns `None` if it has this type
/// already.
pub(super) fn content(
    raw: &str,
    place: &str,
    (wire, voice): (Wire, Author),
    notes: &mut Notes,
) -> Option<String> {
    if raw == "null" || raw.starts_with('"') {
        return None;
    }
    if let Some(parts) = list(raw) {
        let mut changed = false;
        let mut all: Vec<String> = Vec::with_capacity(parts.len());
        for (index, raw) in parts.into_iter().enumerate() {
            match part(raw, &format!("{place}[{index}]"), (wire, voice), notes) {
                PartConversion::Same => all.push(raw.to_owned()),
                PartConversion::New(raw) => {
                    changed = true;
                    all.push(raw);
                }
                PartConversion::Gone => changed = true,
            }
        }
        let empty = all.is_empty();
        return changed.then(|| {
            if empty {
                quoted("")
            } else {
                format!("[{}]", all.join(","))
            }
        });
    }
    let is_part = object(raw).is_some_and(|part| match text(part.get("type")) {
        Some(kind) => is_known(&part, &kind, (wire, voice)) || is_elsewhere(&part, &kind, voice),
        None => is_text(part.get("text")),
    });
    if is_part {
        note(notes, place, "put its one part into a list");
        return Some(match part(raw, place, (wire, voice), notes) {
            PartConversion::Same => format!("[{raw}]"),
            PartConversion::New(raw) => format!("[{raw}]"),
            PartConversion::Gone => quoted(""),
        });
    }
    note(notes, place, "wrote it as the text that it has to be");
    Some(quoted(raw))
}

fn part(
    raw: &str,
    place: &str,
    (wire, voice): (Wire, Author),
    notes: &mut Notes,
) -> PartConversion {
    if raw.starts_with('"') {
        return PartConversion::Same;
    }
    if raw == "null" {
        note(notes, place, "left it out: it says nothing");
        return PartConversion::Gone;
    }
    let as_text = |notes: &mut Notes| {
        note(notes, place, "made a part of it, with the text that it was");
        PartConversion::New(text_part(raw, wire, voice))
    };
    let Some(part) = object(raw) else {
        return as_text(notes);
    };
    let kind = text(part.get("type"));
    match kind.as_deref() {
        None if is_text(part.get("text")) => {
            note(notes, place, "gave it the type of a text");
            let kind = quoted(text_kind(wire, voice));
            PartConversion::New(part.with(&[("type", Some(kind))]))
        }
        None if wire == Wire::Chat && is_set(part.get("image_url")) => {
            note(notes, place, "gave it the type of an image");
            PartConversion::New(part.with(&[("type", Some(quoted("image_url")))]))
        }
        None => as_text(notes),
        Some("text" | "input_text" | "output_text") => match part.get("text") {
            Some(raw) if raw.starts_with('"') => PartConversion::Same,
            None | Some("null") if says_more(&part) => as_text(notes),
            None | Some("null") => {
                note(notes, place, "left it out: it says nothing");
                PartConversion::Gone
            }
            Some(raw) => {
                note(notes, place, "wrote its text as the text that it has to be");
                PartConversion::New(part.with(&[("text", Some(quoted(raw)))]))
            }
        },
        Some("image_url")
            if wire == Wire::Chat && (voice != Author::Tool || is_set(part.get("image_url"))) =>
        {
            let image = part.get("image_url").unwrap_or("null");
            let address = object(image).map_or(text(Some(image)), |image| text(image.get("url")));
            match address {
                Some(_) => PartConversion::Same,
                None => {
                    note(notes, place, "left it out: an image without an address");
                    PartConversion::Gone
                }
            }
        }
        Some(kind) if is_known(&part, kind, (wire, voice)) => match wire {
            Wire::Responses => of_chat(raw, kind, place, notes).unwrap_or(PartConversion::Same),
            Wire::Chat | Wire::Messages => PartConversion::Same,
        },
        Some(kind)
            if is_elsewhere(&part, kind, voice)
                && (wire == Wire::Responses || voice == Author::Tool) =>
        {
            let done = format!("left it out: this API has no such part `{kind}`");
            note(notes, place, done);
            PartConversion::Gone
        }
        // Servers may know more kinds of message parts than we do.
        Some(_) if wire != Wire::Responses && voice != Author::Tool => PartConversion::Same,
        Some(_) => as_text(notes),
    }
}

/// Converts a part of Chat Completions. Returns `None` for other kinds.
fn of_chat(raw: &str, kind: &str, place: &str, notes: &mut Notes) -> Option<PartConversion> {
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
    }?;
    note(notes, place, format!("wrote `{kind}` as this API has it"));
    Some(PartConversion::New(new.to_string()))
}

/// Returns `true` if the protocol knows the part, or if it is a part of Chat Completions with another
/// name in Responses.
///
/// The output of a tool may have a known type by accident, so the fields are checked, too.
fn is_known(part: &RawObject<'_>, kind: &str, (wire, voice): (Wire, Author)) -> bool {
    let holds = |key: &str| object(part.get(key).unwrap_or_default()).is_some();
    match (wire, kind) {
        (_, "text" | "input_text" | "output_text") => true,
        (Wire::Chat | Wire::Responses, "refusal") if voice != Author::Tool => {
            is_text(part.get("refusal"))
        }
        (Wire::Chat | Wire::Responses, "image_url") => {
            let image = part.get("image_url");
            let image = image
                .and_then(object)
                .map_or(text(image), |image| text(image.get("url")));
            image.is_some()
        }
        (Wire::Chat | Wire::Responses, "file") => holds("file"),
        (Wire::Chat, "input_audio" | "audio" | "video_url") => holds(kind),
        (Wire::Responses, kind) => kind.starts_with("input_"),
        (Wire::Messages, "image" | "document") => holds("source"),
        (Wire::Messages, "search_result") => is_set(part.get("source")),
        (Wire::Messages, "tool_reference") => is_set(part.get("tool_name")),
        // A result must not contain calls, results or thinking.
        (Wire::Messages, _) if voice == Author::Tool => false,
        (Wire::Messages, "container_upload") => is_set(part.get("file_id")),
        (Wire::Messages, "tool_use" | "tool_result" | "compaction") => true,
        (Wire::Messages, "thinking" | "redacted_thinking") => true,
        (Wire::Messages, kind) => kind.ends_with("_tool_use") || kind.ends_with("_tool_result"),
        _ => false,
    }
}

/// Returns `true` for a part of another protocol that is not text: binary data, thinking or tool calls.
///
/// Written as text, binary data would cost many tokens, and thinking would become visible.
fn is_elsewhere(part: &RawObject<'_>, kind: &str, voice: Author) -> bool {
    let at = |key: &str| part.get(key).and_then(object);
    match kind {
        "thinking" | "redacted_thinking" | "reasoning" | "tool_use" | "tool_call" => {
            voice == Author::Model
        }
        "image" if is_text(part.get("data")) => true,
        "image" | "document" => at("source").is_some(),
        "audio" if is_text(part.get("data")) => true,
        "input_audio" | "audio" | "file" | "video_url" => at(kind).is_some(),
        "image_url" | "input_image" => is_set(part.get("image_url")),
        "input_file" => ["file_data", "file_id", "file_url"]
            .iter()
            .any(|key| is_text(part.get(key))),
        "resource" => at("resource").is_some_and(|resource| is_text(resource.get("blob"))),
        _ => false,
    }
}

/// Returns `true` if a text part without text has content under another key.
fn says_more(part: &RawObject<'_>) -> bool {
    let silent = [
        "type",
        "text",
        "id",
        "annotations",
        "citations",
        "logprobs",
        "cache_control",
    ];
    let rest = part.with(&silent.map(|key| (key, None)));
    let rest: Value = serde_json::from_str(&rest).unwrap_or_default();
    let mut rest = rest.as_object().into_iter().flatten();
    rest.any(|(_, value)| !value.is_null())
}

fn is_text(raw: Option<&str>) -> bool {
    raw.is_some_and(|raw| raw.starts_with('"'))
}

fn text_kind(wire: Wire, voice: Author) -> &'static str {
    match (wire, voice) {
        (Wire::Responses, Author::Model) => "output_text",
        (Wire::Responses, _) => "input_text",
        (Wire::Chat | Wire::Messages, _) => "text",
    }
}

fn text_part(text: &str, wire: Wire, voice: Author) -> String {
    format!(
        "{{\"type\":\"{}\",\"text\":{}}}",
        text_kind(wire, voice),
        quoted(text)
    )
}
