//! [`Secret`]: a key. It is never printed, logged or written into an error, and it is struck out
//! wherever others repeat it. [`Secrets`] are those of one run, which are struck out of what its tools
//! return.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use plimsoll_context::Part;

use crate::process::looks_secret;

/// Shorter keys are words that people put where no key is needed (`none`, `dummy`, `local`); striking
/// them out would only garble a text.
const MIN_STRUCK: usize = 9;
/// A text of so many characters without a blank is no word.
const NO_WORD: usize = 20;

/// A key. Has no `Display`, cannot be serialised, and its `Debug` says nothing.
#[derive(Clone)]
pub struct Secret(Arc<Spellings>);

#[derive(Clone)]
struct Spellings {
    text: String,
    /// The variable that it was in.
    name: Option<String>,
    /// The same as others may repeat it.
    encoded: Vec<String>,
}

/// Secrets that are struck out of what tools return.
#[derive(Clone, Default, Debug)]
pub(crate) struct Secrets(Arc<[Secret]>);

impl Secret {
    /// A key; white space around it, which comes with copying, is not part of it.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = text.trim().to_owned();
        let encoded = match text.len() < MIN_STRUCK {
            true => Vec::new(),
            false => encoded(text.as_bytes()),
        };
        let name = None;
        Self(Arc::new(Spellings {
            text,
            name,
            encoded,
        }))
    }

    /// Says in which variable of the environment it was. `[secret NAME]` replaces it in texts, and child
    /// processes do not get the variable.
    #[must_use]
    pub fn named(mut self, variable: &str) -> Self {
        Arc::make_mut(&mut self.0).name = Some(variable.to_owned());
        self
    }

    /// Returns the variable of the environment that it was in, if that is known.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.0.name.as_deref()
    }

    /// The key in a header, if its name says that there is one: in `Authorization: Bearer KEY` it is `KEY`.
    #[must_use]
    pub fn of_header(name: &str, value: &str) -> Option<Self> {
        let key = Self::new(value.rsplit(' ').next().unwrap_or(value));
        (looks_secret(name) && key.looks_like_a_key()).then_some(key)
    }

    /// The key itself, to be sent and for nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0.text
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.text.is_empty()
    }

    /// Returns `true` if this looks like a key and not like a word, a number or a sentence. A value
    /// that is secret only by its name must look like it, since striking out a word such as
    /// `postgresql` would garble every text that has it.
    #[must_use]
    pub fn looks_like_a_key(&self) -> bool {
        let text = self.expose();
        let has = |is: fn(char) -> bool| text.contains(is);
        let is_mixed = has(char::is_alphabetic) && has(|c| c.is_ascii_digit());
        !has(char::is_whitespace)
            && (text.len() >= NO_WORD || (text.len() >= MIN_STRUCK && is_mixed))
    }

    /// The text without the key, wherever it stood in it, as it is, in Base64 or in hexadecimal.
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
    /// These, and the values of this process's variables that are kept from child processes. The path
    /// of a file is no secret.
    pub(crate) fn with_environment(secrets: impl IntoIterator<Item = Secret>) -> Self {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
            let secret = Secret::new(&value);
            let is_secret = looks_secret(&name) && secret.looks_like_a_key();
            (is_secret && !Path::new(&value).exists()).then(|| secret.named(&name))
        });
        let mut all: Vec<Secret> = Vec::new();
        for secret in variables.chain(secrets) {
            if !all.contains(&secret) {
                all.push(secret);
            }
        }
        // One that has another in it is struck out first, and whole.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
        Self(all.into())
    }

    /// The variables that they were in.
    pub(crate) fn variables(&self) -> impl Iterator<Item = String> + '_ {
        let names = self.0.iter().filter_map(Secret::name);
        names.map(str::to_owned)
    }

    /// The text without any of them.
    pub(crate) fn strike_out(&self, text: String) -> String {
        let secrets = self.0.iter();
        secrets.fold(text, |text, secret| secret.strike_out(text))
    }

    /// Strikes them out of all texts.
    pub(crate) fn strike_out_of(&self, parts: &mut [Part]) {
        for part in parts {
            if let Part::Text { text } = part {
                *text = self.strike_out(std::mem::take(text));
            }
        }
    }
}

/// Base64 (of either alphabet, wherever the bytes begin in what is encoded) and hexadecimal.
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

/// The Base64 of bytes that stand behind so many others, without the characters that others have a part
/// in.
fn base64(bytes: &[u8], before: usize) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bits = 0_u32;
    let mut count = 0;
    let mut text = String::new();
    let all = std::iter::repeat_n(&0, before).chain(bytes);
    for byte in all {
        bits = (bits << 8) | u32::from(*byte);
        count += 8;
        while count >= 6 {
            count -= 6;
            let letter = ALPHABET.get((bits >> count) as usize & 63);
            text.extend(letter.map(|letter| char::from(*letter)));
        }
    }
    // The bytes before take part in so many characters.
    text.split_off((before * 8).div_ceil(6))
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
        // As `base64` and `xxd -p` print it, alone and behind `user:` and other texts.
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
