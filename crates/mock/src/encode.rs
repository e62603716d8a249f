//! Encodes a turn in the format of a protocol, as one body or as the events of a stream. Both have the same
//! parts, in the same order; [`Frames`](crate::frames::Frames) has their form.

use serde_json::{Value, json};

use crate::answer::{AnswerBody, HttpAnswer};
use crate::api::{Api, PendingReply, text, with};
use crate::turn::{Call, Turn};

/// A part of a turn, independent of the protocol.
pub(crate) enum TurnPart<'t> {
    Thought(&'t str),
    /// A text and its citations. `is_after` is the text after the calls.
    Text {
        text: &'t str,
        citations: &'t [Value],
        is_after: bool,
    },
    /// A part in the protocol's format.
    Block(&'t Value),
    /// A call and its index.
    Call(usize, &'t Call),
}

/// A part of an answer: its templates and their values.
pub(crate) struct AnswerPart {
    pub(crate) frame: &'static str,
    pub(crate) values: Value,
}

impl AnswerPart {
    pub(crate) fn new(frame: &'static str, values: Value) -> Self {
        Self { frame, values }
    }

    /// Creates a part whose text is streamed in two halves.
    pub(crate) fn text(frame: &'static str, text: &str, values: Value) -> Self {
        let halves = halves(text);
        Self::new(frame, with(values, json!({"text": text, "halves": halves})))
    }
}

/// Returns the parts of a turn, with this thought. Empty texts are omitted.
pub(crate) fn turn_parts<'t>(turn: &'t Turn, thought: Option<&'t str>) -> Vec<TurnPart<'t>> {
    let said = |text: &'t Option<String>, citations, is_after| {
        let text = text.as_deref().filter(|text| !text.is_empty());
        text.map(|text| TurnPart::Text {
            text,
            citations,
            is_after,
        })
    };
    let calls = turn.call.iter().enumerate();
    let thought = thought.map(TurnPart::Thought).into_iter();
    thought
        .chain(said(&turn.say, &turn.citations, false))
        .chain(turn.blocks.iter().map(TurnPart::Block))
        .chain(calls.map(|(at, call)| TurnPart::Call(at, call)))
        .chain(said(&turn.say_after, &[], true))
        .collect()
}

/// Returns the body for a turn, streamed if the request asks for it.
pub(crate) fn body(api: &dyn Api, turn: &Turn, reply: &PendingReply<'_>) -> AnswerBody {
    let frames = api.frames();
    let usage = |values: &_| with(frames.one("usage", values), turn.usage.clone().into());
    let begun = reply.values();
    let begun = begun.with(json!({ "begun_usage": usage(&begun) }));
    let mut events = frames.events("start", &begun);
    let mut output = Vec::new();
    for (index, part) in api.parts(turn, reply).into_iter().enumerate() {
        let first: &[()] = if index == 0 { &[()] } else { &[] };
        let place = json!({"index": index, "first": first});
        let values = begun.with(part.values).with(place);
        let whole = frames.whole(part.frame, &values);
        let values = values.with(json!({ "whole": whole }));
        events.extend(frames.events(part.frame, &values));
        output.extend(whole);
    }
    let used = &reply.used;
    let ended = begun.with(json!({
        "output_tokens": used.output,
        "reasoning": used.reasoning,
        "visible": used.output.minus(used.reasoning),
        "total": used.input + used.output,
        "output": output,
    }));
    let ended = ended
        .with(json!({ "usage": usage(&ended) }))
        .with(api.ended(turn, reply, &output));
    if !reply.streams() {
        return AnswerBody::Whole(frames.one("answer", &ended));
    }
    let events = api.stream(events, &begun, &ended).into_iter().enumerate();
    AnswerBody::Events(events.map(|(at, event)| api.event(event, at)).collect())
}

/// Returns the event that ends a stream with a failure; `after` is the number of events before it.
pub(crate) fn broken(
    api: &dyn Api,
    failure: &HttpAnswer,
    reply: &PendingReply<'_>,
    after: usize,
) -> String {
    let AnswerBody::Whole(body) = &failure.body else {
        return String::new();
    };
    let error = body.get("error").unwrap_or(body);
    let values = reply.values().with(json!({
        "failure": body,
        "error": error,
        "code": failure.status,
        "status": "failed",
        "failed": {"code": error.get("code"), "message": error.get("message")},
    }));
    let frame = api.failed_frame(failure.status, error);
    api.event(api.frames().one(frame, &values), after)
}

/// Formats an event, with its name if it has a type.
pub(crate) fn sse(event: &Value) -> String {
    match event {
        Value::String(data) => format!("data: {data}\n\n"),
        event if text(event, "type").is_empty() => format!("data: {event}\n\n"),
        event => format!("event: {}\ndata: {event}\n\n", text(event, "type")),
    }
}

/// Splits a text into two pieces. Empty pieces are omitted.
pub(crate) fn halves(text: &str) -> Vec<&str> {
    let (one, other) = text
        .split_at_checked(text.floor_char_boundary(text.len() / 2))
        .unwrap_or((text, ""));
    let halves = [one, other].into_iter();
    halves.filter(|half| !half.is_empty()).collect()
}
