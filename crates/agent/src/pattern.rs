//! [`Pattern`]: a text with `*` wildcards, for rules and hooks that name tools.
//!
//! Regular expressions and file globs are not supported.

use std::fmt;

/// A text in which each `*` matches any text, including the empty one.
///
/// ```
/// use plimsoll_agent::Pattern;
/// assert!(Pattern::new("fs_*").fits("fs_read"));
/// assert!(!Pattern::new("fs").fits("fs_read"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// The texts between the stars; a single one if there is no star.
    pieces: Vec<String>,
}

impl Pattern {
    /// Parses a pattern. Every text is valid.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            pieces: text.split('*').map(str::to_owned).collect(),
        }
    }

    /// Checks whether the pattern matches the whole text, in linear time.
    #[must_use]
    pub fn fits(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.pieces.iter().all(|only| only == text);
        };
        let Some(rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        let Some(mut rest) = rest.strip_suffix(last.as_str()) else {
            return false;
        };
        for piece in middle {
            let Some((_, behind)) = rest.split_once(piece.as_str()) else {
                return false;
            };
            rest = behind;
        }
        true
    }

    /// Returns `true` if the pattern has no `*`.
    pub(crate) fn is_literal(&self) -> bool {
        self.pieces.len() == 1
    }

    /// Checks whether the pattern only matches texts that start with `beginning`.
    pub(crate) fn begins(&self, beginning: &str) -> bool {
        let first = self.pieces.first();
        first.is_some_and(|first| first.starts_with(beginning))
    }

    /// Checks whether the pattern may match a text that starts with `beginning`.
    pub(crate) fn may_fit(&self, beginning: &str) -> bool {
        match self.pieces.as_slice() {
            [first, _, ..] => first.starts_with(beginning) || beginning.starts_with(first.as_str()),
            _ => self.begins(beginning),
        }
    }

    /// Checks whether the pattern matches all texts that start with `beginning`.
    pub(crate) fn fits_all(&self, beginning: &str) -> bool {
        match self.pieces.as_slice() {
            [first, rest @ ..] if !rest.is_empty() => {
                beginning.starts_with(first.as_str()) && rest.iter().all(String::is_empty)
            }
            _ => false,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pieces.join("*"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name, is) in [
            ("bash", "bash", true),
            ("bash", "bash2", false),
            ("*", "anything", true),
            ("*", "", true),
            ("file_*", "file_read", true),
            ("file_*", "a_file_read", false),
            ("*_read", "file_read", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "ac", false),
            ("a*a", "a", false),
        ] {
            assert_eq!(Pattern::new(pattern).fits(name), is, "{pattern} {name}");
        }
    }

    #[test]
    fn what_follows_a_beginning_may_be_anything() {
        for (pattern, beginning, may) in [
            ("rm *", "", true),
            ("rm *", "git ", false),
            ("rm *", "r", true),
            ("git push*", "git ", true),
            ("git push", "git ", true),
            ("git push", "git commit ", false),
            ("*-rf*", "rm ", true),
            ("*", "x", true),
            ("", "", true),
        ] {
            let said = Pattern::new(pattern).may_fit(beginning);
            assert_eq!(said, may, "{pattern} {beginning}");
        }
    }
}
