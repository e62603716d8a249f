//! The provider of OpenAI Responses against a strict server: single calls, refusals, and whole runs
//! with tools, reasoning and parallel calls.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_agent::{Failure, Sampling, ThinkingLevel};
use plimsoll_context::{CachePlan, Delta, Part, Reply, StopReason, Tokens, Usage};
use plimsoll_core::{Agent, Provider, ToolError, Window, tool};
use plimsoll_mock::Call;
use plimsoll_mock::rules::openai_responses::encrypt;
use plimsoll_providers::{ModelClient, ModelRef, Secret, known_prices, known_window};
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use serde_json::{Value, json};

use super::mocked::{Fake, Turn};
use super::{KEY, request};

fn provider(model: &str, fake: &Fake) -> ModelClient {
    ModelClient::builder(model)
        .base_url(&fake.address)
        .key(Secret::new(KEY))
        .build_with(&|_| None)
        .unwrap()
}

async fn call(provider: &ModelClient) -> (Result<Reply, Failure>, Vec<Delta>) {
    let deltas = Mutex::new(Vec::new());
    // What was used is in the reply too.
    let sink = |delta| {
        if !matches!(delta, Delta::Used { .. }) {
            deltas.lock().unwrap().push(delta);
        }
    };
    let mut request = request();
    request.sampling = Sampling {
        thinking: Some(ThinkingLevel::Minimal),
        ..request.sampling
    };
    request.cache = CachePlan {
        key: Some("session-1".into()),
        ..CachePlan::default()
    };
    let reply = provider.call(&request, &sink).await;
    (reply, deltas.into_inner().unwrap())
}

/// The events of a reply, as OpenAI sends them.
fn stream(items: &[String], usage: (u64, u64)) -> Turn {
    let head = json!({"type": "response.created", "response": {"id": "resp_1",
        "model": "gpt-x-2026", "status": "in_progress", "output": []}});
    let mut events = vec![head.to_string()];
    for (index, item) in items.iter().enumerate() {
        let value: Value = serde_json::from_str(item).unwrap();
        let mut begun = value.clone();
        let (kind, whole) = match value["type"].as_str().unwrap() {
            "function_call" => {
                begun["arguments"] = "".into();
                let kind = "response.function_call_arguments.delta";
                (kind, value["arguments"].as_str().unwrap())
            }
            "message" => {
                begun["content"] = json!([]);
                let text = value["content"][0]["text"].as_str().unwrap();
                ("response.output_text.delta", text)
            }
            _ => ("", ""),
        };
        let added = json!({"type": "response.output_item.added", "output_index": index,
            "item": begun});
        events.push(added.to_string());
        for piece in whole.split_inclusive([' ', ':']) {
            let delta = json!({"type": kind, "output_index": index, "content_index": 0,
                "delta": piece});
            events.push(delta.to_string());
        }
        events.push(format!(
            r#"{{"type":"response.output_item.done","output_index":{index},"item":{item}}}"#
        ));
    }
    let (input, cached) = usage;
    events.push(
        format!(
            r#"{{"type":"response.completed","response":{{"id":"resp_1","model":"gpt-x-2026",
        "status":"completed","error":null,"output":[{}],"usage":{{"input_tokens":{input},
        "input_tokens_details":{{"cached_tokens":{cached}}},"output_tokens":50,
        "output_tokens_details":{{"reasoning_tokens":30}},"total_tokens":{}}}}}}}"#,
            items.join(","),
            input + 50
        )
        .replace('\n', " "),
    );
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    Turn::events(events)
}

/// Key order, escapes and number form that would not survive being written anew.
fn reasoning(number: usize) -> String {
    let id = format!("rs_{number}");
    let hidden = encrypt(&id, "").replacen('g', "\\u0067", 1);
    format!(
        r#"{{"id":"{id}", "type":"reasoning","encrypted_content":"{hidden}","summary":[],"n":1.50}}"#
    )
}

fn asks(call: &str, arguments: &str) -> String {
    json!({"type": "function_call", "id": format!("fc_{call}"), "call_id": call,
        "name": "look", "arguments": arguments, "status": "completed"})
    .to_string()
}

fn says(text: &str, phase: &str) -> String {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "phase": phase, "content": [{"type": "output_text", "text": text, "annotations": []}]})
    .to_string()
}

