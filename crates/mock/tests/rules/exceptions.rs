//! The exceptions that each protocol cannot represent, as listed in the crate's documentation: one
//! row per exception, with the input, the result, and the report. Everything else is read back; the
//! property tests of each protocol check that.

use plimsoll_context::{File, Image, Message, Opaque, Part, Source, Thinking, ToolSpec};
use plimsoll_mock::rules as judge;
use plimsoll_testkit::messages::{tool_call as call, tool_result as result};
use plimsoll_wire::{LeftOut, RenderInput, StreamDecoder};
use plimsoll_wire::{anthropic, openai_chat, openai_responses, prompt_texts};
use serde_json::{Value, json};

fn asks(id: &str) -> Message {
    says([call(id, "read", "{}")])
}

fn says(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::Assistant {
        parts: parts.into_iter().collect(),
    }
}

fn user(parts: impl IntoIterator<Item = Part>) -> Message {
    Message::User {
        parts: parts.into_iter().collect(),
    }
}

fn image(media_type: &str, size: Option<(u32, u32)>, detail: Option<&str>) -> Part {
    Part::Image(Image {
        source: Source::Data {
            media_type: media_type.into(),
            base64: "AA==".into(),
        },
        size,
        detail: detail.map(str::to_owned),
    })
}

fn png() -> Part {
    image("image/png", None, None)
}

fn sized() -> Part {
    image("image/png", Some((640, 480)), None)
}

fn thinking(text: &str, opaque: Option<Opaque>) -> Part {
    Part::Thinking(Thinking {
        text: text.into(),
        opaque,
    })
}

fn of(origin: &str, data: &str) -> Opaque {
    Opaque {
        origin: origin.into(),
        data: data.into(),
    }
}

fn block(origin: &str, data: &str) -> Part {
    Part::Opaque(of(origin, data))
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: String::new(),
        schema: json!({"type": "object", "properties": {}}),
    };
    vec![tool("write"), tool("read")]
}

fn text(body: Vec<u8>) -> String {
    String::from_utf8(body).unwrap()
}

