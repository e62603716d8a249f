//! The provider of OpenAI Responses against a strict server: which provider is made, and whole runs with tools,
//! reasoning and parallel calls.

use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_agent::ThinkingLevel;
use plimsoll_context::Tokens;
use plimsoll_core::{Agent, Provider, ToolError, Window, tool};
use plimsoll_mock::Call;
use plimsoll_mock::rules::openai_responses::encrypt;
use plimsoll_providers::{ModelBook, ModelClient, ModelRef, Secret};
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::json;

use super::mocked::{Fake, Turn};
use super::{KEY, request};

fn provider(model: &str, fake: &Fake) -> ModelClient {
    ModelClient::builder(model)
        .base_url(&fake.address)
        .key(Secret::new(KEY))
        .build_with(&|_| None)
        .unwrap()
}

#[tokio::test]
async fn a_vendors_wire_decides_which_provider_is_made() {
    let made = |model: &str| {
        let builder = ModelClient::builder(model).key(Secret::new(KEY));
        builder.build_with(&|_| None).unwrap()
    };
    let fake = Fake::responses(ResponsesProfile::openai(), [Turn::say("hi")]).await;
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
    let facts = ModelBook::built_in().facts(&model);
    assert_eq!(facts.window.unwrap().value, Tokens(272_000));
    let chat: ModelRef = "openai/gpt-5".parse().unwrap();
    let of_chat = ModelBook::built_in().facts(&chat);
    assert!(facts.prices.is_some());
    assert_eq!(facts.prices, of_chat.prices);
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
    let turn = || Turn {
        think: Some("Hm.".into()),
        ..Turn::call("look", json!({"at": 1}))
    };
    let script = [
        turn(),
        turn(),
        Turn::body(400, other_key.to_string()),
        turn(),
        turn(),
        Turn::say("Done."),
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
        (1..7)
            .filter(|rs| body.contains(&format!("rs_{rs}")))
            .collect::<Vec<_>>()
    };
    // The ids have the numbers of the requests.
    assert_eq!(reasons(2), [1, 2]);
    assert_eq!(reasons(3), [0; 0], "the same once more, without it");
    assert_eq!(reasons(4), [4]);
    assert_eq!(reasons(5), [4, 5]);
    assert_eq!(fake.asked().len(), 6);
}

#[tokio::test]
async fn a_run_whose_window_is_small_stays_valid() {
    const TURNS: usize = 24;
    let mut script = Vec::new();
    for turn in 0..TURNS - 1 {
        if turn == 12 {
            let over = r#"{"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}"#;
            script.push(Turn::events([over]));
        }
        script.push(Turn {
            think: Some("Hm.".into()),
            call: vec![Call::new("look", json!({"at": 1})); 2],
            ..Turn::default()
        });
    }
    script.push(Turn::say("Done."));
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
