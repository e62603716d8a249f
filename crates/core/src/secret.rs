//! [`Secret`]: a key that is never printed, logged or included in an error, and that is removed
//! from texts that repeat it. [`Secrets`] are the secrets of a run, which are removed from tool
//! results.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use plimsoll_context::Part;
use serde::Deserialize;

use crate::process::{has_password, looks_secret};

/// Shorter keys are usually placeholders (`none`, `dummy`, `local`). Removing them would only
/// garble texts.
const MIN_STRUCK: usize = 9;
/// A text of this many characters without whitespace is not a word.
const NO_WORD: usize = 20;

/// A key. It has no `Display`, cannot be serialized, and its `Debug` output does not contain it.
#[derive(Clone, Deserialize)]
#[serde(from = "String")]
pub struct Secret(Arc<Spellings>);

#[derive(Clone)]
struct Spellings {
    text: String,
    /// The environment variable that contains the key.
    name: Option<String>,
    /// The encodings in which others may repeat the key.
    encoded: Vec<String>,
}

/// Secrets that are removed from tool results.
#[derive(Clone, Default, Debug)]
pub(crate) struct Secrets(Arc<[Secret]>);

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

impl Secret {
    /// Creates a secret. Surrounding whitespace, for example from copying, is removed.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = text.trim().to_owned();
        Self(Arc::new(Spellings {
            encoded: encoded(text.as_bytes()),
            text,
            name: None,
        }))
    }

    /// Sets the environment variable that contains the key. The key is then replaced by `[secret
    /// NAME]` in texts, and child processes do not get the variable.
    #[must_use]
    pub fn named(mut self, variable: &str) -> Self {
        Arc::make_mut(&mut self.0).name = Some(variable.to_owned());
        self
    }

    /// Returns the environment variable that contains the key, if known.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// Returns the key in a header, if the header's name looks secret. For `Authorization: Bearer
    /// KEY` this is `KEY`.
    #[must_use]
    pub fn of_header(name: &str, value: &str) -> Option<Self> {
        let key = Self::new(value.rsplit(' ').next().unwrap_or(value));
        (looks_secret(name) && key.looks_like_a_key()).then_some(key)
    }

    /// Returns the key itself. Use it only to send it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// Returns `true` if the key is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.text.is_empty()
    }

    /// Returns `true` if this looks like a key and not like a word, a number or a sentence.
    ///
    /// A value that is secret only because of its name must pass this test, since removing a word
    /// such as `postgresql` would garble every text that contains it.
    #[must_use]
    pub fn looks_like_a_key(&self) -> bool {
        let text = self.expose();
        let has = |is: fn(char) -> bool| text.contains(is);
        let is_mixed = has(char::is_alphabetic) && has(|c| c.is_ascii_digit());
        !has(char::is_whitespace)
            && (text.len() >= NO_WORD || (text.len() >= MIN_STRUCK && is_mixed))
    }

    /// Returns the text without the key, in plain form, Base64 or hexadecimal.
    #[must_use]
    pub fn strike_out(&self, mut text: String) -> String {
        let Spellings {
            text: key,
            name,
            encoded,
        } = &*self.0;
        if key.len() < MIN_STRUCK {
            return text;
        }
        let stands_for_it = match name {
            Some(name) => Cow::Owned(format!("[secret {name}]")),
            None => Cow::Borrowed("[secret]"),
        };
        for spelling in std::iter::once(key).chain(encoded) {
            if text.contains(spelling.as_str()) {
                text = text.replace(spelling.as_str(), &stands_for_it);
            }
        }
        text
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.text == other.0.text
    }
}

impl Eq for Secret {}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secrets {
    /// Returns these secrets and the values of the environment variables that are withheld from
    /// child processes. File paths are not secrets.
    pub(crate) fn with_environment(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
            let secret = Secret::new(&value);
            let is_secret =
                looks_secret(&name) && secret.looks_like_a_key() || has_password(&value);
            (is_secret && !Path::new(&value).exists()).then(|| secret.named(&name))
        });
        let mut all: Vec<Secret> = Vec::new();
        for secret in variables.chain(secrets) {
            if !all.contains(&secret) {
                all.push(secret);
            }
        }
        // Longest first, so that a secret that contains another one is removed completely.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(all.into())
    }

    /// Returns the environment variables of the secrets.
    pub(crate) fn variables(&self) -> impl Iterator<Item = String> + '_ {
        let names = self.0.iter().filter_map(Secret::name);
        names.map(str::to_owned)
    }

    /// Returns the text without any of the secrets.
    pub(crate) fn strike_out(&self, text: String) -> String {
        let secrets = self.0.iter();
        secrets.fold(text, |text, secret| secret.strike_out(text))
    }

    /// Removes the secrets from all text parts.
    pub(crate) fn strike_out_of(&self, parts: &mut [Part]) {
        for part in parts {
            if let Part::Text { text } = part {
                *text = self.strike_out(std::mem::take(text));
            }
        }
    }
}

