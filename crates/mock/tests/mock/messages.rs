//! Anthropic Messages: events in the API's order, signatures, the cache by breakpoints, the window,
//! counts, headers and every way to fail.

use plimsoll_context::{Part, StopReason, Tokens};
use plimsoll_mock::rules::anthropic::sign;
use plimsoll_mock::{Mock, Server, Turn};
use plimsoll_wire::StreamDecoder;
use plimsoll_wire::anthropic::MessagesStreamState;
use serde_json::{Value, json};

use super::{events, server};

/// Thinks by a budget, signs only the block.
const BUDGET: &str = "claude-sonnet-4-5";
/// Binds thinking to what stands before it.
const BOUND: &str = "claude-opus-5-5";
const HEAD: [(&str, &str); 2] = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];

async fn post(server: &Server, body: &Value) -> (u16, String) {
    super::post(server, "/v1/messages", &HEAD, body).await
}

async fn ask(server: &Server, body: &Value) -> (u16, Value) {
    let (status, text) = post(server, body).await;
    (status, serde_json::from_str(&text).unwrap())
}

fn body(model: &str, messages: Value) -> Value {
    json!({"model": model, "max_tokens": 100, "messages": messages})
}

fn user(content: impl Into<Value>) -> Value {
    json!({"role": "user", "content": content.into()})
}

fn assistant(content: impl Into<Value>) -> Value {
    json!({"role": "assistant", "content": content.into()})
}

/// A request in which the model may think.
fn thinking(model: &str, messages: Value) -> Value {
    let mut body = body(model, messages);
    body["max_tokens"] = 4_000.into();
    body["thinking"] = match model {
        BUDGET => json!({"type": "enabled", "budget_tokens": 1_024}),
        _ => json!({"type": "adaptive"}),
    };
    body["tools"] = json!([{"name": "read", "input_schema": {"type": "object"}}]);
    body
}

const TURN: &str = r#"{"think": "Hm. \"ä\"", "redacted": true, "say": "I look at both.", "citations": [{"type": "char_location", "cited_text": "x", "document_index": 0, "document_title": null, "start_char_index": 0, "end_char_index": 1, "file_id": null}], "blocks": [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}], "call": [{"name": "read", "arguments": {"path": "a"}}, {"name": "read", "arguments": {"path": "b"}}], "repeat": true}"#;

#[tokio::test]
async fn a_stream_has_the_events_of_the_api_in_their_order() {
    let server = server(Mock::messages(), TURN).await;
    let mut request = thinking(BUDGET, json!([user("hi")]));
    let (_, whole) = ask(&server, &request).await;
    request["stream"] = true.into();
    let (status, text) = post(&server, &request).await;
    assert_eq!(status, 200);
    let said = events(&text);
    let kinds: Vec<&str> = said
        .iter()
        .map(|(name, event)| {
            assert_eq!(event["type"], name.as_str());
            match name.as_str() {
                "content_block_start" => event["content_block"]["type"].as_str().unwrap(),
                "content_block_delta" => event["delta"]["type"].as_str().unwrap(),
                "content_block_stop" => "stop",
                name => name,
            }
        })
        .collect();
    let call = [
        "tool_use",
        "input_json_delta",
        "input_json_delta",
        "input_json_delta",
        "stop",
    ];
    let expected = [
        &["message_start"][..],
        &[
            "thinking",
            "ping",
            "thinking_delta",
            "thinking_delta",
            "signature_delta",
            "stop",
        ],
        &["redacted_thinking", "stop"],
        &[
            "text",
            "text_delta",
            "text_delta",
            "citations_delta",
            "stop",
        ],
        &[
            "server_tool_use",
            "input_json_delta",
            "input_json_delta",
            "input_json_delta",
            "stop",
        ],
        &call,
        &call,
        &["message_delta", "message_stop"],
    ]
    .concat();
    assert_eq!(kinds, expected);
    let begun = &said[0].1["message"];
    assert_eq!(begun["content"], json!([]));
    assert_eq!(begun["stop_reason"], Value::Null);
    let last = &said[said.len() - 2].1;
    assert_eq!(
        last["delta"],
        json!({"stop_reason": "tool_use", "stop_sequence": null})
    );

    let mut state = MessagesStreamState::new();
    for (_, event) in &said {
        state.push(&event.to_string()).unwrap();
    }
    let streamed = state.finish().unwrap();
    let mut whole = plimsoll_wire::anthropic::read_reply(&whole.to_string()).unwrap();
    for part in &mut whole.parts {
        if let Part::ToolCall(call) = part {
            call.id.0 = call.id.0.replace("toolu_1_", "toolu_2_");
        }
    }
    assert_eq!(streamed.stop, StopReason::ToolCalls);
    assert_eq!(streamed.parts, whole.parts, "both ways say the same");
    assert_eq!(streamed.usage, whole.usage);
}

