//! Requests of OpenAI Responses: rendering a view, and reading it back.

use plimsoll_context::{
    CachePlan, CallId, File, Image, Message, Opaque, Part, Source, Thinking, ToolCall, ToolResult,
    ToolSpec,
};
use plimsoll_mock::rules::openai_responses::validate;
use plimsoll_wire::WireError;
use plimsoll_wire::openai_responses::{MIN_OUTPUT, ResponsesProfile, read, render};
use plimsoll_wire::{Delivery, Effort, EncodedRequest, LeftOut, Note, RenderInput, ToolChoice};
use serde_json::{Value, json};

const REASONING: &str =
    r#"{"id":"rs_1", "type":"reasoning","encrypted_content":"gA\u002b=","summary":[],"x":1.50}"#;

fn own(data: &str) -> Opaque {
    Opaque {
        origin: "openai-responses".into(),
        data: data.into(),
    }
}

fn thinking(data: &str) -> Part {
    Part::Thinking(Thinking {
        text: String::new(),
        opaque: Some(own(data)),
    })
}

fn call(id: &str, opaque: Option<&str>) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId(id.into()),
        name: "read".into(),
        arguments: "{\"p\": 1.0}".into(),
        opaque: opaque.map(own),
    })
}

fn assistant(parts: Vec<Part>) -> Message {
    Message::Assistant { parts }
}

fn rendered(
    input: &RenderInput<'_>,
    messages: &[Message],
    profile: &ResponsesProfile,
) -> (Value, EncodedRequest) {
    let rendered = render(input, messages, profile).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!(validate(&body, profile), [], "{body}");
    (body, rendered)
}

fn sent(messages: &[Message]) -> (Value, Vec<Note>) {
    let input = RenderInput {
        model: "gpt-5",
        ..RenderInput::default()
    };
    let (mut body, rendered) = rendered(&input, messages, &ResponsesProfile::openai());
    (body["input"].take(), rendered.notes)
}

fn left_out(notes: &[Note]) -> Vec<LeftOut> {
    notes.iter().map(|note| note.what).collect()
}

