//! Chat Completions: the script, refusals, the window, the cache and every way to fail.

use plimsoll_context::Tokens;
use plimsoll_mock::{Mock, Server};
use plimsoll_wire::StreamDecoder;
use plimsoll_wire::openai_chat::ChatStreamState;
use serde_json::{Value, json};

use super::{events, server};

fn openai() -> Mock {
    Mock::chat("openai").unwrap()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

async fn post(server: &Server, body: &Value) -> (u16, String) {
    super::post(server, "/v1/chat/completions", &[], body).await
}

async fn ask(server: &Server, messages: Value) -> (u16, Value) {
    let (status, text) = post(server, &json!({"model": "m", "messages": messages})).await;
    (status, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn it_plays_its_script_and_then_says_that_it_has_ended() {
    let script = r#"{"say": "Let me look.", "call": [{"name": "read", "arguments": {"path": "a"}}]}
{"say": "It is empty."}"#;
    let server = server(openai(), script).await;
    let (status, one) = ask(&server, json!([user("hi")])).await;
    assert_eq!(status, 200);
    let message = &one["choices"][0]["message"];
    assert_eq!(message["content"], "Let me look.");
    assert_eq!(
        message["tool_calls"][0]["function"]["arguments"],
        r#"{"path":"a"}"#
    );
    assert_eq!(one["choices"][0]["finish_reason"], "tool_calls");
    let (_, two) = ask(&server, json!([user("hi"), user("go on")])).await;
    assert_eq!(two["choices"][0]["finish_reason"], "stop");
    let (status, three) = ask(&server, json!([user("hi")])).await;
    assert_eq!(status, 500);
    assert!(
        three["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("the script has no turn")
    );
    let statuses: Vec<u16> = server.requests().iter().map(|asked| asked.status).collect();
    assert_eq!(statuses, [200, 200, 500]);
}

#[tokio::test]
async fn a_stream_is_read_back_as_the_same_reply() {
    let script = r#"{"think": "Hm.", "say": "Zwölf Boxkämpfer", "call": [{"name": "read", "arguments": "{\"path\": "}]}"#;
    let server = server(Mock::chat("compatible").unwrap(), script).await;
    let body = json!({"model": "m", "messages": [user("hi")], "stream": true, "stream_options": {"include_usage": true}});
    let (_, text) = post(&server, &body).await;
    let mut stream = ChatStreamState::new();
    for data in text.lines().filter_map(|line| line.strip_prefix("data: ")) {
        if data != "[DONE]" {
            stream.push(data).unwrap();
        }
    }
    let reply = stream.finish().unwrap();
    let texts: Vec<&str> = reply
        .parts
        .iter()
        .filter_map(|part| part.as_text())
        .collect();
    assert_eq!(texts, ["Zwölf Boxkämpfer"]);
    let call = reply.parts.iter().find_map(|part| match part {
        plimsoll_context::Part::ToolCall(call) => Some(call),
        _ => None,
    });
    assert_eq!(
        call.unwrap().arguments,
        "{\"path\": ",
        "invalid arguments are sent as they are"
    );
    assert!(reply.usage.unwrap().output > Tokens(0));
}

#[tokio::test]
async fn invalid_requests_are_refused_in_the_words_of_the_server() {
    let server = server(openai(), "{\"say\": \"no\", \"repeat\": true}").await;
    let orphan = json!([user("hi"), {"role": "tool", "tool_call_id": "x", "content": "?"}]);
    let (status, body) = ask(&server, orphan).await;
    assert_eq!(status, 400);
    let words = body["error"]["message"].as_str().unwrap();
    assert!(
        words.contains("role 'tool' must be a response to a preceeding message with 'tool_calls'"),
        "{words}"
    );
    assert_eq!(server.turns_left(), 1, "a refusal takes no turn");
}

#[tokio::test]
async fn the_window_refuses_in_each_voice_or_cuts_without_a_word() {
    let long = json!([user(&"word ".repeat(3_000))]);
    for (dialect, words) in [
        (
            "openai",
            "This model's maximum context length is 1000 tokens.",
        ),
        (
            "llama.cpp",
            "exceeds the available context size (1000 tokens), try increasing it",
        ),
        (
            "mistral",
            "too large for model with 1000 maximum context length",
        ),
    ] {
        let server = server(
            Mock::chat(dialect).unwrap().window(1_000),
            "{\"say\": \"no\"}",
        )
        .await;
        let (status, body) = ask(&server, long.clone()).await;
        assert_eq!(status, 400);
        assert!(body.to_string().contains(words), "{body}");
        let overflow = plimsoll_wire::overflow::classify(Some(status), &body.to_string());
        assert!(format!("{overflow:?}").contains("1000"), "{overflow:?}");
    }
    let server = server(openai().window(1_000).cuts_silently(), "{\"say\": \"ok\"}").await;
    let (status, body) = ask(&server, long).await;
    assert_eq!(
        (status, &body["usage"]["prompt_tokens"]),
        (200, &json!(1_000))
    );
}

#[tokio::test]
async fn the_cache_holds_what_was_sent_before() {
    let server = server(openai(), "{\"say\": \"ok\", \"repeat\": true}").await;
    let first = user(&"word ".repeat(2_000));
    let cached = |body: Value| body["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
    assert_eq!(cached(ask(&server, json!([first])).await.1), Some(0));
    let (_, body) = ask(&server, json!([first, user("and?")])).await;
    let held = cached(body).unwrap();
    assert_eq!(held, 1_920, "2,000 in steps of 128");
    let (_, body) = ask(&server, json!([user("other"), first])).await;
    assert_eq!(cached(body), Some(0), "it does not begin the same");
}

#[tokio::test]
async fn it_can_be_busy_overloaded_slow_and_cut_off() {
    let script = r#"{"say": "This is a long answer that breaks off", "cut": true}
{"fail": 503, "retry_after": 7}
{"say": "ok", "repeat": true}"#;
    let server = server(openai().busy_every(4).tokens_per_minute(500), script).await;
    let (_, text) = post(
        &server,
        &json!({"model": "m", "messages": [user("hi")], "stream": true}),
    )
    .await;
    assert!(
        text.starts_with("cut:") || !text.contains("[DONE]"),
        "{text}"
    );
    assert_eq!(ask(&server, json!([user("hi")])).await.0, 503);
    let (status, body) = ask(&server, json!([user(&"word ".repeat(900))])).await;
    assert_eq!(status, 413);
    assert!(
        body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("Limit 500")
    );
    assert_eq!(ask(&server, json!([user("hi")])).await.0, 429, "the fourth");
    assert_eq!(ask(&server, json!([user("hi")])).await.0, 200);
}

#[tokio::test]
async fn it_tells_its_window_and_ends_when_dropped() {
    let server = server(openai().window(4_096), "").await;
    let props = super::client()
        .get(format!("{}/props", server.address()))
        .send()
        .await
        .unwrap();
    let props: Value = serde_json::from_str(&props.text().await.unwrap()).unwrap();
    assert_eq!(props["default_generation_settings"]["n_ctx"], 4_096);
    assert_eq!(
        super::client()
            .get(format!("{}/nothing", server.address()))
            .send()
            .await
            .unwrap()
            .status(),
        404
    );
    let address = server.address();
    drop(server);
    tokio::task::yield_now().await;
    assert!(
        super::client()
            .get(format!("{address}/props"))
            .send()
            .await
            .is_err()
    );
}

#[tokio::test]
async fn output_that_was_asked_for_counts_where_it_does() {
    let body = json!({"model": "m", "max_tokens": 900, "messages": [user(&"word ".repeat(200))]});
    for (dialect, words) in [
        (
            "deepseek",
            Some("(205 in the messages, 900 in the completion)"),
        ),
        ("llama.cpp", None),
    ] {
        let mock = Mock::chat(dialect).unwrap().window(1_000);
        let server = server(mock, "{\"say\": \"ok\"}").await;
        let (status, text) = post(&server, &body).await;
        assert_eq!(status, if words.is_some() { 400 } else { 200 });
        assert!(text.contains(words.unwrap_or("ok")), "{text}");
    }
}

#[tokio::test]
async fn a_stream_may_fail_after_it_began_well() {
    let script = r#"{"say": "This begins well", "fail_in_stream": 529, "message": "overloaded"}
{"say": "no", "fail_in_stream": 502}
{"say": "never", "repeat": true}"#;
    let server = server(openai().window(1_000).overflows_in_stream(), script).await;
    let ask = |text: &str| json!({"model": "m", "messages": [user(text)], "stream": true});
    let (status, text) = post(&server, &ask("hi")).await;
    assert_eq!(status, 200);
    let said = events(&text);
    assert_eq!(said[1].1["choices"][0]["delta"]["content"], "This beg");
    let last = &said.last().unwrap().1;
    assert_eq!(last["error"]["message"], "overloaded");
    assert_eq!(last["error"]["type"], "server_error");
    let mut whole = ask("hi");
    whole["stream"] = false.into();
    assert_eq!(post(&server, &whole).await.0, 502, "not in a stream");
    let (status, text) = post(&server, &ask(&"word ".repeat(2_000))).await;
    assert_eq!((status, events(&text).len()), (200, 2));
    let verdict = plimsoll_wire::overflow::classify(None, &events(&text)[1].1.to_string());
    assert!(format!("{verdict:?}").contains("1000"), "{verdict:?}");
}

#[tokio::test]
async fn a_gateway_tells_whose_failure_it_is() {
    let script = r#"{"say": "This begins well", "fail_in_stream": 529, "message": "overloaded"}"#;
    let server = server(Mock::chat("openrouter").unwrap(), script).await;
    let body = json!({"model": "m", "messages": [user("hi")], "stream": true});
    let (_, text) = post(&server, &body).await;
    let last = &events(&text).last().unwrap().1.clone();
    assert_eq!(last["error"]["code"], 529);
    assert_eq!(last["error"]["metadata"]["raw"]["message"], "overloaded");
    assert_eq!(last["choices"][0]["finish_reason"], "error");
}

#[tokio::test]
async fn ids_are_such_as_its_own_rules_accept() {
    let script = "{\"call\": [{\"name\": \"a\"}, {\"name\": \"b\", \"id\": \"mine00000\"}]}";
    let server = server(Mock::chat("mistral").unwrap(), script).await;
    let (_, body) = ask(&server, json!([user("hi")])).await;
    let calls = &body["choices"][0]["message"]["tool_calls"];
    assert_eq!(
        (&calls[0]["id"], &calls[1]["id"]),
        (&json!("c00001000"), &json!("mine00000"))
    );
    assert_eq!(calls[0]["function"]["arguments"], "{}");
}

#[tokio::test]
async fn answers_may_be_given_as_they_stand() {
    let script = r#"{"body": "<html>", "fail": 200, "headers": {"content-type": "text/html", "x-a": "b"}}
{"body": {"odd": 1}, "fail": 418}
{"events": ["[DONE]", {"type": "t", "n": 1}], "bytewise": true}"#;
    let server = server(openai(), script).await;
    let body = json!({"model": "m", "messages": [user("hi")]});
    assert_eq!(post(&server, &body).await, (200, "<html>".into()));
    assert_eq!(post(&server, &body).await, (418, "{\"odd\":1}".into()));
    let (_, text) = post(&server, &body).await;
    assert_eq!(
        text,
        "data: [DONE]\n\nevent: t\ndata: {\"type\":\"t\",\"n\":1}\n\n"
    );
}

#[tokio::test]
async fn unknown_paths_and_invalid_json_are_refused() {
    let mock = openai().page("/v1/models", 503, json!({"busy": true}));
    let server = server(mock, "").await;
    assert_eq!(super::get(&server, "/v1/models", &[]).await.0, 503);
    server.page("/v1/models", 200, json!([]));
    assert_eq!(
        super::get(&server, "/v1/models", &[]).await,
        (200, json!([]))
    );
    let (status, body) = super::get(&server, "/v1/models/gpt-x", &[]).await;
    assert_eq!((status, &body["id"]), (200, &json!("gpt-x")));
    let (status, body) = super::post(&server, "/v1/messages", &[], &json!({})).await;
    assert_eq!(status, 404);
    assert!(body.contains("this mock speaks Chat Completions"), "{body}");
    let url = format!("{}/v1/chat/completions", server.address());
    let sent = super::client().post(url).body("{").send().await.unwrap();
    let (status, body) = super::read(sent).await;
    assert_eq!(status, 400);
    assert!(body.contains("not valid JSON"), "{body}");
}

#[tokio::test]
async fn each_server_says_in_its_own_words_what_is_too_long() {
    use plimsoll_wire::openai_chat::Dialect;
    use plimsoll_wire::overflow::{Overflow, Verdict, classify};

    let over = |output: Option<u64>| Overflow {
        used: Some(Tokens(1_200)),
        window: Some(Tokens(1_000)),
        output: output.map(Tokens),
        excess: None,
    };
    for name in Dialect::NAMES {
        let counts = ["compatible", "openai", "vllm", "deepseek", "openrouter"].contains(&name);
        let verdict = |output: Option<u64>| {
            Verdict::Overflow(match name {
                "groq" => Overflow::default(),
                "ollama" => Overflow {
                    excess: Some(Tokens(200)),
                    ..Overflow::default()
                },
                "deepseek" => over(output.or(Some(0))),
                _ => over(output.filter(|_| counts)),
            })
        };
        let small = Verdict::OutputTooLarge {
            limit: Tokens(200),
            used: Some(Tokens(800)),
            window: Some(Tokens(1_000)),
        };
        for (used, output, expected) in [
            (1_200, None, Some(verdict(None))),
            (1_200, Some(300), Some(verdict(Some(300)))),
            (800, Some(300), counts.then_some(small)),
            (800, Some(200), None),
        ] {
            let mock = Mock::chat(name)
                .unwrap()
                .window(1_000)
                .weighing(move |_| used);
            let server = server(mock, r#"{"say": "ok"}"#).await;
            let mut body = json!({"model": "m", "messages": [user("hi")]});
            if let Some(output) = output {
                body["max_tokens"] = json!(output);
            }
            let (status, text) = post(&server, &body).await;
            assert_eq!(status == 400, expected.is_some(), "{name}: {text}");
            if let Some(expected) = expected {
                assert_eq!(classify(Some(status), &text), expected, "{name}: {text}");
                let words = words_of(name);
                assert!(text.contains(words), "{name}: {text}");
            }
        }
    }
}

/// What only that server says.
fn words_of(name: &str) -> &'static str {
    match name {
        "vllm" => "BadRequestError",
        "openrouter" => "This endpoint's maximum context length is",
        "llama.cpp" => "exceed_context_size_error",
        "ollama" => "prompt too long; exceeded max context length by 200 tokens",
        "lmstudio" => "(n_keep: 1200>= n_ctx: 1000)",
        "mistral" => "3051",
        "kimi" => "exceeded model token limit",
        "groq" => "Please reduce the length of the messages or completion.",
        "xai" => "maximum prompt length is 1000",
        "together" => "is longer than the model's context length",
        "cohere" => "cannot exceed 1000 - received 1200",
        _ => "This model's maximum context length is 1000 tokens.",
    }
}
