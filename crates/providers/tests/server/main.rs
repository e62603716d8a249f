//! Providers against a strict server on loopback. Uses no other network and only waits for timeouts
//! of a few milliseconds.

mod calls;
mod detection;
mod messages;
mod mocked;
mod pages;
mod responses;
mod weigh;
mod windows;

use std::sync::{Arc, Mutex};

use mocked::Fake;
use plimsoll_agent::{Expects, Failure, Request, Sampling, ToolChoice};
use plimsoll_context::{
    CachePlan, CallId, Delta, Message, Part, Reply, Thinking, Tokens, ToolCall, ToolSpec,
};
use plimsoll_core::Provider;
use plimsoll_providers::{ModelClient, ModelClientBuilder, Secret, Wire};

const KEY: &str = "sk-0123456789-hush";

fn builder(model: &str, fake: &Fake) -> ModelClientBuilder {
    ModelClient::builder(model)
        .base_url(&fake.address)
        .key(Secret::new(KEY))
}

fn chat(model: &str, fake: &Fake) -> ModelClient {
    builder(model, fake)
        .wire(Wire::Chat)
        .build_with(&|_| None)
        .unwrap()
}

/// A request with all that a history may hold.
fn request() -> Request {
    let call = |id: &str, arguments: &str| {
        Part::ToolCall(ToolCall {
            id: CallId(id.into()),
            name: "read".into(),
            arguments: arguments.into(),
            opaque: None,
        })
    };
    let messages = [
        Message::user("read a and b"),
        Message::Assistant {
            parts: vec![
                Part::Thinking(Thinking {
                    text: "both".into(),
                    opaque: None,
                }),
                call("call_1", "{\"path\":\"a\"}"),
                call("call_2", "{\"path\":\"b\"}"),
            ],
        },
        Message::result(CallId("call_1".into()), "A"),
        Message::error_result(CallId("call_2".into()), "no such file"),
    ];
    Request {
        system: "Be brief.".into(),
        hosted_tools: Arc::default(),
        tools: vec![ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            schema: serde_json::json!({"type": "object"}),
        }]
        .into(),
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        dynamic_context: Some("It is late.".into()),
        tool_choice: ToolChoice::Auto,
        max_output: Some(Tokens(500)),
        sampling: Sampling {
            temperature: Some(0.7),
            seed: Some(7),
            ..Sampling::default()
        },
        counted: Tokens(100),
        cache: CachePlan::default(),
        expects: Expects::default(),
    }
}

async fn call(chat: &ModelClient) -> (Result<Reply, Failure>, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    // What was used is in the reply too.
    let sink = |delta| {
        if !matches!(delta, Delta::Used { .. }) {
            deltas.lock().unwrap().push(delta);
        }
    };
    let reply = chat.call(&request(), &sink).await;
    (reply, deltas.into_inner().unwrap())
}
