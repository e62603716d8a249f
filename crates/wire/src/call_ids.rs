//! [`CallIdMap`]: the ids of the tool calls in one request. Each is unique and has the form that the API
//! accepts, because some servers count anew in every turn (`call_0`), and other providers' ids are longer.
//!
//! A mapped id depends only on the ids before it, so a call keeps its id while the history grows, and the
//! prompt cache stays valid.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};

/// The maximum length of a call's id, in characters: that of the strictest server of each protocol,
/// because a gateway may forward a request to any of them.
pub(crate) const MAX_ID: usize = 40;
/// The length of an id at Mistral.
const NINE: usize = 9;
/// The number of readable characters in a mapped id. With an underscore and the digits, it has at most
/// [`MAX_ID`] characters.
const KEPT: usize = 27;
/// The number of digits that distinguish mapped ids.
const DIGITS: usize = 12;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The ids that an API accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallIdForm {
    /// 1 to 40 visible ASCII characters: OpenAI's protocols, Gemini.
    Visible,
    /// 1 to 40 letters, digits, `_` and `-`: Anthropic Messages (AM5), Bedrock Converse.
    Word,
    /// Nine letters or digits: Mistral (OC7).
    NineAlphanumeric,
}

/// Maps the ids of a history to the ids of one request.
#[derive(Debug)]
pub struct CallIdMap {
    form: CallIdForm,
    taken: HashSet<String>,
    /// The number of mapped ids that were tried for each id that needed one.
    salts: HashMap<String, u64>,
    /// The calls that wait for a result, by the id in the history, oldest first.
    open: HashMap<String, VecDeque<OpenCall>>,
    batch: usize,
}

#[derive(Debug)]
struct OpenCall {
    batch: usize,
    mapped: String,
}

impl CallIdMap {
    /// Creates the map for one request.
    #[must_use]
    pub fn new(form: CallIdForm) -> Self {
        Self {
            form,
            taken: HashSet::new(),
            salts: HashMap::new(),
            open: HashMap::new(),
            batch: 0,
        }
    }

    /// Begins the calls of the next assistant message.
    pub fn batch(&mut self) {
        self.batch += 1;
    }

    /// Returns the id of a call in the request.
    pub fn call<'a>(&mut self, id: &'a str) -> Cow<'a, str> {
        let mut mapped = self.form.legal(id);
        while self.taken.contains(mapped.as_ref()) {
            let salt = self.salts.entry(id.to_owned()).or_default();
            *salt += 1;
            mapped = Cow::Owned(self.form.salted(id, *salt));
        }
        self.taken.insert(mapped.clone().into_owned());
        let call = OpenCall {
            batch: self.batch,
            mapped: mapped.clone().into_owned(),
        };
        self.open.entry(id.to_owned()).or_default().push_back(call);
        mapped
    }

    /// Returns the id in the request of the call that a result answers: the first open call with this
    /// id in the newest batch, or otherwise the last one before it.
    pub fn result<'a>(&mut self, id: &'a str) -> Cow<'a, str> {
        let newest = self.batch;
        let answered = self.open.get_mut(id).and_then(|waiting| {
            let at = waiting.partition_point(|call| call.batch < newest);
            waiting.remove(at).or_else(|| waiting.pop_back())
        });
        match answered {
            Some(call) if call.mapped == id => Cow::Borrowed(id),
            Some(call) => Cow::Owned(call.mapped),
            None => self.form.legal(id),
        }
    }
}

impl CallIdForm {
    /// Returns `true` if the API accepts an id.
    pub fn accepts(self, id: &str) -> bool {
        match self {
            Self::Visible => {
                (1..=MAX_ID).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
            }
            Self::Word => is_word(id) && id.len() <= MAX_ID,
            Self::NineAlphanumeric => {
                id.len() == NINE && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
            }
        }
    }

