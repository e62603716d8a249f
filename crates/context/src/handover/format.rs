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

/// The heading of the words of the user and the work of the agent, in order. It is only needed to end a
/// section before it.
pub(crate) const TRANSCRIPT: &str = "## Transcript\n";

/// The kind of an entry, in the order of the text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// A line of an earlier summary that is not a handover.
    Former,
    /// The user's words: a message or an answer, or a pasted line of a long message.
    Typed,
    Answer,
    Pasted,
    /// A message with the same words as a later one.
    Repeated,
    /// A call, a statement of the agent, or a text of the host.
    #[default]
    Done,
    /// The state of the work at the end.
    State,
    /// A rule from a file of instructions or the agent's notes: data, not the user's words.
    Rule,
    /// A changed file that was there before, another one, and one that was only read.
    Changed,
    OtherFile,
    ReadFile,
}

impl Kind {
    pub(crate) fn is_user(self) -> bool {
        matches!(
            self,
            Self::Typed | Self::Answer | Self::Pasted | Self::Repeated
        )
    }

    /// Returns the heading of the section.
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Former => "## Earlier summary\n",
            Self::Typed | Self::Answer | Self::Pasted | Self::Repeated | Self::Done => TRANSCRIPT,
            Self::State => "## State\n",
            Self::Rule => "## Rules from files and notes\n",
            Self::Changed | Self::OtherFile | Self::ReadFile => "## Files\n",
        }
    }
}

/// The kinds of the sections.
const SECTIONS: [Kind; 5] = [
    Kind::Former,
    Kind::Done,
    Kind::State,
    Kind::Rule,
    Kind::ReadFile,
];

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
pub(crate) fn write(items: &[(Kind, String)]) -> String {
    let mut body = String::new();
    let mut last = TRANSCRIPT;
    for (kind, text) in items {
        let heading = kind.heading();
        let mark = if kind.is_user() { USER } else { NOTE };
        body.extend([if heading == last { "" } else { heading }, mark]);
        last = heading;
        for (n, line) in without_frames(text).lines().enumerate() {
            let indent = if n > 0 && !line.is_empty() {
                INDENT
            } else {
                ""
            };
            body.extend([indent, line, "\n"]);
        }
    }
    format!("{HEAD}{}{HEAD_END}{body}", seal(&body))
}

/// Parses a text that [`write`] made. Returns `None` for any other text, and for one that was
/// changed since.
pub(crate) fn read(text: &str) -> Option<Vec<(Kind, String)>> {
    let sealed = text.trim_start().strip_prefix(HEAD)?;
    let (sealed, rest) = sealed.split_at_checked(SEAL)?;
    let body = rest.strip_prefix(HEAD_END)?;
    // A host may have trimmed the end.
    if seal(body) != sealed && seal(&format!("{body}\n")) != sealed {
        return None;
    }
    let mut items: Vec<(Kind, String)> = Vec::new();
    let mut section = Kind::Done;
    for line in body.lines() {
        let mut kinds = SECTIONS.iter();
        if let Some(kind) = kinds.find(|kind| kind.heading().trim_end() == line) {
            section = *kind;
        } else if let Some(text) = line.strip_prefix(USER) {
            items.push((Kind::Typed, text.to_owned()));
        } else if let Some(text) = line.strip_prefix(NOTE) {
            items.push((section, text.to_owned()));
        } else if let Some((_, item)) = items.last_mut() {
            item.extend(["\n", line.strip_prefix(INDENT).unwrap_or(line)]);
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
