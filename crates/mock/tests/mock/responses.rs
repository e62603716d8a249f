//! OpenAI Responses: events in the API's order, encrypted reasoning, the cache, the window, counts and
//! every way to fail.

use plimsoll_context::{StopReason, Tokens};
use plimsoll_mock::{Mock, Server};
use plimsoll_wire::StreamDecoder;
use plimsoll_wire::openai_responses::{ResponsesProfile, ResponsesStreamState, read_reply};
use plimsoll_wire::overflow::{Verdict, classify};
use serde_json::{Value, json};

use super::{events, server};

async fn post(server: &Server, body: &Value) -> (u16, String) {
    super::post(server, "/v1/responses", &[], body).await
}

async fn ask(server: &Server, body: &Value) -> (u16, Value) {
    let (status, text) = post(server, body).await;
    (status, serde_json::from_str(&text).unwrap())
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn body(input: Value) -> Value {
    json!({"model": "gpt-x", "input": input, "store": false,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "tools": [{"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": false},
            {"type": "custom", "name": "patch"}]})
}

const TURN: &str = r#"{"think": "Hm. \"ä\"", "say": "I look at both.", "citations": [{"type": "url_citation", "start_index": 0, "end_index": 1, "url": "u", "title": "t"}], "blocks": [{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q"}}], "call": [{"name": "read", "arguments": {"path": "a"}}, {"name": "patch", "arguments": "free text"}], "say_after": "There.", "repeat": true}"#;

#[tokio::test]
async fn a_stream_has_the_events_of_the_api_in_their_order() {
    let server = server(Mock::responses(), TURN).await;
    let mut request = body(json!([user("hi")]));
    let (_, whole) = ask(&server, &request).await;
    request["stream"] = true.into();
    let (status, text) = post(&server, &request).await;
    assert_eq!(status, 200);
    let said = events(&text);
    for (number, (name, event)) in said.iter().enumerate() {
        assert_eq!(event["type"], name.as_str());
        assert_eq!(event["sequence_number"], number);
    }
    let kinds: Vec<&str> = said
        .iter()
        .map(|(name, _)| name.strip_prefix("response.").unwrap())
        .collect();
    let item = |inside: &[&'static str]| -> Vec<&'static str> {
        [&["output_item.added"], inside, &["output_item.done"]].concat()
    };
    let call = |kind: &'static str, done: &'static str| item(&[kind, kind, done]);
    let expected = [
        vec!["created", "in_progress"],
        item(&[
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
        ]),
        item(&[
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.annotation.added",
            "output_text.done",
            "content_part.done",
        ]),
        item(&[]),
        call(
            "function_call_arguments.delta",
            "function_call_arguments.done",
        ),
        call(
            "custom_tool_call_input.delta",
            "custom_tool_call_input.done",
        ),
        item(&[
            "content_part.added",
            "output_text.delta",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
        ]),
        vec!["completed"],
    ]
    .concat();
    assert_eq!(kinds, expected);
    assert_eq!(said[0].1["response"]["status"], "in_progress");
    let last = &said.last().unwrap().1["response"];
    assert_eq!(
        (&last["status"], &last["error"]),
        (&json!("completed"), &Value::Null)
    );

    let mut state = ResponsesStreamState::new();
    for (_, event) in &said {
        state.push(&event.to_string()).unwrap();
    }
    let streamed = state.finish().unwrap();
    let same = read_reply(&last.to_string()).unwrap();
    assert_eq!(streamed.stop, StopReason::ToolCalls);
    assert_eq!(
        streamed.parts, same.parts,
        "the last event says it all once more"
    );
    assert_eq!(streamed.usage, same.usage);
    let kinds = |response: &Value| -> Vec<Value> {
        let items = response["output"].as_array().unwrap().iter();
        items.map(|item| item["type"].clone()).collect()
    };
    assert_eq!(kinds(&whole), kinds(last));
    assert_eq!(
        whole["reasoning"],
        json!({"effort": "low", "summary": "auto"})
    );
    assert_eq!(whole["output"][1]["phase"], "commentary");
    assert_eq!(
        whole["usage"]["output_tokens_details"]["reasoning_tokens"],
        5
    );
}

#[tokio::test]
async fn reasoning_comes_back_as_it_was_encrypted() {
    let script = r#"{"think": "Hm.", "call": [{"name": "read", "arguments": {}}]}
{"think": "Done.", "say": "ok", "repeat": true}"#;
    let server = server(Mock::responses(), script).await;
    let (_, reply) = ask(&server, &body(json!([user("hi")]))).await;
    let mut input = vec![user("hi")];
    input.extend(reply["output"].as_array().unwrap().iter().cloned());
    input.push(json!({"type": "function_call_output", "call_id": "call_1_0", "output": "A"}));
    let next = body(json!(input));
    assert_eq!(ask(&server, &next).await.0, 200);
    for (content, why) in [
        ("gAAAAABoforeign==", "could not be decrypted or parsed"),
        (
            reply["output"][0]["encrypted_content"].as_str().unwrap(),
            "item_id did not match",
        ),
    ] {
        let mut changed = next.clone();
        changed["input"][1]["encrypted_content"] = content.into();
        if why.starts_with("item_id") {
            changed["input"][1]["id"] = "rs_9".into();
        }
        let (status, refused) = ask(&server, &changed).await;
        assert_eq!(
            (status, &refused["error"]["code"]),
            (400, &json!("invalid_encrypted_content"))
        );
        assert!(
            refused["error"]["message"].as_str().unwrap().contains(why),
            "{refused}"
        );
    }
    let mut alone = next.clone();
    alone["input"].as_array_mut().unwrap().remove(1);
    let (status, refused) = ask(&server, &alone).await;
    assert_eq!(status, 400);
    let words = refused["error"]["message"].as_str().unwrap();
    assert!(
        words.contains("without its required 'reasoning' item"),
        "{words}"
    );
    assert_eq!(
        server
            .requests()
            .last()
            .unwrap()
            .fault
            .as_ref()
            .unwrap()
            .rule
            .to_string(),
        "OR4"
    );
}

/// What was said without reasoning has none to bring: its echo is taken as it is, here and by a server
/// that has never heard of it.
#[tokio::test]
async fn an_echo_of_what_was_said_without_reasoning_is_taken() {
    let script = r#"{"say": "I look.", "call": [{"name": "read", "arguments": {}}]}
{"say": "ok", "repeat": true}"#;
    let one = server(Mock::responses(), script).await;
    let (_, reply) = ask(&one, &body(json!([user("hi")]))).await;
    let mut input = vec![user("hi")];
    input.extend(reply["output"].as_array().unwrap().iter().cloned());
    input.push(json!({"type": "function_call_output", "call_id": "call_1_0", "output": "A"}));
    let next = body(json!(input));
    assert!(next.to_string().contains("fc_1_0"), "{next}");
    let other = server(Mock::responses(), script).await;
    for server in [one, other] {
        let (status, said) = ask(&server, &next).await;
        assert_eq!(status, 200, "{said}");
    }
}

#[tokio::test]
async fn models_reason_as_their_profiles_say() {
    let by = |model: &str| match model {
        "plain" => ResponsesProfile::plain(),
        _ => ResponsesProfile::compatible(),
    };
    let server = server(Mock::responses_by(by), TURN).await;
    let ask = async |model: &str| {
        let request = json!({"model": model, "input": "hi", "stream": true});
        events(&post(&server, &request).await.1)
    };
    let open = ask("open").await;
    assert!(
        open.iter()
            .any(|(name, _)| name == "response.reasoning_text.delta")
    );
    let item = &open.last().unwrap().1["response"]["output"][0];
    assert_eq!(item["content"][0]["text"], "Hm. \"ä\"");
    assert!(item.get("encrypted_content").is_none());
    let plain = ask("plain").await;
    assert_eq!(
        plain.last().unwrap().1["response"]["output"][0]["type"],
        "message"
    );
}

#[tokio::test]
async fn the_cache_holds_what_was_sent_before() {
    let server = server(Mock::responses(), "{\"say\": \"ok\", \"repeat\": true}").await;
    let cached = |response: &Value| {
        let cached = &response["usage"]["input_tokens_details"]["cached_tokens"];
        cached.as_u64().unwrap()
    };
    let first = user(&"word ".repeat(2_000));
    let one = body(json!([first]));
    assert_eq!(cached(&ask(&server, &one).await.1), 0);
    let grown = body(json!([first, user("and?")]));
    let held = cached(&ask(&server, &grown).await.1);
    assert!((1_900..2_100).contains(&held) && held % 128 == 0, "{held}");
    let mut other = grown;
    other["tools"][0]["name"] = "write".into();
    assert_eq!(cached(&ask(&server, &other).await.1), 0, "tools come first");
}

#[tokio::test]
async fn the_window_is_told_of_before_or_in_a_stream() {
    let long = json!({"model": "m", "input": "word ".repeat(2_000), "stream": true});
    let strict = server(Mock::responses().window(1_000), "").await;
    let (status, refused) = ask(&strict, &long).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("context_length_exceeded"))
    );
    let mild = server(Mock::responses().window(1_000).overflows_in_stream(), "").await;
    let (status, text) = post(&mild, &long).await;
    let said = events(&text);
    let kinds: Vec<&str> = said.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        (status, kinds),
        (
            200,
            vec![
                "response.created",
                "response.in_progress",
                "response.failed"
            ]
        )
    );
    let error = &said[2].1["response"]["error"];
    let words = error["message"].as_str().unwrap();
    assert!(
        words.starts_with("Your input exceeds the context window"),
        "{words}"
    );
    assert_eq!(error["code"], "context_length_exceeded");
    let forgetful = server(
        Mock::responses().window(1_000).cuts_silently(),
        "{\"say\": \"ok\"}",
    )
    .await;
    let mut whole = long;
    whole["stream"] = false.into();
    assert_eq!(
        ask(&forgetful, &whole).await.1["usage"]["input_tokens"],
        1_000
    );
}