#[tokio::test]
async fn a_request_carries_what_was_asked_for() {
    let items = [reasoning(1), says("hi there", "final_answer")];
    let script = [
        stream(&items, (1000, 800)),
        stream(&items, (1000, 800)).bytewise(),
    ];
    let fake = Fake::responses(ResponsesProfile::openai(), script).await;
    let provider = provider("openai-responses/o4-mini", &fake);
    for _ in 0..2 {
        let (reply, deltas) = call(&provider).await;
        let reply = reply.unwrap();
        assert_eq!(reply.stop, StopReason::Stop);
        assert_eq!(reply.model.as_deref(), Some("gpt-x-2026"));
        let usage = Usage {
            input: Tokens(200),
            output: Tokens(50),
            reasoning: Tokens(30),
            cache_read: Tokens(800),
            cache_write: Tokens(0),
            ..Usage::default()
        };
        assert_eq!(reply.usage, Some(usage));
        let Part::Thinking(thinking) = &reply.parts[0] else {
            panic!("{:?}", reply.parts);
        };
        assert_eq!(thinking.opaque.as_ref().unwrap().data, reasoning(1));
        assert_eq!(*reply.parts.last().unwrap(), Part::text("hi there"));
        let text = |text: &str| Delta::Text { text: text.into() };
        assert_eq!(deltas, [text("hi "), text("there")]);
    }
    let asked = fake.asked().remove(0);
    assert_eq!(asked.path, "/v1/responses");
    assert_eq!(asked.headers["authorization"], format!("Bearer {KEY}"));
    let body = asked.body;
    assert_eq!(body["model"], "o4-mini");
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(body["stream"], true);
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["max_output_tokens"], 500);
    assert_eq!(body["prompt_cache_key"], "session-1");
    // The nearest that the family takes, and no temperature at all.
    assert_eq!(body["reasoning"], json!({"effort": "low"}));
    assert_eq!(body.get("temperature"), None);
    assert_eq!(body["tools"][0]["name"], "read");
    assert_eq!(body["tools"][0]["strict"], false);
    let last = body["input"].as_array().unwrap().last().unwrap();
    assert!(last.to_string().contains("It is late."), "{last}");
}

#[tokio::test]
async fn a_vendors_wire_decides_which_provider_is_made() {
    let made = |model: &str| {
        let builder = ModelClient::builder(model).key(Secret::new(KEY));
        builder.build_with(&|_| None).unwrap()
    };
    let items = [says("hi", "final_answer")];
    let fake = Fake::responses(ResponsesProfile::openai(), [stream(&items, (5, 0))]).await;
    let builder = ModelClient::builder("responses/gpt-5");
    let provider = builder.base_url(&fake.address).build_with(&|_| None);
    let provider = provider.unwrap();
    assert_eq!(provider.model(), "openai-responses/gpt-5");
    provider.call(&request(), &|_| {}).await.unwrap();
    assert_eq!(fake.paths(), ["/v1/responses"]);
    let endpoint = made("openai-responses/gpt-5").endpoint();
    assert_eq!(endpoint, made("openai/gpt-5").endpoint(), "the same model");
    let error = ModelClient::builder("openai-responses/gpt-5");
    let error = error.build_with(&|_| None).err().unwrap().to_string();
    assert!(error.contains("set OPENAI_API_KEY"), "{error}");
    let model: ModelRef = "openai-responses/gpt-5".parse().unwrap();
    assert_eq!(known_window(&model), Some(Tokens(272_000)));
    let chat: ModelRef = "openai/gpt-5".parse().unwrap();
    assert!(known_prices(&model).is_some());
    assert_eq!(known_prices(&model), known_prices(&chat));
}

#[tokio::test]
async fn what_a_model_takes_may_be_said() {
    let plain = ResponsesProfile {
        reasoning: ReasoningItems::None,
        ..ResponsesProfile::plain()
    };
    let items = [says("hi", "final_answer")];
    let fake = Fake::responses(plain.clone(), [stream(&items, (5, 0))]).await;
    let provider = ModelClient::builder("openai-responses/mine")
        .base_url(&fake.address)
        .profile(plain)
        .build_with(&|_| None)
        .unwrap();
    assert_eq!(provider.profile(), "openai-plain");
    assert!(provider.base_url().is_loopback());
    call(&provider).await.0.unwrap();
    assert_eq!(fake.asked()[0].body["temperature"], 0.7);
}

