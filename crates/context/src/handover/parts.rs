//! The texts of a message, with a note for each part that is no text.

use std::borrow::Cow;

use crate::message::{Image, Message, Part, Source};

/// The maximum length of an address or file name in the summary, in bytes.
const NAME_MAX: usize = 120;

/// A message, with its texts if it is the user's or a result.
pub(crate) type MessageTexts<'m> = (&'m Message, Vec<Cow<'m, str>>);

/// Returns messages with their texts.
pub(crate) fn with_texts<'m>(messages: &[&'m Message]) -> Vec<MessageTexts<'m>> {
    let messages = messages.iter();
    messages.map(|message| (*message, texts(message))).collect()
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
            Part::File(file) => match (&file.name, &file.source) {
                (Some(name), _) | (None, Source::Url { url: name }) => note("file ", name),
                (None, Source::Data { .. }) => note("file", ""),
            },
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
    match (&image.source, image.size) {
        (Source::Url { url }, _) => note("image ", url),
        (_, Some((width, height))) => note("image of ", &format!("{width} × {height}")),
        _ => note("image", ""),
    }
}

/// Returns a note with the beginning of a name.
fn note(kind: &str, name: &str) -> String {
    let name = name.lines().next().unwrap_or_default();
    let name = name.get(..name.floor_char_boundary(NAME_MAX));
    format!("[{kind}{}]", name.unwrap_or_default())
}
