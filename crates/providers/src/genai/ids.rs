//! Ids of tool calls as Converse accepts them: letters, digits, `_` and `-`, 64 at most, each once
//! in a request. The map depends on the ids before it alone, so that a call keeps its id while the
//! history only grows. Other APIs get ids as they are, or none.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sha2::{Digest, Sha256};

/// The longest id.
const MAX_ID: usize = 64;
/// How much of an id stays readable where it has to be mapped.
const KEPT: usize = 40;
/// Bytes of the digest that tells mapped ids apart.
const DIGEST: usize = 6;

/// The ids of one request.
#[derive(Debug, Default)]
pub(super) struct Ids {
    taken: BTreeSet<String>,
    /// Calls of the newest batch that wait for their results.
    open: BTreeMap<String, VecDeque<String>>,
}

impl Ids {
    /// A batch begins: what was open is never answered.
    pub(super) fn batch(&mut self) {
        self.open.clear();
    }

    /// The id of a call.
    pub(super) fn call(&mut self, id: &str) -> String {
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
    pub(super) fn result(&mut self, id: &str) -> String {
        let open = self.open.get_mut(id).and_then(VecDeque::pop_front);
        open.unwrap_or_else(|| legal(id))
    }
}

fn legal(id: &str) -> String {
    let fits = !id.is_empty() && id.len() <= MAX_ID && id.chars().all(is_legal);
    if fits { id.to_owned() } else { salted(id, 1) }
}

fn is_legal(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// An id made of another's readable part and its digest.
fn salted(id: &str, salt: u64) -> String {
    let digest = Sha256::new()
        .chain_update(id.as_bytes())
        .chain_update(salt.to_le_bytes())
        .finalize();
    let digest = digest.iter().take(DIGEST);
    let digest: String = digest.map(|byte| format!("{byte:02x}")).collect();
    let kept: String = id.chars().filter(|c| is_legal(*c)).take(KEPT).collect();
    format!("{kept}_{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_legal_once_and_finds_its_result() {
        let mut ids = Ids::default();
        ids.batch();
        let calls: Vec<String> = ["toolu_1", "call#read#0", "call#read#0", ""]
            .map(|id| ids.call(id))
            .into();
        let results: Vec<String> = ["toolu_1", "call#read#0", "call#read#0", ""]
            .map(|id| ids.result(id))
            .into();
        assert_eq!(calls, results);
        assert_eq!(calls.first().map(String::as_str), Some("toolu_1"));
        let distinct: BTreeSet<&String> = calls.iter().collect();
        assert_eq!(distinct.len(), 4);
        for id in calls {
            assert!(id.len() <= MAX_ID && id.chars().all(is_legal), "{id}");
        }
        ids.batch();
        assert_ne!(ids.call("toolu_1"), "toolu_1", "once in a request");
    }
}
