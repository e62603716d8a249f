//! Smaller forms of messages: results or texts reduced to head and tail. Stages decide which
//! messages are shortened.

use std::borrow::Cow;

use crate::counter::TokenCounter;
use crate::message::{Message, Part, Source, ToolCall, ToolResult};
use crate::tokens::{Bytes, Tokens};
use crate::truncate::{self, Marker};

/// Shortens the text of a tool result to at most `max` bytes. Returns `None` if it is short enough
/// already or cannot be made smaller.
///
/// Images and files become notes, which count as text. The marker lists the names that the removed
/// text mentions most.
pub(crate) fn result_in_bytes(result: &ToolResult, max: Bytes, marker: &Marker) -> Option<Message> {
    let text = flatten(&result.parts);
    let short = marker
        .with_names(&text, max)
        .shorten_bytes(&text, max)
        .or_else(|| all_as_text(&result.parts, text))?;
    Some(with_text(result, short))
}

/// Shortens a tool result to at most `max` tokens. Returns `None` if it is small enough already or
/// cannot be made smaller.
pub(crate) fn result_in_tokens(
    result: &ToolResult,
    max: Tokens,
    counter: &dyn TokenCounter,
    marker: &Marker,
) -> Option<Message> {
    let text = flatten(&result.parts);
    let room = max.minus(crate::counter::MESSAGE_OVERHEAD);
    let short = marker
        .shorten(&text, room, counter)
        .or_else(|| all_as_text(&result.parts, text))?;
    Some(with_text(result, short))
}

/// Shortens the texts of any message, and the strings in its calls' arguments, to at most `max`
/// tokens if possible. Only the `compact` filter shortens texts of users and models.
pub(crate) fn text_in_tokens(
    message: &Message,
    max: Tokens,
    counter: &dyn TokenCounter,
    marker: &Marker,
) -> Option<Message> {
    let weight = counter.message(message);
    if weight <= max {
        return None;
    }
    if let Message::ToolResult(result) = message {
        return result_in_tokens(result, max, counter, marker);
    }
    let plain = map_parts(message, |part| match part {
        Part::Image(_) | Part::File(_) => Part::text(note(part)),
        other => other.clone(),
    });
    let cuttable: Tokens = match &plain {
        Message::Notice { text } | Message::Summary { text } => counter.text(text),
        other => other
            .parts()
            .iter()
            .map(|part| cut_text(part, counter))
            .sum(),
    };
    // Each text is reduced in proportion to its size; parts that cannot be cut reduce the share of
    // all texts.
    let fixed = counter.message(&plain).minus(cuttable);
    let room = u128::from(max.minus(fixed).0);
    let short = |text: &str| {
        let share = u128::from(counter.text(text).0) * room / u128::from(cuttable.0.max(1));
        truncate::shorten(text, Tokens(u64::try_from(share).ok()?), counter)
    };
    let cut = match &plain {
        Message::Notice { text } => Message::Notice { text: short(text)? },
        Message::Summary { text } => Message::Summary { text: short(text)? },
        other => map_parts(other, |part| match part {
            Part::Text { text } => short(text).map_or_else(|| part.clone(), Part::text),
            Part::ToolCall(call) => short(&call.arguments)
                .filter(|json| is_object(json))
                .map_or_else(
                    || part.clone(),
                    |arguments| {
                        Part::ToolCall(ToolCall {
                            arguments,
                            ..call.clone()
                        })
                    },
                ),
            other => other.clone(),
        }),
    };
    (counter.message(&cut) < weight).then_some(cut)
}

/// Returns the message with other parts. A notice or a summary has no parts and is returned
/// unchanged.
fn map_parts(message: &Message, part: impl Fn(&Part) -> Part) -> Message {
    let parts = message.parts().iter().map(part).collect();
    match message {
        Message::System { .. } => Message::System { parts },
        Message::User { .. } => Message::User { parts },
        Message::Assistant { .. } => Message::Assistant { parts },
        Message::ToolResult(result) => Message::ToolResult(ToolResult {
            call: result.call.clone(),
            parts,
            is_error: result.is_error,
        }),
        Message::Notice { .. } | Message::Summary { .. } => message.clone(),
    }
}

fn cut_text(part: &Part, counter: &dyn TokenCounter) -> Tokens {
    match part {
        Part::Text { text } => counter.text(text),
        Part::ToolCall(call) => counter.text(&call.arguments),
        _ => Tokens::ZERO,
    }
}

fn is_object(json: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(json).is_ok_and(|value| value.is_object())
}

/// Checks whether `to` may replace `now`: it has the same role, the same call and outcome, and the
/// same calls.
pub(crate) fn is_form_of(to: &Message, now: &Message) -> bool {
    match (to, now) {
        (Message::System { .. }, Message::System { .. })
        | (Message::User { .. }, Message::User { .. })
        | (Message::Notice { .. }, Message::Notice { .. })
        | (Message::Summary { .. }, Message::Summary { .. }) => true,
        (Message::Assistant { .. }, Message::Assistant { .. }) => {
            to.calls()
                .map(|call| (&call.id, &call.name))
                .eq(now.calls().map(|call| (&call.id, &call.name)))
                && thinking(to).eq(thinking(now))
        }
        (Message::ToolResult(to), Message::ToolResult(now)) => {
            to.call == now.call && to.is_error == now.is_error
        }
        _ => false,
    }
}

fn thinking(message: &Message) -> impl Iterator<Item = &Part> {
    message
        .parts()
        .iter()
        .filter(|part| matches!(part, Part::Thinking(_)))
}

fn with_text(result: &ToolResult, text: String) -> Message {
    Message::ToolResult(ToolResult {
        call: result.call.clone(),
        parts: vec![Part::text(text)],
        is_error: result.is_error,
    })
}

/// Returns the text if it stands for images or files, since it is then smaller than the parts.
fn all_as_text(parts: &[Part], text: Cow<'_, str>) -> Option<String> {
    let has_media = parts.iter().any(|part| part.as_text().is_none());
    has_media.then(|| text.into_owned())
}

/// Joins all parts to one text. A single text part, as in nearly every result, is not copied,
/// because a plan flattens every old result of the view.
fn flatten(parts: &[Part]) -> Cow<'_, str> {
    if let [Part::Text { text }] = parts {
        return Cow::Borrowed(text);
    }
    let texts: Vec<Cow<'_, str>> = parts
        .iter()
        .map(|part| match part.as_text() {
            Some(text) => Cow::Borrowed(text),
            None => Cow::Owned(note(part)),
        })
        .collect();
    Cow::Owned(texts.join("\n"))
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
