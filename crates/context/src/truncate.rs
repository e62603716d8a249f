//! Shortens texts, and messages by their texts: head and tail are kept, and a [`Marker`] between them
//! says exactly how much is missing. All text is shortened here. Stages decide which messages are
//! shortened, and how far.
//!
//! Guarantees of every function for texts, for any text:
//! - a result is within the given bound, and smaller than the text. If that is impossible, there is
//!   no result, and the text must be kept unchanged;
//! - a result is valid UTF-8, and JSON if the text was JSON and the bound allows it;
//! - a text within the bound is unchanged, so shortening is idempotent;
//! - a marker of an earlier cut is merged, so N is the number of bytes missing from the *original*.

mod json;
mod marker;

use std::borrow::Cow;

use crate::counter::{MESSAGE_OVERHEAD, TokenCounter};
use crate::message::{Message, Part, Source, ToolCall, ToolResult};
use crate::tokens::{Bytes, Tokens};

pub use marker::{Marker, NOTE_MAX};

use json::Container;
use marker::{Hole, find_central};

/// Minimum size of head and of tail beside a marker: a few words.
pub const MIN_SIDE: Bytes = Bytes(16);
/// A cut is moved to a line end that is within this fraction of its side.
const NEAR: usize = 8;
/// How often a bound in tokens is approximated in proportion before it is halved. Each try counts
/// its result, so this limits the work to a few times the bound.
const TRIES: u32 = 8;
/// A result that fills this percentage of a bound in tokens is good enough.
const FULL: u64 = 92;

/// Returns the longest prefix of `text` with at most `max` bytes that ends between two characters.
/// It keeps no tail and has no marker, for bounds that must hold in any case.
#[must_use]
pub fn clip(text: &str, max: Bytes) -> &str {
    let max = usize::try_from(max.0).unwrap_or(usize::MAX);
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// Shortens with [`Marker::head_tail`] and the plain marker.
#[must_use]
pub fn head_tail(text: &str, max: Bytes) -> Option<String> {
    Marker::default().head_tail(text, max)
}

/// Shortens with [`Marker::shorten`] and the plain marker.
#[must_use]
pub fn shorten(text: &str, max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
    Marker::default().shorten(text, max, counter)
}

/// Shortens with [`Marker::shorten_bytes`] and the plain marker.
#[must_use]
pub fn shorten_bytes(text: &str, max: Bytes) -> Option<String> {
    Marker::default().shorten_bytes(text, max)
}

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
    let room = max.minus(MESSAGE_OVERHEAD);
    let short = marker
        .shorten(&text, room, counter)
        .or_else(|| all_as_text(&result.parts, text))?;
    Some(with_text(result, short))
}

/// Replaces the whole text of a tool result by the marker.
pub(crate) fn result_as_marker(result: &ToolResult, marker: &Marker) -> Message {
    let text = flatten(&result.parts);
    let bytes = Hole::read(&text).map_or_else(
        || match find_central(&text) {
            Some((range, hole)) => hole.bytes + (text.len() - range.len()) as u64,
            None => text.len() as u64,
        },
        |hole| hole.bytes,
    );
    with_text(result, marker.words(Hole { bytes, items: None }))
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
    let fixed_beside = |text: &str| max.minus(weight.minus(counter.text(text)));
    let cut = match message {
        Message::Notice { text } => Message::Notice {
            text: shorten(text, fixed_beside(text), counter)?,
        },
        Message::Summary { text } => Message::Summary {
            text: shorten(text, fixed_beside(text), counter)?,
        },
        other => parts_in_tokens(other, max, counter),
    };
    (counter.message(&cut) < weight).then_some(cut)
}

