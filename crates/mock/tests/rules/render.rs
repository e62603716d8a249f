//! The messages that each dialect renders from a transcript.

use plimsoll_context::{
    CallId, File, Image, Message, Opaque, Part, Source, Thinking, ToolCall, ToolResult, ToolSpec,
};
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_testkit::messages::thinking;
use plimsoll_wire::openai_chat::{Dialect, EchoReasoning, NoContent, Template, read, render};
use plimsoll_wire::{Delivery, LeftOut, Note, RenderInput, ToolChoice};
use serde_json::{Value, json};

use crate::named;

fn body(input: &RenderInput<'_>, messages: &[Message], dialect: &Dialect) -> Value {
    let rendered = render(input, messages, dialect).unwrap();
    serde_json::from_slice(&rendered.body).unwrap()
}

fn sent(messages: &[Message], dialect: &Dialect) -> Value {
    body(&RenderInput::default(), messages, dialect)["messages"].take()
}

fn calls(ids: &[&str]) -> Message {
    let call = |id: &&str| {
        Part::ToolCall(ToolCall {
            id: CallId((*id).into()),
            name: "f".into(),
            arguments: "{}".into(),
            opaque: None,
        })
    };
    Message::Assistant {
        parts: ids.iter().map(call).collect(),
    }
}

fn result(id: &str) -> Message {
    Message::result(CallId(id.into()), "done")
}

fn image() -> Part {
    Part::Image(Image {
        source: Source::Data {
            media_type: "image/png".into(),
            base64: "AAAA".into(),
        },
        size: Some((1, 1)),
        detail: None,
    })
}

