//! [`Secret`]: a key. It is never printed, logged or written into an error; what a provider
//! echoes of it is struck out. Not where keys come from; see `key.rs`.

use std::fmt;
use std::sync::Arc;

/// What stands in a text in place of a key.
const STRUCK_OUT: &str = "[key]";
/// Keys shorter than this are words that people put where no key is needed (`none`, `dummy`,
/// `local`); striking them out would only garble a text.
const MIN_STRUCK: usize = 9;

/// A key. Has no `Display`, cannot be serialised, and its `Debug` says nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// A key; white space around it, which comes with copying, is not part of it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.trim().into())
    }

    /// The key itself, to be sent and for nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text without the key, wherever it stood in it.
    #[must_use]
    pub fn strike_out(&self, text: String) -> String {
        if self.0.len() < MIN_STRUCK || !text.contains(&*self.0) {
            return text;
        }
        text.replace(&*self.0, STRUCK_OUT)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let key = Secret::new(" sk-0123456789\n");
        assert_eq!(key.expose(), "sk-0123456789");
        assert_eq!(
            format!("{key:?} {:#?}", Some(&key)).matches("0123").count(),
            0
        );
        let echo = "Incorrect key: sk-0123456789 (sk-0123456789)".to_owned();
        assert_eq!(key.strike_out(echo), "Incorrect key: [key] ([key])");
    }

    #[test]
    fn a_word_in_place_of_a_key_garbles_nothing() {
        let said = "the local model".to_owned();
        assert_eq!(Secret::new("local").strike_out(said.clone()), said);
        assert_eq!(Secret::new("").strike_out(said.clone()), said);
    }
}