/// Shortens the texts of a message, and the arguments of its calls, in proportion to their sizes. Images and
/// files become notes. A part that cannot be made as short keeps its size, and the others become shorter.
fn parts_in_tokens(message: &Message, max: Tokens, counter: &dyn TokenCounter) -> Message {
    let plain = message.parts().iter().map(|part| match part {
        Part::Image(_) | Part::File(_) => Part::text(note(part)),
        other => other.clone(),
    });
    let plain = with_parts(message, plain.collect());
    let whole = counter.message(&plain);
    let weights = plain.parts().iter().map(|part| cut_text(part, counter));
    let mut weights: Vec<Tokens> = weights.collect();
    for _ in 0..TRIES {
        let cuttable: Tokens = weights.iter().copied().sum();
        let room = u128::from(max.minus(whole.minus(cuttable)).0);
        let mut is_short = true;
        let parts = plain.parts().iter().zip(&mut weights);
        let parts = parts.map(|(part, weight)| {
            let share = u128::from(weight.0) * room / u128::from(cuttable.0.max(1));
            let share = Tokens(u64::try_from(share).unwrap_or(u64::MAX));
            if *weight <= share {
                return part.clone();
            }
            let short = short_part(part, share, counter);
            if short.is_none() {
                (*weight, is_short) = (Tokens::ZERO, false);
            }
            short.unwrap_or_else(|| part.clone())
        });
        let parts: Vec<Part> = parts.collect();
        if is_short {
            return with_parts(&plain, parts);
        }
    }
    plain
}

/// Shortens the text of a part, or the arguments of a call, which stay a JSON object.
fn short_part(part: &Part, max: Tokens, counter: &dyn TokenCounter) -> Option<Part> {
    match part {
        Part::Text { text } => shorten(text, max, counter).map(Part::text),
        Part::ToolCall(call) => {
            let arguments = shorten(&call.arguments, max, counter)?;
            is_object(&arguments).then(|| {
                Part::ToolCall(ToolCall {
                    arguments,
                    ..call.clone()
                })
            })
        }
        _ => None,
    }
}

impl Marker {
    /// Returns head and tail of `text` around this marker, at most `max` bytes in all. JSON is
    /// treated as plain lines.
    ///
    /// Returns `None` if the text is within the bound already, or if `max` has no space for the
    /// marker and [`MIN_SIDE`] bytes on each side of it.
    #[must_use]
    pub fn head_tail(&self, text: &str, max: Bytes) -> Option<String> {
        cut(text, usize::try_from(max.0).ok()?, self)
    }

    /// Shortens `text` to at most `max` tokens as counted by `counter`.
    ///
    /// A JSON list or object remains one: long strings in it are shortened to head and tail, and
    /// whole items are removed from its middle. If that is impossible, and of any other text, head and
    /// tail are kept. Returns `None` if the text is small enough already, or cannot be shortened enough.
    #[must_use]
    pub fn shorten(&self, text: &str, max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
        let total = counter.text(text);
        let json = Container::read(text).and_then(|json| {
            approach(text, total, max, counter, |bytes| json.shorten(bytes, self))
        });
        json.or_else(|| approach(text, total, max, counter, |bytes| cut(text, bytes, self)))
    }

    /// Shortens like [`Marker::shorten`], to at most `max` bytes.
    #[must_use]
    pub fn shorten_bytes(&self, text: &str, max: Bytes) -> Option<String> {
        let bytes = usize::try_from(max.0).ok()?;
        if text.len() <= bytes {
            return None;
        }
        Container::read(text)
            .and_then(|json| json.shorten(bytes, self))
            .or_else(|| self.head_tail(text, max))
    }
}

/// Returns the end of a head of at most `max` bytes.
fn head_end(text: &str, max: usize) -> usize {
    let end = text.floor_char_boundary(max);
    let near = text.floor_char_boundary(end - end / NEAR);
    let line = text.get(near..end).and_then(|near| near.rfind('\n'));
    line.map_or(end, |line| near + line)
}

/// Returns the beginning of a tail of at most `max` bytes.
fn tail_start(text: &str, max: usize) -> usize {
    let start = text.ceil_char_boundary(text.len().saturating_sub(max));
    let near = text.ceil_char_boundary(start + (text.len() - start) / NEAR);
    let line = text.get(start..near).and_then(|near| near.find('\n'));
    line.map_or(start, |line| start + line + 1)
}