fn roles(messages: &Value) -> Vec<String> {
    let messages = messages.as_array().unwrap();
    messages
        .iter()
        .map(|m| m["role"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_whole_request_in_bytes() {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "d".into(),
        schema: json!({"type": "object", "properties": {"b": {}, "a": {}}}),
    };
    let extra = json!({"reasoning_effort": "low", "seed": 8, "messages": []});
    let tools = [tool("b"), tool("a")];
    let stop = ["END".to_owned()];
    let input = RenderInput {
        model: "m",
        system: Some("s"),
        tools: &tools,
        tool_choice: ToolChoice::Tool("a".into()),
        max_output: Some(100),
        temperature: Some(0.7),
        seed: Some(7),
        stop: &stop,
        delivery: Delivery::Stream,
        context: Some("now"),
        extra: extra.as_object(),
        ..RenderInput::default()
    };
    let history = [
        Message::user("q"),
        calls(&["c1"]),
        result("c1"),
        Message::Summary { text: "sum".into() },
        Message::Notice {
            text: "[note]".into(),
        },
    ];
    let rendered = render(&input, &history, &Dialect::openai()).unwrap();
    assert_eq!(
        String::from_utf8(rendered.body).unwrap(),
        concat!(
            r#"{"model":"m","tools":["#,
            r#"{"type":"function","function":{"name":"a","description":"d","parameters":{"type":"object","properties":{"b":{},"a":{}}}}},"#,
            r#"{"type":"function","function":{"name":"b","description":"d","parameters":{"type":"object","properties":{"b":{},"a":{}}}}}],"#,
            r#""messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},"#,
            r#"{"role":"tool","content":"done","tool_call_id":"c1"},"#,
            r#"{"role":"user","content":"[Summary of earlier messages, for reference. Do not answer it or repeat what it reports as done.]\n\nsum\n\n[End of the summary. What follows is newer.]"},"#,
            r#"{"role":"user","content":"[note]"},{"role":"user","content":"now"}],"#,
            r#""tool_choice":{"type":"function","function":{"name":"a"}},"max_completion_tokens":100,"#,
            r#""temperature":0.7,"seed":8,"stop":["END"],"stream":true,"stream_options":{"include_usage":true},"#,
            r#""reasoning_effort":"low"}"#
        )
    );
    assert_eq!(rendered.notes, []);
}

#[test]
fn a_model_that_refuses_a_temperature_is_sent_none() {
    let left_out = [Note {
        message: None,
        what: LeftOut::Temperature,
    }];
    let none = json!({"reasoning_effort": "none"});
    for (dialect, model, extra, sent) in [
        ("openai", "gpt-4o", None, true),
        ("openai", "gpt-5", None, false),
        ("openai", "o3", None, false),
        ("openai", "gpt-5.2", none.as_object(), true),
        ("compatible", "openai/gpt-5", None, false),
        ("kimi", "kimi-k2.6", None, false),
        ("groq", "openai/gpt-oss-120b", None, true),
        ("vllm", "gpt-5-of-mine", None, true),
    ] {
        let input = RenderInput {
            model,
            temperature: Some(0.7),
            extra,
            ..RenderInput::default()
        };
        let rendered = render(&input, &[Message::user("q")], &named(dialect)).unwrap();
        let got: Value = serde_json::from_slice(&rendered.body).unwrap();
        assert_eq!(got.get("temperature").is_some(), sent, "{model}");
        let notes: &[Note] = if sent { &[] } else { &left_out };
        assert_eq!(rendered.notes, notes, "{model}");
    }
}

#[test]
fn settings_follow_the_dialect() {
    let whole = RenderInput {
        max_output: Some(9),
        tool_choice: ToolChoice::None,
        delivery: Delivery::Whole,
        ..RenderInput::default()
    };
    let got = body(&whole, &[Message::user("q")], &Dialect::compatible());
    // Without tools there is nothing to choose.
    assert_eq!(
        got,
        json!({"model": "", "messages": [{"role": "user", "content": "q"}], "max_tokens": 9})
    );
    let stream = RenderInput::default();
    let got = body(&stream, &[Message::user("q")], &Dialect::mistral());
    assert_eq!(
        (&got["stream"], got.get("stream_options")),
        (&json!(true), None)
    );
    let tools = [ToolSpec {
        name: "f".into(),
        description: String::new(),
        schema: json!({}),
    }];
    let input = RenderInput {
        tools: &tools,
        ..RenderInput::default()
    };
    let llama = Dialect::openai().with_template(Template::Llama31);
    assert_eq!(
        body(&input, &[], &llama)["parallel_tool_calls"],
        json!(false)
    );
    let developer = Dialect {
        developer_role: true,
        ..Dialect::openai()
    };
    assert_eq!(
        roles(&sent(&[Message::system("s")], &developer)),
        ["developer"]
    );
}

#[test]
fn systems_stand_first_where_they_must() {
    let messages = [
        Message::system("b"),
        Message::user("q"),
        Message::assistant("x"),
        Message::system("c"),
        Message::user("r"),
    ];
    let input = RenderInput {
        system: Some("a"),
        ..RenderInput::default()
    };
    let local = body(&input, &messages, &named("llama.cpp"))["messages"].take();
    assert_eq!(
        local,
        json!([
            {"role": "system", "content": "a\n\nb"},
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": "x"},
            {"role": "user", "content": "[System message]\n\nc\n\nr"},
        ])
    );
    let openai = body(&input, &messages, &Dialect::openai())["messages"].take();
    assert_eq!(
        roles(&openai),
        ["system", "system", "user", "assistant", "system", "user"]
    );
}

#[test]
fn neighbours_merge_where_roles_must_alternate() {
    let messages = [
        Message::assistant("hello"),
        Message::user("a"),
        Message::User {
            parts: vec![Part::text("b"), image()],
        },
        Message::assistant("x"),
        calls(&["c1", "c2"]),
        result("c1"),
        result("c2"),
    ];
    let gemma = Dialect::openai().with_template(Template::Gemma);
    let got = sent(&messages, &gemma);
    assert_eq!(
        roles(&got),
        [
            "user",
            "assistant",
            "user",
            "assistant",
            "tool",
            "assistant",
            "tool"
        ]
    );
    assert_eq!(got[0]["content"], "Begin.");
    assert_eq!(
        got[2]["content"],
        json!([{"type": "text", "text": "a\n\nb"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
    );
    assert_eq!(
        (
            &got[3]["content"],
            got[3]["tool_calls"].as_array().unwrap().len()
        ),
        (&json!("x"), 1)
    );
}

#[test]
fn users_do_not_touch_results_where_they_may_not() {
    let messages = [
        Message::user("q"),
        calls(&["c1"]),
        result("c1"),
        Message::user("stop"),
    ];
    let got = sent(&messages, &Dialect::mistral());
    assert_eq!(
        roles(&got),
        ["user", "assistant", "tool", "assistant", "user"]
    );
    assert_eq!(got[3]["content"], "Noted.");
    let id = got[2]["tool_call_id"].as_str().unwrap();
    assert_eq!(
        (id.len(), &got[1]["tool_calls"][0]["id"]),
        (9, &got[2]["tool_call_id"])
    );
    // What follows the history is a user's word too.
    let input = RenderInput {
        context: Some("now"),
        ..RenderInput::default()
    };
    let got = body(&input, &messages[..3], &Dialect::mistral())["messages"].take();
    assert_eq!(
        roles(&got),
        ["user", "assistant", "tool", "assistant", "user"]
    );
}

#[test]
fn the_user_has_the_last_word_where_he_must() {
    let messages = [Message::user("q"), Message::assistant("x")];
    assert_eq!(
        roles(&sent(&messages, &Dialect::openai())),
        ["user", "assistant"]
    );
    let got = sent(&messages, &named("vllm"));
    assert_eq!(
        (roles(&got).len(), &got[2]["content"]),
        (3, &json!("Continue."))
    );
    let got = sent(&[Message::system("s")], &named("vllm"));
    assert_eq!(
        (roles(&got), &got[1]["content"]),
        (vec!["system".into(), "user".into()], &json!("Begin."))
    );
}

#[test]
fn batches_are_split_where_calls_come_one_by_one() {
    let mut batch = calls(&["a", "b", "c"]);
    if let Message::Assistant { parts } = &mut batch {
        parts.insert(0, Part::text("look"));
    }
    let messages = [
        Message::user("q"),
        batch,
        result("a"),
        result("b"),
        result("c"),
    ];
    let llama = Dialect::openai().with_template(Template::Llama31);
    let got = sent(&messages, &llama);
    let expected = [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ];
    assert_eq!(roles(&got), expected);
    assert_eq!(
        (&got[1]["content"], &got[3]["content"]),
        (&json!("look"), &Value::Null)
    );
    assert!(validate(&got, &llama).is_empty());
}

#[test]
fn reasoning_goes_back_as_the_dialect_says() {
    let plain = Message::Assistant {
        parts: vec![thinking("h"), thinking("m"), Part::text("x")],
    };
    let mut step = calls(&["c1"]);
    if let Message::Assistant { parts } = &mut step {
        parts.insert(0, thinking("plan"));
    }
    let signed = Message::Assistant {
        parts: vec![
            Part::Thinking(Thinking {
                text: "secret".into(),
                opaque: Some(Opaque {
                    origin: "anthropic".into(),
                    data: "{}".into(),
                }),
            }),
            calls(&["c2"]).parts()[0].clone(),
        ],
    };
    let messages = [plain, step, result("c1"), signed, result("c2")];
    let reasoning = |dialect: &Dialect| -> Vec<Value> {
        let got = sent(&messages, dialect);
        let got = got.as_array().unwrap().iter();
        got.filter(|m| m["role"] == "assistant")
            .map(|m| m.get("reasoning_content").cloned().unwrap_or_default())
            .collect()
    };
    assert_eq!(
        reasoning(&Dialect::openai()),
        [json!(null), json!(null), json!(null)]
    );
    assert_eq!(
        reasoning(&named("kimi")),
        [json!(null), json!("plan"), json!(" ")]
    );
    assert_eq!(
        reasoning(&named("deepseek")),
        [json!("hm"), json!("plan"), json!("")]
    );
    let always = Dialect {
        echo_reasoning: EchoReasoning::Always,
        ..Dialect::openai()
    };
    assert_eq!(
        reasoning(&always),
        [json!("hm"), json!("plan"), json!(null)]
    );
}

#[test]
fn attachments_of_results_follow_the_batch() {
    let shot = Message::ToolResult(ToolResult {
        call: CallId("a".into()),
        parts: vec![Part::text("shot"), image()],
        is_error: false,
    });
    let messages = [Message::user("q"), calls(&["a", "b"]), shot, result("b")];
    let got = sent(&messages, &Dialect::openai());
    assert_eq!(roles(&got), ["user", "assistant", "tool", "tool", "user"]);
    assert_eq!(got[2]["content"], "shot");
    assert_eq!(
        got[4]["content"],
        json!([{"type": "text", "text": "[Attachments of the tool results above]"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}])
    );
    let local = render(&RenderInput::default(), &messages, &named("llama.cpp")).unwrap();
    assert_eq!(
        local.notes,
        [Note {
            message: Some(2),
            what: LeftOut::Attachment
        }]
    );
    let local: Value = serde_json::from_slice(&local.body).unwrap();
    assert_eq!(
        local["messages"][2]["content"],
        "shot\n[attachment left out: this model reads text only]"
    );
}

#[test]
fn what_no_server_accepts_is_not_sent() {
    let silent = Message::Assistant {
        parts: vec![thinking("hm"), Part::text("")],
    };
    let foreign = Message::User {
        parts: vec![
            Part::text("x"),
            Part::Opaque(Opaque {
                origin: "anthropic".into(),
                data: "{}".into(),
            }),
        ],
    };
    let messages = [Message::user("q"), silent, foreign];
    let rendered = render(&RenderInput::default(), &messages, &Dialect::openai()).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "q"}, {"role": "user", "content": "x"}])
    );
    assert_eq!(
        rendered.notes,
        [
            Note {
                message: Some(1),
                what: LeftOut::SilentAssistant
            },
            Note {
                message: Some(2),
                what: LeftOut::ForeignBlock
            }
        ]
    );
}

#[test]
fn broken_arguments_are_wrapped_where_they_are_parsed() {
    let arguments = |text: &str, dialect: &Dialect| -> Value {
        let call = Message::Assistant {
            parts: vec![Part::ToolCall(ToolCall {
                id: CallId("c".into()),
                name: "f".into(),
                arguments: text.into(),
                opaque: None,
            })],
        };
        let messages = [Message::user("q"), call, result("c")];
        sent(&messages, dialect)[1]["tool_calls"][0]["function"]["arguments"].take()
    };
    for (text, expected) in [
        ("{\"x\": 1.50}", "{\"x\": 1.50}"),
        (" ", "{}"),
        ("{\"x\":", "{\"malformed_arguments\":\"{\\\"x\\\":\"}"),
        ("[1]", "{\"malformed_arguments\":\"[1]\"}"),
    ] {
        assert_eq!(arguments(text, &named("llama.cpp")), expected);
        assert_eq!(arguments(text, &Dialect::openai()), text);
    }
}

#[test]
fn contents_in_their_forms() {
    let texts = Message::User {
        parts: vec![Part::text("a"), Part::text("b")],
    };
    let file = |source| {
        Part::File(File {
            name: Some("n.pdf".into()),
            source,
        })
    };
    let files = Message::User {
        parts: vec![
            file(Source::Data {
                media_type: "application/pdf".into(),
                base64: "QQ==".into(),
            }),
            file(Source::Url {
                url: "file-1".into(),
            }),
        ],
    };
    assert_eq!(
        sent(std::slice::from_ref(&texts), &Dialect::compatible())[0]["content"],
        "a\nb"
    );
    assert_eq!(
        sent(&[texts, files], &Dialect::openai()),
        json!([
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "user", "content": [
                {"type": "file", "file": {"filename": "n.pdf", "file_data": "data:application/pdf;base64,QQ=="}},
                {"type": "file", "file": {"filename": "n.pdf", "file_id": "file-1"}},
            ]},
        ])
    );
    let omit = Dialect {
        no_content: NoContent::Omit,
        ..Dialect::openai()
    };
    assert_eq!(sent(&[calls(&["c"])], &omit)[0].get("content"), None);
    assert_eq!(sent(&[calls(&["c"])], &named("lmstudio"))[1]["content"], "");
}

