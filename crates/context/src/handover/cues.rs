//! Classifies sentences by their words (`words/cues.txt`): obligations and facts of the user,
//! findings, lead-ins and passing states of the agent.

use super::words::{any_in, list};

/// A sentence in which phrases are searched.
pub(crate) struct Cues<'s> {
    sentence: &'s str,
    /// Its words in lower case, each between blanks.
    words: String,
}

impl<'s> Cues<'s> {
    pub(crate) fn of(sentence: &'s str) -> Self {
        let plain = sentence.to_lowercase().replace('’', "'");
        let is_end = |c: char| !(c.is_alphanumeric() || c == '\'');
        let words = plain.split(is_end).filter(|word| !word.is_empty());
        let words = words.fold(" ".to_owned(), |words, word| words + word + " ");
        Self { sentence, words }
    }

    /// Checks for a phrase of a list.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.has_behind(name, |before| before.ends_with(' '))
    }

    /// Checks for a phrase of a list at the beginning.
    pub(crate) fn begins(&self, name: &str) -> bool {
        self.has_behind(name, |before| before == " ")
    }

    fn has_behind(&self, name: &str, is_place: impl Fn(&str) -> bool) -> bool {
        let is_in = |phrase: &str| {
            let mut places = self.words.match_indices(phrase);
            places.any(|(at, _)| {
                let (before, behind) = self.words.split_at(at);
                let rest = behind.strip_prefix(phrase);
                is_place(before) && rest.is_some_and(|rest| rest.starts_with(' '))
            })
        };
        // Some scripts have no blanks between words.
        list(name).any(is_in)
            || !self.sentence.is_ascii() && any_in(&format!("{name}_anywhere"), self.sentence)
    }
}

/// Returns `true` if the line was written by a machine rather than a person: a log, a stack trace,
/// code.
pub(crate) fn is_machine(line: &str) -> bool {
    let line = line.trim();
    let is_sign = |c: &char| !c.is_alphanumeric() && !c.is_whitespace();
    let signs = line.chars().filter(is_sign).count();
    signs * 4 > line.chars().count().max(24)
        || line.starts_with("at ")
        || line.starts_with("File \"")
        || line.ends_with(['{', ';', '}', '('])
        || line.ends_with(',') && line.contains(": ")
        || line.starts_with("@@")
        || line.starts_with(['<', '{', '}', '|', '$', '+'])
}
