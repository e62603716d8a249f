//! [`CallIds`]: ids of tool calls as the API, and Bedrock's Converse, accept them: letters, digits, `_`
//! and `-` (AM5), each once in a request. The map depends on the ids before it alone, so that a call
//! keeps its id while the history only grows. Not the ids themselves; providers give those.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The longest id that is sent as it is; the API's own have 30 characters.
pub const MAX_ID: usize = 64;
/// How much of an id stays readable where it has to be mapped.
const KEPT: usize = 40;
/// Digits that tell mapped ids apart.
const DIGITS: usize = 12;

/// The ids of one request.
#[derive(Debug, Default)]
pub struct CallIds {
    taken: BTreeSet<String>,
    /// Calls of the newest batch that wait for their results.
    open: BTreeMap<String, VecDeque<String>>,
}

impl CallIds {
    /// A batch begins: what was open is never answered.
    pub fn batch(&mut self) {
        self.open.clear();
    }

    /// The id of a call.
    pub fn call(&mut self, id: &str) -> String {
        let mut mapped = legal(id);
        let mut salt = 1_u64;
        while !self.taken.insert(mapped.clone()) {
            salt += 1;
            mapped = salted(id, salt);
        }
        let open = self.open.entry(id.to_owned()).or_default();
        open.push_back(mapped.clone());
        mapped
    }

    /// The id of the call that a result answers.
    pub fn result(&mut self, id: &str) -> String {
        let open = self.open.get_mut(id).and_then(VecDeque::pop_front);
        open.unwrap_or_else(|| legal(id))
    }
}

/// Whether the API accepts an id.
pub(super) fn is_legal(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(is_legal_byte)
}

fn is_legal_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

fn legal(id: &str) -> String {
    if is_legal(id) && id.len() <= MAX_ID {
        return id.to_owned();
    }
    salted(id, 1)
}

/// An id made of another's readable part and its digest.
fn salted(id: &str, salt: u64) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(id.as_bytes());
    hasher.update(&salt.to_le_bytes());
    let digest = hasher.finalize().to_hex();
    let digest = digest.as_str().get(..DIGITS).unwrap_or_default();
    let kept = id
        .chars()
        .filter(|c| u8::try_from(*c).is_ok_and(is_legal_byte));
    let kept: String = kept.take(KEPT).collect();
    format!("{kept}_{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_become_legal_and_stay_so() {
        let mut ids = CallIds::default();
        assert_eq!(ids.call("toolu_01"), "toolu_01");
        for bad in ["a.b:c", "", "ü", &"x".repeat(MAX_ID + 1)] {
            let mapped = ids.call(bad);
            assert!(is_legal(&mapped) && mapped.len() <= MAX_ID, "{mapped}");
            assert_eq!(ids.result(bad), mapped);
            assert_eq!(CallIds::default().call(bad), mapped);
        }
        assert_ne!(ids.call("a.b"), CallIds::default().call("a:b"));
    }

    #[test]
    fn an_id_used_twice_becomes_two() {
        let mut ids = CallIds::default();
        ids.batch();
        assert_eq!(ids.call("call_0"), "call_0");
        assert_eq!(ids.result("call_0"), "call_0");
        ids.batch();
        let again = ids.call("call_0");
        assert_ne!(again, "call_0");
        let third = ids.call("call_0");
        assert_eq!(ids.result("call_0"), again);
        assert_eq!(ids.result("call_0"), third);
        // Nobody asked for it.
        assert_eq!(ids.result("call_0"), "call_0");
    }
}