#[tokio::test]
async fn it_thinks_only_where_it_may() {
    let server = server(Mock::messages(), TURN).await;
    let kinds = |message: &Value| -> Vec<String> {
        let blocks = message["content"].as_array().unwrap().iter();
        blocks
            .map(|block| block["type"].as_str().unwrap().to_owned())
            .collect()
    };
    let (_, plain) = ask(&server, &body(BUDGET, json!([user("hi")]))).await;
    assert_eq!(
        kinds(&plain),
        ["text", "server_tool_use", "tool_use", "tool_use"]
    );
    let mut request = thinking(BOUND, json!([user("hi")]));
    request["thinking"]["display"] = "omitted".into();
    let (_, hidden) = ask(&server, &request).await;
    assert_eq!(hidden["content"][0]["thinking"], "");
    assert_eq!(hidden["content"][0]["signature"], sign(&request, ""));
}

/// A model that thinks by a budget begins a tool loop with thinking, even if its script says nothing of
/// it: the API refuses the client's next request otherwise (AM9).
#[tokio::test]
async fn a_tool_loop_that_the_script_begins_without_thinking_can_be_continued() {
    let script = r#"{"call": [{"name": "read", "arguments": {"path": "a"}}]}
{"say": "One more.", "call": [{"name": "read", "arguments": {"path": "b"}}]}
{"say": "Done.", "repeat": true}"#;
    for streamed in [false, true] {
        let server = server(Mock::messages(), script).await;
        let mut messages = vec![user("hi")];
        let mut kinds = Vec::new();
        for _ in 0..3 {
            let mut request = thinking(BUDGET, messages.clone().into());
            let content = if streamed {
                request["stream"] = true.into();
                let (status, text) = post(&server, &request).await;
                assert_eq!(status, 200, "{text}");
                streamed_content(&text)
            } else {
                let (status, reply) = ask(&server, &request).await;
                assert_eq!(status, 200, "{reply}");
                reply["content"].clone()
            };
            let blocks = content.as_array().unwrap();
            let call = blocks.iter().find(|block| block["type"] == "tool_use");
            let result = call.map(
                |call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "A"}),
            );
            let of = blocks.iter().map(|block| block["type"].to_string());
            kinds.push(of.collect::<Vec<_>>().join(" "));
            messages.push(assistant(content));
            messages.extend(result.map(|result| user(json!([result]))));
        }
        assert_eq!(
            kinds,
            [
                r#""thinking" "tool_use""#,
                r#""text" "tool_use""#,
                r#""text""#
            ]
        );
        assert!(server.requests().iter().all(|asked| asked.fault.is_none()));
    }
}