#[tokio::test]
async fn it_can_be_overloaded_busy_and_cut_off() {
    let script = r#"{"say": "This breaks off", "cut": true}
{"fail": 503, "retry_after": 3}
{"say": "This begins well", "fail_in_stream": 500}
{"say": "This too", "fail_in_stream": 429}
{"say": "ok", "stop": "max_output_tokens", "repeat": true}"#;
    let mock = Mock::responses().tokens_per_minute(500).busy_every(6);
    let server = server(mock, script).await;
    let request = json!({"model": "m", "input": "hi", "stream": true});
    assert!(
        !post(&server, &request)
            .await
            .1
            .contains("response.completed")
    );
    assert_eq!(post(&server, &request).await.0, 503);
    let said = events(&post(&server, &request).await.1);
    let (name, last) = said.last().unwrap();
    assert_eq!(
        (name.as_str(), &last["response"]["error"]["code"]),
        ("response.failed", &json!("server_error"))
    );
    assert_eq!(last["sequence_number"], said.len() - 1);
    let said = events(&post(&server, &request).await.1);
    let (name, last) = said.last().unwrap();
    assert_eq!(
        (name.as_str(), &last["code"]),
        ("error", &json!("rate_limit_exceeded"))
    );
    let said = events(&post(&server, &request).await.1);
    let (name, last) = said.last().unwrap();
    assert_eq!(name, "response.incomplete");
    assert_eq!(
        last["response"]["incomplete_details"]["reason"],
        "max_output_tokens"
    );
    let (status, text) = post(&server, &request).await;
    assert!(
        status == 429 && text.contains("requests per min (RPM)"),
        "the sixth: {text}"
    );
    let many = json!({"model": "m", "input": "word ".repeat(450), "max_output_tokens": 100});
    let (status, text) = post(&server, &many).await;
    assert!(
        status == 429 && text.contains("tokens per min (TPM): Limit 500, Requested 55"),
        "{text}"
    );
    let verdict = classify(Some(status), &text);
    assert!(matches!(verdict, Verdict::SoftWindow { .. }), "{verdict:?}");
}