/// One exception: what it is called, what is said, what comes back and what is told of it.
type ExceptionRow<N> = (&'static str, Vec<Message>, Vec<Message>, Vec<N>);

fn q() -> Message {
    Message::user("q")
}

fn r() -> Message {
    Message::user("r")
}

#[test]
fn what_chat_completions_cannot_hold() {
    use LeftOut::{ForeignBlock, SilentAssistant};
    let openai = openai_chat::Dialect::openai();
    let echo = openai_chat::Dialect {
        echo_reasoning: openai_chat::EchoReasoning::Always,
        ..openai.clone()
    };
    let audio = r#"{"type":"input_audio","input_audio":{"format":"wav","data":"AA=="}}"#;
    let spaced = r#"{ "type": "input_audio", "input_audio": {"format": "wav", "data": "AA=="} }"#;
    let pictured = || {
        let parts = vec![Part::text("x"), png()];
        vec![
            q(),
            says([call("a", "read", "{}"), call("b", "read", "{}")]),
            result("a", parts, false),
            result("b", vec![Part::text("y")], false),
            r(),
        ]
    };
    let by_address = |url: &str| {
        user([Part::File(File {
            name: None,
            source: Source::Url { url: url.into() },
        })])
    };
    let silent = says([Part::text("")]);
    let rows: Vec<ExceptionRow<LeftOut>> = vec![
        (
            "whether a tool failed",
            vec![q(), asks("a"), result("a", vec![Part::text("no")], true)],
            vec![q(), asks("a"), result("a", vec![Part::text("no")], false)],
            vec![],
        ),
        (
            "a notice; a summary has its frame",
            vec![
                Message::Summary { text: "s".into() },
                Message::Notice { text: "n".into() },
            ],
            vec![Message::Summary { text: "s".into() }, Message::user("n")],
            vec![],
        ),
        (
            "images in results follow the batch",
            pictured(),
            vec![
                q(),
                says([call("a", "read", "{}"), call("b", "read", "{}")]),
                result("a", vec![Part::text("x")], false),
                result("b", vec![Part::text("y")], false),
                user([Part::text(prompt_texts::ATTACHMENTS), png()]),
                r(),
            ],
            vec![],
        ),
        (
            "the order of parts",
            vec![
                q(),
                says([
                    call("a", "read", "{}"),
                    thinking("h", None),
                    Part::text(""),
                    Part::text("x"),
                    thinking("m", None),
                ]),
                result("a", vec![Part::text("y")], false),
            ],
            vec![
                q(),
                says([
                    thinking("hm", None),
                    Part::text("x"),
                    call("a", "read", "{}"),
                ]),
                result("a", vec![Part::text("y")], false),
            ],
            vec![],
        ),
        (
            "thinking that somebody signed",
            vec![
                q(),
                says([thinking("hm", Some(of("anthropic", "{}"))), Part::text("x")]),
                r(),
            ],
            vec![q(), Message::assistant("x"), r()],
            vec![],
        ),
        (
            "an assistant message that says nothing",
            vec![q(), silent, r()],
            vec![q(), r()],
            vec![SilentAssistant],
        ),
        (
            "a message without parts",
            vec![user([]), asks("a"), result("a", vec![], false)],
            vec![
                Message::user(""),
                asks("a"),
                result("a", vec![Part::text("")], false),
            ],
            vec![],
        ),
        (
            "the size of an image",
            vec![user([sized()])],
            vec![user([png()])],
            vec![],
        ),
        (
            "blocks of another wire",
            vec![user([Part::text("q"), block("anthropic", "{}")])],
            vec![q()],
            vec![ForeignBlock],
        ),
        (
            "the spaces of blocks of this one",
            vec![user([block("openai-chat", spaced)])],
            vec![user([block("openai-chat", audio)])],
            vec![],
        ),
        (
            "a file by its id comes back by it",
            vec![by_address("file-1")],
            vec![by_address("file-1")],
            vec![],
        ),
        (
            "a file of the web",
            vec![by_address("https://x/y.pdf")],
            vec![Message::user(prompt_texts::LEFT_OUT)],
            vec![LeftOut::Attachment],
        ),
    ];
    let specs = tools();
    for (name, said, back, notes) in rows {
        let input = RenderInput {
            model: "m",
            tools: &specs,
            ..Default::default()
        };
        let rendered = openai_chat::render(&input, &said, &echo).unwrap();
        let told: Vec<_> = rendered.notes.iter().map(|note| note.what).collect();
        assert_eq!(told, notes, "{name}");
        let body = text(rendered.body);
        let chat = openai_chat::read(&body).unwrap();
        assert_eq!(chat.messages, back, "{name}");
        let names: Vec<&str> = chat.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["read", "write"], "the order of tools");
    }
    // Thinking goes back only where the dialect says so.
    let said = [q(), says([thinking("hm", None), Part::text("x")]), r()];
    let rendered = openai_chat::render(&Default::default(), &said, &openai).unwrap();
    let body = text(rendered.body);
    let chat = openai_chat::read(&body).unwrap();
    assert_eq!(chat.messages, [q(), Message::assistant("x"), r()]);
    // What is given as an address is sent as an id.
    let rendered = openai_chat::render(&Default::default(), &[by_address("f-1")], &openai);
    let body: Value = serde_json::from_slice(&rendered.unwrap().body).unwrap();
    let file = &body["messages"][0]["content"][0]["file"];
    assert_eq!(file, &json!({"file_id": "f-1"}));
}