/// The blocks of a streamed message, as a client puts them together.
fn streamed_content(text: &str) -> Value {
    let mut blocks: Vec<Value> = Vec::new();
    let mut input = String::new();
    let append = |block: &mut Value, key: &str, more: &Value| {
        let whole = format!("{}{}", block[key].as_str().unwrap(), more.as_str().unwrap());
        block[key] = whole.into();
    };
    for (_, event) in events(text) {
        let delta = &event["delta"];
        match (event["type"].as_str(), delta["type"].as_str()) {
            (Some("content_block_start"), _) => blocks.push(event["content_block"].clone()),
            (_, Some("input_json_delta")) => {
                input.push_str(delta["partial_json"].as_str().unwrap());
            }
            (_, Some("thinking_delta")) => {
                append(blocks.last_mut().unwrap(), "thinking", &delta["thinking"]);
            }
            (_, Some("signature_delta")) => {
                append(blocks.last_mut().unwrap(), "signature", &delta["signature"]);
            }
            (_, Some("text_delta")) => append(blocks.last_mut().unwrap(), "text", &delta["text"]),
            (Some("content_block_stop"), _) if !input.is_empty() => {
                let input = std::mem::take(&mut input);
                blocks.last_mut().unwrap()["input"] = serde_json::from_str(&input).unwrap();
            }
            _ => {}
        }
    }
    blocks.into()
}

#[tokio::test]
async fn thinking_comes_back_as_it_was_signed_and_where_it_was() {
    for model in [BUDGET, BOUND] {
        let script = r#"{"think": "Hm.", "redacted": true, "call": [{"name": "read", "arguments": {"path": "a"}}]}
{"say": "Done.", "repeat": true}"#;
        let server = server(Mock::messages(), script).await;
        let first = thinking(model, json!([user("hi")]));
        let (_, reply) = ask(&server, &first).await;
        let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1_0", "content": "A"}]);
        let next = thinking(
            model,
            json!([
                user("hi"),
                assistant(reply["content"].clone()),
                user(result)
            ]),
        );
        assert_eq!(ask(&server, &next).await.0, 200, "{model}");

        let refused = async |changed: Value, words: &str| {
            let (status, body) = ask(&server, &changed).await;
            let said = body["error"]["message"].as_str().unwrap();
            assert_eq!(
                (status, body["error"]["type"].as_str()),
                (400, Some("invalid_request_error"))
            );
            assert!(
                said.contains("Invalid `signature` in `thinking` block"),
                "{said}"
            );
            assert!(said.contains(words), "{said}");
        };
        let mut changed = next.clone();
        changed["messages"][1]["content"][0]["thinking"] = "Hm!".into();
        refused(changed, "messages.1.content.0").await;
        let mut foreign = next.clone();
        foreign["messages"][1]["content"][0]["signature"] = "EqQBCgIYAhIM".into();
        refused(foreign, "messages.1.content.0").await;
        let mut redacted = next.clone();
        redacted["messages"][1]["content"][1]["data"] = "EmwKAhgB".into();
        refused(redacted, "messages.1.content.1").await;
        let mut moved = next.clone();
        moved["messages"][0]["content"] = "ho".into();
        match model {
            BOUND => refused(moved, "bound to a different").await,
            _ => assert_eq!(ask(&server, &moved).await.0, 200),
        }
    }
}

#[tokio::test]
async fn invalid_requests_are_refused_in_the_words_of_the_api() {
    let server = server(Mock::messages(), "{\"say\": \"no\", \"repeat\": true}").await;
    let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]);
    let orphan = json!([user("hi"), assistant(call.clone()), user("and?")]);
    let prefill = json!([user("hi"), assistant("The")]);
    let result = json!([{"type": "tool_result", "tool_use_id": "toolu_1", "content": "r"}]);
    let undeclared = json!([user("hi"), assistant(call.clone()), user(result)]);
    for (model, messages, words) in [
        (
            BUDGET,
            orphan,
            "`tool_use` ids were found without `tool_result` blocks",
        ),
        (BUDGET, undeclared, "blocks must define tools"),
        (BOUND, prefill, "does not support assistant message prefill"),
    ] {
        let (status, refusal) = ask(&server, &body(model, messages)).await;
        assert_eq!((status, &refusal["type"]), (400, &json!("error")));
        assert!(
            refusal["error"]["message"]
                .as_str()
                .unwrap()
                .contains(words),
            "{refusal}"
        );
    }
    assert_eq!(server.turns_left(), 1, "a refusal takes no turn");
    let faults: Vec<String> = server
        .requests()
        .iter()
        .map(|asked| asked.fault.as_ref().unwrap().rule.to_string())
        .collect();
    assert_eq!(faults, ["AM1", "shape", "AM8"]);
}

