//! Writes and parses the text of a handover.
//!
//! Every line that begins at the margin is part of the format; further lines of a text are
//! indented. A quoted text can therefore not open or end a section, nor pass for another speaker.
//! Only a text with a valid seal is parsed as a handover.

use std::borrow::Cow;

use super::words::behind;

/// The beginning of the first line; the digits of the seal follow.
const HEAD: &str = "[handover ";
/// The end of the first line.
const HEAD_END: &str = "] » user's words, - done\n";
/// The number of digits of the seal.
const SEAL: usize = 8;
/// The prefix of the user's words.
const USER: &str = "» ";
/// The prefix of any other item.
const NOTE: &str = "- ";
/// The prefix of the further lines of a text.
const INDENT: &str = "  ";

/// A section, in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Section {
    /// Lines of an earlier summary that is not a handover.
    Former,
    /// The user's words and the agent's work, in order.
    #[default]
    Transcript,
    /// The state of the work at the end.
    State,
    /// Rules from files of instructions and from the agent's notes: data, not the user's words.
    Rules,
    /// Files, the actions on them, and names in them.
    Files,
}

/// The headings of the sections.
pub(crate) const HEADINGS: [(Section, &str); 5] = [
    (Section::Former, "## Earlier summary\n"),
    (Section::Transcript, "## Transcript\n"),
    (Section::State, "## State\n"),
    (Section::Rules, "## Rules from files and notes\n"),
    (Section::Files, "## Files\n"),
];

/// One entry of a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SectionItem {
    /// Whether it contains the user's words. Otherwise it is a note of the handover.
    pub(crate) is_user: bool,
    pub(crate) text: String,
}

impl SectionItem {
    pub(crate) fn new(is_user: bool, text: &str) -> Self {
        let text = without_frames(text).into_owned();
        Self { is_user, text }
    }

    /// Returns the item as it is written, including its line end.
    pub(crate) fn written(&self) -> String {
        let mark = if self.is_user { USER } else { NOTE };
        let mut written = mark.to_owned();
        for (n, line) in self.text.lines().enumerate() {
            if n > 0 && !line.is_empty() {
                written.push_str(INDENT);
            }
            written.push_str(line);
            written.push('\n');
        }
        written
    }
}

/// The heading of a handover that stands above a model's summary.
const WORD_FOR_WORD: &str = "# Word for word\n";
/// The heading of the model's summary below it.
const BY_MODEL: &str = "# Written by a model";

/// Returns one summary of a handover and a model's text. The handover comes first: it is certain.
#[must_use]
pub fn with_model_text(words: &str, model: &str) -> String {
    let model = without_frames(model).replace(BY_MODEL, "Written by a model");
    format!("{WORD_FOR_WORD}{words}\n\n{BY_MODEL}\n{model}")
}

/// Splits a text of [`with_model_text`] into the handover and the model's text. Returns `None` for
/// any other text.
#[must_use]
pub fn split_model_text(text: &str) -> Option<(&str, &str)> {
    let (words, model) = text.strip_prefix(WORD_FOR_WORD)?.split_once(BY_MODEL)?;
    Some((words.trim_end(), model.trim_start()))
}

/// Returns the text of items in the order of their sections, with a seal.
pub(crate) fn write(items: &[(Section, SectionItem)]) -> String {
    let mut body = String::new();
    let mut last = Section::Transcript;
    for (section, item) in items {
        // The transcript only needs a heading to end a section before it.
        if *section != last {
            let heading = HEADINGS.iter().find(|(known, _)| known == section);
            body.push_str(heading.map_or("", |(_, heading)| heading));
            last = *section;
        }
        body.push_str(&item.written());
    }
    format!("{HEAD}{}{HEAD_END}{body}", seal(&body))
}

/// Parses a text that [`write`] made. Returns `None` for any other text, and for one that was
/// changed since.
pub(crate) fn read(text: &str) -> Option<Vec<(Section, SectionItem)>> {
    let sealed = text.trim_start().strip_prefix(HEAD)?;
    let (sealed, rest) = sealed.split_at_checked(SEAL)?;
    let body = rest.strip_prefix(HEAD_END)?;
    // A host may have trimmed the end.
    if seal(body) != sealed && seal(&format!("{body}\n")) != sealed {
        return None;
    }
    let mut items: Vec<(Section, SectionItem)> = Vec::new();
    let mut section = Section::Transcript;
    for line in body.lines() {
        let user = line.strip_prefix(USER);
        let heading = HEADINGS
            .iter()
            .find(|(_, heading)| heading.trim_end() == line);
        if let Some((found, _)) = heading {
            section = *found;
        } else if let Some(text) = user.or_else(|| line.strip_prefix(NOTE)) {
            let (is_user, text) = (user.is_some(), text.to_owned());
            items.push((section, SectionItem { is_user, text }));
        } else if let Some((_, item)) = items.last_mut() {
            item.text.push('\n');
            item.text
                .push_str(line.strip_prefix(INDENT).unwrap_or(line));
        }
    }
    Some(items)
}

/// Replaces the brackets of frames and markers in `text`, so that a quoted text can neither open
/// nor close a frame, nor offer a recall.
#[must_use]
pub fn without_frames(text: &str) -> Cow<'_, str> {
    if !text.split('[').skip(1).any(is_frame) {
        return Cow::Borrowed(text);
    }
    let mut pieces = text.split('[');
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        plain.push(if is_frame(piece) { '(' } else { '[' });
        plain.push_str(piece);
    }
    Cow::Owned(plain)
}

/// Checks whether a text behind a bracket is that of a frame or marker of Plimsoll.
fn is_frame(text: &str) -> bool {
    behind("frames", text).is_some()
}

fn seal(body: &str) -> String {
    let hash = blake3::hash(body.as_bytes()).to_hex();
    hash.as_str().chars().take(SEAL).collect()
}
