//! Token counts by servers: the requests for a count, servers that cannot count and are asked only
//! once, and the plans of a run that uses the count.

use plimsoll_agent::{EndReason, Failure};
use plimsoll_context::Tokens;
use plimsoll_core::{Agent, Error, Provider, Window};
use plimsoll_mock::Mock;
use plimsoll_providers::{ModelClient, Secret};
use plimsoll_wire::openai_responses::ResponsesProfile;
use serde_json::{Map, Value, json};

use super::mocked::{Fake, Turn};
use super::{KEY, request};

const COUNT: &str = "/v1/messages/count_tokens";
const INPUT: &str = "/responses/input_tokens";

fn over(model: &str, fake: &Fake) -> ModelClient {
    let extra = json!({"metadata": {"user_id": "u"}, "service_tier": "auto"});
    ModelClient::builder(model)
        .base_url(&fake.address)
        .key(Secret::new(KEY))
        .extra(extra.as_object().cloned().unwrap())
        .build_with(&|_| None)
        .unwrap()
}

fn nothing(_: &Value) -> Turn {
    Turn::body(500, "nobody calls")
}

fn keys(body: &Value) -> Vec<&str> {
    let body: &Map<String, Value> = body.as_object().unwrap();
    let mut keys: Vec<&str> = body.keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn anthropic_is_asked_for_what_would_be_sent_and_for_nothing_it_does_not_know() {
    let fake = Fake::exactly(Mock::messages().weighing(|_| 1_234), []).await;
    let provider = over("anthropic/claude-sonnet-4-5", &fake);
    let mut request = request();
    request.sampling.thinking = Some(plimsoll_agent::ThinkingLevel::Low);
    request.max_output = Some(Tokens(4_000));
    assert_eq!(provider.count(&request).await, Ok(Some(Tokens(1_234))));
    let asked = fake.asked();
    assert_eq!(asked.len(), 1, "nothing is generated");
    assert_eq!(asked[0].path, COUNT);
    assert_eq!(asked[0].headers["x-api-key"], KEY);
    let body = &asked[0].body;
    // What the SDK of Anthropic's knows of this endpoint, as far as it is said here.
    let said = keys(body);
    for key in &said {
        let known = [
            "messages",
            "model",
            "system",
            "thinking",
            "tool_choice",
            "tools",
        ];
        assert!(known.contains(key), "{key}");
    }
    assert!(
        said.contains(&"system") && said.contains(&"tools"),
        "{said:?}"
    );
}

#[tokio::test]
async fn responses_is_asked_for_what_would_be_sent_and_for_nothing_it_does_not_know() {
    let fake = Fake::exactly(Mock::responses().weighing(|_| 77), []).await;
    let provider = over("openai-responses/gpt-5", &fake);
    assert_eq!(provider.count(&request()).await, Ok(Some(Tokens(77))));
    let asked = fake.asked();
    let body = &asked[0].body;
    let said = keys(body);
    for key in [
        "include",
        "max_output_tokens",
        "prompt_cache_key",
        "store",
        "stream",
    ] {
        assert!(!said.contains(&key), "{key}");
    }
    for key in ["input", "instructions", "model", "tools"] {
        assert!(said.contains(&key), "{key}: {said:?}");
    }
}

#[tokio::test]
async fn a_server_that_cannot_is_asked_once() {
    for status in [404, 405, 501] {
        let fake = Fake::messages([], nothing).await;
        let fake = fake.page(COUNT, status, json!({"error": "no such thing"}));
        let provider = over("anthropic/claude-opus-5", &fake);
        for _ in 0..3 {
            assert_eq!(provider.count(&request()).await, Ok(None));
        }
        assert_eq!(fake.asked().len(), 1, "{status}");
    }
    // One that answers everything alike cannot either.
    for page in [json!({"ok": true}), json!({"input_tokens": 0}), json!("?")] {
        let fake = Fake::responses(ResponsesProfile::openai(), []).await;
        let fake = fake.page(INPUT, 200, page);
        let provider = over("openai-responses/gpt-5", &fake);
        for _ in 0..2 {
            assert_eq!(provider.count(&request()).await, Ok(None));
        }
        assert_eq!(fake.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_refusal_is_told_and_not_remembered_as_one_that_cannot() {
    let words =
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
    let fake = Fake::messages([], nothing).await;
    let fake = fake.page(COUNT, 429, words);
    let provider = over("anthropic/claude-opus-5", &fake);
    let failure = provider.count(&request()).await.unwrap_err();
    assert!(matches!(failure, Failure::RateLimited { .. }), "{failure}");
    assert!(failure.to_string().contains("slow down"));
    let _fake = fake.page(COUNT, 200, json!({"input_tokens": 5}));
    assert_eq!(provider.count(&request()).await, Ok(Some(Tokens(5))));
}

#[tokio::test]
async fn chat_completions_has_no_such_endpoint() {
    let fake = Fake::new("openai", []).await;
    let provider = over("openai/gpt-5", &fake);
    assert_eq!(provider.count(&request()).await, Ok(None));
    assert!(fake.asked().is_empty());
}

/// A model that answers whatever it is asked.
fn cheap() -> Mock {
    Mock::messages().then(|_, _| Turn::say("done"))
}

/// One whose tokens are as long as twelve bytes of a request, and that can say so.
async fn cheap_by_weight() -> Fake {
    Fake::exactly(cheap().weighing(weight), []).await
}

fn weight(body: &Value) -> u64 {
    body.to_string().len() as u64 / 12
}

fn agent(fake: &Fake) -> Agent {
    let provider = ModelClient::builder("anthropic/claude-opus-5")
        .base_url(&fake.address)
        .key(Secret::new(KEY))
        .build_with(&|_| None)
        .unwrap();
    let window = Window::Known(Tokens(16_000));
    Agent::builder(provider).window(window).build().unwrap()
}

#[tokio::test]
async fn a_lower_count_of_the_provider_loosens_nothing() {
    // Too much by our count for a window of which 12,000 tokens are for the request.
    let task = "All of this is seen, and more of it is to come. ".repeat(1_300);
    for fake in [cheap_by_weight().await, Fake::of(cheap(), []).await] {
        let output = agent(&fake).run(&task).await;
        let output = output.or_else(Error::into_output).unwrap();
        let unfit = matches!(output.reason, EndReason::CannotFit { .. });
        assert!(unfit, "{:?}", output.reason);
        assert!(fake.paths().is_empty(), "nobody is asked");
    }
}

#[tokio::test]
async fn nobody_is_asked_what_a_request_weighs() {
    let fake = cheap_by_weight().await;
    let output = agent(&fake).run("Say done.").await.unwrap();
    assert_eq!(output.text, "done");
    assert_eq!(fake.paths(), ["/v1/messages"]);
}