#[tokio::test]
async fn it_counts_and_tells_of_its_models() {
    let server = server(Mock::responses().models(["gpt-x"]), "{\"say\": \"ok\"}").await;
    let count = async |body: &Value| {
        let (status, text) = super::post(&server, "/v1/responses/input_tokens", &[], body).await;
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let mut request = json!({"model": "gpt-x", "instructions": "Be brief.", "input": "hi"});
    let counted = count(&request).await.1;
    assert_eq!(counted["object"], "response.input_tokens");
    request["stream"] = false.into();
    let (status, refused) = count(&request).await;
    assert_eq!(
        (status, refused["error"]["message"].as_str()),
        (400, Some("Unknown parameter: 'stream'."))
    );
    let (_, response) = ask(&server, &request).await;
    assert_eq!(response["usage"]["input_tokens"], counted["input_tokens"]);
    assert_eq!(
        Some(server.requests()[2].tokens),
        counted["input_tokens"].as_u64().map(Tokens)
    );
    let mut kept = request.clone();
    kept["previous_response_id"] = "resp_1".into();
    let (status, refused) = ask(&server, &kept).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (400, &json!("previous_response_not_found")),
        "nothing is stored"
    );
    let (_, list) = super::get(&server, "/v1/models", &[]).await;
    assert_eq!(list["data"][0]["id"], "gpt-x");
}

