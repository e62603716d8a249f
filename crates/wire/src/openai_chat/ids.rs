//! Ids of tool calls where a server restricts their form. The map depends on the id alone, so
//! that the same call keeps its id in every request. Not the ids themselves; providers give those.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::dialect::CallIds;
use super::types::Text;

/// Length of an id at Mistral.
pub(super) const NINE: usize = 9;

/// The longest id at OpenAI.
pub(super) const MAX_ID: usize = 40;

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// The ids of one request: two different ids never become the same.
#[derive(Debug)]
pub(super) struct Ids {
    rule: CallIds,
    given: BTreeMap<String, String>,
    taken: BTreeSet<String>,
}

impl Ids {
    pub(super) fn new(rule: CallIds) -> Self {
        Self {
            rule,
            given: BTreeMap::new(),
            taken: BTreeSet::new(),
        }
    }

    /// The id as the server accepts it.
    pub(super) fn map<'a>(&mut self, id: &'a str) -> Text<'a> {
        match self.rule {
            CallIds::Any => Cow::Borrowed(id),
            CallIds::UpTo40 if id.chars().count() <= MAX_ID => Cow::Borrowed(id),
            CallIds::UpTo40 => Cow::Owned(short(id)),
            CallIds::NineAlphanumeric => Cow::Owned(self.nine(id)),
        }
    }

    fn nine(&mut self, id: &str) -> String {
        if let Some(known) = self.given.get(id) {
            return known.clone();
        }
        // An id of the right form keeps it, unless a mapped one came to the same before it.
        let mut name = if is_nine(id) {
            id.to_owned()
        } else {
            base62(fnv1a(id.as_bytes(), 0))
        };
        let mut salt = 0;
        while !self.taken.insert(name.clone()) {
            salt += 1;
            name = base62(fnv1a(id.as_bytes(), salt));
        }
        self.given.insert(id.to_owned(), name.clone());
        name
    }
}

/// An id of 128 bits, so that no two of one session meet.
fn short(id: &str) -> String {
    let (one, other) = (fnv1a(id.as_bytes(), 0), fnv1a(id.as_bytes(), 1));
    format!("call_{one:016x}{other:016x}")
}

/// Whether an id is nine letters or digits.
pub(super) fn is_nine(id: &str) -> bool {
    id.len() == NINE && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
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

    #[test]
    fn ids_become_nine_characters_and_stay_so() {
        let mut ids = Ids::new(CallIds::NineAlphanumeric);
        let first = ids.map("call_1").into_owned();
        let second = ids.map("call_2").into_owned();
        assert!(is_nine(&first) && is_nine(&second) && first != second);
        assert_eq!(ids.map("call_1"), first);
        assert_eq!(ids.map("D681PevKs"), "D681PevKs");
        assert_eq!(Ids::new(CallIds::NineAlphanumeric).map("call_1"), first);
        assert_eq!(Ids::new(CallIds::Any).map("call_1"), "call_1");
    }

    #[test]
    fn an_id_that_is_taken_goes_elsewhere() {
        let mut ids = Ids::new(CallIds::NineAlphanumeric);
        let mapped = ids.map("call_1").into_owned();
        let other = ids.map(&mapped).into_owned();
        assert!(is_nine(&other) && other != mapped);
    }
}
