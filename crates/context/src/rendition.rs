//! Lighter forms of messages: a result or a text reduced to head and tail. Not a decision which
//! messages; that is a stage.

use crate::counter::TokenCounter;
use crate::message::{Message, Part, Source, ToolCall, ToolResult};
use crate::tokens::{Bytes, Tokens};
use crate::truncate;

/// A tool result whose text has at most `max` bytes; `None` where it has no more already or
/// cannot be made smaller. Images and files become notes, which count as text.
pub(crate) fn result_in_bytes(result: &ToolResult, max: Bytes) -> Option<Message> {
    let text = flatten(&result.parts);
    let short =
        truncate::head_tail(&text, max).or_else(|| has_media(&result.parts).then_some(text))?;
    Some(with_text(result, short))
}

/// A tool result that weighs at most `max`; `None` where it does already or cannot.
pub(crate) fn result_in_tokens(
    result: &ToolResult,
    max: Tokens,
    counter: &dyn TokenCounter,
) -> Option<Message> {
    let text = flatten(&result.parts);
    let room = max.minus(crate::counter::MESSAGE_OVERHEAD);
    let short = truncate::shorten(&text, room, counter)
        .or_else(|| has_media(&result.parts).then_some(text))?;
    Some(with_text(result, short))
}

/// Any message with its texts, and the strings in its calls' arguments, cut so that it weighs
/// about `max`; only the `compact` filter does this to what a person or a model wrote.
pub(crate) fn text_in_tokens(
    message: &Message,
    max: Tokens,
    counter: &dyn TokenCounter,
) -> Option<Message> {
    let weight = counter.message(message);
    if weight <= max {
        return None;
    }
    // Each part gives in proportion to its weight.
    let share = |tokens: Tokens| Tokens(tokens.0.saturating_mul(max.0) / weight.0.max(1));
    let cut = |part: &Part| match part {
        Part::Text { text } => {
            let room = share(counter.text(text));
            Part::text(truncate::shorten(text, room, counter).unwrap_or_else(|| text.clone()))
        }
        Part::ToolCall(call) => {
            let room = share(counter.text(&call.arguments));
            let short = truncate::shorten(&call.arguments, room, counter).filter(|short| {
                serde_json::from_str::<serde_json::Value>(short).is_ok_and(|v| v.is_object())
            });
            Part::ToolCall(ToolCall {
                arguments: short.unwrap_or_else(|| call.arguments.clone()),
                ..call.clone()
            })
        }
        Part::Image(_) | Part::File(_) => Part::text(note(part)),
        other => other.clone(),
    };
    let parts = || message.parts().iter().map(cut).collect();
    let cut = match message {
        Message::System { .. } => Message::System { parts: parts() },
        Message::User { .. } => Message::User { parts: parts() },
        Message::Assistant { .. } => Message::Assistant { parts: parts() },
        Message::ToolResult(result) => return result_in_tokens(result, max, counter),
        Message::Notice { text } => Message::Notice {
            text: truncate::shorten(text, share(counter.text(text)), counter)?,
        },
        Message::Summary { text } => Message::Summary {
            text: truncate::shorten(text, share(counter.text(text)), counter)?,
        },
    };
    (counter.message(&cut) < weight).then_some(cut)
}

fn with_text(result: &ToolResult, text: String) -> Message {
    Message::ToolResult(ToolResult {
        call: result.call.clone(),
        parts: vec![Part::text(text)],
        is_error: result.is_error,
    })
}

fn has_media(parts: &[Part]) -> bool {
    parts.iter().any(|part| part.as_text().is_none())
}

fn flatten(parts: &[Part]) -> String {
    let texts: Vec<String> = parts
        .iter()
        .map(|part| part.as_text().map_or_else(|| note(part), str::to_owned))
        .collect();
    texts.join("\n")
}

fn note(part: &Part) -> String {
    let (what, source) = match part {
        Part::Image(image) => ("image", &image.source),
        Part::File(file) => ("file", &file.source),
        _ => return "[left out]".to_owned(),
    };
    match source {
        Source::Url { url } if url.len() <= 200 => format!("[{what} left out: {url}]"),
        Source::Url { .. } => format!("[{what} left out]"),
        Source::Data { media_type, base64 } => {
            format!(
                "[{what} left out: {media_type}, {} bytes]",
                base64.len() / 4 * 3
            )
        }
    }
}
