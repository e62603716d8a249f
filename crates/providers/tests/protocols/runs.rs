//! Whole runs of thirty turns with parallel calls and thinking. The fakes validate every request
//! and check that each signature is sent back in its place.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use plimsoll_agent::ThinkingLevel;
use plimsoll_context::Tokens;
use plimsoll_core::{Agent, AgentOutput, ToolError, Window, tool};
use serde_json::{Value, json};

use super::eventstream;
use super::fake::{Fake, FakeAnswer};
use super::{CONVERSE, GEMINI, judge, provider};

const TURNS: usize = 30;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    /// What at.
    at: u64,
}

/// What is looked at in the turn of this number: it asks for one to three things at once.
fn things(turn: usize) -> impl Iterator<Item = usize> {
    (0..=turn % 3).map(move |index| turn * 10 + index)
}

fn signature(turn: usize) -> String {
    format!("c2lnLQ{turn:02}")
}

/// A Gemini that thinks, asks for things in every turn but the last, and signs the first of them.
fn gemini(turn: usize) -> FakeAnswer {
    let frame = |parts: Value, finish: Option<&str>| {
        json!({"candidates": [{"content": {"role": "model", "parts": parts},
            "finishReason": finish}], "modelVersion": "gemini-3-pro-preview",
            "usageMetadata": {"promptTokenCount": 1000 + turn, "candidatesTokenCount": 20,
                "thoughtsTokenCount": 10}})
        .to_string()
    };
    if turn == TURNS - 1 {
        let said = frame(json!([{"text": "All seen."}]), Some("STOP"));
        return FakeAnswer::events(&[&said]);
    }
    let calls: Vec<Value> = things(turn)
        .map(|at| {
            let call = json!({"functionCall": {"name": "look", "args": {"at": at}}});
            let mut call = call.as_object().unwrap().clone();
            if at % 10 == 0 {
                call.insert("thoughtSignature".into(), signature(turn).into());
            }
            Value::Object(call)
        })
        .collect();
    let thought = frame(json!([{"text": "Let me see.", "thought": true}]), None);
    FakeAnswer::events(&[
        &thought,
        &frame(calls.into(), None),
        &frame(json!([]), Some("STOP")),
    ])
}

/// Whether every call in the history has the signature that it came with, and no other.
fn signed_as_given(request: &Value) -> Result<(), String> {
    for content in request["contents"].as_array().unwrap() {
        for part in content["parts"].as_array().unwrap() {
            let Some(at) = part["functionCall"]["args"]["at"].as_u64() else {
                continue;
            };
            let at = usize::try_from(at).unwrap();
            let given = (at % 10 == 0).then(|| signature(at / 10));
            if part["thoughtSignature"].as_str() != given.as_deref() {
                return Err(format!("call {at}: {}", part["thoughtSignature"]));
            }
        }
    }
    Ok(())
}

fn refused(why: &str) -> FakeAnswer {
    let error = json!({"error": {"code": 400, "message": why, "status": "INVALID_ARGUMENT"}});
    FakeAnswer::new(400, error.to_string())
}

async fn run(model: &str, fake: &Fake, window: u64, long: usize) -> AgentOutput {
    let look = move |input: Look| async move {
        let there = "is there. ".repeat(long);
        Ok::<_, ToolError>(format!("{} {there}", input.at))
    };
    let agent = Agent::builder(provider(model, fake))
        .tool(tool("look", "Looks.", look).idempotent())
        .system("Be brief.")
        .thinking_level(ThinkingLevel::Medium)
        .max_tokens(Tokens(1_500))
        .window(Window::Known(Tokens(window)))
        .build()
        .unwrap();
    agent.run(&"Look at everything. ".repeat(20)).await.unwrap()
}

