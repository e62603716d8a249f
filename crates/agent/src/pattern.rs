//! [`Pattern`]: a text with `*` in it, for rules and hooks that name tools. Not a regular expression, and
//! not the globs of files.

use std::fmt;

/// A text in which `*` stands for anything, nothing included.
///
/// ```
/// use plimsoll_agent::Pattern;
/// assert!(Pattern::new("fs_*").fits("fs_read"));
/// assert!(!Pattern::new("fs").fits("fs_read"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// What stands between the stars; one piece where there is none.
    pieces: Vec<String>,
}

impl Pattern {
    /// Reads a pattern; every text is one.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self {
            pieces: text.split('*').map(str::to_owned).collect(),
        }
    }

    /// Whether all of a text fits, in one walk over it, whatever the pattern.
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

    /// Whether it is for texts with that beginning, and for no others.
    pub(crate) fn begins(&self, beginning: &str) -> bool {
        let first = self.pieces.first();
        first.is_some_and(|first| first.starts_with(beginning))
    }

    /// Whether some text with that beginning may fit.
    pub(crate) fn may_fit(&self, beginning: &str) -> bool {
        match self.pieces.as_slice() {
            [first, _, ..] => first.starts_with(beginning) || beginning.starts_with(first.as_str()),
            _ => self.begins(beginning),
        }
    }

    /// Whether every text with that beginning fits.
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
}
