//! A text notation of requests, for tests to compare: `u task / a text [c1,c2] / r c1 ok / r! c2
//! no`. Used only by these tests.

use plimsoll_agent::Request;
use plimsoll_context::{CallId, Message, Part, ToolCall};

/// Longer texts are shown by their length.
const LONG: usize = 200;

/// A call from `id:tool` or `id:tool:arguments`.
pub(crate) fn call(written: &str) -> Part {
    let mut pieces = written.splitn(3, ':');
    let mut next = || pieces.next().map(str::to_owned);
    Part::ToolCall(ToolCall {
        id: CallId(next().unwrap()),
        name: next().unwrap(),
        arguments: next().unwrap_or_else(|| "{}".into()),
        opaque: None,
    })
}

pub(crate) fn show(request: &Request) -> String {
    let messages: Vec<String> = request.messages.iter().map(|m| word(m)).collect();
    messages.join(" / ")
}

/// A view, with weights.
pub(crate) fn list(items: &[plimsoll_context::Item]) -> String {
    let words = items.iter().map(|item| {
        let pin = if item.pin.is_some() { "+" } else { "" };
        format!(
            "{pin}{} ({}) {}",
            item.seq,
            item.tokens,
            word(&item.message)
        )
    });
    words.collect::<Vec<String>>().join("\n")
}

fn word(message: &Message) -> String {
    let text = message.text();
    let text = if text.len() > LONG {
        format!("({} bytes)", text.len())
    } else {
        text
    };
    match message {
        Message::System { .. } => format!("s {text}"),
        Message::User { .. } => format!("u {text}"),
        Message::Notice { .. } => format!("n {text}"),
        Message::Summary { .. } => format!("S {text}"),
        Message::ToolResult(result) => {
            let mark = if result.is_error { "r!" } else { "r" };
            format!("{mark} {} {text}", result.call)
        }
        Message::Assistant { .. } => {
            let ids: Vec<&str> = message.calls().map(|call| call.id.0.as_str()).collect();
            let calls = if ids.is_empty() {
                String::new()
            } else {
                format!(" [{}]", ids.join(","))
            };
            let space = if text.is_empty() { "" } else { " " };
            format!("a{space}{text}{calls}")
        }
    }
}