#[tokio::test]
async fn headers_are_judged_and_keys_are_not_compared() {
    let server = server(Mock::messages(), "{\"say\": \"ok\", \"repeat\": true}").await;
    let request = body(BUDGET, json!([user("hi")]));
    let status = async |headers: &[(&str, &str)]| {
        let (status, body) = super::post(&server, "/v1/messages", headers, &request).await;
        (status, body)
    };
    assert_eq!(status(&HEAD).await.0, 200);
    assert_eq!(
        status(&[("authorization", "Bearer x"), HEAD[1]]).await.0,
        200
    );
    let (code, words) = status(&HEAD[1..]).await;
    assert!(
        code == 401 && words.contains("x-api-key header is required"),
        "{words}"
    );
    let (code, words) = status(&HEAD[..1]).await;
    assert!(code == 400 && words.contains("anthropic-version: header is required"));
    assert_eq!(super::get(&server, "/v1/models", &[]).await.0, 401);
    drop(server);
    let open = super::server(Mock::messages_without_keys(), "{\"say\": \"ok\"}").await;
    assert_eq!(
        super::post(&open, "/v1/messages", &HEAD[1..], &request)
            .await
            .0,
        200
    );
}

fn used(message: &Value) -> [u64; 5] {
    let usage = &message["usage"];
    let of = |place: &str| usage.pointer(place).unwrap().as_u64().unwrap();
    [
        of("/input_tokens"),
        of("/cache_read_input_tokens"),
        of("/cache_creation_input_tokens"),
        of("/cache_creation/ephemeral_5m_input_tokens"),
        of("/cache_creation/ephemeral_1h_input_tokens"),
    ]
}

#[tokio::test]
async fn the_cache_is_asked_for_and_reported_as_the_api_does() {
    let server = server(Mock::messages(), "{\"say\": \"ok\", \"repeat\": true}").await;
    let five = json!({"type": "ephemeral"});
    let hour = json!({"type": "ephemeral", "ttl": "1h"});
    let text = |words: usize, mark: &Value| {
        let mut block = json!({"type": "text", "text": "word ".repeat(words)});
        if mark.is_object() {
            block["cache_control"] = mark.clone();
        }
        block
    };
    let none = Value::Null;
    let request = |system: Value, first: &Value, rest: &[Value]| {
        let mut messages = vec![user(json!([first]))];
        messages.extend(rest.iter().cloned());
        let mut body = body(BUDGET, messages.into());
        body["system"] = json!([system]);
        body["tools"] = json!([{"name": "read", "input_schema": {"type": "object"}}]);
        body
    };
    // Nothing is cached by itself.
    let plain = request(text(2_000, &none), &text(100, &none), &[]);
    let total = used(&ask(&server, &plain).await.1)[0];
    assert!((2_100..2_200).contains(&total), "{total}");
    assert_eq!(used(&ask(&server, &plain).await.1), [total, 0, 0, 0, 0]);
    // The head for an hour, the message for five minutes.
    let marked = request(text(2_000, &hour), &text(100, &five), &[]);
    let [input, read, written, short, long] = used(&ask(&server, &marked).await.1);
    assert_eq!((input, read, written), (0, 0, total));
    assert!((2_000..2_080).contains(&long) && short + long == written);
    let [input, read, written, ..] = used(&ask(&server, &marked).await.1);
    assert_eq!((input, read, written), (0, total, 0));
    // The next turn marks its own end and reads up to the older one.
    let rest = [assistant("ok"), user(json!([text(50, &five)]))];
    let grown = request(text(2_000, &hour), &text(100, &none), &rest);
    let [input, read, written, short, _] = used(&ask(&server, &grown).await.1);
    assert_eq!((input, read), (0, total));
    assert!((50..70).contains(&written) && short == written);
    // A change of the first message leaves the head, one of the tools leaves nothing.
    let other = request(text(2_000, &hour), &text(101, &five), &[]);
    assert_eq!(used(&ask(&server, &other).await.1)[1], long);
    let mut tools = marked.clone();
    tools["tools"][0]["name"] = "write".into();
    assert_eq!(used(&ask(&server, &tools).await.1)[1], 0);
    // So does another way to think, but only for the messages.
    let mut thinks = marked.clone();
    thinks["max_tokens"] = 4_000.into();
    thinks["thinking"] = json!({"type": "enabled", "budget_tokens": 1_024});
    assert_eq!(used(&ask(&server, &thinks).await.1)[1], long);
    // Another model has another cache and another minimum.
    let mut small = marked;
    small["model"] = "claude-haiku-4-5".into();
    assert_eq!(
        used(&ask(&server, &small).await.1)[1..3],
        [0, 0],
        "4,096 there"
    );
}

