//! The markers that replace messages removed from the view.

use std::fmt::Write as _;

use crate::item::Seq;
use crate::message::Message;

/// A description of messages that were removed from the view, as written in their marker.
///
/// The marker is a text that the model reads. It is also the only record of the number of removed
/// messages, so the same text is parsed again when a later plan extends the gap.
///
/// ```
/// use plimsoll_context::{Gap, Seq};
/// let gap = Gap { messages: 12, recall: Some((Seq(3), Seq(14))) };
/// assert_eq!(gap.marker(), "[12 messages were removed here; recall m3 to m14]");
/// assert_eq!(Gap::parse(&gap.marker()), Some(gap));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The number of removed messages. At least 1.
    pub messages: u64,
    /// The first and the last message that the model can recall. `None` if it cannot recall any.
    pub recall: Option<(Seq, Seq)>,
}

const OPEN: &str = "[";
const CLOSE: &str = "]";
const REMOVED: (&str, &str) = (" message was removed here", " messages were removed here");
const REPLACED_OPEN: &str = "[This summary replaces ";
const REPLACED: (&str, &str) = (" message", " messages");
const RECALL: &str = "; recall ";
const TO: &str = " to ";
/// Separates the note about the replaced messages from the summary itself.
const NOTE_END: &str = "\n\n";

impl Gap {
    /// Returns the text of the marker.
    #[must_use]
    pub fn marker(self) -> String {
        self.write(OPEN, REMOVED)
    }

    /// Returns the marker as a message of the view.
    #[must_use]
    pub fn message(self) -> Message {
        Message::Notice {
            text: self.marker(),
        }
    }

    /// Parses a marker. Returns `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text, OPEN, REMOVED)
    }

    /// Returns the gap that a message marks. Only a [`Message::Notice`] can mark one, so text of a
    /// user, a model or a tool is never mistaken for a marker.
    #[must_use]
    pub fn of(message: &Message) -> Option<Self> {
        match message {
            Message::Notice { text } => Self::parse(text),
            _ => None,
        }
    }

    /// Returns a summary's text with a first line that says which messages it replaces.
    #[must_use]
    pub fn with_summary(self, summary: &str) -> String {
        format!("{}{NOTE_END}{summary}", self.write(REPLACED_OPEN, REPLACED))
    }

    /// Splits the text of a [`Message::Summary`] into the messages that it replaces, if its first
    /// line names them, and the summary itself.
    #[must_use]
    pub fn split_summary(text: &str) -> (Option<Self>, &str) {
        text.split_once(NOTE_END)
            .and_then(|(note, summary)| Some((Self::read(note, REPLACED_OPEN, REPLACED)?, summary)))
            .map_or((None, text), |(gap, summary)| (Some(gap), summary))
    }

    fn write(self, open: &str, (one, many): (&str, &str)) -> String {
        let noun = if self.messages == 1 { one } else { many };
        let mut text = format!("{open}{}{noun}", self.messages);
        if let Some((first, last)) = self.recall {
            text.push_str(RECALL);
            text.push_str(&first.recall_id());
            if first != last {
                // Writing to a string cannot fail.
                let _ = write!(text, "{TO}{}", last.recall_id());
            }
        }
        text.push_str(CLOSE);
        text
    }

    fn read(text: &str, open: &str, nouns: (&str, &str)) -> Option<Self> {
        let inner = text.strip_prefix(open)?.strip_suffix(CLOSE)?;
        let (head, recall) = match inner.split_once(RECALL) {
            Some((head, ids)) => {
                let (first, last) = ids.split_once(TO).unwrap_or((ids, ids));
                (head, Some((seq(first)?, seq(last)?)))
            }
            None => (inner, None),
        };
        let digits = head
            .strip_suffix(nouns.1)
            .or_else(|| head.strip_suffix(nouns.0))?;
        let gap = Self {
            messages: digits.parse().ok().filter(|messages| *messages > 0)?,
            recall,
        };
        // Only the exact bytes that `write` produces are a marker.
        (gap.write(open, nouns) == text).then_some(gap)
    }
}

fn seq(id: &str) -> Option<Seq> {
    id.strip_prefix('m')?.parse().ok().map(Seq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_parsed_again() {
        for (messages, recall, marker) in [
            (1, None, "[1 message was removed here]"),
            (
                1,
                Some((Seq(7), Seq(7))),
                "[1 message was removed here; recall m7]",
            ),
            (
                120,
                Some((Seq(0), Seq(119))),
                "[120 messages were removed here; recall m0 to m119]",
            ),
        ] {
            let gap = Gap { messages, recall };
            assert_eq!(gap.marker(), marker);
            assert_eq!(Gap::parse(marker), Some(gap));
            let summary = gap.with_summary("## Goal\n\n- none");
            assert_eq!(
                Gap::split_summary(&summary),
                (Some(gap), "## Goal\n\n- none")
            );
        }
    }

    #[test]
    fn other_texts_are_no_markers() {
        for text in [
            "",
            "[]",
            "[0 messages were removed here]",
            "[1 messages were removed here]",
            "[+2 messages were removed here]",
            "[2 messages were removed here] ",
            "[2 messages were removed here; recall 3 to m4]",
            "[2 messages were removed here; recall m4 to m4]",
            "[99999999999999999999 messages were removed here]",
            "see [2 messages were removed here]",
        ] {
            assert_eq!(Gap::parse(text), None, "{text}");
            assert_eq!(Gap::split_summary(text), (None, text));
        }
        let user = Message::user("[2 messages were removed here]");
        assert_eq!(Gap::of(&user), None, "a user's words are not ours");
    }
}
