//! Lighter forms of messages: a result or a text reduced to head and tail. Not a decision which
//! messages; that is a stage.

use std::borrow::Cow;

use crate::counter::TokenCounter;
use crate::message::{Message, Part, Source, ToolCall, ToolResult};
use crate::tokens::{Bytes, Tokens};
use crate::truncate::{self, Marker};

/// A tool result whose text has at most `max` bytes; `None` where it has no more already or
/// cannot be made smaller. Images and files become notes, which count as text. The marker lists
/// the names that the removed text mentions most.
pub(crate) fn result_in_bytes(result: &ToolResult, max: Bytes, marker: &Marker) -> Option<Message> {
    let text = flatten(&result.parts);
    let short = marker
        .with_names(&text, max)
        .shorten_bytes(&text, max)
        .or_else(|| all_as_text(&result.parts, text))?;
    Some(with_text(result, short))
}

/// A tool result that weighs at most `max`; `None` where it does already or cannot.
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

/// Any message with its texts, and the strings in its calls' arguments, cut so that it weighs
/// at most `max` where they can be; only the `compact` filter does this to what a person or a
/// model wrote.
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
    // Each text gives in proportion to its weight; what cannot be cut is paid for by all.
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

/// The same message of other parts; a notice or a summary has none.
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

/// Whether `to` may stand for `now`: the same role, the same call and outcome, the same calls.
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

/// The text itself where it stands for images or files too, which makes it a lighter form.
fn all_as_text(parts: &[Part], text: Cow<'_, str>) -> Option<String> {
    let has_media = parts.iter().any(|part| part.as_text().is_none());
    has_media.then(|| text.into_owned())
}

/// All parts as one text; not copied where there is one, as in nearly every result, for a plan asks
/// this of each old result of the view.
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