#[test]
fn what_other_dialects_hold_less_of() {
    let back = |dialect: &openai_chat::Dialect, said: &[Message]| {
        let rendered = openai_chat::render(&Default::default(), said, dialect).unwrap();
        let body = text(rendered.body);
        openai_chat::read(&body).unwrap().messages
    };
    let named = |name: &str| openai_chat::Dialect::named(name).unwrap();
    let several = [user([Part::text("a"), Part::text("b")])];
    assert_eq!(back(&named("groq"), &several), [Message::user("a\nb")]);
    // Neighbours merge, later systems move, and the user has the last word.
    let said = [q(), r(), Message::assistant("x"), Message::system("s")];
    let later = format!("{}\n\ns", prompt_texts::LATER_SYSTEM);
    assert_eq!(
        back(&named("vllm"), &said),
        [
            Message::user("q\n\nr"),
            Message::assistant("x"),
            Message::user(later)
        ]
    );
    // A word between neighbours that may not touch, and other ids.
    let done = || vec![Part::text("y")];
    let said = [q(), asks("call_1"), result("call_1", done(), false), r()];
    let messages = back(&named("mistral"), &said);
    assert_eq!(messages.len(), 5);
    assert_eq!(messages[3], Message::assistant(prompt_texts::BRIDGE));
    let ids: Vec<&str> = messages[1].calls().map(|call| call.id.0.as_str()).collect();
    assert_eq!(ids.len(), 1);
    assert!(ids[0].len() == 9 && ids[0].bytes().all(|b| b.is_ascii_alphanumeric()));
    assert_eq!(messages[2], result(ids[0], done(), false));
    // A batch is split, and arguments that are no object are wrapped.
    let llama = named("llama.cpp").with_template(openai_chat::Template::Llama31);
    let said = [
        q(),
        says([call("a", "read", "{}"), call("b", "read", "{\"x")]),
        result("a", done(), false),
        result("b", done(), false),
    ];
    let wrapped = json!({"malformed_arguments": "{\"x"}).to_string();
    assert_eq!(
        back(&llama, &said),
        [
            q(),
            asks("a"),
            result("a", done(), false),
            says([call("b", "read", &wrapped)]),
            result("b", done(), false),
        ]
    );
}

