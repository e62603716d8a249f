//! [`extract`]: summarises messages without a model, in the form of `handover`.

use std::borrow::Cow;

use crate::counter::TokenCounter;
use crate::handover::{self, TranscriptEntry};
use crate::message::{File, Image, Message, Part, Source};
use crate::removal_marker::Gap;
use crate::tokens::Tokens;

/// The maximum length of an address or file name in the summary, in bytes.
const NAME_MAX: usize = 120;

/// Returns a summary of `messages`, in their order, without a model: at most `max` tokens by
/// `counter`. Returns `None` if there is nothing to summarise, or if `max` is too small.
///
/// `docs/handover.md` explains its form. The same messages give the same bytes.
#[must_use]
pub fn extract(messages: &[&Message], max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
    with_entries(messages, |entries| {
        handover::handover(entries, max.0, &|text| counter.text(text).0)
    })
}

/// Returns the size of a summary that repeats all user text among `messages`, or at least `enough`
/// if it is larger.
#[must_use]
pub(crate) fn person_tokens(
    messages: &[&Message],
    enough: Tokens,
    counter: &dyn TokenCounter,
) -> Tokens {
    Tokens(with_entries(messages, |entries| {
        handover::person_tokens(entries, enough.0, &|text| counter.text(text).0)
    }))
}

fn with_entries<T>(messages: &[&Message], read: impl FnOnce(&[TranscriptEntry<'_>]) -> T) -> T {
    let texts: Vec<Vec<Cow<'_, str>>> = messages.iter().map(|message| texts(message)).collect();
    let mut entries = Vec::new();
    for (message, texts) in messages.iter().zip(&texts) {
        match message {
            // System messages are never removed from a view.
            Message::System { .. } => {}
            // Hosts add texts of their own beside those of the user.
            Message::User { .. } => {
                entries.extend(texts.iter().map(|text| TranscriptEntry::User(text)));
            }
            Message::Assistant { parts } => entries.extend(parts.iter().filter_map(part)),
            Message::ToolResult(result) => entries.push(TranscriptEntry::ToolResult {
                id: &result.call.0,
                text: texts.first().map_or("", |text| text),
                is_error: result.is_error,
            }),
            Message::Notice { .. } if Gap::of(message).is_some() => {}
            Message::Notice { text } => entries.push(TranscriptEntry::Notice(text)),
            Message::Summary { text } => {
                entries.push(TranscriptEntry::Summary(Gap::split_summary(text).1))
            }
        }
    }
    read(&entries)
}

fn part(part: &Part) -> Option<TranscriptEntry<'_>> {
    match part {
        Part::Text { text } => Some(TranscriptEntry::Assistant(text)),
        Part::ToolCall(call) => Some(TranscriptEntry::ToolCall {
            id: &call.id.0,
            name: &call.name,
            arguments: &call.arguments,
        }),
        Part::Thinking(_) | Part::Image(_) | Part::File(_) | Part::Opaque(_) => None,
    }
}

/// Returns the texts of a user's message, or the whole text of a result.
fn texts(message: &Message) -> Vec<Cow<'_, str>> {
    match message {
        Message::User { parts } => blocks(parts),
        Message::ToolResult(result) => match blocks(&result.parts) {
            blocks if blocks.len() > 1 => vec![Cow::Owned(blocks.join("\n"))],
            blocks => blocks,
        },
        _ => Vec::new(),
    }
}

/// Returns the texts of `parts`, with a note for each part that is no text behind the text before it.
fn blocks(parts: &[Part]) -> Vec<Cow<'_, str>> {
    let mut blocks: Vec<Cow<'_, str>> = Vec::new();
    for part in parts {
        let note = match part {
            Part::Text { text } => {
                blocks.push(Cow::Borrowed(text));
                continue;
            }
            Part::Image(image) => image_note(image),
            Part::File(file) => file_note(file),
            Part::Thinking(_) | Part::ToolCall(_) | Part::Opaque(_) => continue,
        };
        match blocks.last_mut() {
            Some(text) => *text = Cow::Owned(format!("{text}\n{note}")),
            None => blocks.push(Cow::Owned(note)),
        }
    }
    blocks
}

fn image_note(image: &Image) -> String {
    let size = image
        .size
        .map(|(width, height)| format!(" of {width} × {height}"));
    match &image.source {
        Source::Url { url } => format!("[image {}]", short(url)),
        Source::Data { .. } => format!("[image{}]", size.unwrap_or_default()),
    }
}

fn file_note(file: &File) -> String {
    match (&file.name, &file.source) {
        (Some(name), _) => format!("[file {}]", short(name)),
        (None, Source::Url { url }) => format!("[file {}]", short(url)),
        (None, Source::Data { .. }) => "[file]".to_owned(),
    }
}

fn short(name: &str) -> &str {
    name.lines()
        .next()
        .and_then(|line| line.get(..line.floor_char_boundary(NAME_MAX)))
        .unwrap_or_default()
}
