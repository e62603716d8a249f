//! The body of a request, which is rendered whole. Rows for the table of `cargo xtask bench`.

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use plimsoll_context::{CallId, Message, Part, ToolCall, ToolResult, ToolSpec};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::{RenderInput, RequestRenderer, anthropic, bedrock, gemini, openai_responses};

use figure::{Amount, Requirement, Unit, median, row, sections, time};

const LENGTHS: [usize; 3] = [100, 1_000, 10_000];
const ROUNDS: usize = 51;
/// Tools of the requests that have any.
const TOOLS: usize = 1_000;
/// A model that binds its thinking to all that it has read.
const CLAUDE: &str = "claude-opus-5-5";
/// Bytes of a result.
const RESULT: usize = 400;

fn main() {
    sections(&[
        ("body_chat", || bodies("Chat", &Dialect::openai())),
        ("body_responses", || {
            let profile = openai_responses::ResponsesProfile::openai();
            bodies("Responses", &profile);
        }),
        ("body_messages", || {
            bodies("Messages", &anthropic::MessagesProfile::of_model(CLAUDE));
        }),
        ("body_gemini", || {
            bodies("Gemini", &gemini::GeminiProfile::of_model("gemini-3-pro"));
        }),
        ("body_converse", || {
            let profile = bedrock::ConverseProfile::of_model("amazon.nova-pro-v1:0");
            bodies("Converse", &profile);
        }),
    ]);
}

fn bodies(protocol: &str, renderer: &impl RequestRenderer) {
    let input = RenderInput {
        model: CLAUDE,
        ..RenderInput::default()
    };
    for length in LENGTHS {
        let messages: Vec<Message> = (0..length).map(message).collect();
        let messages: Vec<&Message> = messages.iter().collect();
        let rounds = (0..ROUNDS).map(|_| {
            let spent = time(|| renderer.render(&input, &messages));
            spent.as_secs_f64() * 1e6
        });
        let what = format!("{protocol}: body of a request of {length} messages");
        let spent = Amount(median(rounds.collect()), Unit::Micros);
        row(&what, spent, Requirement::Nothing);
    }
    let tools: Vec<ToolSpec> = (0..TOOLS).map(tool).collect();
    let messages: Vec<Message> = (0..LENGTHS[0]).map(message).collect();
    let messages: Vec<&Message> = messages.iter().collect();
    let input = RenderInput {
        tools: &tools,
        ..input
    };
    let rounds = (0..ROUNDS).map(|_| {
        let spent = time(|| renderer.render(&input, &messages));
        spent.as_secs_f64() * 1e6
    });
    let what = format!("{protocol}: the same of 100 messages and {TOOLS} tools");
    let spent = Amount(median(rounds.collect()), Unit::Micros);
    row(&what, spent, Requirement::Nothing);
}

fn tool(index: usize) -> ToolSpec {
    ToolSpec {
        name: format!("tool_{index}"),
        description: "Reads a page of a book.".to_owned(),
        schema: serde_json::json!({
            "type": "object",
            "properties": { "path": { "type": "string", "description": "The page to read" } },
            "required": ["path"],
        }),
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
