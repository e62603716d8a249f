//! The numbered events of a streamed Response, in the API's order. The content comes from `encode.rs`.

use serde_json::{Map, Value, json};

use super::encode::{ended, response};
use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{PendingReply, halves, list, text};
use crate::turn::Turn;

/// The number of events before any content.
pub(crate) const OPENING: usize = 2;

/// Returns all events of a turn.
pub(crate) fn events(turn: &Turn, call: &PendingReply<'_>, items: &[Value]) -> Vec<String> {
    let mut stream = Stream::default();
    let begun = response(call, "in_progress");
    stream.push("response.created", json!({"response": begun}));
    stream.push("response.in_progress", json!({"response": begun}));
    let ended = ended(turn, call, items);
    for (index, item) in list(&ended, "output").iter().enumerate() {
        stream.item(index, item);
    }
    let kind = format!("response.{}", text(&ended, "status"));
    stream.push(&kind, json!({"response": ended}));
    stream.0
}

/// Returns the event that ends a stream with a failure: an `error` event for client errors, and a
/// failed response for server errors and for a request that is too long.
pub(crate) fn broken(failure: &HttpAnswer, call: &PendingReply<'_>, after: usize) -> String {
    let error = match &failure.body {
        AnswerBody::Whole(body) => body.get("error").cloned().unwrap_or_default(),
        _ => Value::Null,
    };
    let code = error.get("code").cloned().unwrap_or_default();
    let message = error.get("message").cloned().unwrap_or_default();
    let over = code == "context_length_exceeded";
    if failure.status < 500 && !over {
        let keys = json!({"code": code, "message": message, "param": error.get("param")});
        return event("error", keys, after);
    }
    let mut failed = response(call, "failed");
    if let Some(place) = failed.get_mut("error") {
        *place = json!({"code": code, "message": message});
    }
    event("response.failed", json!({"response": failed}), after)
}

/// Events with their numbers.
#[derive(Default)]
struct Stream(Vec<String>);

impl Stream {
    fn push(&mut self, kind: &str, keys: Value) {
        let event = event(kind, keys, self.0.len());
        self.0.push(event);
    }

    fn item(&mut self, index: usize, item: &Value) {
        let kind = text(item, "type");
        let mut begun = item.clone();
        if let Some(keys) = begun.as_object_mut() {
            let empty: &[(&str, Value)] = match kind {
                "message" => &[("content", json!([]))],
                "reasoning" => &[("summary", json!([]))],
                "custom_tool_call" => &[("input", json!(""))],
                "function_call" => &[("arguments", json!(""))],
                _ => &[],
            };
            for (key, value) in empty {
                keys.insert((*key).to_owned(), value.clone());
            }
            if kind == "reasoning" {
                keys.shift_remove("content");
            }
            if let Some(status) = keys.get_mut("status") {
                *status = "in_progress".into();
            }
        }
        self.push(
            "response.output_item.added",
            json!({"output_index": index, "item": begun}),
        );
        let of = At {
            item: text(item, "id"),
            index,
        };
        match kind {
            "message" => self.message(of, item),
            "reasoning" => self.reasoning(of, item),
            "custom_tool_call" => self.call(of, item, "custom_tool_call_input", "input"),
            "function_call" => self.call(of, item, "function_call_arguments", "arguments"),
            _ => {}
        }
        self.push(
            "response.output_item.done",
            json!({"output_index": index, "item": item}),
        );
    }

    fn message(&mut self, at: At<'_>, item: &Value) {
        for (number, part) in list(item, "content").iter().enumerate() {
            let of = |keys: Value| at.with("content_index", number, keys);
            let full_text = text(part, "text");
            let mut begun = part.clone();
            for (key, value) in [("text", json!("")), ("annotations", json!([]))] {
                if let Some(place) = begun.get_mut(key) {
                    *place = value;
                }
            }
            self.push("response.content_part.added", of(json!({"part": begun})));
            for half in halves(full_text) {
                let keys = json!({"delta": half, "logprobs": []});
                self.push("response.output_text.delta", of(keys));
            }
            for (place, annotation) in list(part, "annotations").iter().enumerate() {
                let keys = json!({"annotation_index": place, "annotation": annotation});
                self.push("response.output_text.annotation.added", of(keys));
            }
            let keys = json!({"text": full_text, "logprobs": []});
            self.push("response.output_text.done", of(keys));
            self.push("response.content_part.done", of(json!({"part": part})));
        }
    }

    fn reasoning(&mut self, at: At<'_>, item: &Value) {
        for (number, part) in list(item, "summary").iter().enumerate() {
            let of = |keys: Value| at.with("summary_index", number, keys);
            let full_text = text(part, "text");
            let begun = json!({"type": "summary_text", "text": ""});
            let kind = |event: &str| format!("response.reasoning_summary_{event}");
            self.push(&kind("part.added"), of(json!({"part": begun})));
            for half in halves(full_text) {
                self.push(&kind("text.delta"), of(json!({"delta": half})));
            }
            self.push(&kind("text.done"), of(json!({"text": full_text})));
            self.push(&kind("part.done"), of(json!({"part": part})));
        }
        for (number, part) in list(item, "content").iter().enumerate() {
            let of = |keys: Value| at.with("content_index", number, keys);
            let full_text = text(part, "text");
            for half in halves(full_text) {
                self.push("response.reasoning_text.delta", of(json!({"delta": half})));
            }
            self.push(
                "response.reasoning_text.done",
                of(json!({"text": full_text})),
            );
        }
    }

    fn call(&mut self, at: At<'_>, item: &Value, events: &str, key: &str) {
        let payload = text(item, key);
        for half in halves(payload) {
            let keys = at.keys(json!({"delta": half}));
            self.push(&format!("response.{events}.delta"), keys);
        }
        let mut keys = at.keys(json!({ key: payload }));
        if let Some(keys) = keys.as_object_mut().filter(|_| key == "arguments") {
            keys.insert("name".into(), text(item, "name").into());
        }
        self.push(&format!("response.{events}.done"), keys);
    }
}

/// The item that an event concerns.
#[derive(Clone, Copy)]
struct At<'i> {
    item: &'i str,
    index: usize,
}

impl At<'_> {
    fn keys(self, more: Value) -> Value {
        let mut keys = Map::new();
        keys.insert("item_id".into(), self.item.into());
        keys.insert("output_index".into(), self.index.into());
        keys.extend(more.as_object().cloned().unwrap_or_default());
        Value::Object(keys)
    }

    fn with(self, place: &str, number: usize, more: Value) -> Value {
        let mut keys = self.keys(more);
        if let Some(keys) = keys.as_object_mut() {
            keys.insert(place.to_owned(), number.into());
        }
        keys
    }
}

fn event(kind: &str, keys: Value, number: usize) -> String {
    let mut event = Map::new();
    event.insert("type".into(), kind.into());
    event.insert("sequence_number".into(), number.into());
    event.extend(keys.as_object().cloned().unwrap_or_default());
    let event = Value::Object(event);
    format!("event: {kind}\ndata: {event}\n\n")
}
