//! Clients of all protocols against a strict fake on loopback: single calls, failures, histories of any kind,
//! and runs with the APIs that `tests/server` does not have. Uses no other network and only waits for timeouts
//! of a few milliseconds.

mod calls;
mod eventstream;
mod fake;
mod histories;
mod runs;
mod transport;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fake::{Fake, FakeAnswer, Judge};
use plimsoll_agent::{Expects, Failure, Request, Sampling, ToolChoice};
use plimsoll_context::{
    CachePlan, CallId, Delta, Message, Part, Reply, Thinking, Tokens, ToolSpec,
};
use plimsoll_core::Provider;
use plimsoll_providers::{ModelClient, ModelClientBuilder, ModelRef, Secret, Timeouts};
use plimsoll_testkit::messages::tool_call;
use plimsoll_wire::anthropic::MessagesProfile;
use plimsoll_wire::bedrock::ConverseProfile;
use plimsoll_wire::gemini::GeminiProfile;
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::Value;

const KEY: &str = "sk-0123456789-hush";

/// The model of each API that most tests ask.
const GEMINI: &str = "gemini/gemini-3-pro-preview";
const CONVERSE: &str = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0";

/// A server of the API of that model, with this script.
async fn server(model: &str, script: impl IntoIterator<Item = FakeAnswer>) -> Fake {
    let over = |_: &Value| FakeAnswer::new(500, "the script has ended");
    Fake::answering(judge(model), script, Box::new(over)).await
}

fn judge(model: &str) -> Judge {
    let (vendor, name) = model.split_once('/').unwrap_or((model, "m"));
    match vendor {
        "gemini" | "vertex" => Judge::Gemini(GeminiProfile::of_model(name)),
        "bedrock" => Judge::Converse(ConverseProfile::of_model(name)),
        "anthropic" | "claude" => Judge::Messages(MessagesProfile::of_model(name)),
        "openai-responses" | "responses" => Judge::Responses(ResponsesProfile::openai()),
        _ => {
            let dialect = model.parse::<ModelRef>().unwrap().vendor().dialect;
            Judge::Chat(Dialect::named(dialect).unwrap())
        }
    }
}

fn builder(model: &str, fake: &Fake) -> ModelClientBuilder {
    ModelClient::builder(model)
        .base_url(&fake.address)
        .key(Secret::new(KEY))
}

fn provider(model: &str, fake: &Fake) -> ModelClient {
    builder(model, fake).build_with(&|_| None).unwrap()
}

/// A provider that gives up on silence at once.
fn hasty(model: &str, fake: &Fake) -> ModelClient {
    let timeouts = Timeouts {
        idle: Duration::from_millis(30),
        ..Timeouts::default()
    };
    let builder = builder(model, fake).timeouts(timeouts);
    builder.build_with(&|_| None).unwrap()
}

async fn call(provider: &ModelClient, request: &Request) -> (Result<Reply, Failure>, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    // What was used is in the reply too.
    let sink = |delta| {
        if !matches!(delta, Delta::Used { .. }) {
            deltas.lock().unwrap().push(delta);
        }
    };
    let reply = provider.call(request, &sink).await;
    (reply, deltas.into_inner().unwrap())
}

fn thought(text: &str) -> Part {
    Part::Thinking(Thinking {
        text: text.into(),
        opaque: None,
    })
}

/// A request with all that a history of another provider may hold.
fn request() -> Request {
    let messages = [
        Message::user("read a and b"),
        Message::Assistant {
            parts: vec![
                thought("both"),
                tool_call("call_1", "read", "{\"path\":\"a\"}"),
                tool_call("call_2", "read", "{\"path\":\"b\"}"),
            ],
        },
        Message::result(CallId("call_1".into()), "A"),
        Message::error_result(CallId("call_2".into()), "error: no such file"),
    ];
    request_of(messages)
}

fn request_of(messages: impl IntoIterator<Item = Message>) -> Request {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: format!("Does {name}."),
        schema: serde_json::json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    Request {
        system: "Be brief.".into(),
        hosted_tools: Arc::default(),
        tools: vec![tool("read"), tool("look")].into(),
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        dynamic_context: Some("It is late.".into()),
        tool_choice: ToolChoice::Auto,
        max_output: Some(Tokens(6_000)),
        sampling: Sampling {
            temperature: Some(0.5),
            seed: Some(7),
            ..Sampling::default()
        },
        counted: Tokens(100),
        cache: CachePlan::default(),
        expects: Expects::default(),
    }
}

/// The history grown by a reply and the results of its calls, in order.
fn answered(request: &Request, reply: &Reply) -> Request {
    let mut request = request.clone();
    let said = Message::Assistant {
        parts: reply.parts.clone(),
    };
    let calls: Vec<CallId> = said.calls().map(|call| call.id.clone()).collect();
    Arc::make_mut(&mut request.messages).push(Arc::new(said));
    for (at, id) in calls.into_iter().enumerate() {
        let result = Message::result(id, format!("result {at}"));
        Arc::make_mut(&mut request.messages).push(Arc::new(result));
    }
    request
}
