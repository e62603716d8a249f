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
        let is_in = |phrase: &str| {
            let mut places = self.words.match_indices(phrase);
            places.any(|(at, _)| {
                let (before, behind) = self.words.split_at(at);
                before.ends_with(' ') && Self::is_whole(behind, phrase)
            })
        };
        list(name).any(is_in) || self.has_anywhere(name)
    }

    /// Checks for a phrase of a list at the beginning.
    pub(crate) fn begins(&self, name: &str) -> bool {
        let words = self.words.trim_start();
        list(name).any(|phrase| Self::is_whole(words, phrase)) || self.has_anywhere(name)
    }

    fn is_whole(words: &str, phrase: &str) -> bool {
        let rest = words.strip_prefix(phrase);
        rest.is_some_and(|rest| rest.starts_with(' '))
    }

    /// Checks for a phrase in a script without blanks between words.
    fn has_anywhere(&self, name: &str) -> bool {
        !self.sentence.is_ascii() && any_in(&format!("{name}_anywhere"), self.sentence)
    }
}

/// Returns `true` if the line was written by a machine rather than a person: a log, a stack trace,
/// code.
pub(crate) fn is_machine(line: &str) -> bool {
    let line = line.trim();
    let (mut signs, mut all) = (0, 0);
    for c in line.chars() {
        all += 1;
        signs += usize::from(!c.is_alphanumeric() && !c.is_whitespace());
    }
    signs * 4 > all.max(24)
        || line.starts_with("at ")
        || line.ends_with(['{', ';', '}', '('])
        || line.ends_with(',') && line.contains(": ")
        || line.starts_with("@@")
        || line.starts_with(['<', '{', '}', '|', '$', '+'])
}
