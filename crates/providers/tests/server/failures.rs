//! Failing calls: each failure has its own kind, gives advice and contains no key.

use plimsoll_agent::Failure;
use plimsoll_context::{Delta, Tokens};
use plimsoll_core::Provider;
use plimsoll_providers::{MAX_ERROR_BODY, ModelClient};

use super::mocked::{Fake, Turn};
use super::{KEY, call, chat, hasty, request};

const HI: &str = r#"{"choices":[{"index":0,"delta":{"content":"hi"}}]}"#;

async fn failure(answer: Turn) -> Failure {
    let refused = answer.fail.filter(|status| *status >= 300);
    let fake = Fake::new("openai", [answer]).await;
    let (reply, deltas) = call(&chat("openai/m", &fake)).await;
    let failure = reply.unwrap_err();
    let told = deltas.iter().filter_map(|delta| match delta {
        Delta::Refused { status } => Some(*status),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), Vec::from_iter(refused));
    assert_eq!(fake.asked().len(), 1, "nothing is retried here");
    assert!(
        !format!("{failure} {failure:?}").contains("hush"),
        "{failure}"
    );
    failure
}

#[tokio::test]
async fn refusals_are_told_apart() {
    let echo = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    let Failure::Auth { message } = failure(Turn::body(401, echo)).await else {
        panic!("not the key");
    };
    assert_eq!(
        message,
        "Incorrect API key provided: [secret] (the key is that in the settings)"
    );

    let limited = r#"{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}"#;
    for (answer, wait) in [
        (Turn::body(429, limited), None),
        (
            Turn::body(429, limited).header("retry-after", "2"),
            Some(2_000),
        ),
    ] {
        let Failure::RateLimited { retry_after_ms, .. } = failure(answer).await else {
            panic!("not a limit");
        };
        assert_eq!(retry_after_ms, wait);
    }

    let oops = failure(Turn::body(500, "oops")).await;
    assert!(
        matches!(&oops, Failure::Transient { status: Some(500), message, .. } if message == "oops")
    );
}

#[tokio::test]
async fn an_overflow_brings_the_servers_numbers() {
    let body = r#"{"error":{"code":400,"message":"request (2468 tokens) exceeds the available context size (2048 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":2468,"n_ctx":2048}}"#;
    let Failure::Overflow { used, window, .. } = failure(Turn::body(400, body)).await else {
        panic!("no overflow");
    };
    assert_eq!((used, window), (Some(Tokens(2468)), Some(Tokens(2048))));
    // Also as an event of a stream that began well.
    let Failure::Overflow { window, .. } = failure(Turn::events([HI, body])).await else {
        panic!("no overflow");
    };
    assert_eq!(window, Some(Tokens(2048)));
}

#[tokio::test]
async fn a_bad_request_is_refused_with_the_servers_words() {
    let fake = Fake::new("kimi", []).await;
    // Kimi's server wants reasoning back, which the plain dialect does not send.
    let failure = call(&chat("openai/m", &fake)).await.0.unwrap_err();
    assert!(matches!(
        failure,
        Failure::Refused {
            status: Some(400),
            ..
        }
    ));
    assert!(
        failure.to_string().contains("reasoning_content"),
        "{failure}"
    );
}

#[tokio::test]
async fn what_breaks_on_the_way_may_pass() {
    let overloaded = r#"{"error":{"code":529,"message":"overloaded"}}"#;
    for (name, answer, says) in [
        ("cut", Turn::events([HI]).cut(), "was cut in the middle"),
        ("ended", Turn::events([HI]), "was cut in the middle"),
        ("empty", Turn::body(200, ""), "without a reply"),
        ("overloaded", Turn::events([HI, overloaded]), "overloaded"),
    ] {
        let failure = failure(answer).await;
        assert!(
            matches!(failure, Failure::Transient { .. }),
            "{name}: {failure:?}"
        );
        assert!(failure.to_string().contains(says), "{name}: {failure}");
    }
    let garbled = failure(Turn::events([HI, "{nonsense"])).await;
    assert!(matches!(garbled, Failure::Garbled { .. }), "{garbled:?}");
    assert!(garbled.is_retryable());
}

