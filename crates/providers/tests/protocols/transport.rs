//! Behaviour that needs more than a case: the time at which pieces arrive, connections that end, bounds, and
//! servers that must not receive a request.

use std::sync::Mutex;

use plimsoll_agent::Failure;
use plimsoll_context::{Delta, Part, Tokens};
use plimsoll_core::Provider;
use plimsoll_providers::{MAX_ERROR_BODY, ModelClient, ProviderError, Secret};
use serde_json::json;

use super::eventstream::{self, event};
use super::fake::FakeAnswer;
use super::{CONVERSE, GEMINI, KEY, builder, call, hasty, provider, request, server};

/// A model of each protocol.
const ALL: [&str; 5] = [
    "openai/m",
    "openai-responses/o4-mini",
    "anthropic/claude-sonnet-4-5",
    GEMINI,
    CONVERSE,
];

/// A reply of two texts, the second behind the piece with the number that is returned.
fn two_texts(model: &str) -> (FakeAnswer, usize) {
    let events = |events: &[&str]| FakeAnswer::events(events);
    match model {
        "openai/m" => {
            let one = r#"{"choices":[{"index":0,"delta":{"content":"first "}}]}"#;
            let two =
                r#"{"choices":[{"index":0,"delta":{"content":"second"},"finish_reason":"stop"}]}"#;
            (events(&[one, two, "[DONE]"]), 1)
        }
        "openai-responses/o4-mini" => {
            let delta = |text: &str| {
                json!({"type": "response.output_text.delta", "output_index": 0,
                    "content_index": 0, "delta": text})
                .to_string()
            };
            let end =
                r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
            (events(&[&delta("first "), &delta("second"), end]), 1)
        }
        "anthropic/claude-sonnet-4-5" => {
            let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"first "}}"#;
            let two = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"second"}}"#;
            (events(&[start, two, r#"{"type":"message_stop"}"#]), 1)
        }
        GEMINI => {
            let one =
                r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"first "}]}}]}"#;
            let two = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"second"}]},"finishReason":"STOP"}]}"#;
            (events(&[one, two]), 1)
        }
        _ => {
            let blocks = [json!({"text": "first second"})];
            let frames = eventstream::reply(&blocks, "end_turn", &json!({}));
            (eventstream::stream(frames), 2)
        }
    }
}

#[tokio::test]
async fn a_piece_arrives_before_the_next_one_is_sent() {
    for model in ALL {
        let (answer, at) = two_texts(model);
        let (answer, open) = answer.gate(at);
        let fake = server(model, [answer]).await;
        let open = Mutex::new(Some(open));
        let sink = |delta: Delta| {
            if let (Delta::Text { text }, Some(open)) = (delta, open.lock().unwrap().take()) {
                assert_eq!(text, "first ", "{model}");
                open.send(()).unwrap();
            }
        };
        let reply = provider(model, &fake).call(&request(), &sink).await;
        assert_eq!(
            reply.unwrap().parts,
            [Part::text("first second")],
            "{model}"
        );
    }
}

#[tokio::test]
async fn a_dropped_call_ends_the_connection() {
    for model in ALL {
        let (answer, at) = two_texts(model);
        let (answer, mut open) = answer.gate(at);
        let fake = server(model, [answer]).await;
        let provider = provider(model, &fake);
        let (began, mut first) = tokio::sync::mpsc::unbounded_channel();
        let sink = move |_| began.send(()).unwrap();
        let request = request();
        tokio::select! {
            _ = provider.call(&request, &sink) => panic!("{model}: the gate is closed"),
            _ = first.recv() => {}
        }
        // The server drops the answer, and the gate in it.
        open.closed().await;
    }
}

#[tokio::test]
async fn a_frame_without_an_end_counts_as_silence() {
    // Bytes come all the time and never make a frame.
    let drip = (0..200).map(|_| b"x".to_vec()).collect();
    let fake = server(GEMINI, [FakeAnswer::bytes(drip).then_hang()]).await;
    let failure = call(&hasty(GEMINI, &fake), &request()).await.0.unwrap_err();
    assert!(matches!(failure, Failure::Transient { .. }), "{failure:?}");
}

#[tokio::test]
async fn a_frame_with_a_wrong_sum_is_garbled() {
    let mut bad = event("messageStart", &json!({"role": "assistant"}));
    *bad.last_mut().unwrap() ^= 1;
    let fake = server(CONVERSE, [eventstream::stream(vec![bad])]).await;
    let failure = call(&provider(CONVERSE, &fake), &request()).await.0;
    assert!(
        matches!(failure, Err(Failure::Garbled { .. })),
        "{failure:?}"
    );
}

#[tokio::test]
async fn a_huge_error_is_kept_to_a_bound() {
    for model in ALL {
        let huge = FakeAnswer::new(500, "ä".repeat(MAX_ERROR_BODY.0 as usize));
        let fake = server(model, [huge]).await;
        let failure = call(&provider(model, &fake), &request()).await.0;
        let text = failure.unwrap_err().to_string();
        assert!(
            text.len() < MAX_ERROR_BODY.0 as usize + 200,
            "{}",
            text.len()
        );
        assert!(text.ends_with("[the rest of this error was not read]"));
    }
}

#[tokio::test]
async fn a_redirect_is_never_followed() {
    for model in ALL {
        let elsewhere = server(model, []).await;
        let to = format!("{}/v1/elsewhere", elsewhere.address);
        let fake = server(model, [FakeAnswer::new(307, "").header("location", &to)]).await;
        let failure = call(&provider(model, &fake), &request()).await.0;
        let told = failure.unwrap_err().to_string();
        assert!(told.contains("--base-url"), "{told}");
        assert!(elsewhere.asked().is_empty(), "nor does the key go there");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_with_the_cure() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for model in ALL {
        let builder = ModelClient::builder(model);
        let builder = builder.base_url(&address).key(Secret::new(KEY));
        let nobody = builder.build_with(&|_| None).unwrap();
        let failure = nobody.call(&request(), &|_| {}).await.unwrap_err();
        assert!(matches!(failure, Failure::Transient { .. }));
        let (told, there) = (
            failure.to_string(),
            format!("no server listens at {address}"),
        );
        assert!(told.contains(&there), "{told}");
        let cure = "(connection refused); start it or give another address with --base-url";
        assert!(told.ends_with(cure), "{told}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_call_is_not_built() {
    let fake = server(GEMINI, []).await;
    let claude = builder("vertex/claude-opus-4-6", &fake).build_with(&|_| None);
    assert!(matches!(claude, Err(ProviderError::NotServed { .. })));
    let keyless = ModelClient::builder("gemini/m").build_with(&|_| None);
    let keyless = keyless.unwrap_err().to_string();
    assert!(keyless.contains("set GEMINI_API_KEY"), "{keyless}");
}

#[tokio::test]
async fn the_server_tells_the_window() {
    let entry = json!({"name": "models/gemini-3-pro-preview", "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536});
    let fake = server(GEMINI, []).await;
    let fake = fake.page("/v1beta/models/gemini-3-pro-preview", 200, entry);
    let window = provider(GEMINI, &fake).window().await;
    assert_eq!(window, Some(Tokens(1_048_576)));
}