#[tokio::test]
async fn thirty_turns_of_gemini_are_valid_at_every_request() {
    for model in [GEMINI, "gemini/gemini-3.6-flash", "gemini/gemini-2.5-pro"] {
        let turn = AtomicUsize::new(0);
        let then = move |request: &Value| match signed_as_given(request) {
            Ok(()) => gemini(turn.fetch_add(1, Ordering::SeqCst)),
            Err(why) => refused(&why),
        };
        let fake = Fake::answering(judge(model), [], Box::new(then)).await;
        let output = run(model, &fake, 200_000, 1).await;
        assert_eq!(output.text, "All seen.", "{output:?}");
        assert_eq!(output.turns, TURNS as u64);
        let asked = fake.asked();
        assert_eq!(asked.len(), TURNS, "none was refused");
        let last = asked[TURNS - 1].body.to_string();
        assert_eq!(last.matches("thoughtSignature").count(), TURNS - 1);
        assert_eq!(
            last.matches("functionResponse").count(),
            last.matches("functionCall\"").count()
        );
        // What was sent is never rewritten: each request begins as the one before.
        for pair in asked.windows(2) {
            let contents = |at: usize| pair[at].body["contents"].as_array().unwrap().clone();
            let (before, after) = (contents(0), contents(1));
            assert_eq!(after[..before.len()], before);
        }
    }
}

#[tokio::test]
async fn a_run_of_gemini_whose_window_is_small_stays_valid() {
    let turn = AtomicUsize::new(0);
    let told = AtomicBool::new(false);
    let then = move |request: &Value| {
        if turn.load(Ordering::SeqCst) == 12 && !told.swap(true, Ordering::SeqCst) {
            return refused(
                "The input token count (9000) exceeds the maximum number of tokens allowed (8000).",
            );
        }
        match signed_as_given(request) {
            Ok(()) => gemini(turn.fetch_add(1, Ordering::SeqCst)),
            Err(why) => refused(&why),
        }
    };
    let fake = Fake::answering(judge(GEMINI), [], Box::new(then)).await;
    let output = run(GEMINI, &fake, 8_000, 100).await;
    assert_eq!(output.text, "All seen.", "{output:?}");
    assert!(output.plans >= 2, "it was compacted: {output:?}");
    assert_eq!(
        fake.asked().len(),
        TURNS + 1,
        "one overflow and no other refusal"
    );
}

#[tokio::test]
async fn thirty_turns_of_converse_are_valid_at_every_request() {
    for (model, window, long) in [
        (CONVERSE, 200_000, 1),
        (CONVERSE, 8_000, 100),
        ("bedrock/us.amazon.nova-2-lite-v1:0", 200_000, 1),
        ("bedrock/mistral.mistral-large-2407-v1:0", 8_000, 100),
    ] {
        let turn = AtomicUsize::new(0);
        let then = move |_: &Value| converse(turn.fetch_add(1, Ordering::SeqCst), model);
        let fake = Fake::answering(judge(model), [], Box::new(then)).await;
        let output = run(model, &fake, window, long).await;
        assert_eq!(output.text, "All seen.", "{model}: {output:?}");
        let asked = fake.asked();
        assert_eq!(asked.len(), TURNS, "{model}: none was refused");
        if window == 200_000 && model == CONVERSE {
            let last = asked[TURNS - 1].body.to_string();
            assert_eq!(last.matches("\"signature\"").count(), TURNS - 1);
        }
    }
}

fn converse(turn: usize, model: &str) -> FakeAnswer {
    let usage = json!({"inputTokens": 1000 + turn, "outputTokens": 20, "totalTokens": 1020 + turn});
    if turn == TURNS - 1 {
        let said = [json!({"text": "All seen."})];
        return eventstream::stream(eventstream::reply(&said, "end_turn", &usage));
    }
    let mut blocks = Vec::new();
    if model == CONVERSE {
        let text = json!({"text": "Let me see.", "signature": signature(turn)});
        blocks.push(json!({"reasoningContent": {"reasoningText": text}}));
    }
    blocks.extend(things(turn).map(|at| {
        json!({"toolUse": {"toolUseId": format!("tooluse_{at}"), "name": "look",
            "input": {"at": at}}})
    }));
    eventstream::stream(eventstream::reply(&blocks, "tool_use", &usage))
}