#[tokio::test]
async fn silence_ends_before_and_inside_a_reply() {
    let (never, _shut) = Turn::events([HI]).gated(0);
    for answer in [never, Turn::events([HI]).hang()] {
        let fake = Fake::new("openai", [answer]).await;
        let failure = call(&hasty("openai/m", &fake)).await.0.unwrap_err();
        assert!(matches!(failure, Failure::Transient { .. }), "{failure:?}");
        assert!(failure.to_string().contains("0.03 s"), "{failure}");
    }
}

#[tokio::test]
async fn a_huge_error_is_kept_to_a_bound() {
    let failure = failure(Turn::body(500, "ä".repeat(MAX_ERROR_BODY.0 as usize))).await;
    let text = failure.to_string();
    assert!(
        text.len() < MAX_ERROR_BODY.0 as usize + 200,
        "{}",
        text.len()
    );
    assert!(text.ends_with("[the rest of this error was not read]"));
}

#[tokio::test]
async fn a_redirect_is_told_and_never_followed() {
    let elsewhere = Fake::new("openai", []).await;
    let to = format!("{}/v1/chat/completions", elsewhere.address);
    for status in [301, 302, 307, 308] {
        let failure = failure(Turn::body(status, "").header("location", &to)).await;
        assert!(matches!(failure, Failure::Refused { .. }));
        let cure = format!(
            "to {}/v1; give that address with --base-url",
            elsewhere.address
        );
        assert!(failure.to_string().contains(&cure), "{failure}");
    }
    assert!(elsewhere.asked().is_empty(), "nor does the key go there");
}

#[tokio::test]
async fn a_page_is_no_api() {
    let page = Turn::body(200, "<!doctype html><title>Sign in</title>");
    let failure = failure(page.header("content-type", "text/html")).await;
    assert!(!failure.is_retryable());
    assert!(
        failure.to_string().contains("check --base-url"),
        "{failure}"
    );
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_cure() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let chat = ModelClient::builder("llama.cpp")
        .base_url(&address)
        .build_with(&|_| None)
        .unwrap();
    let failure = chat.call(&request(), &|_| {}).await.unwrap_err();
    assert!(matches!(failure, Failure::Transient { .. }));
    assert_eq!(
        failure.to_string(),
        format!(
            "the model could not be reached: no server listens at {address}/v1 (connection refused); start it or give another address with --base-url"
        )
    );
}

#[tokio::test]
async fn lm_studio_says_nothing_when_a_request_is_too_long() {
    let fake = Fake::new("lmstudio", [Turn::events(["[DONE]"])]).await;
    let failure = call(&chat("lmstudio/m", &fake)).await.0.unwrap_err();
    assert!(matches!(failure, Failure::Overflow { .. }), "{failure:?}");
}

#[tokio::test]
async fn a_key_in_the_address_is_not_repeated() {
    for (query, echo) in [
        ("api_key=hush-1234567", "hush-1234567"),
        ("k=hush%2F1234567", "hush/1234567"),
        ("k=hush%2F1234567", "hush%2F1234567"),
        ("api-version=1&hush-1234567", "hush-1234567"),
    ] {
        let said = format!("nothing is at /v1/chat/completions?k={echo}");
        let body = serde_json::json!({"error": {"message": said}}).to_string();
        let fake = Fake::new("openai", [Turn::body(404, body)]).await;
        let provider = ModelClient::builder("openai/m")
            .base_url(format!("{}/v1?{query}", fake.address))
            .build_with(&|_| None)
            .unwrap();
        let failure = call(&provider).await.0.unwrap_err();
        let told = format!("{failure} {failure:?} {provider:?}");
        assert!(told.contains("?k=[secret]"), "{told}");
        assert!(!told.contains("hush"), "{told}");
    }
}