#[tokio::test]
async fn an_unknown_item_is_not_found() {
    let script = r#"{"think": "Hm.", "say": "ok", "repeat": true}"#;
    let server = server(Mock::responses(), script).await;
    let mut stored = body(json!([user("hi")]));
    stored["store"] = true.into();
    let reasoning = |id: &str| json!({"type": "reasoning", "id": id, "summary": []});
    let answer = json!({"role": "assistant", "content": "ok"});
    let item = "Item with id 'rs_x' not found.";
    for (key, value, status, code, words) in [
        (
            "previous_response_id",
            json!("resp_nope"),
            400,
            json!("previous_response_not_found"),
            "Previous response with id 'resp_nope' not found.",
        ),
        (
            "conversation",
            json!("conv_x"),
            404,
            Value::Null,
            "Conversation with id 'conv_x' not found.",
        ),
        (
            "conversation",
            json!({"id": "conv_x"}),
            404,
            Value::Null,
            "Conversation with id 'conv_x' not found.",
        ),
        (
            "input",
            json!([user("hi"), {"type": "item_reference", "id": "rs_x"}, answer]),
            404,
            Value::Null,
            item,
        ),
        (
            "input",
            json!([user("hi"), reasoning("rs_x"), answer]),
            404,
            Value::Null,
            item,
        ),
    ] {
        let mut request = stored.clone();
        request[key] = value;
        let (got, refused) = ask(&server, &request).await;
        let error = &refused["error"];
        assert_eq!((got, &error["code"]), (status, &code), "{refused}");
        assert_eq!(error["message"], words);
        assert_eq!(error["type"], "invalid_request_error");
    }
    // What this server said itself it has, as far as it was to keep it.
    let (_, reply) = ask(&server, &stored).await;
    let id = reply["output"][0]["id"].as_str().unwrap();
    let mut again = stored.clone();
    again["input"] = json!([user("hi"), reasoning(id), answer, user("more")]);
    assert_eq!(ask(&server, &again).await.0, 200);
    again["input"][1] = json!({"type": "item_reference", "id": id});
    assert_eq!(ask(&server, &again).await.0, 200);
    let (_, reply) = ask(&server, &body(json!([user("hi")]))).await;
    again["input"][1]["id"] = reply["output"][0]["id"].clone();
    assert_eq!(ask(&server, &again).await.0, 404, "it was not to be kept");
    let mut none = stored.clone();
    none["previous_response_id"] = Value::Null;
    none["conversation"] = Value::Null;
    assert_eq!(ask(&server, &none).await.0, 200);
}