    /// Returns the id itself if the API accepts it.
    fn legal(self, id: &str) -> Cow<'_, str> {
        if self.accepts(id) {
            Cow::Borrowed(id)
        } else {
            Cow::Owned(self.salted(id, 0))
        }
    }

    /// Returns another id in this form, a different one for each salt.
    fn salted(self, id: &str, salt: u64) -> String {
        if self == Self::NineAlphanumeric {
            return base62(fnv1a(id.as_bytes(), salt));
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(id.as_bytes());
        hasher.update(&salt.to_le_bytes());
        let digest = hasher.finalize().to_hex();
        let digest = digest.as_str().get(..DIGITS).unwrap_or_default();
        let kept = id
            .chars()
            .filter(|c| u8::try_from(*c).is_ok_and(is_word_byte));
        let kept: String = kept.take(KEPT).collect();
        format!("{kept}_{digest}")
    }
}

/// Returns `true` if an id consists of letters, digits, `_` and `-`.
pub fn is_word(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(is_word_byte)
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn base62(mut hash: u64) -> String {
    (0..NINE)
        .map(|_| {
            let digit = (hash % 62) as usize;
            hash /= 62;
            ALPHABET.get(digit).copied().map_or('0', char::from)
        })
        .collect()
}

/// FNV-1a of 64 bits: a fixed function, the same on every machine and in every version.
pub(crate) fn fnv1a(bytes: &[u8], salt: u64) -> u64 {
    let salt = salt.to_le_bytes();
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in bytes.iter().chain(&salt) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMS: [CallIdForm; 3] = [
        CallIdForm::Visible,
        CallIdForm::Word,
        CallIdForm::NineAlphanumeric,
    ];

    #[test]
    fn ids_become_legal_and_stay_so() {
        let long = "x".repeat(MAX_ID + 1);
        for form in FORMS {
            let mut ids = CallIdMap::new(form);
            for id in ["toolu_01", "D681PevKs", "a.b:c", "", "ü", &long] {
                let mapped = ids.call(id).into_owned();
                assert!(form.accepts(&mapped), "{form:?} {mapped}");
                assert_eq!(mapped == id, form.accepts(id), "{form:?} {mapped}");
                assert_eq!(ids.result(id), mapped);
                assert_eq!(CallIdMap::new(form).call(id), mapped);
            }
        }
        let mut ids = CallIdMap::new(CallIdForm::Word);
        assert_ne!(ids.call("a.b"), ids.call("a:b"));
    }

    #[test]
    fn an_id_used_twice_becomes_two() {
        for form in FORMS {
            let mut ids = CallIdMap::new(form);
            let id = "call_0000";
            ids.batch();
            let first = ids.call(id).into_owned();
            assert_eq!(ids.result(id), first);
            ids.batch();
            let second = ids.call(id).into_owned();
            let third = ids.call(id).into_owned();
            assert!(first != second && first != third && second != third);
            assert!(form.accepts(&second) && form.accepts(&third));
            assert_eq!(ids.result(id), second);
            assert_eq!(ids.result(id), third);
            // No call waits for this one.
            assert_eq!(ids.result(id), form.legal(id));
        }
    }

    #[test]
    fn a_mapped_id_that_is_taken_gives_way() {
        for form in FORMS {
            let mut ids = CallIdMap::new(form);
            let first = ids.call("call_0").into_owned();
            let second = ids.call("call_0").into_owned();
            for taken in [&first, &second] {
                let other = ids.call(taken).into_owned();
                assert!(form.accepts(&other) && other != first && other != second);
            }
        }
    }

    /// A result answers a call of the newest batch, and only then an older one.
    #[test]
    fn a_late_result_answers_the_last_call_that_is_open() {
        let mut ids = CallIdMap::new(CallIdForm::Visible);
        let mut mapped = Vec::new();
        for _ in 0..3 {
            ids.batch();
            mapped.push(ids.call("call_0").into_owned());
        }
        for call in mapped.iter().rev() {
            assert_eq!(ids.result("call_0"), call.as_str());
        }
    }
}