#[test]
fn what_responses_cannot_hold() {
    use LeftOut::{Attachment, ForeignBlock, LoneReasoning, Name, Reasoning, SilentAssistant};
    let own = |data: &str| of(openai_responses::ORIGIN, data);
    let item =
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]}"#;
    let thought = || thinking("hm", Some(own(item)));
    let done = || vec![Part::text("y")];
    let long = "x".repeat(65);
    let (x, y) = (|| Message::assistant("x"), || Message::assistant("y"));
    let plan = r#"{"type":"mcp_approval_response","approval_request_id":"a","approve":true}"#;
    let approval = || Part::Opaque(own(plan));
    let rows: Vec<ExceptionRow<LeftOut>> = vec![
        (
            "whether a tool failed; images stay in results",
            vec![
                q(),
                asks("a"),
                result("a", vec![Part::text("no"), sized()], true),
            ],
            vec![
                q(),
                asks("a"),
                result("a", vec![Part::text("no"), png()], false),
            ],
            vec![],
        ),
        (
            "a notice; a summary has its frame",
            vec![
                Message::Summary { text: "s".into() },
                Message::Notice { text: "n".into() },
            ],
            vec![Message::Summary { text: "s".into() }, Message::user("n")],
            vec![],
        ),
        (
            "thinking that is not this wire's own",
            vec![q(), says([thinking("hm", None), Part::text("x")]), r()],
            vec![q(), x(), r()],
            vec![Reasoning],
        ),
        (
            "thinking of which nothing came",
            vec![q(), says([Part::text("x"), thought()]), r()],
            vec![q(), x(), r()],
            vec![LoneReasoning],
        ),
        (
            "two messages of the model's, unless both only say something",
            vec![
                q(),
                x(),
                y(),
                says([Part::text("z"), call("a", "read", "{}")]),
                asks("b"),
            ],
            vec![
                q(),
                x(),
                y(),
                says([
                    Part::text("z"),
                    call("a", "read", "{}"),
                    call("b", "read", "{}"),
                ]),
            ],
            vec![],
        ),
        (
            "an assistant message that says nothing",
            vec![q(), says([]), r()],
            vec![q(), r()],
            vec![SilentAssistant],
        ),
        (
            "an empty text and an image in the model's place",
            vec![q(), says([Part::text(""), Part::text("x"), png()]), r()],
            vec![
                q(),
                says([Part::text("x"), Part::text(prompt_texts::LEFT_OUT)]),
                r(),
            ],
            vec![Attachment],
        ),
        (
            "a result without parts",
            vec![q(), asks("a"), result("a", vec![], false)],
            vec![q(), asks("a"), result("a", vec![Part::text("")], false)],
            vec![],
        ),
        (
            "names with characters that no name may have",
            vec![
                q(),
                says([call("a", "fs.read", "{}")]),
                result("a", done(), false),
            ],
            vec![
                q(),
                says([call("a", "fs_read", "{}")]),
                result("a", done(), false),
            ],
            vec![Name],
        ),
        (
            "blocks of another wire",
            vec![user([Part::text("q"), block("anthropic", "{}")])],
            vec![q()],
            vec![ForeignBlock],
        ),
        (
            "an item of the provider's own in a user message",
            vec![user([Part::text("q"), approval()]), r()],
            vec![q(), user([approval()]), r()],
            vec![],
        ),
        (
            "the detail auto",
            vec![user([image("image/png", None, Some("auto"))])],
            vec![user([png()])],
            vec![],
        ),
    ];
    let specs = tools();
    let plain = openai_responses::ResponsesProfile::compatible();
    for (name, said, back, notes) in rows {
        let input = RenderInput {
            model: "m",
            tools: &specs,
            ..Default::default()
        };
        let rendered = openai_responses::render(&input, &said, &plain).unwrap();
        let told: Vec<_> = rendered.notes.iter().map(|note| note.what).collect();
        assert_eq!(told, notes, "{name}");
        let body = text(rendered.body);
        let chat = openai_responses::read(&body).unwrap();
        assert_eq!(chat.messages, back, "{name}");
        let names: Vec<&str> = chat.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["read", "write"], "the order of tools");
    }
    // What is sent keeps its item byte for byte; without its content it is of no use to OpenAI.
    let said = [q(), says([thought(), Part::text("x")]), r()];
    let body = |profile| {
        let rendered = openai_responses::render(&Default::default(), &said, profile).unwrap();
        (text(rendered.body), rendered.notes)
    };
    assert!(body(&plain).0.contains(item));
    let (openai, notes) = body(&openai_responses::ResponsesProfile::openai());
    assert!(!openai.contains("rs_1"));
    assert_eq!(notes[0].what, Reasoning);
    // Long ids are mapped, always to the same, and the result with its call.
    let said = [q(), asks(&long), result(&long, done(), false)];
    let rendered = openai_responses::render(&Default::default(), &said, &plain).unwrap();
    let body = text(rendered.body);
    let messages = openai_responses::read(&body).unwrap().messages;
    let id = messages[1].calls().next().unwrap().id.0.clone();
    assert!(id.len() <= 64 && id != long);
    assert_eq!(messages[2], result(&id, done(), false));
    // A schema gets what it lacks.
    let specs = [ToolSpec {
        name: "f".into(),
        description: String::new(),
        schema: Value::Null,
    }];
    let input = RenderInput {
        model: "m",
        tools: &specs,
        ..Default::default()
    };
    let rendered = openai_responses::render(&input, &[q()], &plain).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!(body["tools"][0]["parameters"]["type"], "object");
    assert_eq!(judge::openai_responses::validate(&body, &plain), []);
}

