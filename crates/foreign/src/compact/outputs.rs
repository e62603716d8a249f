//! Outputs of the provider's own tools that the client runs, such as a local shell of Responses.
//!
//! `wire` reads such an output as a block in the user's role. In the view of a plan it is the result of its
//! call, so that no plan separates the two.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Opaque, Part, ToolResult, head_tail};
use plimsoll_wire::__internals::openai_responses::items;
use serde_json::Value;

/// The size to which a plan shortens each text of such an output.
const SHORT: Bytes = Bytes(256);

/// Returns the messages that are such outputs, with the ids of their calls.
pub(super) fn of(messages: &[Message]) -> BTreeMap<usize, CallId> {
    let messages = messages.iter().enumerate();
    let outputs = messages.filter_map(|(index, message)| match (message, message.parts()) {
        (Message::User { .. }, [Part::Opaque(opaque)]) => Some((index, answered(opaque)?)),
        _ => None,
    });
    outputs.collect()
}

/// Returns the item or the block of another protocol's part.
pub(super) fn item(opaque: &Opaque) -> Value {
    serde_json::from_str(&opaque.data).unwrap_or_default()
}

/// Returns the id of the call that an output answers.
fn answered(opaque: &Opaque) -> Option<CallId> {
    let item = item(opaque);
    let is_output = items::is_output(items::kind(&item));
    is_output.then(|| CallId(items::call_id(&item).unwrap_or_default().to_owned()))
}

/// Returns an output as the result of its call.
pub(super) fn as_result(message: &Message, call: &CallId) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResult {
        call: call.clone(),
        parts: message.parts().to_vec(),
        is_error: false,
    }))
}

/// Shortens the texts of an output. A screenshot stays.
pub(super) fn shorten(item: &mut Value) {
    if items::kind(item) != "computer_call_output"
        && let Some(output) = item.get_mut("output")
    {
        shorten_texts(output);
    }
}

fn shorten_texts(value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Some(short) = head_tail(text, SHORT) {
                *text = short;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(shorten_texts),
        Value::Object(object) => object.values_mut().for_each(shorten_texts),
        _ => {}
    }
}
