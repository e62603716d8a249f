//! [`StoredItems`]: the ids of items that a server of Responses stores, and the errors for unknown
//! ones. Items and responses themselves are not stored.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::rules::Fault;
use crate::rules::openai_responses::{TABLE, tied, untied};
use serde_json::Value;

use crate::api::{list, text};
use crate::bounded::BoundedMap;

/// The maximum number of stored ids; the oldest are dropped. A long test has some thousands.
pub const MAX_STORED: usize = 10_000;

/// The ids of stored items, and the ids of items that belong to reasoning items.
#[derive(Debug, Default)]
pub(super) struct StoredItems(Mutex<Ids>);

#[derive(Debug, Default)]
struct Ids {
    known: BoundedMap<String, (), MAX_STORED>,
    ties: BoundedMap<String, String, MAX_STORED>,
}

impl StoredItems {
    /// Stores the ids of a reply if the request allows it, and the relations to reasoning items in
    /// any case.
    pub(super) fn keep(&self, request: &Value, items: &[Value]) {
        let mut ids = self.lock();
        for (id, of) in tied(items) {
            ids.ties.insert(id, of);
        }
        let items = items.iter().map(|item| text(item, "id"));
        for id in items.filter(|id| stores(request) && !id.is_empty()) {
            ids.known.insert(id.to_owned(), ());
        }
    }

    /// Returns the first item of an input that refers to an unknown item: a reference, or reasoning
    /// without content. If the request forbids storing, the validator has already reported it.
    pub(super) fn unknown(&self, request: &Value) -> Option<Fault> {
        if !stores(request) {
            return None;
        }
        let mut ids = self.lock();
        let mut input = list(request, "input").iter().enumerate();
        input.find_map(|(index, item)| {
            let refers = match text(item, "type") {
                "item_reference" => true,
                "reasoning" => text(item, "encrypted_content").is_empty(),
                _ => false,
            };
            let id = text(item, "id");
            let unknown = refers && ids.known.get_mut(id).is_none();
            unknown.then(|| TABLE.fault("unknown-item", format!("input[{index}]"), &[&id]))
        })
    }

    /// Returns the first item that belongs to a reasoning item but appears without it.
    pub(super) fn untied(&self, request: &Value) -> Option<Fault> {
        let mut ids = self.lock();
        untied(request, |id| ids.ties.get_mut(id).cloned())
    }

    fn lock(&self) -> MutexGuard<'_, Ids> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stores(request: &Value) -> bool {
    request.get("store") != Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_oldest_are_forgotten() {
        let stored = StoredItems::default();
        let items = (0..=MAX_STORED).map(|number| json!({"id": format!("rs_{number}")}));
        stored.keep(&json!({}), &items.collect::<Vec<_>>());
        let unknown = |id: &str| {
            let reference = json!({"type": "item_reference", "id": id});
            stored.unknown(&json!({"input": [reference]})).is_some()
        };
        assert!(unknown("rs_0") && !unknown("rs_1"));
    }
}