#[test]
fn what_messages_cannot_hold() {
    use LeftOut::{
        Attachment, BrokenArguments, Citations, ForeignBlock, ForeignThinking, LastThinking, Name,
        OtherModel, SilentAssistant,
    };
    let own = |data: &str| of(anthropic::ORIGIN, data);
    let signed = r#"{"type":"thinking","thinking":"hm","signature":"EqQB"}"#;
    let thought = || thinking("hm", Some(own(signed)));
    let elsewhere = own(&format!(r#"{{"model":"another","block":{signed}}}"#));
    let done = || vec![Part::text("y")];
    let later = format!("{}\n\ns", prompt_texts::LATER_SYSTEM);
    let cited = r#"{"type":"text","text":"x","citations":[{"type":"char_location"}]}"#;
    let search = r#"{"type":"search_result","title":"t"}"#;
    let marked = r#"{"type":"search_result","cache_control":{"type":"ephemeral"},"title":"t"}"#;
    let wrapped = json!({"malformed_arguments": "{\"x"}).to_string();
    let x = || Message::assistant("x");
    let rows: Vec<ExceptionRow<LeftOut>> = vec![
        (
            "a notice; a summary has its frame, also among neighbours",
            vec![
                q(),
                Message::Summary { text: "s".into() },
                Message::Notice { text: "n".into() },
            ],
            vec![
                q(),
                Message::Summary { text: "s".into() },
                Message::user("n"),
            ],
            vec![],
        ),
        (
            "size and detail of an image",
            vec![user([image("image/png", Some((1, 1)), Some("low"))])],
            vec![user([png()])],
            vec![],
        ),
        (
            "a system message between others",
            vec![q(), x(), Message::system("s")],
            vec![q(), x(), Message::user(later)],
            vec![],
        ),
        (
            "two messages of one role",
            vec![q(), r(), x(), Message::assistant("y"), r()],
            vec![
                user([Part::text("q"), Part::text("r")]),
                says([Part::text("x"), Part::text("y")]),
                r(),
            ],
            vec![],
        ),
        (
            "what was said between a call and its result",
            vec![q(), asks("a"), r(), result("a", done(), false)],
            vec![q(), asks("a"), result("a", done(), false), r()],
            vec![],
        ),
        (
            "white space",
            vec![
                user([Part::text("q"), Part::text(" \n"), Part::text("")]),
                says([Part::text(" ")]),
                r(),
            ],
            vec![user([Part::text("q"), Part::text("r")])],
            vec![SilentAssistant],
        ),
        (
            "white space at the end of a prefill",
            vec![q(), Message::assistant("Well, ")],
            vec![q(), Message::assistant("Well,")],
            vec![],
        ),
        (
            "media of other types, and in the assistant's place",
            vec![user([image("image/bmp", None, None)]), says([png()]), r()],
            vec![
                Message::user(prompt_texts::LEFT_OUT),
                Message::assistant(prompt_texts::LEFT_OUT),
                r(),
            ],
            vec![Attachment, Attachment],
        ),
        (
            "media of a failed result",
            vec![
                q(),
                asks("a"),
                result("a", vec![Part::text("no"), png()], true),
            ],
            vec![
                q(),
                asks("a"),
                result("a", vec![Part::text("no")], true),
                user([Part::text(prompt_texts::ATTACHMENTS), png()]),
            ],
            vec![],
        ),
        (
            "thinking that this provider did not sign goes for the whole loop",
            vec![
                q(),
                says([thinking("hm", None), call("a", "read", "{}")]),
                result("a", done(), false),
                says([thought(), Part::text("x")]),
                r(),
            ],
            vec![q(), asks("a"), result("a", done(), false), x(), r()],
            vec![ForeignThinking, ForeignThinking],
        ),
        (
            "thinking of another model",
            vec![
                q(),
                says([thinking("hm", Some(elsewhere)), Part::text("x")]),
                r(),
            ],
            vec![q(), x(), r()],
            vec![OtherModel],
        ),
        (
            "thinking at the end of a message",
            vec![q(), says([thought(), Part::text("x"), thought()]), r()],
            vec![q(), says([thought(), Part::text("x")]), r()],
            vec![LastThinking],
        ),
        (
            "arguments that are no object, and names with other characters",
            vec![
                q(),
                says([call("a", "fs.read", "{\"x")]),
                result("a", done(), false),
            ],
            vec![
                q(),
                says([call("a", "fs_read", &wrapped)]),
                result("a", done(), false),
            ],
            vec![Name, BrokenArguments],
        ),
        (
            "blocks of another wire",
            vec![user([Part::text("q"), block("openai-chat", "{}")])],
            vec![q()],
            vec![ForeignBlock],
        ),
        (
            "the breakpoint of a block of this one",
            vec![user([block("anthropic", marked)])],
            vec![user([block("anthropic", search)])],
            vec![],
        ),
        (
            "citations stand behind their text",
            vec![q(), says([Part::text("x"), block("anthropic", cited)]), r()],
            vec![q(), says([Part::text("x"), block("anthropic", cited)]), r()],
            vec![],
        ),
        (
            "citations whose text was changed",
            vec![q(), says([Part::text("z"), block("anthropic", cited)]), r()],
            vec![q(), Message::assistant("z"), r()],
            vec![Citations],
        ),
    ];
    let specs = tools();
    // No row asks for thinking; a model that refuses any then has its own test.
    let profile = anthropic::MessagesProfile {
        unasked_thinking: true,
        ..anthropic::MessagesProfile::of_model("claude-sonnet-4-5")
    };
    for (name, said, back, notes) in rows {
        let input = RenderInput {
            model: "claude-sonnet-4-5",
            tools: &specs,
            ..Default::default()
        };
        let rendered = anthropic::render(&input, &said, &profile).unwrap();
        let told: Vec<_> = rendered.notes.iter().map(|note| note.what).collect();
        assert_eq!(told, notes, "{name}");
        let body = text(rendered.body);
        let chat = anthropic::read(&body).unwrap();
        assert_eq!(chat.messages, back, "{name}");
        let names: Vec<&str> = chat.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["read", "write"], "the order of tools");
    }
    // Ids with other characters, too long or used before are mapped, the result with its call.
    for id in ["a.b", "ü", &"x".repeat(65), "a"] {
        let said = [
            q(),
            asks("a"),
            result("a", done(), false),
            asks(id),
            result(id, done(), false),
        ];
        let rendered = anthropic::render(&Default::default(), &said, &profile).unwrap();
        let body = text(rendered.body);
        let messages = anthropic::read(&body).unwrap().messages;
        let mapped = messages[3].calls().next().unwrap().id.0.clone();
        assert_ne!(mapped, id);
        assert_eq!(messages[4], result(&mapped, done(), false));
    }
}

/// Thinking that nobody may read, and signed thinking, keep every byte through a stream, a
/// transcript and a request.
#[test]
fn what_was_signed_or_hidden_keeps_its_bytes() {
    let signature = "EqQBCgIYAhIM/1+gh==";
    let hidden = r#"{"type":"redacted_thinking", "data":"EmwKAhgBEgy3va3p+/zix=\u003d"}"#;
    let events = [
        r#"{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1}}}"#
            .to_owned(),
        format!(r#"{{"type":"content_block_start","index":0,"content_block":{hidden}}}"#),
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}"#.to_owned(),
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"h \"m\""}}"#.to_owned(),
        format!(r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"signature_delta","signature":"{signature}"}}}}"#),
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"x"}}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ];
    let mut state = anthropic::MessagesStreamState::new();
    for event in &events {
        state.push(event).unwrap();
    }
    let profile = anthropic::MessagesProfile::of_model("claude-opus-5-5");
    let input = RenderInput {
        model: "claude-opus-5-5",
        ..Default::default()
    };
    let asked = anthropic::render(&input, &[q()], &profile).unwrap();
    let reply = asked.prefix.bind(state.finish().unwrap());
    let said = [q(), says(reply.parts), r()];
    let rendered = anthropic::render(&input, &said, &profile).unwrap();
    assert_eq!(rendered.notes, []);
    let body = text(rendered.body);
    assert!(body.contains(hidden), "{body}");
    let thought =
        format!(r#"{{"type":"thinking","thinking":"h \"m\"","signature":"{signature}"}}"#);
    assert!(body.contains(&thought), "{body}");
}