#[tokio::test]
async fn failures_are_told_apart() {
    let over = r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model. Please adjust your input and try again."}}}"#;
    let text =
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"ha"}"#;
    let busy = r#"{"type":"error","code":"server_error","message":"try later","param":null}"#;
    let named = format!("event: error\ndata: {busy}\n\n");
    let limit = json!({"error": {"type": "invalid_request_error", "param": "max_output_tokens",
        "message": "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= \
        400, but got 500 instead.", "code": "integer_above_max_value"}});
    let lost = json!({"error": {"type": "invalid_request_error", "param": "input", "code": null,
        "message": "Item with id 'rs_1' not found. Items are not persisted when `store` is set to \
        false. Try again with `store` set to true, or remove this item from your input."}});
    let script = [
        Turn::events([text, over]),
        Turn::events([text, busy]),
        Turn::body(200, named).header("content-type", "text/event-stream"),
        Turn::events([text]),
        Turn::events([text]).cut(),
        Turn::body(400, limit.to_string()),
        Turn::body(404, lost.to_string()),
        Turn::body(200, r#"{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"whole"}]}]}"#),
        Turn::events([text, r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}}"#]).hang(),
    ];
    let fake = Fake::responses(ResponsesProfile::openai(), script).await;
    let provider = provider("openai-responses/o4-mini", &fake);
    let failure = async || call(&provider).await.0.unwrap_err();
    assert!(matches!(failure().await, Failure::Overflow { .. }));
    assert!(matches!(failure().await, Failure::Transient { .. }));
    assert!(matches!(failure().await, Failure::Transient { .. }));
    assert!(matches!(failure().await, Failure::Transient { .. }));
    assert!(matches!(failure().await, Failure::Transient { .. }));
    assert!(matches!(
        failure().await,
        Failure::OutputTooLarge {
            limit: Some(Tokens(400)),
            ..
        }
    ));
    let Failure::Refused { message, .. } = failure().await else {
        panic!("it cannot be sent again");
    };
    assert!(
        message.starts_with("Item with id 'rs_1' not found."),
        "{message}"
    );
    let whole = call(&provider).await.0.unwrap();
    assert_eq!(whole.parts, [Part::text("whole")]);
    // The last event is the last, whether or not the connection ends.
    let cut = call(&provider).await.0.unwrap();
    assert_eq!(
        (cut.stop, cut.parts),
        (StopReason::Length, vec![Part::text("ha")])
    );
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Look {
    /// What at.
    at: u64,
}

#[tokio::test]
async fn a_run_of_thirty_turns_is_valid_at_every_request() {
    const TURNS: usize = 30;
    let thought = |turn: usize| Turn {
        think: Some(format!("step {turn}")),
        usage: json!({"output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 30}})
            .as_object()
            .unwrap()
            .clone(),
        ..Turn::default()
    };
    let mut script = Vec::new();
    for turn in 0..TURNS - 1 {
        let calls = (0..=turn % 3).map(|call| Call::new("look", json!({ "at": call })));
        script.push(Turn {
            say: (turn % 3 == 0).then(|| "I look.".into()),
            call: calls.collect(),
            // Some models say a word after their calls.
            say_after: (turn % 5 == 0).then(|| "There.".into()),
            ..thought(turn)
        });
    }
    script.push(Turn {
        say: Some("All seen.".into()),
        ..thought(TURNS - 1)
    });
    let fake = Fake::responses(ResponsesProfile::openai(), script).await;
    let looked = std::sync::Arc::new(AtomicUsize::new(0));
    let seen = std::sync::Arc::clone(&looked);
    let look = move |input: Look| {
        seen.fetch_add(1, Ordering::SeqCst);
        async move { Ok::<_, ToolError>(format!("{} is there", input.at)) }
    };
    let agent = Agent::builder(provider("openai-responses/o4-mini", &fake))
        .tool(tool("look", "Looks.", look).idempotent())
        .system("Be brief.")
        .thinking_level(ThinkingLevel::High)
        .window(Window::Known(Tokens(200_000)))
        .build()
        .unwrap();
    let output = agent.run("Look at everything.").await.unwrap();
    assert_eq!(output.text, "All seen.");
    assert_eq!(output.turns, TURNS as u64);
    assert_eq!(output.tool_calls, looked.load(Ordering::SeqCst) as u64);
    assert_eq!(output.tokens_used.reasoning, Tokens(30 * TURNS as u64));
    let asked = fake.asked();
    assert_eq!(asked.len(), TURNS, "none was refused");
    let input = |at: usize| asked[at].body["input"].as_array().unwrap().clone();
    for at in 1..TURNS {
        let (older, newer) = (input(at - 1), input(at));
        assert_eq!(newer[..older.len()], older, "the history only grows");
        let thought = &newer[older.len()];
        let id = format!("rs_{at}");
        let hidden = encrypt(&id, &format!("step {}", at - 1));
        assert_eq!(
            (&thought["id"], &thought["encrypted_content"]),
            (&json!(id), &json!(hidden))
        );
    }
    let last = input(TURNS - 1);
    let phases = last.iter().filter(|item| item["phase"] == "commentary");
    assert_eq!(phases.count(), 16);
    assert_eq!(asked[0].body["reasoning"], json!({"effort": "high"}));
}

#[tokio::test]
async fn reasoning_that_a_server_will_not_read_is_left_out_from_then_on() {
    let other_key = json!({"error": {"type": "invalid_request_error", "param": null,
        "code": "invalid_encrypted_content", "message": "The encrypted content gA+=... could not \
        be verified. Reason: Encrypted content organization_id did not match the target \
        organization."}});
    let turn = |number: usize| {
        let call = asks(&format!("call_{number}"), "{\"at\": 1}");
        stream(&[reasoning(number), call], (100, 0))
    };
    let script = [
        turn(0),
        turn(1),
        Turn::body(400, other_key.to_string()),
        turn(2),
        turn(3),
        stream(&[says("Done.", "final_answer")], (100, 0)),
    ];
    let fake = Fake::responses(ResponsesProfile::openai(), script).await;
    let look = |input: Look| async move { Ok::<_, ToolError>(format!("{} is there", input.at)) };
    let agent = Agent::builder(provider("openai-responses/o4-mini", &fake))
        .tool(tool("look", "Looks.", look).idempotent())
        .window(Window::Known(Tokens(200_000)))
        .build()
        .unwrap();
    let output = agent.run("Look at everything.").await.unwrap();
    assert_eq!(output.text, "Done.");
    let reasons = |at: usize| {
        let body = fake.asked()[at].body["input"].to_string();
        (0..4)
            .filter(|rs| body.contains(&format!("rs_{rs}")))
            .collect::<Vec<_>>()
    };
    assert_eq!(reasons(2), [0, 1]);
    assert_eq!(reasons(3), [0; 0], "the same once more, without it");
    assert_eq!(reasons(4), [2]);
    assert_eq!(reasons(5), [2, 3]);
    assert_eq!(fake.asked().len(), 6);
}

#[tokio::test]
async fn a_run_whose_window_is_small_stays_valid() {
    const TURNS: usize = 24;
    let mut script = Vec::new();
    for turn in 0..TURNS - 1 {
        let calls = (0..2).map(|call| asks(&format!("call_{turn}_{call}"), "{\"at\": 1}"));
        let items: Vec<String> = std::iter::once(reasoning(turn)).chain(calls).collect();
        if turn == 12 {
            let over = r#"{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}"#;
            script.push(Turn::events([over]));
        }
        script.push(stream(&items, (2000, 0)));
    }
    script.push(stream(&[says("Done.", "final_answer")], (2000, 0)));
    let fake = Fake::responses(ResponsesProfile::openai(), script).await;
    let look = |input: Look| async move {
        Ok::<_, ToolError>(format!(
            "{} {}",
            input.at,
            "is there and there. ".repeat(60)
        ))
    };
    let agent = Agent::builder(provider("openai-responses/o4-mini", &fake))
        .tool(tool("look", "Looks.", look).idempotent())
        .window(Window::Known(Tokens(8_000)))
        .build()
        .unwrap();
    let output = agent.run("Look at everything.").await.unwrap();
    assert_eq!(output.text, "Done.", "{output:?}");
    assert!(output.plans >= 2, "it was compacted: {output:?}");
    // One request was too large and one call was made again; none was malformed.
    assert_eq!(fake.asked().len(), TURNS + 1);
    let last = fake.asked().pop().unwrap().body;
    let sent = last["input"].as_array().unwrap();
    let outputs = sent.iter().filter_map(|item| item["output"].as_str());
    let whole = outputs.filter(|text| text.len() > 600).count();
    assert!(
        whole < TURNS - 1,
        "older results are shortened or gone: {whole}"
    );
    assert!(whole > 0, "the newest are whole");
}
