//! The body of a turn of a session that grows beside one that is rendered whole. Rows for the table of
//! `cargo xtask bench`.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use std::sync::Arc;

use plimsoll_context::{CallId, Message, MessageList, Part, ToolCall, ToolResult};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::{
    BodyChunks, EncodedRequest, RenderInput, WrittenMessages, anthropic, bedrock, gemini,
    openai_chat, openai_responses,
};

use figure::{Amount, Requirement, Unit, median, row, sections, time};

const LENGTHS: [usize; 3] = [100, 1_000, 10_000];
const ROUNDS: usize = 51;
/// A model that binds its thinking to all that it has read.
const CLAUDE: &str = "claude-opus-5-5";
/// Bytes of a result.
const RESULT: usize = 400;

fn main() {
    sections(&[
        ("growing_chat", || {
            growing("Chat", |written, input, messages| {
                openai_chat::render_next(written, input, messages, &Dialect::openai())
            });
        }),
        ("growing_responses", || {
            growing("Responses", |written, input, messages| {
                let profile = openai_responses::ResponsesProfile::openai();
                openai_responses::render_next(written, input, messages, &profile)
            });
        }),
        ("growing_messages", || {
            growing("Messages", |written, input, messages| {
                let profile = anthropic::MessagesProfile::of_model(CLAUDE);
                anthropic::render_next(written, input, messages, &profile)
            });
        }),
        ("growing_gemini", || {
            growing("Gemini", |written, input, messages| {
                let profile = gemini::GeminiProfile::of_model("gemini-3-pro");
                gemini::render_next(written, input, messages, &profile)
            });
        }),
        ("growing_converse", || {
            growing("Converse", |written, input, messages| {
                let profile = bedrock::ConverseProfile::of_model("amazon.nova-pro-v1:0");
                bedrock::render_next(written, input, messages, &profile)
            });
        }),
    ]);
}

fn growing(
    protocol: &str,
    render: impl Fn(&mut WrittenMessages, &RenderInput<'_>, &MessageList) -> EncodedRequest<BodyChunks>,
) {
    let input = RenderInput {
        model: CLAUDE,
        ..RenderInput::default()
    };
    for length in LENGTHS {
        let mut messages: MessageList = (0..length).map(message).collect();
        let mut written = WrittenMessages::default();
        render(&mut written, &input, &messages);
        let (mut grown, mut whole) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let new = [0, 1].map(|n| Arc::new(message(length + 2 * round + n)));
            // The machine adds them, and gives the request its list.
            let spent = time(|| {
                messages.extend(new);
                render(&mut written, &input, &messages.clone())
            });
            grown.push(spent.as_secs_f64() * 1e6);
            let spent = time(|| render(&mut WrittenMessages::default(), &input, &messages));
            whole.push(spent.as_secs_f64() * 1e6);
        }
        let what = format!("{protocol}: body of a turn of a session of {length} messages, grown");
        row(
            &what,
            Amount(median(grown), Unit::Micros),
            Requirement::Nothing,
        );
        let what = format!("{protocol}: the same, rendered whole");
        row(
            &what,
            Amount(median(whole), Unit::Micros),
            Requirement::Nothing,
        );
    }
}

/// A call or its result.
fn message(index: usize) -> Message {
    let id = CallId(format!("call_{}", index / 2));
    if index.is_multiple_of(2) {
        let call = ToolCall {
            id,
            name: "read".to_owned(),
            arguments: format!(r#"{{"path":"books/{index}.txt"}}"#),
            opaque: None,
        };
        return Message::Assistant {
            parts: vec![Part::ToolCall(call)],
        };
    }
    let line = format!("{index}: a ship took on oil\n");
    Message::ToolResult(ToolResult {
        call: id,
        parts: vec![Part::text(line.repeat(RESULT / line.len()))],
        is_error: false,
    })
}
