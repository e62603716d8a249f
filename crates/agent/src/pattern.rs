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

    /// Checks whether the pattern matches any text that consists of these parts. `None` stands for an
    /// unknown text.
    pub(crate) fn may_fit_parts<'a>(
        &self,
        parts: impl Iterator<Item = Option<&'a str>> + Clone,
    ) -> bool {
        if let Some(text) = parts.clone().collect::<Option<String>>() {
            return self.fits(&text);
        }
        // The pattern as single letters, with `None` for a star. A state is the number of matched
        // elements.
        let starred = self.pieces.iter().flat_map(|piece| {
            let letters = piece.chars().map(Some);
            std::iter::once(None).chain(letters)
        });
        let pattern: Vec<Option<char>> = starred.skip(1).collect();
        let mut states = vec![false; pattern.len() + 1];
        if let Some(first) = states.first_mut() {
            *first = true;
        }
        pass_stars(&pattern, &mut states);
        let mut next = states.clone();
        for part in parts {
            let Some(text) = part else {
                let mut reached = false;
                for state in &mut states {
                    reached |= *state;
                    *state = reached;
                }
                continue;
            };
            for c in text.chars() {
                next.fill(false);
                for ((letter, is_there), at) in pattern.iter().zip(&states).zip(0..) {
                    let to = match letter {
                        None => at,
                        Some(letter) if *letter == c => at + 1,
                        Some(_) => continue,
                    };
                    if let Some(state) = next.get_mut(to) {
                        *state |= *is_there;
                    }
                }
                std::mem::swap(&mut states, &mut next);
                pass_stars(&pattern, &mut states);
            }
        }
        states.last().copied().unwrap_or_default()
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

/// Adds the states that are reached if a star matches the empty text.
fn pass_stars(pattern: &[Option<char>], states: &mut [bool]) {
    let mut is_passed = false;
    for (at, state) in states.iter_mut().enumerate() {
        *state |= is_passed;
        is_passed = *state && pattern.get(at) == Some(&None);
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
    fn unknown_parts_may_be_anything() {
        for (pattern, parts, may) in [
            ("rm *", &[None, Some(" -rf /")][..], true),
            ("rm *", &[Some("git "), None], false),
            ("rm *", &[Some("r"), None], true),
            ("git push*", &[Some("git "), None, Some(" x")], true),
            ("git push", &[Some("git "), None, Some(" x")], false),
            ("*-rf*", &[Some("rm -"), None, Some("f")], true),
            ("*-rf*", &[Some("rm "), Some("-r"), Some("f /")], true),
            ("*", &[None], true),
            ("", &[None], true),
            ("a*b*c", &[Some("a"), None, Some("d")], false),
        ] {
            let said = Pattern::new(pattern).may_fit_parts(parts.iter().copied());
            assert_eq!(said, may, "{pattern} {parts:?}");
        }
    }
}
