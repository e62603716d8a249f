//! Summarises a transcript without a model: the user's words, what was done, and the state at the
//! end.
//!
//! [`handover`] takes the messages that are removed from a context window and writes the text that
//! replaces them. All content was said or done in the transcript; nothing is paraphrased. The same
//! input gives the same bytes. `docs/handover.md` explains the rules with one example.

mod calls;
mod cues;
mod entries;
mod files;
mod format;
mod names;
mod outcome;
mod replies;
mod rows;
mod rules;
mod select;
mod sentences;
mod shell;
mod speaker;
mod state;
mod statements;
#[cfg(test)]
mod tests;
mod tokens;
mod user_words;
mod words;
mod work;

use entries::Text;
pub use format::{split_model_text, with_model_text, without_frames};
pub use speaker::typed_words;
use user_words::UserWords;
use work::Work;

/// One message, or one part of a message, of the transcript.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TranscriptEntry<'a> {
    /// A message in the user's role. Texts that hosts add in this role are recognised.
    User(&'a str),
    /// Text of the model.
    Assistant(&'a str),
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

/// The number of bytes of a token that no counter exceeds.
const DENSE: u64 = 12;
/// How often the selection is repeated with fewer tokens if the text is larger than the maximum.
const ATTEMPTS: u32 = 6;

/// Returns a summary of `entries` of at most `max` tokens as counted by `count`. Returns `None` if
/// there is nothing to summarise, or if `max` is too small.
pub(crate) fn handover(
    entries: &[TranscriptEntry<'_>],
    max: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let texts = entries::texts(entries);
    let most = usize::try_from(max.saturating_mul(DENSE)).unwrap_or(usize::MAX);
    let (mut work, mut words) = Work::of(&texts, most);
    words.drop_repeated();
    let mut tokens = max;
    for _ in 0..ATTEMPTS {
        let mut text = select::select(&mut work, &mut words, tokens, count)?;
        let weight = count(&text);
        if weight <= max {
            text.truncate(text.trim_end().len());
            return Some(text);
        }
        // The whole may have more tokens than its parts.
        tokens = tokens.checked_sub((weight - max).max(tokens / 50 + 1))?;
    }
    None
}

/// Returns the tokens of the user's words among `entries`: the size that a summary needs to repeat
/// all of them. If there are more than `enough`, returns at least that number.
pub(crate) fn person_tokens(
    entries: &[TranscriptEntry<'_>],
    enough: u64,
    count: &dyn Fn(&str) -> u64,
) -> u64 {
    let mut words = UserWords::default();
    for (n, text) in entries::texts(entries).iter().enumerate() {
        match text {
            Text::Person {
                words: text,
                is_answer,
            } => words.add((n, 0), text, *is_answer),
            Text::Handover(items) => {
                for (_, item) in items {
                    words.add_item((n, 0), item);
                }
            }
            _ => {}
        }
    }
    words.drop_repeated();
    words.total(enough, count)
}
