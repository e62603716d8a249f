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
mod parts;
mod replies;
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

use entries::Text;
pub use entries::TextAuthor;
use foldhash::HashSet;
pub use format::{split_model_text, with_model_text, without_frames};
pub use names::each_name;
use parts::with_texts;
pub use speaker::typed_words;

use crate::counter::TokenCounter;
use crate::message::Message;
use crate::tokens::Tokens;

/// The number of bytes of a token that no counter exceeds.
const DENSE: u64 = 12;
/// How often the selection is repeated with fewer tokens if the text is larger than the maximum.
const ATTEMPTS: u32 = 6;

/// Returns a summary of `messages`, in their order, without a model: at most `max` tokens by
/// `counter`. Returns `None` if there is nothing to summarise, or if `max` is too small.
///
/// `docs/handover.md` explains its form. The same messages give the same bytes.
#[must_use]
pub fn extract(messages: &[&Message], max: Tokens, counter: &dyn TokenCounter) -> Option<String> {
    let messages = with_texts(messages);
    let texts = entries::texts(&messages);
    let most = usize::try_from(max.0.saturating_mul(DENSE)).unwrap_or(usize::MAX);
    let rows = work::read(&texts, most);
    let mut tokens = max.0;
    for _ in 0..ATTEMPTS {
        let mut text = select::select(&rows, tokens, counter)?;
        let weight = counter.text(&text);
        if weight <= max {
            text.truncate(text.trim_end().len());
            return Some(text);
        }
        // The whole may have more tokens than its parts.
        tokens = tokens.checked_sub((weight.0 - max.0).max(tokens / 50 + 1))?;
    }
    None
}

/// Returns the tokens of the user's words among `messages`: the size that a summary needs to repeat
/// all of them. If there are more than `enough`, returns at least that number.
pub(crate) fn person_tokens(
    messages: &[&Message],
    enough: Tokens,
    counter: &dyn TokenCounter,
) -> Tokens {
    let messages = with_texts(messages);
    let texts = entries::texts(&messages);
    let words: HashSet<&str> = texts.iter().flat_map(Text::typed).collect();
    let words: Vec<&str> = words.into_iter().collect();
    Tokens(select::person_tokens(&words, enough.0, counter))
}

/// Returns the texts of `messages` in their order, each with its author. Former summaries are left out.
#[must_use]
pub fn authored(messages: &[&Message]) -> Vec<(TextAuthor, String)> {
    entries::authored(&with_texts(messages))
}