#[test]
fn a_turn_is_written_item_by_item() {
    let messages = [
        Message::user("q"),
        assistant(vec![
            thinking(REASONING),
            Part::Opaque(own(r#"{"phase":"commentary"}"#)),
            Part::text("I look."),
            call("a", Some(r#"{"id":"fc_1"}"#)),
            call("b", None),
        ]),
        Message::result(CallId("a".into()), "A"),
        Message::error_result(CallId("b".into()), "no"),
        Message::system("Hurry."),
    ];
    let input = RenderInput {
        model: "gpt-5",
        system: Some("Be brief."),
        context: Some("It is late."),
        ..RenderInput::default()
    };
    let (body, rendered) = rendered(&input, &messages, &ResponsesProfile::openai());
    assert_eq!(rendered.notes, []);
    let text = String::from_utf8(rendered.body).unwrap();
    assert!(text.contains(REASONING), "byte for byte: {text}");
    let said = |role: &str, kind: &str, text: &str| {
        json!({"type": "message", "role": role,
        "content": [{"type": kind, "text": text}]})
    };
    let look = json!({"type": "message", "role": "assistant", "content": "I look.",
        "phase": "commentary"});
    let call = |id: &str| {
        json!({"type": "function_call", "call_id": id, "name": "read",
        "arguments": "{\"p\": 1.0}"})
    };
    let mut first = call("a");
    first["id"] = "fc_1".into();
    let output = |id: &str, text: &str| {
        json!({"type": "function_call_output", "call_id": id,
        "output": text})
    };
    assert_eq!(body["instructions"], "Be brief.");
    assert_eq!(
        body["input"],
        json!([
            said("user", "input_text", "q"),
            serde_json::from_str::<Value>(REASONING).unwrap(),
            look,
            first,
            call("b"),
            output("a", "A"),
            output("b", "no"),
            said("developer", "input_text", "Hurry."),
            said("user", "input_text", "It is late."),
        ])
    );
    assert_eq!(body["store"], false);
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["stream"], true);
}

#[test]
fn reasoning_is_sent_with_what_came_of_it_or_not_at_all() {
    let foreign = Part::Thinking(Thinking {
        text: "hm".into(),
        opaque: Some(Opaque {
            origin: "anthropic".into(),
            data: "{}".into(),
        }),
    });
    let unsigned = Part::Thinking(Thinking {
        text: "hm".into(),
        opaque: None,
    });
    let bare = thinking(r#"{"type":"reasoning","id":"rs_1","summary":[]}"#);
    let own = thinking(REASONING);
    let with_id = || call("a", Some(r#"{"id":"fc_1"}"#));
    // What it is, the turn, what is noted, whether reasoning and whether the call's id are sent.
    type RenderRow = (&'static str, Vec<Part>, Vec<LeftOut>, bool, bool);
    let rows: Vec<RenderRow> = vec![
        ("both", vec![own.clone(), with_id()], vec![], true, true),
        ("no reasoning", vec![with_id()], vec![], false, false),
        (
            "not stored",
            vec![bare, with_id()],
            vec![LeftOut::Reasoning],
            false,
            false,
        ),
        (
            "another's",
            vec![foreign.clone(), with_id()],
            vec![LeftOut::Reasoning],
            false,
            false,
        ),
        (
            "unsigned",
            vec![unsigned, with_id()],
            vec![LeftOut::Reasoning],
            false,
            false,
        ),
        (
            "its own between others",
            vec![own.clone(), Part::text("x"), foreign, with_id()],
            vec![LeftOut::Reasoning],
            true,
            false,
        ),
        (
            "nothing came of the last",
            vec![own.clone(), with_id(), own.clone()],
            vec![LeftOut::LoneReasoning],
            true,
            true,
        ),
    ];
    for (what, parts, notes, reasoning, id) in rows {
        let result = Message::result(CallId("a".into()), "A");
        let (input, left) = sent(&[Message::user("q"), assistant(parts), result]);
        assert_eq!(left_out(&left), notes, "{what}");
        let text = input.to_string();
        assert_eq!(text.contains("rs_1"), reasoning, "{what}: {text}");
        assert_eq!(text.contains("fc_1"), id, "{what}: {text}");
    }
    // A reply that was cut while the model thought says nothing.
    let (input, left) = sent(&[
        Message::user("q"),
        assistant(vec![own]),
        Message::user("go on"),
    ]);
    assert_eq!(input.as_array().unwrap().len(), 2);
    assert_eq!(
        left_out(&left),
        [LeftOut::LoneReasoning, LeftOut::SilentAssistant]
    );
    assert_eq!(left[0].message, Some(1));
}

#[test]
fn ids_of_items_are_sent_where_they_may_be() {
    let with = |id: &str| {
        let opaque = json!({ "id": id, "namespace": "crm" }).to_string();
        let turn = assistant(vec![thinking(REASONING), call("a", Some(&opaque))]);
        let (input, _) = sent(&[turn, Message::result(CallId("a".into()), "A")]);
        assert_eq!(input[1]["namespace"], "crm");
        input[1].get("id").cloned()
    };
    assert_eq!(with("fc_1"), Some(json!("fc_1")));
    assert_eq!(with("call_1"), None);
    assert_eq!(with(&format!("fc_{}", "x".repeat(450))), None);
    // A model that does not reason has nothing to pair them with.
    let input = RenderInput {
        model: "gpt-4.1",
        ..RenderInput::default()
    };
    let turn = [
        Message::user("q"),
        assistant(vec![
            thinking(REASONING),
            call("a", Some(r#"{"id":"fc_1"}"#)),
        ]),
        Message::result(CallId("a".into()), "A"),
    ];
    let (body, rendered) = rendered(&input, &turn, &ResponsesProfile::plain());
    assert_eq!(left_out(&rendered.notes), [LeftOut::Reasoning]);
    assert_eq!(body["input"][1]["id"], "fc_1");
    assert_eq!(body.get("include"), None);
}

#[test]
fn ids_and_names_of_other_providers_are_made_to_fit() {
    let long = format!("call_{}", "x".repeat(450));
    let odd = Part::ToolCall(ToolCall {
        id: CallId(long.clone()),
        name: "fs.read file".into(),
        arguments: "{".into(),
        opaque: None,
    });
    let messages = [
        Message::user("q"),
        assistant(vec![odd, call("", None)]),
        Message::result(CallId(long), "A"),
        Message::result(CallId(String::new()), "B"),
    ];
    let (input, notes) = sent(&messages);
    assert_eq!(left_out(&notes), [LeftOut::Name]);
    assert_eq!(input[1]["name"], "fs_read_file");
    assert_eq!(input[1]["arguments"], "{", "as the model wrote them");
    assert_eq!(input[1]["call_id"], input[3]["call_id"]);
    assert_eq!(input[2]["call_id"], input[4]["call_id"]);
    assert_ne!(input[1]["call_id"], input[2]["call_id"]);
    assert_eq!(sent(&messages).0, input, "and always the same");
}

#[test]
fn images_and_files_go_where_they_belong() {
    let png = Source::Data {
        media_type: "image/png".into(),
        base64: "AA==".into(),
    };
    let image = |source: Source| {
        Part::Image(Image {
            source,
            size: None,
            detail: Some("low".into()),
        })
    };
    let file = |name: Option<&str>, source: Source| {
        Part::File(File {
            name: name.map(str::to_owned),
            source,
        })
    };
    let url = |url: &str| Source::Url { url: url.into() };
    let parts = vec![
        Part::text("see"),
        image(png.clone()),
        image(url("https://x/y.png")),
        image(url("file-1")),
        file(Some("a.pdf"), png.clone()),
        file(None, url("https://x/a.pdf")),
        file(None, url("file-2")),
        Part::Opaque(own(
            r#"{"type":"input_audio","input_audio":{"data":"AA=="}}"#,
        )),
    ];
    let result = Message::ToolResult(ToolResult {
        call: CallId("a".into()),
        parts: vec![Part::text("shot"), image(png.clone())],
        is_error: false,
    });
    let messages = [
        Message::User {
            parts: parts.clone(),
        },
        assistant(vec![call("a", None)]),
        result.clone(),
    ];
    let (input, notes) = sent(&messages);
    assert_eq!(notes, []);
    assert_eq!(
        input[0]["content"],
        json!([
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
            {"type": "input_image", "image_url": "https://x/y.png", "detail": "low"},
            {"type": "input_image", "detail": "low", "file_id": "file-1"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:image/png;base64,AA=="},
            {"type": "input_file", "file_url": "https://x/a.pdf"},
            {"type": "input_file", "file_id": "file-2"},
            {"type": "input_audio", "input_audio": {"data": "AA=="}},
        ])
    );
    assert_eq!(
        input[2]["output"],
        json!([
            {"type": "input_text", "text": "shot"},
            {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
        ])
    );
    let text = input.to_string();
    assert_eq!(read(&text).unwrap().messages, messages);

    let blind = ResponsesProfile {
        images: false,
        ..ResponsesProfile::openai()
    };
    let input = RenderInput {
        model: "m",
        ..RenderInput::default()
    };
    let (body, rendered) = rendered(&input, &messages, &blind);
    assert!(!body.to_string().contains("input_image"));
    assert_eq!(
        left_out(&rendered.notes),
        [LeftOut::Attachment, LeftOut::Attachment]
    );
    // The model shows nothing.
    let (_, notes) = sent(&[assistant(vec![image(png)])]);
    assert_eq!(left_out(&notes), [LeftOut::Attachment]);
}

#[test]
fn items_of_the_providers_own_pass_through() {
    let search =
        r#"{"type":"web_search_call", "id":"ws_1","status":"completed","action":{"b":1,"a":2}}"#;
    let compaction = r#"{"type":"compaction","id":"cmp_1","encrypted_content":"gA\u002b="}"#;
    let shell = r#"{"type":"shell_call","call_id":"s","action":{"commands":["ls"]}}"#;
    let shown = r#"{"type":"shell_call_output","call_id":"s","output":[]}"#;
    let custom = Part::ToolCall(ToolCall {
        id: CallId("c".into()),
        name: "patch".into(),
        arguments: "*** Begin\n".into(),
        opaque: Some(own(r#"{"type":"custom_tool_call"}"#)),
    });
    let messages = [
        assistant(vec![Part::Opaque(own(compaction))]),
        Message::user("q"),
        assistant(vec![
            thinking(REASONING),
            Part::Opaque(own(search)),
            Part::text("found"),
            Part::Opaque(own(shell)),
        ]),
        Message::User {
            parts: vec![Part::Opaque(own(shown))],
        },
        assistant(vec![custom]),
        Message::result(CallId("c".into()), "patched"),
    ];
    let input = RenderInput {
        model: "m",
        ..RenderInput::default()
    };
    let (body, rendered) = rendered(&input, &messages, &ResponsesProfile::openai());
    assert_eq!(rendered.notes, []);
    let text = String::from_utf8(rendered.body).unwrap();
    for item in [search, compaction, shell, shown, REASONING] {
        assert!(text.contains(item), "{item}");
    }
    let last: Vec<&Value> = body["input"].as_array().unwrap().iter().rev().collect();
    assert_eq!(
        *last[1],
        json!({"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** Begin\n"})
    );
    assert_eq!(last[0]["type"], "custom_tool_call_output");
    assert_eq!(read(&text).unwrap().messages, messages);

    let broken = [
        Part::Opaque(Opaque {
            origin: "anthropic".into(),
            data: search.into(),
        }),
        Part::Opaque(own("{")),
        Part::Opaque(own("[5]")),
        Part::text("x"),
    ];
    let (input, notes) = sent(&[
        Message::user("q"),
        assistant(broken.to_vec()),
        Message::User {
            parts: broken.to_vec(),
        },
    ]);
    assert_eq!(input.as_array().unwrap().len(), 3, "{input}");
    assert_eq!(
        left_out(&notes),
        [LeftOut::ForeignBlock, LeftOut::ForeignBlock]
    );
}

#[test]
fn settings_are_sent_as_the_profile_has_them() {
    let tools = [
        ToolSpec {
            name: "write".into(),
            description: "Writes.".into(),
            schema: json!({"type": "object", "properties": {"b": {}, "a": {}},
                "required": ["a", "b"], "additionalProperties": false}),
        },
        ToolSpec {
            name: "list".into(),
            description: "Lists.".into(),
            schema: json!({}),
        },
    ];
    let hosted = [
        own(r#"{"type":"web_search", "x":1.50}"#),
        Opaque {
            origin: "anthropic".into(),
            data: "{}".into(),
        },
    ];
    let cache = CachePlan {
        key: Some("session-1".into()),
        ..CachePlan::default()
    };
    let format = json!({"type": "object", "properties": {}, "additionalProperties": false});
    let extra = json!({"service_tier": "flex", "include": ["message.output_text.logprobs"],
        "model": "other", "store": true});
    let input = RenderInput {
        model: "gpt-5",
        tools: &tools,
        hosted_tools: &hosted,
        tool_choice: ToolChoice::None,
        max_output: Some(5),
        effort: Some(Effort::Minimal),
        temperature: Some(0.5),
        format: Some(&format),
        cache: Some(&cache),
        extra: extra.as_object(),
        delivery: Delivery::Whole,
        ..RenderInput::default()
    };
    let messages = [Message::user("q")];
    let (body, rendered_) = rendered(&input, &messages, &ResponsesProfile::openai());
    assert_eq!(
        body["tools"],
        json!([
            {"type": "function", "name": "list", "description": "Lists.",
                "parameters": {"type": "object", "properties": {}}, "strict": false},
            {"type": "function", "name": "write", "description": "Writes.",
                "parameters": tools[0].schema, "strict": false},
            {"type": "web_search", "x": 1.5},
        ])
    );
    assert_eq!(
        left_out(&rendered_.notes),
        [LeftOut::ForeignBlock, LeftOut::Temperature]
    );
    assert_eq!(body["tool_choice"], "none", "and the tools stay");
    assert_eq!(body["max_output_tokens"], MIN_OUTPUT);
    assert_eq!(body["reasoning"], json!({"effort": "low"}));
    assert_eq!(body["prompt_cache_key"], "session-1");
    assert_eq!(body["service_tier"], "flex");
    assert_eq!(
        body["model"], "gpt-5",
        "what a run is made of is no setting"
    );
    assert_eq!(body["store"], true);
    assert_eq!(
        body["include"],
        json!([
            "reasoning.encrypted_content",
            "message.output_text.logprobs"
        ])
    );
    assert_eq!(body.get("stream"), None);
    assert_eq!(
        body["text"]["format"],
        json!({"type": "json_schema", "name": "answer", "schema": format, "strict": true})
    );

    let other = ResponsesProfile {
        strict: true,
        summaries: true,
        parallel_calls: false,
        developer_role: false,
        ..ResponsesProfile::plain()
    };
    let plain = RenderInput {
        extra: None,
        hosted_tools: &[],
        tool_choice: ToolChoice::Tool("list".into()),
        ..input
    };
    let messages = [Message::user("q"), Message::system("s")];
    let (body, rendered_) = rendered(&plain, &messages, &other);
    assert_eq!(body["tools"][0]["strict"], false);
    assert_eq!(body["tools"][1]["strict"], true);
    assert_eq!(
        body["tool_choice"],
        json!({"type": "function", "name": "list"})
    );
    assert_eq!(body["parallel_tool_calls"], false);
    assert_eq!(body["temperature"], 0.5);
    assert_eq!(body.get("reasoning"), None);
    assert_eq!(body["input"][1]["role"], "system");
    assert_eq!(left_out(&rendered_.notes), [LeftOut::Effort]);

    // Who does not think takes a temperature.
    let newer = ResponsesProfile {
        efforts: vec![Effort::None, Effort::Low],
        ..ResponsesProfile::openai()
    };
    for (effort, sent) in [(Effort::None, json!(0.5)), (Effort::Low, Value::Null)] {
        let input = RenderInput {
            model: "m",
            effort: Some(effort),
            temperature: Some(0.5),
            ..RenderInput::default()
        };
        let (body, _) = rendered(&input, &[Message::user("q")], &newer);
        assert_eq!(body["temperature"], sent);
    }

    let reasons = ResponsesProfile {
        summaries: true,
        ..ResponsesProfile::openai()
    };
    let bare = RenderInput {
        model: "m",
        effort: Some(Effort::Max),
        ..RenderInput::default()
    };
    let (body, _) = rendered(&bare, &[], &reasons);
    assert_eq!(
        body["reasoning"],
        json!({"effort": "high", "summary": "auto"})
    );
    assert_eq!(
        body["input"].as_array().unwrap().len(),
        1,
        "somebody speaks"
    );
    // Further keys win.
    let extra = json!({"reasoning": {"effort": "medium", "context": "all_turns"}});
    let extra = RenderInput {
        extra: extra.as_object(),
        ..bare
    };
    let (body, _) = rendered(&extra, &[], &reasons);
    assert_eq!(body["reasoning"]["context"], "all_turns");
}

#[test]
fn a_request_is_read_as_it_stands() {
    let text = r#"{"model":"gpt-5","instructions":"Be brief.","max_output_tokens":1.50,
        "tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":true},
            {"type":"web_search", "x":1.50}],
        "input":[
            {"role":"user","content":"hi"},
            {"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]},
            {"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[
                {"type":"output_text","text":"a","annotations":[]},
                {"type":"refusal", "refusal":"no"}]},
            {"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed"},
            {"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"r"}]},
            {"role":"assistant","content":"b"},
            {"role":"assistant","content":"c"},
            {"role":"assistant","content":"d","phase":"final_answer"},
            {"type":"mcp_approval_response","approval_request_id":"m","approve":true}
        ]}"#;
    let chat = read(text).unwrap();
    assert_eq!(chat.messages[0], Message::system("Be brief."));
    assert_eq!(chat.tools.len(), 1);
    assert_eq!(
        chat.hosted_tools,
        [own(r#"{"type":"web_search", "x":1.50}"#)]
    );
    let reasoning =
        r#"{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}]}"#;
    let approval = r#"{"type":"mcp_approval_response","approval_request_id":"m","approve":true}"#;
    assert_eq!(
        chat.messages[1..],
        [
            Message::user("hi"),
            assistant(vec![
                Part::Thinking(Thinking {
                    text: "hm".into(),
                    opaque: Some(own(reasoning)),
                }),
                Part::text("a"),
                Part::Opaque(own(r#"{"type":"refusal", "refusal":"no"}"#)),
                Part::ToolCall(ToolCall {
                    id: CallId("c".into()),
                    name: "f".into(),
                    arguments: "{}".into(),
                    opaque: Some(own(r#"{"id":"fc_1"}"#)),
                }),
            ]),
            Message::result(CallId("c".into()), "r"),
            Message::assistant("b"),
            assistant(vec![
                Part::text("c"),
                Part::Opaque(own(r#"{"phase":"final_answer"}"#)),
                Part::text("d"),
            ]),
            Message::User {
                parts: vec![Part::Opaque(own(approval))],
            },
        ]
    );
    let entries = chat.spans.iter().map(|span| span.entries.clone());
    assert_eq!(entries.take(3).collect::<Vec<_>>(), [0..0, 0..1, 1..4]);
    let said = read(r#"{"input":"hi"}"#).unwrap();
    assert_eq!(said.messages, [Message::user("hi")]);
}

#[test]
fn what_is_no_request_is_said() {
    for (text, place) in [
        ("5", "the list"),
        (r#"{"messages":[]}"#, "input"),
        (r#"{"input":5}"#, "input"),
        (r#"{"input":[5]}"#, "input[0]"),
        (r#"[{}]"#, "[0].type"),
        (
            r#"{"input":[{"role":"tool","content":""}]}"#,
            "input[0].role",
        ),
        (r#"{"input":[{"role":"user"}]}"#, "input[0].content"),
        (
            r#"{"input":[{"role":"user","content":[{}]}]}"#,
            "input[0].content[0].type",
        ),
        (
            r#"{"input":[{"type":"function_call"}]}"#,
            "input[0].arguments",
        ),
        (
            r#"{"input":[{"type":"function_call_output","output":"x"}]}"#,
            "input[0].call_id",
        ),
        (
            r#"{"input":[],"tools":[{"type":"function"}]}"#,
            "tools[0].name",
        ),
        (r#"{"input":"x","instructions":5}"#, "instructions"),
    ] {
        match read(text) {
            Err(WireError::Expected { place: got, .. }) => assert_eq!(got, place, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
    for text in ["", "{", r#"{"input":[{]}"#] {
        assert!(
            matches!(read(text), Err(WireError::NotJson { .. })),
            "{text}"
        );
    }
}
