//! Summarises a transcript without a model: the user's words, the agent's work, and its current
//! state.
//!
//! [`handover`] takes the messages that are removed from a context window and writes the text that
//! replaces them. All content was said or done in the transcript; nothing is paraphrased. The same
//! input gives the same bytes. `docs/handover.md` explains the rules with one example.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod calls;
mod entries;
mod file_actions;
mod format;
mod listed_calls;
mod names;
mod outcome;
mod replies;
mod select;
mod sentence_kinds;
mod sentences;
mod speaker;
mod state;
mod story;
mod tokens;
mod user_words;

pub use format::without_frames;
use story::Story;
use user_words::{SaidText, UserWords};

/// One message, or one part of a message, of the transcript.
#[derive(Debug, Clone, Copy)]
pub enum TranscriptEntry<'a> {
    /// A message in the user's role. Texts that hosts add in this role are recognised.
    User(&'a str),
    /// Text of the model.
    Assistant(&'a str),
    /// The model's reasoning. Only names are taken from it.
    Thinking(&'a str),
    /// A tool call.
    ToolCall {
        /// The id that the result repeats.
        id: &'a str,
        /// The name of the tool.
        name: &'a str,
        /// The arguments, as JSON.
        arguments: &'a str,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        id: &'a str,
        /// The text of the result.
        text: &'a str,
        /// Whether the provider or the host marked it as an error.
        is_error: bool,
    },
    /// A note of the host to the model.
    Notice(&'a str),
    /// An earlier summary. A text that [`handover`] wrote is parsed; any other is quoted.
    Summary(&'a str),
}

/// How often the selection is repeated with fewer tokens if the text is larger than the sum of its
/// parts.
const SMALLER: u32 = 8;
/// How often it is repeated with more tokens if the text is smaller.
const LARGER: u32 = 4;
/// Unused tokens that are not worth another attempt, as a divisor of the maximum.
const SLACK: u64 = 100;

/// Returns a summary of `entries` of at most `max` tokens as counted by `count`. Returns `None` if
/// there is nothing to summarise, or if `max` is too small.
///
/// The time is `O(n log n)` in the length of the text. In a long transcript, only possible parts of
/// the summary are counted.
///
/// ```
/// use plimsoll_handover::{TranscriptEntry, handover};
/// let entries = [
///     TranscriptEntry::User("Port the parser. Never touch src/legacy."),
///     TranscriptEntry::ToolCall { id: "1", name: "bash", arguments: r#"{"command": "cargo test"}"# },
///     TranscriptEntry::ToolResult { id: "1", text: "error[E0425]: cannot find value `raw`", is_error: true },
/// ];
/// let text = handover(&entries, 200, &|text| text.len() as u64 / 4).unwrap();
/// assert!(text.contains("»! Port the parser. Never touch src/legacy.\n"));
/// assert!(text.ends_with("- Last failure: cargo test → failed: error[E0425]: cannot find value `raw`"));
/// ```
#[must_use]
pub fn handover(
    entries: &[TranscriptEntry<'_>],
    max: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let texts = entries::texts(entries);
    let (story, mut user_words) = Story::of(&texts);
    let (mut tokens, mut larger) = (max, 0);
    let mut best: Option<(u64, String)> = None;
    for _ in 0..SMALLER {
        let Some(text) = select::select(&story, &mut user_words, tokens, count) else {
            break;
        };
        let weight = count(&text);
        let Some(slack) = max.checked_sub(weight) else {
            if best.is_some() {
                break;
            }
            tokens = tokens.checked_sub((weight - max).max(tokens / 50 + 1))?;
            continue;
        };
        if best.as_ref().is_none_or(|(most, _)| weight > *most) {
            best = Some((weight, text));
        }
        larger += 1;
        if slack * SLACK <= max || larger >= LARGER {
            break;
        }
        tokens += slack;
    }
    let mut text = best.map(|(_, text)| text)?;
    text.truncate(text.trim_end().len());
    Some(text)
}

/// Returns the tokens of the user's words among `entries`: the size that a summary needs to repeat
/// all of them.
#[must_use]
pub fn person_tokens(entries: &[TranscriptEntry<'_>], count: &dyn Fn(&str) -> u64) -> u64 {
    let texts = entries::texts(entries);
    UserWords::of(SaidText::all(&texts)).weight(count)
}
