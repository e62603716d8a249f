//! Message contents in the JSON format of the conventions, cut to a limit. Only recorded on
//! request.

use std::borrow::Cow;

use plimsoll_agent::Request;
use plimsoll_context::{Bytes, Message, Part, StopReason, head_tail};
use serde_json::{Value, json};

/// Maximum length of one text in a span, in bytes. Longer texts are shortened in the middle.
pub const MAX_CONTENT_TEXT: Bytes = Bytes(16 * 1024);
/// Approximate maximum size of all messages in a span, in bytes. The newest are kept. A collector
/// accepts a few MB at once, and a batch has hundreds of spans.
pub const MAX_CONTENT: Bytes = Bytes(64 * 1024);

/// Returns the system prompt.
pub(super) fn system(text: &str) -> Option<String> {
    let says = !text.is_empty();
    says.then(|| json!([{"type": "text", "content": cut(text)}]).to_string())
}

/// Returns the messages of a request, up to the limit. The newest are kept.
pub(super) fn input(request: &Request) -> String {
    let context = request.dynamic_context.as_deref();
    let context = context.map(|text| json!({"role": "user", "parts": [of_text(text)]}));
    let newest_first = request.messages.iter().rev();
    let newest_first = newest_first.map(|message| of_message(message));
    let mut room = MAX_CONTENT.0;
    let mut kept = Vec::new();
    for message in context.into_iter().chain(newest_first) {
        let text = message.to_string();
        let size = text.len() as u64;
        if size > room && !kept.is_empty() {
            break;
        }
        room = room.saturating_sub(size);
        kept.push(text);
    }
    kept.reverse();
    format!("[{}]", kept.join(","))
}

/// Returns a reply.
pub(super) fn output(parts: &[Part], stop: StopReason) -> String {
    let parts: Vec<Value> = parts.iter().map(of_part).collect();
    json!([{"role": "assistant", "parts": parts, "finish_reason": finish(stop)}]).to_string()
}

/// Cuts a text that is a complete attribute.
pub(super) fn cut(text: &str) -> Cow<'_, str> {
    head_tail(text, MAX_CONTENT_TEXT).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Returns the stop reason in the terms of the conventions.
pub(super) fn finish(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Stop => "stop",
        StopReason::ToolCalls => "tool_call",
        StopReason::Length | StopReason::Window => "length",
        StopReason::ContentFilter => "content_filter",
        StopReason::Paused => "pause",
        StopReason::Other => "other",
    }
}

fn of_message(message: &Message) -> Value {
    let parts = match message {
        Message::ToolResult(result) => {
            let (id, text) = (&result.call.0, message.text());
            vec![json!({"type": "tool_call_response", "id": id, "response": cut(&text)})]
        }
        Message::Notice { text } | Message::Summary { text } => vec![of_text(text)],
        _ => message.parts().iter().map(of_part).collect(),
    };
    let role = match message {
        Message::System { .. } => "system",
        Message::Assistant { .. } => "assistant",
        Message::ToolResult(_) => "tool",
        _ => "user",
    };
    json!({"role": role, "parts": parts})
}

fn of_text(text: &str) -> Value {
    json!({"type": "text", "content": cut(text)})
}

fn of_part(part: &Part) -> Value {
    match part {
        Part::Text { text } => of_text(text),
        Part::Thinking(thinking) => json!({"type": "reasoning", "content": cut(&thinking.text)}),
        Part::ToolCall(call) => json!({
            "type": "tool_call", "id": call.id.0, "name": call.name, "arguments": cut(&call.arguments),
        }),
        // Their data would take most of the span.
        Part::Image(_) => json!({"type": "image"}),
        Part::File(_) => json!({"type": "document"}),
        Part::Opaque(_) => json!({"type": "opaque"}),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plimsoll_agent::{Expects, Sampling, ToolChoice};
    use plimsoll_context::{CachePlan, Tokens};

    use super::*;

    #[test]
    fn the_newest_messages_are_kept_and_the_json_stays_whole() {
        let long = "é".repeat(40_000);
        let messages = (0..40).map(|_| Message::user(long.clone()));
        let messages = messages.chain([Message::user("the newest")]);
        let messages = Arc::new(messages.map(Arc::new).collect());
        let request = Request {
            system: "".into(),
            tools: Arc::default(),
            hosted_tools: Arc::default(),
            messages,
            dynamic_context: None,
            tool_choice: ToolChoice::Auto,
            max_output: None,
            sampling: Sampling::default(),
            counted: Tokens(0),
            cache: CachePlan::default(),
            expects: Expects::default(),
        };
        let text = input(&request);
        assert!(text.len() as u64 <= MAX_CONTENT.0 + 100, "{}", text.len());
        let kept: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert!((2..6).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept.last().unwrap()["parts"][0]["content"], "the newest");
    }
}
