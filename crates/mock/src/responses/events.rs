//! The numbered events of a streamed Response, in the API's order. The content comes from `encode.rs`.

use serde_json::{Value, json};

use super::encode::{ended, response};
use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{PendingReply, halves, list, text, with};
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
    let error = json!({"error": {"code": code, "message": message}});
    let failed = with(response(call, "failed"), error);
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
        let empty = match kind {
            "message" => json!({ "content": [] }),
            "reasoning" => json!({ "summary": [] }),
            "custom_tool_call" => json!({ "input": "" }),
            "function_call" => json!({ "arguments": "" }),
            _ => json!({}),
        };
        let mut begun = with(item.clone(), empty);
        if let Some(keys) = begun.as_object_mut().filter(|_| kind == "reasoning") {
            keys.shift_remove("content");
        }
        if let Some(status) = begun.get_mut("status") {
            *status = "in_progress".into();
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
            let begun = with(part.clone(), json!({"text": "", "annotations": []}));
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
        if key == "arguments" {
            keys = with(keys, json!({"name": text(item, "name")}));
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
        let keys = json!({"item_id": self.item, "output_index": self.index});
        with(keys, more)
    }

    fn with(self, place: &str, number: usize, more: Value) -> Value {
        with(self.keys(more), json!({ place: number }))
    }
}

fn event(kind: &str, keys: Value, number: usize) -> String {
    let event = with(json!({"type": kind, "sequence_number": number}), keys);
    format!("event: {kind}\ndata: {event}\n\n")
}