/// Returns head, marker and tail. Both sides get half of the available bytes. A side that an
/// earlier cut left shorter is unchanged, so head and tail remain about equal and the next cut
/// recognises the marker.
fn cut(text: &str, max: usize, marker: &Marker) -> Option<String> {
    if text.len() <= max {
        return None;
    }
    let earlier = find_central(text);
    let (front, back, hidden) = match &earlier {
        Some((range, hole)) => (text.get(..range.start)?, text.get(range.end..)?, hole.bytes),
        None => (text, text, 0),
    };
    let shown = text.len() - earlier.as_ref().map_or(0, |(range, _)| range.len());

    // The number is only known after the cut; its largest value has the most digits.
    let most = Hole {
        bytes: hidden + shown as u64,
        items: None,
    };
    let reserve = marker.words(most).len() + 2;
    let side = max.checked_sub(reserve)? / 2;
    if (side as u64) < MIN_SIDE.0 {
        return None;
    }
    let head = if front.len() <= side {
        front
    } else {
        front.get(..head_end(front, side))?
    };
    let tail = if back.len() <= side {
        back
    } else {
        back.get(tail_start(back, side)..)?
    };
    let hole = Hole {
        bytes: hidden + (shown - head.len() - tail.len()) as u64,
        items: None,
    };
    Some([head, "\n", &marker.words(hole), "\n", tail].concat())
}

/// Brings `text`, which has `total` tokens, within `max` tokens: cuts it to a number of bytes in
/// proportion, counts the result, and corrects the proportion.
fn approach(
    text: &str,
    total: Tokens,
    max: Tokens,
    counter: &dyn TokenCounter,
    cut: impl Fn(usize) -> Option<String>,
) -> Option<String> {
    if total <= max {
        return None;
    }
    let scaled = |bytes, by: Tokens, of: Tokens| scaled(bytes, by.0 as usize, of.0 as usize);
    let mut best = None;
    let (mut fits, mut exceeds) = (0, text.len());
    let mut bytes = scaled(text.len(), max, total);
    let mut tries = 0;
    while fits < bytes && bytes < exceeds {
        let Some(short) = cut(bytes) else { break };
        let weight = counter.text(&short);
        tries += 1;
        if weight <= max {
            let full = u128::from(weight.0) * 100 >= u128::from(max.0) * u128::from(FULL);
            // The next try is based on the actual result, which may be smaller than requested.
            let step = scaled(short.len(), max, weight);
            best = Some(short);
            fits = bytes;
            if full || tries >= TRIES {
                break;
            }
            bytes = step.clamp(fits + 1, fits + 1 + (exceeds - fits) / 2);
        } else {
            exceeds = bytes;
            let step = match tries < TRIES {
                // Slightly below the proportion, or the bound would be approached from above.
                true => scaled(bytes, max, weight) * 98 / 100,
                false if best.is_some() => break,
                false => bytes / 2,
            };
            bytes = step.max(fits + (exceeds - fits) / 8);
        }
    }
    best
}

/// Returns the highest level at which the sum of `min(size, level)` is at most `room`.
pub(crate) fn level(mut sizes: Vec<u64>, mut room: u64) -> u64 {
    sizes.sort_unstable();
    let mut left = sizes.len() as u64;
    for size in sizes {
        let even = room / left;
        if size > even {
            return even;
        }
        room -= size;
        left -= 1;
    }
    u64::MAX
}

/// Returns `bytes · by / of`.
fn scaled(bytes: usize, by: usize, of: usize) -> usize {
    let scaled = bytes as u128 * by as u128 / of.max(1) as u128;
    usize::try_from(scaled).unwrap_or(usize::MAX)
}

/// Returns the message with other parts. A notice or a summary has no parts and is returned
/// unchanged.
fn with_parts(message: &Message, parts: Vec<Part>) -> Message {
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

/// Returns the result with a text in place of its parts.
pub(crate) fn with_text(result: &ToolResult, text: String) -> Message {
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

#[cfg(test)]
#[path = "truncate/tests.rs"]
mod tests;