#[tokio::test]
async fn the_window_is_enforced_with_and_without_what_was_asked_for() {
    let long = "word ".repeat(400);
    let script = format!("{{\"say\": \"{long}\", \"repeat\": true}}");
    let say = |words: usize, most: u64| {
        let mut body = body(BUDGET, json!([user("word ".repeat(words))]));
        body["max_tokens"] = most.into();
        body
    };
    let strict = server(Mock::messages().window(1_000), &script).await;
    for (request, words) in [
        (
            say(2_000, 10),
            "prompt is too long: 2005 tokens > 1000 maximum",
        ),
        (
            say(700, 500),
            "input length and `max_tokens` exceed context limit: 705 + 500 > 1000, decrease input \
             length or `max_tokens` and try again",
        ),
    ] {
        let (status, body) = ask(&strict, &request).await;
        assert_eq!(
            (status, body["error"]["message"].as_str()),
            (400, Some(words))
        );
    }
    assert_eq!(ask(&strict, &say(400, 500)).await.0, 200);
    // Newer models stop where the window ends.
    let mild = server(
        Mock::messages().window(1_000).overflows_in_stream(),
        &script,
    )
    .await;
    let (status, ended) = ask(&mild, &say(700, 500)).await;
    assert_eq!(
        (status, &ended["stop_reason"]),
        (200, &json!("model_context_window_exceeded"))
    );
    let said = ended["usage"]["output_tokens"].as_u64().unwrap();
    assert!((250..=297).contains(&said), "{said}");
    assert_eq!(
        ask(&mild, &say(200, 500)).await.1["stop_reason"],
        "end_turn"
    );
    assert_eq!(ask(&mild, &say(2_000, 10)).await.0, 400);
    let forgetful = server(Mock::messages().window(1_000).cuts_silently(), &script).await;
    let (status, cut) = ask(&forgetful, &say(2_000, 10)).await;
    assert_eq!(
        (status, &cut["usage"]["input_tokens"]),
        (200, &json!(1_000))
    );
}

