//! Gemini's `generateContent`: the script, streams, refusals, counts and failures.

use plimsoll_context::{Part, StopReason};
use plimsoll_mock::{Mock, Server};
use plimsoll_wire::StreamDecoder;
use plimsoll_wire::gemini::GeminiStreamState;
use serde_json::{Value, json};

use super::{get, server};

const MODEL: &str = "/v1beta/models/gemini-3-pro-preview";

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

async fn ask(server: &Server, method: &str, body: &Value) -> (u16, String) {
    super::post(server, &format!("{MODEL}:{method}"), &[], body).await
}

async fn whole(server: &Server, body: &Value) -> (u16, Value) {
    let (status, text) = ask(server, "generateContent", body).await;
    (status, serde_json::from_str(&text).unwrap())
}

fn decoded(text: &str) -> plimsoll_context::Reply {
    let mut state = GeminiStreamState::new(0);
    for event in text.split("\r\n\r\n").filter(|event| !event.is_empty()) {
        state.push(event.strip_prefix("data: ").unwrap()).unwrap();
    }
    state.finish().unwrap()
}

#[tokio::test]
async fn a_signed_call_is_answered_and_the_model_goes_on() {
    let script = r#"{"call": [{"name": "read", "arguments": {"path": "a"}}, {"name": "list"}]}
{"say": "It is empty."}"#;
    let server = server(Mock::gemini(), script).await;
    let (status, one) = whole(&server, &json!({"contents": [user("hi")]})).await;
    assert_eq!(status, 200);
    let content = &one["candidates"][0]["content"];
    assert_eq!(
        content["parts"][0]["functionCall"]["args"],
        json!({"path": "a"})
    );
    assert!(content["parts"][0]["thoughtSignature"].is_string());
    assert!(content["parts"][1]["thoughtSignature"].is_null());
    let result =
        |name: &str| json!({"functionResponse": {"name": name, "response": {"output": ""}}});
    let results = json!({"role": "user", "parts": [result("read"), result("list")]});
    let mut next = json!({"contents": [user("hi"), content, results]});
    let (status, two) = whole(&server, &next).await;
    assert_eq!(
        (status, &two["candidates"][0]["finishReason"]),
        (200, &json!("STOP"))
    );
    let signed = next["contents"][1]["parts"][0].as_object_mut().unwrap();
    signed.remove("thoughtSignature");
    let (status, refused) = whole(&server, &next).await;
    assert_eq!(
        (status, &refused["error"]["status"]),
        (400, &json!("INVALID_ARGUMENT"))
    );
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(words.contains("thought_signature"), "{words}");
}

#[tokio::test]
async fn a_stream_is_decoded_to_the_same_reply() {
    let script = r#"{"think": "Hm, hm.", "say": "Zwölf Boxkämpfer", "call": [{"name": "read", "arguments": {"a": 1}}]}"#;
    let server = server(Mock::gemini(), script).await;
    // Google's Python SDK mixes both spellings.
    let thinks = json!({"thinkingConfig": {"include_thoughts": true}});
    let body = json!({"contents": [user("hi")], "generationConfig": thinks});
    let (status, text) = ask(&server, "streamGenerateContent", &body).await;
    assert_eq!(status, 200);
    let reply = decoded(&text);
    assert_eq!(reply.stop, StopReason::ToolCalls);
    let texts: String = reply.parts.iter().filter_map(Part::as_text).collect();
    assert_eq!(texts, "Zwölf Boxkämpfer");
    let calls = reply
        .parts
        .iter()
        .filter(|part| matches!(part, Part::ToolCall(_)));
    assert_eq!(calls.count(), 1);
    assert!(reply.usage.is_some());
}

#[tokio::test]
async fn invalid_and_long_requests_are_refused_and_counted() {
    let server = server(
        Mock::gemini().window(50).models(["gemini-2.5-pro"]),
        r#"{"say": "hi"}"#,
    )
    .await;
    let (status, refused) = whole(&server, &json!({"contents": []})).await;
    assert_eq!(status, 400);
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("contents is not specified")
    );
    let long = json!({"contents": [user(&"word ".repeat(100))]});
    let (status, refused) = whole(&server, &long).await;
    let words = refused["error"]["message"].as_str().unwrap();
    assert_eq!(
        (status, words.starts_with("The input token count (")),
        (400, true),
        "{words}"
    );
    for body in [long.clone(), json!({ "generateContentRequest": long })] {
        let (status, text) = ask(&server, "countTokens", &body).await;
        let counted: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (status, counted["totalTokens"].as_u64() > Some(100)),
            (200, true)
        );
    }
    let (_, models) = get(&server, "/v1beta/models", &[]).await;
    assert_eq!(models["models"][0]["name"], "models/gemini-2.5-pro");
    assert_eq!(models["models"][0]["inputTokenLimit"], 50);
    assert_eq!(get(&server, "/v1/other", &[]).await.0, 404);
}

#[tokio::test]
async fn failures_have_the_api_s_form() {
    let script = r#"{"fail": 503}
{"say": "It begins well", "fail_in_stream": 503}
{"call": [{"name": "read", "arguments": "{\"path\": "}]}"#;
    let server = server(Mock::gemini(), script).await;
    let body = json!({"contents": [user("hi")]});
    let (status, failed) = whole(&server, &body).await;
    assert_eq!(
        (status, &failed["error"]["status"]),
        (503, &json!("UNAVAILABLE"))
    );
    let (status, text) = ask(&server, "streamGenerateContent", &body).await;
    assert_eq!(
        (status, text.contains("UNAVAILABLE")),
        (200, true),
        "{text}"
    );
    let (_, malformed) = whole(&server, &body).await;
    assert_eq!(
        malformed["candidates"][0]["finishReason"],
        "MALFORMED_FUNCTION_CALL"
    );
}