#[test]
fn a_repeated_key_is_sent_once() {
    let extra = json!({"max_tokens": 5, "stream": false, "stream_options": null, "tool_choice": "auto",
        "temperature": 1, "stop": "x", "parallel_tool_calls": true, "response_format": {"type": "json_object"}});
    let input = RenderInput {
        max_output: Some(9),
        extra: extra.as_object(),
        ..RenderInput::default()
    };
    let rendered = render(&input, [&Message::user("q")], &Dialect::compatible()).unwrap();
    let text = String::from_utf8(rendered.body).unwrap();
    assert!(read(&text).is_ok(), "{text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&body["max_tokens"], &body["stream"]),
        (&json!(5), &json!(false))
    );
    for key in extra.as_object().unwrap().keys() {
        assert!(
            text.matches(&format!("\"{key}\":")).count() <= 1,
            "{key} {text}"
        );
    }
}

#[test]
fn tools_are_named_as_the_server_has_it_and_each_once() {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "d".into(),
        schema: json!({"type": "object"}),
    };
    let tools = [tool("fs.read"), tool("fs_read"), tool("list"), tool("list")];
    let input = RenderInput {
        tools: &tools,
        tool_choice: ToolChoice::Tool("fs.read".into()),
        ..RenderInput::default()
    };
    let rendered = |dialect: &Dialect| {
        let rendered = render(&input, &[Message::user("q")], dialect).unwrap();
        let body: Value = serde_json::from_slice(&rendered.body).unwrap();
        let names = body["tools"].as_array().unwrap().iter();
        let names = names.map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
        let choice = body["tool_choice"]["function"]["name"].clone();
        (names.collect::<Vec<_>>(), choice, rendered.notes)
    };
    let of_tools = |what| Note {
        message: None,
        what,
    };
    for dialect in [Dialect::openai(), Dialect::compatible()] {
        let (names, choice, notes) = rendered(&dialect);
        assert_eq!(names, ["fs_read", "list"]);
        assert_eq!(choice, "fs_read");
        assert_eq!(
            notes,
            [of_tools(LeftOut::Name), of_tools(LeftOut::RepeatedTool)]
        );
    }
}

#[test]
fn a_file_of_the_web_has_no_place_on_this_wire() {
    let file = |url: &str| Message::User {
        parts: vec![
            Part::text("read"),
            Part::File(File {
                name: None,
                source: Source::Url { url: url.into() },
            }),
        ],
    };
    let messages = [file("https://a/b.pdf"), file("file-1")];
    let rendered = render(&RenderInput::default(), &messages, &Dialect::openai()).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    let note = "[attachment left out: this model reads text only]";
    assert_eq!(body["messages"][0]["content"][1]["text"], note);
    assert_eq!(
        body["messages"][1]["content"][1]["file"]["file_id"],
        "file-1"
    );
    assert_eq!(
        rendered.notes,
        [Note {
            message: Some(0),
            what: LeftOut::Attachment
        }]
    );
}