#[tokio::test]
async fn it_can_be_overloaded_busy_and_cut_off() {
    let script = r#"{"say": "This breaks off", "cut": true}
{"fail": 529, "retry_after": 3}
{"say": "This begins well", "fail_in_stream": 529}
{"fail": 500, "message": "oops"}
{"say": "ok", "usage": {"input_tokens": 7}, "repeat": true}"#;
    let server = server(
        Mock::messages().tokens_per_minute(500).busy_every(5),
        script,
    )
    .await;
    let mut request = body(BUDGET, json!([user("hi")]));
    request["stream"] = true.into();
    let (_, text) = post(&server, &request).await;
    assert!(!text.contains("message_stop"), "{text}");
    let (status, text) = post(&server, &request).await;
    assert!(status == 529 && text.contains("overloaded_error"), "{text}");
    let (status, text) = post(&server, &request).await;
    let said = events(&text);
    assert_eq!((status, said[0].0.as_str()), (200, "message_start"));
    let (name, last) = said.last().unwrap();
    assert_eq!(
        (name.as_str(), &last["error"]["type"]),
        ("error", &json!("overloaded_error"))
    );
    assert!(post(&server, &request).await.1.contains("oops"));
    let (status, text) = post(&server, &request).await;
    assert!(
        status == 429 && text.contains("rate_limit_error"),
        "the fifth: {text}"
    );
    let many = body(BUDGET, json!([user("word ".repeat(600))]));
    let (status, text) = post(&server, &many).await;
    assert!(
        status == 429 && text.contains("rate limit of 500 input tokens per minute"),
        "{text}"
    );
    request["stream"] = false.into();
    assert_eq!(ask(&server, &request).await.1["usage"]["input_tokens"], 7);
}

#[tokio::test]
async fn an_answer_may_depend_on_the_request() {
    let mock = Mock::messages()
        .weighing(|request| request["messages"].as_array().unwrap().len() as u64)
        .then(|request, number| {
            let asked = request["messages"][0]["content"].as_str().unwrap();
            Turn::say(format!("{asked} {number}"))
        });
    let server = server(mock, "{\"say\": \"the script comes first\"}").await;
    let said = async |text: &str| {
        let (_, message) = ask(&server, &body(BUDGET, json!([user(text)]))).await;
        assert_eq!(message["usage"]["input_tokens"], 1);
        message["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(said("a").await, "the script comes first");
    assert_eq!(
        (said("b").await, said("c").await),
        ("b 1".into(), "c 2".into())
    );
    let (turn, opener) = Turn::say("slow").gated(1);
    assert_eq!(turn, turn.clone());
    opener.open();
}

#[tokio::test]
async fn it_counts_and_tells_of_its_models() {
    let mock = Mock::messages().window(8_000).models([BUDGET, BOUND]);
    let server = server(mock, "{\"say\": \"ok\"}").await;
    let count = async |body: &Value| {
        let path = "/v1/messages/count_tokens";
        let (status, text) = super::post(&server, path, &HEAD, body).await;
        (status, serde_json::from_str::<Value>(&text).unwrap())
    };
    let mut request = json!({"model": BUDGET, "messages": [user("word ".repeat(100))]});
    let counted = count(&request).await.1["input_tokens"].as_u64().unwrap();
    request["max_tokens"] = 10.into();
    let (status, refused) = count(&request).await;
    assert_eq!(status, 400);
    assert_eq!(
        refused["error"]["message"],
        "max_tokens: Extra inputs are not permitted"
    );
    let (_, message) = ask(&server, &request).await;
    assert_eq!(
        message["usage"]["input_tokens"], counted,
        "as it is counted when asked"
    );
    assert_eq!(server.requests()[0].tokens, Tokens(counted));
    let thread = json!({"model": BUDGET, "max_tokens": 9, "thread": {"type": "create"},
        "messages": [{"role": "user", "content": "hi"}]});
    let (status, text) = super::post(&server, "/v1/messages", &HEAD, &thread).await;
    assert!(
        status == 400 && text.contains("send the whole history"),
        "{text}"
    );
    let (_, list) = super::get(&server, "/v1/models", &HEAD).await;
    assert_eq!(list["data"][0]["lifecycle"], "active");
    assert_eq!(
        (&list["data"][1]["id"], &list["last_id"]),
        (&json!(BOUND), &json!(BOUND))
    );
    let (_, model) = super::get(&server, &format!("/v1/models/{BUDGET}"), &HEAD).await;
    assert_eq!(
        (&model["max_input_tokens"], &model["max_tokens"]),
        (&json!(8_000), &json!(64_000))
    );
}
