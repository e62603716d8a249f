//! [`RequestVerdict`]: whether a parsed request is valid. If it is not, [`repair_request`](super::repair_request)
//! repairs it.

use plimsoll_context::{Message, repair};
use serde_json::Value;

use super::opaque;
use super::repair_attempt::judge_parsed;
use super::{Form, Target};

/// The verdict of a wire's validator on a parsed request.
#[derive(Debug)]
pub(crate) struct RequestVerdict {
    /// Whether the validator accepts the request.
    pub(crate) is_accepted: bool,
    /// The target for this request or history.
    pub(super) target: Target,
    stored: bool,
}

impl RequestVerdict {
    /// Judges a request or a history. Removes keys of a history that are not settings.
    pub(crate) fn new(json: &mut Value, target: &Target) -> Self {
        let adapted = target.form().adapted(json);
        let target = adapted.unwrap_or_else(|| target.clone());
        let stored = json.is_object() && json.get("store") != Some(&Value::Bool(false));
        Self {
            is_accepted: judge_parsed(json, &target).is_empty(),
            target,
            stored,
        }
    }

    /// Returns the list of messages of the request that was judged.
    pub(crate) fn list(&self, mut json: Value) -> Option<Vec<Value>> {
        let list = if json.is_array() {
            json
        } else {
            json.get_mut(self.target.list())?.take()
        };
        match list {
            Value::Array(list) => Some(list),
            _ => None,
        }
    }

    /// Returns the messages, or `None` if they need repairs that the validator does not require.
    pub(crate) fn unrepaired(&self, mut messages: Vec<Message>) -> Option<Vec<Message>> {
        if !opaque::clean(&mut messages, &self.target, self.stored).is_empty() {
            return None;
        }
        let whole = repair(messages);
        let messages = whole.messages.into_iter().map(|(_, message)| message);
        whole.repairs.is_empty().then(|| messages.collect())
    }
}
