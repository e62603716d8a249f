//! The fixed texts that rendering puts around or between messages.
//!
//! The model sees these texts, and their bytes must not change between requests. Prompts of agents are
//! not included.

use plimsoll_context::{Gap, Message, Part};

/// Opens a summary sent in the user's role.
pub const SUMMARY_OPEN: &str = include_str!("../prompts/summary_open.md").trim_ascii_end();
/// Closes a summary.
pub const SUMMARY_CLOSE: &str = include_str!("../prompts/summary_close.md").trim_ascii_end();
/// Opens a system message that has to be sent in the user's role.
pub const LATER_SYSTEM: &str = include_str!("../prompts/later_system.md").trim_ascii_end();
/// The assistant's message between a tool result and a user message, for servers that do not accept one
/// directly after the other.
pub const BRIDGE: &str = include_str!("../prompts/bridge.md").trim_ascii_end();
/// The first user message, for servers that require one at the beginning.
pub const OPENING: &str = include_str!("../prompts/opening.md").trim_ascii_end();
/// The last user message, for servers that do not accept an assistant message at the end.
pub const GO_ON: &str = include_str!("../prompts/go_on.md").trim_ascii_end();
/// Opens the user message with the images and files of tool results, for servers with text-only tool
/// messages.
pub const ATTACHMENTS: &str = include_str!("../prompts/attachments.md").trim_ascii_end();
/// Replaces an image or a file if the model only reads text.
pub const LEFT_OUT: &str = include_str!("../prompts/left_out.md").trim_ascii_end();
/// The instructions for a model that answers every turn with one JSON object.
pub const JSON_TURNS: &str = include_str!("../prompts/json_turns.md").trim_ascii_end();

/// Returns a summary in its frame.
#[must_use]
pub fn framed_summary(text: &str) -> String {
    format!("{SUMMARY_OPEN}\n\n{text}\n\n{SUMMARY_CLOSE}")
}

/// Returns the summary in a text of [`framed_summary`], or `None` for any other text.
#[must_use]
pub fn unframed_summary(text: &str) -> Option<&str> {
    text.strip_prefix(SUMMARY_OPEN)?
        .strip_prefix("\n\n")?
        .strip_suffix(SUMMARY_CLOSE)?
        .strip_suffix("\n\n")
}

/// Returns the message for parts in the user's role.
pub(crate) fn parse_user_message(parts: Vec<Part>) -> Message {
    let own = match parts.as_slice() {
        [Part::Text { text }] => own_message(text),
        _ => None,
    };
    own.unwrap_or(Message::User { parts })
}

/// Parses a text in the user's role that Plimsoll wrote: a framed summary, or the marker of removed
/// messages. Returns `None` for any other text.
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
