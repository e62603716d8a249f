//! The fixed texts that rendering puts around or between messages: one home for all of them,
//! because the model sees them and their bytes must never change from request to request.
//! Not prompts of an agent; those belong to whoever builds one.

use std::borrow::Cow;

use plimsoll_context::{Gap, Message, Part};

/// Opens a summary sent in the user's role.
pub const SUMMARY_OPEN: &str = include_str!("../prompts/summary_open.md").trim_ascii_end();
/// Closes a summary.
pub const SUMMARY_CLOSE: &str = include_str!("../prompts/summary_close.md").trim_ascii_end();
/// Opens a system message that has to be sent in the user's role.
pub const LATER_SYSTEM: &str = include_str!("../prompts/later_system.md").trim_ascii_end();
/// What the assistant says between a tool result and a user message, where both may not touch.
pub const BRIDGE: &str = include_str!("../prompts/bridge.md").trim_ascii_end();
/// What the user says first, where a user has to speak first and none did.
pub const OPENING: &str = include_str!("../prompts/opening.md").trim_ascii_end();
/// What the user says last, where the assistant may not have the last word.
pub const GO_ON: &str = include_str!("../prompts/go_on.md").trim_ascii_end();
/// Opens the user message that carries what a text-only tool message cannot.
pub const ATTACHMENTS: &str = include_str!("../prompts/attachments.md").trim_ascii_end();
/// Stands for an image or a file where the model reads text only.
pub const LEFT_OUT: &str = include_str!("../prompts/left_out.md").trim_ascii_end();
/// What a model is told that answers every turn with one JSON object.
pub const JSON_TURNS: &str = include_str!("../prompts/json_turns.md").trim_ascii_end();

/// A summary in its frame.
#[must_use]
pub fn framed_summary(text: &str) -> String {
    format!("{SUMMARY_OPEN}\n\n{text}\n\n{SUMMARY_CLOSE}")
}

/// The summary in a text that [`framed_summary`] made; `None` for any other text.
#[must_use]
pub fn unframed_summary(text: &str) -> Option<&str> {
    text.strip_prefix(SUMMARY_OPEN)?
        .strip_prefix("\n\n")?
        .strip_suffix(SUMMARY_CLOSE)?
        .strip_suffix("\n\n")
}

/// Returns the parts that a message is sent as, with a summary in its frame.
pub(crate) fn spoken(message: &Message) -> Cow<'_, [Part]> {
    match message {
        Message::Summary { text } => vec![Part::text(framed_summary(text))].into(),
        Message::Notice { text } => vec![Part::text(text)].into(),
        message => message.parts().into(),
    }
}

/// Returns the message that parts in the user's role are.
pub(crate) fn heard(parts: Vec<Part>) -> Message {
    let own = match parts.as_slice() {
        [Part::Text { text }] => own_message(text),
        _ => None,
    };
    own.unwrap_or(Message::User { parts })
}

/// Returns the message of ours that a text in the user's role is: a framed summary, or the marker of
/// removed messages. Returns `None` for any other text.
#[must_use]
pub fn own_message(text: &str) -> Option<Message> {
    let summary = unframed_summary(text).map(|text| Message::Summary {
        text: text.to_owned(),
    });
    summary.or_else(|| Gap::parse(text).map(Gap::message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_weighs_what_is_counted_for_it() {
        use plimsoll_context::{Bpe, SUMMARY_FRAME, TokenCounter};
        let (counter, text) = (Bpe::o200k(), "## Goal\n- none");
        let framed = counter.text(&framed_summary(text));
        assert!(framed <= counter.text(text) + SUMMARY_FRAME, "{framed}");
    }

    #[test]
    fn a_framed_summary_comes_back_whole() {
        for text in ["", "done: a\n\n", "\n\n[End of the summary.", "🦀"] {
            assert_eq!(unframed_summary(&framed_summary(text)), Some(text));
        }
        assert_eq!(unframed_summary("a question"), None);
        assert_eq!(unframed_summary(SUMMARY_OPEN), None);
    }
}