/// Returns the key in Base64 (both alphabets, at all three alignments) and hexadecimal.
fn encoded(bytes: &[u8]) -> Vec<String> {
    let mut spellings: Vec<String> = Vec::new();
    for before in 0..3 {
        let standard = base64(bytes, before);
        let url = standard.replace('+', "-").replace('/', "_");
        spellings.extend([standard, url]);
    }
    let hexadecimal = bytes.iter().map(|byte| format!("{byte:02x}"));
    let hexadecimal: String = hexadecimal.collect();
    spellings.extend([hexadecimal.to_uppercase(), hexadecimal]);
    spellings.dedup();
    spellings
}

/// Returns the part of a Base64 text that contains these bytes after `before` others.
fn base64(bytes: &[u8], before: usize) -> String {
    let all = [vec![0; before].as_slice(), bytes].concat();
    // Other bytes affect the characters before the first and after the last whole one.
    let (first, last) = ((before * 8).div_ceil(6), all.len() * 8 / 6);
    let text = STANDARD_NO_PAD.encode(all);
    text.get(first..last).unwrap_or_default().to_owned()
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
        assert_eq!(
            key.strike_out(echo.clone()),
            "Incorrect key: [secret] ([secret])"
        );
        let named = key.clone().named("MY_KEY");
        assert_eq!(
            named.strike_out(echo),
            "Incorrect key: [secret MY_KEY] ([secret MY_KEY])"
        );
        assert_eq!(named, key);
    }

    #[test]
    fn a_key_in_another_spelling_is_struck_out_as_well() {
        let key = Secret::new("sk-SUPER?SECRET>KEY~1");
        // As printed by `base64` and `xxd -p`, alone and after `user:` and other texts.
        for echo in [
            "c2stU1VQRVI/U0VDUkVUPktFWX4xCg==",
            "c2stU1VQRVI_U0VDUkVUPktFWX4x",
            "dXNlcjpzay1TVVBFUj9TRUNSRVQ+S0VZfjEK",
            "dXNlcjpzay1TVVBFUj9TRUNSRVQ-S0VZfjE=",
            "bWU6c2stU1VQRVI/U0VDUkVUPktFWX4xCg==",
            "bWU6c2stU1VQRVI_U0VDUkVUPktFWX4x",
            "eDpzay1TVVBFUj9TRUNSRVQ+S0VZfjEK",
            "eDpzay1TVVBFUj9TRUNSRVQ-S0VZfjE=",
            "YWJzay1TVVBFUj9TRUNSRVQ+S0VZfjEK",
            "YWJzay1TVVBFUj9TRUNSRVQ-S0VZfjE=",
            "736b2d53555045523f5345435245543e4b45597e31",
            "736B2D53555045523F5345435245543E4B45597E31",
        ] {
            let struck = key.strike_out(format!("<{echo}>"));
            let left = struck.replace("[secret]", "");
            assert!(struck != left && left.len() < 14, "{echo} became {struck}");
        }
        let part = "<sk-SUPER>".to_owned();
        assert_eq!(key.strike_out(part.clone()), part);
    }

    #[test]
    fn a_word_in_place_of_a_key_garbles_nothing() {
        let said = "the local model".to_owned();
        assert_eq!(Secret::new("local").strike_out(said.clone()), said);
        assert_eq!(Secret::new("").strike_out(said.clone()), said);
        for (value, is_key) in [
            ("sk-0123456789", true),
            ("hunter2hunter2", true),
            ("correct-horse-battery-staple", true),
            ("postgresql", false),
            ("true", false),
            ("1234567890", false),
            ("a phrase of several words 1", false),
        ] {
            assert_eq!(Secret::new(value).looks_like_a_key(), is_key, "{value}");
        }
    }
}
