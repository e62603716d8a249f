//! Summarises a transcript without a model: the user's words, what was done, and the state at the
//! end.
//!
//! [`handover`] takes the messages that are removed from a context window and writes the text that
//! replaces them. All content was said or done in the transcript; nothing is paraphrased. The same
//! input gives the same bytes. `docs/handover.md` explains the rules with one example.

mod calls;
mod entries;
mod files;
mod format;
mod names;
mod outcome;
mod pieces;
mod replies;
mod rows;
mod select;
mod sentences;
mod shell;
mod speaker;
mod state;
mod statements;
#[cfg(test)]
mod tests;
mod words;
mod work;

use std::borrow::Cow;

use entries::Text;
pub use entries::TextAuthor;
pub(crate) use entries::authored;
use foldhash::HashSet;
pub use format::{split_model_text, with_model_text, without_frames};
pub use names::each_name;
pub use speaker::typed_words;

use crate::message::Message;

/// A message, with its texts if it is the user's or a result.
pub(crate) type MessageTexts<'m> = (&'m Message, Vec<Cow<'m, str>>);

/// The number of bytes of a token that no counter exceeds.
const DENSE: u64 = 12;
/// How often the selection is repeated with fewer tokens if the text is larger than the maximum.
const ATTEMPTS: u32 = 6;

/// Returns a summary of `messages` of at most `max` tokens as counted by `count`. Returns `None` if
/// there is nothing to summarise, or if `max` is too small.
pub(crate) fn handover(
    messages: &[MessageTexts<'_>],
    max: u64,
    count: &dyn Fn(&str) -> u64,
) -> Option<String> {
    let texts = entries::texts(messages);
    let most = usize::try_from(max.saturating_mul(DENSE)).unwrap_or(usize::MAX);
    let rows = work::read(&texts, most);
    let mut tokens = max;
    for _ in 0..ATTEMPTS {
        let mut text = select::select(&rows, tokens, count)?;
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

/// Returns the tokens of the user's words among `messages`: the size that a summary needs to repeat
/// all of them. If there are more than `enough`, returns at least that number.
pub(crate) fn person_tokens(
    messages: &[MessageTexts<'_>],
    enough: u64,
    count: &dyn Fn(&str) -> u64,
) -> u64 {
    let texts = entries::texts(messages);
    let words: HashSet<&str> = texts.iter().flat_map(Text::typed).collect();
    let bytes: usize = words.iter().map(|text| text.len()).sum();
    let least = bytes as u64 / DENSE;
    if least > enough {
        return least;
    }
    words.iter().map(|text| count(text) + select::MARK).sum()
}
