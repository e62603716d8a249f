//! The exact requests on Anthropic Messages, and the reports about omitted parts.

use std::sync::Arc;

use plimsoll_context::{
    Breakpoint, CacheConfig, CachePlan, CacheRetention, CacheRules, CacheTrail, CacheView, Chars4,
    File, Image, Message, Opaque, Part, Source, Tokens, ToolSpec, Transcript, breakpoints,
};
use plimsoll_mock::rules::anthropic::validate;
use plimsoll_testkit::messages::{tool_call as call, tool_result as result};
use plimsoll_wire::anthropic::{MessagesProfile, ORIGIN, read, render};
use plimsoll_wire::{Delivery, Effort, LeftOut, RenderInput, ToolChoice};
use serde_json::{Value, json};

const BUDGET: &str = "claude-sonnet-4-5";
const ADAPTIVE: &str = "claude-opus-4-6";

fn image(source: Source) -> Part {
    Part::Image(Image {
        source,
        size: None,
        detail: None,
    })
}

fn url(url: &str) -> Source {
    Source::Url { url: url.into() }
}

fn data(media_type: &str) -> Source {
    Source::Data {
        media_type: media_type.into(),
        base64: "AA==".into(),
    }
}

fn opaque(origin: &str, data: &str) -> Part {
    Part::Opaque(Opaque {
        origin: origin.into(),
        data: data.into(),
    })
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, schema| ToolSpec {
        name: name.into(),
        description: format!("{name}s"),
        schema,
    };
    vec![
        tool(
            "write",
            json!({"type": "object", "properties": {"b": {}, "a": {}}}),
        ),
        tool("read", json!({"properties": {}})),
    ]
}

/// The body of a valid request and its notes.
fn rendered(
    input: &RenderInput<'_>,
    messages: &[Message],
) -> (Value, Vec<(Option<usize>, LeftOut)>) {
    let profile = MessagesProfile::of_model(input.model);
    let rendered = render(input, messages, &profile).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    let faults = validate(&body, &profile);
    assert!(faults.is_empty(), "{faults:?} {body:#}");
    let notes = rendered.notes.into_iter();
    (body, notes.map(|note| (note.message, note.what)).collect())
}

fn sent(messages: &[Message]) -> (Value, Vec<(Option<usize>, LeftOut)>) {
    let (body, notes) = rendered(&input(), messages);
    (body["messages"].clone(), notes)
}

fn input() -> RenderInput<'static> {
    RenderInput {
        model: BUDGET,
        ..RenderInput::default()
    }
}

#[test]
fn a_request_to_the_letter() {
    let tools = tools();
    let messages = [
        Message::user("read a and b"),
        Message::Assistant {
            parts: vec![
                Part::text("Both."),
                call("toolu_1", "read", "{\"path\": \"a\", \"n\": 1.50}"),
                call("toolu_2", "read", "{}"),
            ],
        },
        result("toolu_1", vec![Part::text("A \"quoted\"")], false),
        result("toolu_2", vec![Part::text("no such file")], true),
        Message::Notice {
            text: "One call is left.".into(),
        },
    ];
    let input = RenderInput {
        system: Some("Be brief."),
        tools: &tools,
        max_output: Some(500),
        temperature: Some(0.5),
        context: Some("It is late."),
        stop: &["END".to_owned()],
        ..input()
    };
    let body = render(&input, &messages, &MessagesProfile::of_model(BUDGET))
        .unwrap()
        .body;
    let expected = concat!(
        r#"{"model":"claude-sonnet-4-5","tools":["#,
        r#"{"name":"read","description":"reads","input_schema":{"properties":{},"type":"object"}},"#,
        r#"{"name":"write","description":"writes","input_schema":{"type":"object","properties":{"b":{},"a":{}}}}],"#,
        r#""system":[{"type":"text","text":"Be brief."}],"messages":["#,
        r#"{"role":"user","content":[{"type":"text","text":"read a and b"}]},"#,
        r#"{"role":"assistant","content":[{"type":"text","text":"Both."},"#,
        r#"{"type":"tool_use","id":"toolu_1","name":"read","input":{"path": "a", "n": 1.50}},"#,
        r#"{"type":"tool_use","id":"toolu_2","name":"read","input":{}}]},"#,
        r#"{"role":"user","content":["#,
        r#"{"type":"tool_result","tool_use_id":"toolu_1","content":"A \"quoted\""},"#,
        r#"{"type":"tool_result","tool_use_id":"toolu_2","content":"no such file","is_error":true},"#,
        r#"{"type":"text","text":"One call is left."},{"type":"text","text":"It is late."}]}],"#,
        r#""max_tokens":500,"temperature":0.5,"stop_sequences":["END"],"stream":true}"#,
    );
    assert_eq!(String::from_utf8(body).unwrap(), expected);
}

#[test]
fn turns_alternate_and_nothing_is_empty() {
    let (messages, notes) = sent(&[
        Message::assistant("I begin."),
        Message::Assistant { parts: vec![] },
        Message::assistant("And go on."),
        Message::Summary {
            text: "it was said".into(),
        },
        Message::user(" \n"),
        Message::system("Be kind."),
        Message::Assistant {
            parts: vec![Part::text(""), Part::text("x")],
        },
        Message::user("q"),
    ]);
    let texts = |index: usize| -> Vec<String> {
        let blocks = messages[index]["content"].as_array().unwrap().iter();
        blocks
            .map(|block| block["text"].as_str().unwrap().to_owned())
            .collect()
    };
    let roles: Vec<&str> = messages
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(texts(0), ["Begin."]);
    assert_eq!(texts(1), ["I begin.", "And go on."]);
    assert!(texts(2)[0].contains("it was said"));
    assert_eq!(texts(2)[1], "[System message]\n\nBe kind.");
    assert_eq!(texts(3), ["x"]);
    assert_eq!(notes, [(Some(1), LeftOut::SilentAssistant)]);
    // Before anybody speaks, system messages are the system prompt's.
    let system = RenderInput {
        system: Some("One."),
        ..input()
    };
    let (body, _) = rendered(&system, &[Message::system("Two.")]);
    assert_eq!(body["system"][1]["text"], "Two.");
    assert_eq!(body["messages"][0]["content"][0]["text"], "Begin.");
}

#[test]
fn who_has_the_last_word() {
    let messages = [Message::user("q"), Message::assistant("Well, ")];
    let last = |model, effort| {
        let input = RenderInput {
            model,
            effort,
            ..input()
        };
        let messages = rendered(&input, &messages).0["messages"].clone();
        let last = messages.as_array().unwrap().last().unwrap().clone();
        (last["role"].clone(), last["content"][0]["text"].clone())
    };
    assert_eq!(last(BUDGET, None), (json!("assistant"), json!("Well,")));
    assert_eq!(
        last(BUDGET, Some(Effort::Low)),
        (json!("user"), json!("Continue."))
    );
    assert_eq!(last(ADAPTIVE, None), (json!("user"), json!("Continue.")));
}

#[test]
fn results_come_first_whatever_was_said_between() {
    let (messages, _) = sent(&[
        Message::user("q"),
        Message::Assistant {
            parts: vec![call("a", "read", "{}"), call("b", "read", "{}")],
        },
        Message::user("wait"),
        result("a", vec![Part::text("A")], false),
        Message::user("more"),
        result("b", vec![Part::text("B")], false),
    ]);
    let kinds: Vec<&str> = messages[2]["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text", "text"]);
}

#[test]
fn media_in_all_their_forms() {
    let file = |name: Option<&str>, source| {
        Part::File(File {
            name: name.map(str::to_owned),
            source,
        })
    };
    let parts = vec![
        image(url("https://x/y.png")),
        image(data("image/webp")),
        image(url("file_1")),
        file(Some("a.pdf"), data("application/pdf")),
        file(None, url("https://x/b.pdf")),
        file(None, url("file_2")),
    ];
    let question = Message::User { parts };
    let betas = |message: &Message| {
        let profile = MessagesProfile::of_model(BUDGET);
        render(&input(), [message], &profile).unwrap().betas
    };
    assert_eq!(betas(&question), ["files-api-2025-04-14"]);
    assert_eq!(betas(&Message::user("q")), [""; 0]);
    let (messages, notes) = sent(std::slice::from_ref(&question));
    let source = |index: usize| messages[0]["content"][index]["source"].clone();
    assert_eq!(source(0), json!({"type": "url", "url": "https://x/y.png"}));
    assert_eq!(
        source(1),
        json!({"type": "base64", "media_type": "image/webp", "data": "AA=="})
    );
    assert_eq!(source(2), json!({"type": "file", "file_id": "file_1"}));
    assert_eq!(messages[0]["content"][3]["title"], "a.pdf");
    assert_eq!(messages[0]["content"][3]["type"], "document");
    assert_eq!(notes, []);
    assert_eq!(read(&messages.to_string()).unwrap().messages, [question]);
    // What the API does not read is said so.
    let (messages, notes) = sent(&[Message::User {
        parts: vec![image(data("image/tiff")), file(None, data("text/csv"))],
    }]);
    assert!(
        messages[0]["content"][1]["text"]
            .as_str()
            .unwrap()
            .contains("left out")
    );
    assert_eq!(notes, [(Some(0), LeftOut::Attachment)]);
}

#[test]
fn a_failed_result_is_text_and_its_images_follow_the_batch() {
    let shot = || image(data("image/png"));
    let (messages, _) = sent(&[
        Message::user("q"),
        Message::Assistant {
            parts: vec![call("a", "read", "{}"), call("b", "read", "{}")],
        },
        result("a", vec![Part::text("no"), shot()], true),
        result("b", vec![shot(), Part::text("yes"), Part::text("")], false),
    ]);
    let content = &messages[2]["content"];
    assert_eq!(content[0]["content"], "no");
    assert_eq!(content[1]["content"][0]["type"], "image");
    assert_eq!(content[1]["content"].as_array().unwrap().len(), 2);
    assert!(content[2]["text"].as_str().unwrap().contains("Attachments"));
    assert_eq!(content[3]["type"], "image");
    // A result that says nothing has no content.
    let (messages, _) = sent(&[
        Message::user("q"),
        Message::Assistant {
            parts: vec![call("a", "read", "{}")],
        },
        result("a", vec![Part::text("")], false),
    ]);
    let empty = json!({"type": "tool_result", "tool_use_id": "a"});
    assert_eq!(messages[2]["content"][0], empty);
}

#[test]
fn calls_become_such_as_the_api_takes() {
    let (messages, notes) = sent(&[
        Message::user("q"),
        Message::Assistant {
            parts: vec![
                call("functions.read:0", "read/file", "{\"x\":"),
                call("b", "", ""),
            ],
        },
        result("functions.read:0", vec![Part::text("A")], false),
        result("b", vec![Part::text("B")], false),
    ]);
    let one = &messages[1]["content"][0];
    assert_eq!(one["name"], "read_file");
    assert_eq!(one["input"], json!({"malformed_arguments": "{\"x\":"}));
    assert_eq!(one["id"], messages[2]["content"][0]["tool_use_id"]);
    assert_eq!(messages[1]["content"][1]["name"], "_");
    let at = Some(1);
    assert_eq!(
        notes,
        [
            (at, LeftOut::Name),
            (at, LeftOut::BrokenArguments),
            (at, LeftOut::Name)
        ]
    );
    // Servers that count calls from 0 in each turn.
    let turn = || {
        [
            Message::Assistant {
                parts: vec![call("call_0", "read", "{}")],
            },
            result("call_0", vec![Part::text("A")], false),
        ]
    };
    let history = [vec![Message::user("q")], turn().into(), turn().into()].concat();
    let (messages, _) = sent(&history);
    assert_ne!(
        messages[1]["content"][0]["id"],
        messages[3]["content"][0]["id"]
    );
    assert_eq!(
        messages[3]["content"][0]["id"],
        messages[4]["content"][0]["tool_use_id"]
    );
}

#[test]
fn blocks_of_this_wire_keep_their_bytes_and_others_stay_away() {
    let search =
        r#"{"type":"server_tool_use", "id":"srvtoolu_1","name":"web_search","input":{"q": 1.50}}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
    let cited = r#"{"type":"text","text":"It is so","citations":[{"type":"x", "n":1.0}]}"#;
    let own = |data| opaque("anthropic", data);
    let answer = |text: &str| Message::Assistant {
        parts: vec![own(search), own(found), Part::text(text), own(cited)],
    };
    let messages = [Message::user("q"), answer("It is so"), Message::user("q")];
    let body = render(&input(), &messages, &MessagesProfile::of_model(BUDGET))
        .unwrap()
        .body;
    let body = String::from_utf8(body).unwrap();
    assert!(
        body.contains(&format!("[{search},{found},{cited}]")),
        "{body}"
    );
    assert_eq!(read(&body).unwrap().messages, messages);
    // The text was cut: its citations are no longer true of it.
    let (body, notes) = sent(&[Message::user("q"), answer("It is"), Message::user("q")]);
    assert_eq!(
        body[1]["content"][2],
        json!({"type": "text", "text": "It is"})
    );
    assert_eq!(notes, [(Some(1), LeftOut::Citations)]);
    for foreign in [
        opaque("openai-responses", r#"{"type":"reasoning"}"#),
        opaque("anthropic", "no JSON"),
        opaque("anthropic", "{}"),
    ] {
        let parts = vec![Part::text("q"), foreign];
        let (_, notes) = sent(&[Message::User { parts }]);
        assert_eq!(notes, [(Some(0), LeftOut::ForeignBlock)]);
    }
    // Further keys of a call go back with it; a breakpoint that it came with does not.
    let text = r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[
        {"type":"tool_use","id":"a","name":"read","input":{ },"caller":{"n": 1.0},
         "cache_control":{"type":"ephemeral"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]}]}"#;
    let chat = read(text).unwrap();
    let body = render(&input(), &chat.messages, &MessagesProfile::of_model(BUDGET))
        .unwrap()
        .body;
    let body = String::from_utf8(body).unwrap();
    let call = r#"[{"type":"tool_use","id":"a","name":"read","input":{ },"caller":{"n": 1.0}}]"#;
    assert!(body.contains(call), "{body}");
}

fn own_tool(data: &str) -> Opaque {
    Opaque {
        origin: "anthropic".into(),
        data: data.into(),
    }
}

#[test]
fn the_providers_own_tools_go_back_as_they_are() {
    let search = r#"{"type":"web_search_20250305", "name":"web_search","max_uses":3}"#;
    let marked =
        r#"{"type":"web_fetch_20250910","cache_control":{"type":"ephemeral"},"name":"web_fetch"}"#;
    let fetch = r#"{"type":"web_fetch_20250910","name":"web_fetch"}"#;
    let hosted = [
        own_tool(search),
        own_tool(marked),
        own_tool("{}"),
        Opaque {
            origin: "openai-responses".into(),
            data: r#"{"type":"web_search"}"#.into(),
        },
    ];
    let (specs, profile) = (tools(), MessagesProfile::of_model(BUDGET));
    let plan = CachePlan {
        breakpoints: vec![Breakpoint::Tools],
        key: None,
        ..CachePlan::default()
    };
    let with = |cache| {
        let input = RenderInput {
            tools: &specs,
            hosted_tools: &hosted,
            tool_choice: ToolChoice::None,
            cache,
            ..input()
        };
        let rendered = render(&input, &[Message::user("q")], &profile).unwrap();
        let what: Vec<LeftOut> = rendered.notes.iter().map(|note| note.what).collect();
        assert_eq!(what, [LeftOut::ForeignBlock, LeftOut::ForeignBlock]);
        String::from_utf8(rendered.body).unwrap()
    };
    let body = with(None);
    let value: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(validate(&value, &profile), []);
    assert!(body.contains(&format!("{search},{fetch}]")), "{body}");
    assert_eq!(value["tools"][0]["name"], "read");
    let chat = read(&body).unwrap();
    assert_eq!(chat.hosted_tools, [own_tool(search), own_tool(fetch)]);
    assert_eq!(chat.tools.len(), 2);
    // The breakpoint stands behind all of them.
    let value: Value = serde_json::from_str(&with(Some(&plan))).unwrap();
    assert_eq!(value["tools"][3]["cache_control"]["type"], "ephemeral");
    assert_eq!(value["tools"][1].get("cache_control"), None);
    // They alone are tools too, and what thinking is bound to.
    let bound = MessagesProfile::of_model("claude-opus-5-5");
    let prefix = |hosted: &[Opaque]| {
        let input = RenderInput {
            hosted_tools: hosted,
            ..input()
        };
        let rendered = render(&input, &[Message::user("q")], &bound).unwrap();
        let value: Value = serde_json::from_slice(&rendered.body).unwrap();
        let tools = value["tools"].as_array().map_or(0, Vec::len);
        (tools, rendered.prefix)
    };
    let (none, one) = (prefix(&[]), prefix(&hosted[..1]));
    assert_eq!((none.0, one.0), (0, 1));
    assert_ne!(none.1, one.1);
}

#[test]
fn what_is_read() {
    let text = r#"{"model":"m","max_tokens":9,"system":"Be brief.","tools":[
        {"name":"read","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],
        "messages":[{"role":"user","content":"q"},{"role":"assistant","content":"x"},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"A"}],"is_error":true},
        {"type":"text","text":"and?","cache_control":{"type":"ephemeral"}}]}]}"#;
    let chat = read(text).unwrap();
    assert_eq!(
        chat.messages,
        [
            Message::system("Be brief."),
            Message::user("q"),
            Message::assistant("x"),
            result("a", vec![Part::text("A")], true),
            Message::user("and?"),
        ]
    );
    let entries = chat.spans.iter().map(|span| span.entries.clone());
    assert_eq!(entries.collect::<Vec<_>>(), [0..0, 0..1, 1..2, 2..3, 2..3]);
    assert_eq!(chat.tools[0].name, "read");
    let search = r#"{"type":"web_search_20250305","name":"web_search"}"#;
    assert_eq!(chat.hosted_tools, [own_tool(search)]);
    for (text, place) in [
        ("{}", "messages"),
        ("5", "messages"),
        ("[5]", "messages[0]"),
        (r#"[{"content":"x"}]"#, "messages[0].role"),
        (r#"[{"role":"tool","content":"x"}]"#, "messages[0].role"),
        (r#"[{"role":"user","content":5}]"#, "messages[0].content"),
        (
            r#"[{"role":"user","content":[{"type":"text"}]}]"#,
            "messages[0].content[0].text",
        ),
        (
            r#"[{"role":"assistant","content":[{"type":"tool_use","id":1}]}]"#,
            "messages[0].content[0].id",
        ),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{place}: expected")), "{error}");
    }
}

/// A call that lost its result takes no other of the same id, or of none, with it.
#[test]
fn of_two_server_calls_with_one_id_only_the_unanswered_goes() {
    let block = |json: Value| {
        Part::Opaque(Opaque {
            origin: ORIGIN.into(),
            data: json.to_string(),
        })
    };
    let call = || {
        block(
            json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search",
            "input": {"query": "x"}}),
        )
    };
    let result = block(
        json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1",
        "content": []}),
    );
    let says = |parts: Vec<Part>| Message::Assistant { parts };
    let messages = [
        Message::user("q"),
        says(vec![call(), result, Part::text("found")]),
        Message::user("and?"),
        says(vec![Part::text("I look."), call()]),
        Message::user("never mind"),
    ];
    let (body, notes) = rendered(&input(), &messages);
    let kinds = |at: usize| -> Vec<&str> {
        let blocks = body["messages"][at]["content"].as_array().unwrap().iter();
        blocks
            .map(|block| block["type"].as_str().unwrap())
            .collect()
    };
    assert_eq!(
        kinds(1),
        ["server_tool_use", "web_search_tool_result", "text"]
    );
    assert_eq!(kinds(3), ["text"]);
    assert_eq!(notes, [(Some(3), LeftOut::ServerCall)]);
    assert_eq!(validate(&body, &MessagesProfile::of_model(BUDGET)), []);
}

/// The API wants names of tools to be unique; the schema that came first counts.
#[test]
fn of_tools_with_one_name_the_first_is_sent() {
    let tool = |name: &str, description: &str| ToolSpec {
        name: name.into(),
        description: description.into(),
        schema: json!({"type": "object"}),
    };
    let tools = [tool("list", "one"), tool("read", ""), tool("list", "two")];
    let input = RenderInput {
        tools: &tools,
        ..input()
    };
    let (body, notes) = rendered(&input, &[Message::user("q")]);
    let sent = body["tools"].as_array().unwrap().iter();
    let sent: Vec<_> = sent
        .map(|tool| (&tool["name"], &tool["description"]))
        .collect();
    assert_eq!(
        sent,
        [
            (&json!("list"), &json!("one")),
            (&json!("read"), &json!(""))
        ]
    );
    assert_eq!(notes, [(None, LeftOut::RepeatedTool)]);
}

/// Each other budget costs the cache of all messages, so it does not follow the room step by step.
#[test]
fn where_the_room_shrinks_thinking_shrinks_seldom_and_always_fits() {
    let messages = [Message::user("q")];
    let mut budgets = Vec::new();
    for room in (1..60).rev().map(|thousands| thousands * 1_000) {
        let input = RenderInput {
            model: BUDGET,
            effort: Some(Effort::High),
            room: Some(room),
            ..input()
        };
        let (body, _) = rendered(&input, &messages);
        let max = body["max_tokens"].as_u64().unwrap();
        assert!(max <= room);
        let budget = body["thinking"]["budget_tokens"].as_u64();
        if let Some(budget) = budget {
            assert!(
                (1_024..max - max / 4).contains(&budget),
                "{budget} of {max}"
            );
        }
        budgets.push(budget);
    }
    assert_eq!(budgets[0], Some(30_143));
    budgets.dedup();
    assert!(budgets.len() <= 6, "{budgets:?}");
    assert_eq!(budgets.last(), Some(&None));
}

#[test]
fn thinking_is_asked_for_as_the_model_wants_it() {
    use Effort::{High, Low, Medium, Minimal, None as Off};
    let messages = [Message::user("q")];
    let asked = |model: &'static str, effort, max_output| {
        let input = RenderInput {
            model,
            effort: Some(effort),
            max_output,
            temperature: Some(0.5),
            ..input()
        };
        let (body, notes) = rendered(&input, &messages);
        let effort = body["output_config"]["effort"].as_str().map(str::to_owned);
        let budget = body["thinking"]["budget_tokens"].as_u64();
        let kind = body["thinking"]["type"].as_str().map(str::to_owned);
        let notes: Vec<LeftOut> = notes.into_iter().map(|(_, what)| what).collect();
        (
            kind,
            budget,
            effort,
            body["max_tokens"].as_u64().unwrap(),
            notes,
        )
    };
    let enabled = |budget| (Some("enabled".to_owned()), Some(budget), None::<String>);
    let cold = vec![LeftOut::Temperature];
    for (level, max, budget, output) in [
        (Minimal, None, 1_024, 9_216),
        (Low, None, 2_048, 10_240),
        (Medium, Some(20_000), 8_192, 20_000),
        (High, None, 30_143, 40_192),
        // The answer has to fit behind it.
        (High, Some(4_000), 2_999, 4_000),
        (Minimal, Some(1_367), 1_024, 1_367),
    ] {
        let (kind, got, effort, max, notes) = asked(BUDGET, level, max);
        assert_eq!((kind, got, effort), enabled(budget), "{level:?}");
        assert_eq!((max, notes), (output, cold.clone()), "{level:?}");
    }
    let (kind, .., notes) = asked(BUDGET, High, Some(1_024));
    assert_eq!((kind, notes), (None, vec![LeftOut::ThinkingOff]));
    let (kind, .., max, notes) = asked(BUDGET, Off, None);
    let disabled = Some("disabled".to_owned());
    assert_eq!((kind, max, notes), (disabled, 8_192, vec![]));
    for (level, effort) in [
        (Minimal, "low"),
        (Low, "low"),
        (Medium, "medium"),
        (High, "high"),
    ] {
        let (kind, budget, got, _, notes) = asked(ADAPTIVE, level, Some(900));
        assert_eq!((kind.as_deref(), budget), (Some("adaptive"), None));
        assert_eq!((got.as_deref(), notes), (Some(effort), cold.clone()));
    }
    let (kind, .., notes) = asked("claude-3-5-haiku-latest", Low, None);
    assert_eq!((kind, notes), (None, vec![LeftOut::ThinkingOff]));
    // Newer models take no temperature, thinking or not.
    assert_eq!(asked("claude-opus-4-8", Off, None).4, cold);
}

#[test]
fn settings_are_such_as_the_api_takes() {
    let tools = tools();
    let messages = [Message::user("q")];
    let body = |input: RenderInput<'_>| rendered(&input, &messages);
    for (choice, sent) in [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::None, json!({"type": "none"})),
        (ToolChoice::Required, json!({"type": "any"})),
        (
            ToolChoice::Tool("read".into()),
            json!({"type": "tool", "name": "read"}),
        ),
    ] {
        let input = RenderInput {
            tools: &tools,
            tool_choice: choice,
            ..input()
        };
        assert_eq!(body(input.clone()).0["tool_choice"], sent);
        // Nothing can be chosen where nothing is offered.
        let none = RenderInput {
            tools: &[],
            ..input
        };
        assert_eq!(body(none).0["tool_choice"], Value::Null);
    }
    // A forced call and thinking exclude each other.
    let forced = RenderInput {
        tools: &tools,
        tool_choice: ToolChoice::Required,
        effort: Some(Effort::Low),
        ..input()
    };
    let (sent, notes) = body(forced);
    assert_eq!(
        (sent.get("thinking"), notes),
        (None, vec![(None, LeftOut::ThinkingOff)])
    );
    let cannot = RenderInput {
        tools: &tools,
        tool_choice: ToolChoice::Required,
        model: "claude-opus-5-5",
        ..input()
    };
    let (sent, notes) = body(cannot);
    assert_eq!(
        (sent.get("tool_choice"), notes),
        (None, vec![(None, LeftOut::ToolForced)])
    );
    let hot = RenderInput {
        temperature: Some(1.7),
        max_output: Some(1_000_000),
        delivery: Delivery::Whole,
        ..input()
    };
    let (sent, notes) = body(hot);
    assert_eq!(
        (&sent["temperature"], &sent["max_tokens"]),
        (&json!(1.0), &json!(64_000))
    );
    assert_eq!(sent.get("stream"), None);
    assert_eq!(
        notes,
        [
            (None, LeftOut::OutputCapped),
            (None, LeftOut::TemperatureCapped)
        ]
    );
    let extra =
        json!({"max_tokens": 7, "metadata": {"user_id": "u"}, "messages": [], "model": "x"});
    let input = RenderInput {
        extra: extra.as_object(),
        ..input()
    };
    let (sent, _) = body(input);
    assert_eq!(
        (&sent["max_tokens"], &sent["model"]),
        (&json!(7), &json!(BUDGET))
    );
    assert_eq!(sent["metadata"]["user_id"], "u");
}

/// Where breakpoints stand, as JSON pointers, and how long they live.
fn marks(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(mark) = map.get("cache_control") {
                let ttl = mark["ttl"].as_str().unwrap_or("5m");
                found.push(format!("{at} {ttl}"));
            }
            for (key, value) in map {
                marks(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter().enumerate() {
                marks(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn breakpoints_stand_where_they_may() {
    use Breakpoint::{Message as At, System, Tools};
    let tools = tools();
    let thinking = Part::Thinking(plimsoll_context::Thinking {
        text: "hm".into(),
        opaque: Some(Opaque {
            origin: "anthropic".into(),
            data: r#"{"type":"thinking","thinking":"hm","signature":"EqQB"}"#.into(),
        }),
    });
    let messages = [
        Message::user("the task"),
        Message::Assistant {
            parts: vec![thinking, call("a", "read", "{}"), call("b", "read", "{}")],
        },
        result("a", vec![Part::text("A")], false),
        result("b", vec![Part::text("B")], false),
        Message::user(""),
    ];
    let placed = |breakpoints: &[Breakpoint], retention| {
        let plan = CachePlan {
            breakpoints: breakpoints.to_vec(),
            key: Some("session".into()),
            retention,
        };
        let input = RenderInput {
            system: Some("Be brief."),
            tools: &tools,
            context: Some("It is late."),
            cache: Some(&plan),
            ..input()
        };
        let (body, _) = rendered(&input, &messages);
        let mut found = Vec::new();
        marks(&body, "", &mut found);
        found
    };
    let short = CacheRetention::Usual;
    assert_eq!(placed(&[], short), [""; 0]);
    assert_eq!(
        placed(&[Tools, System, At(1), At(3)], short),
        [
            "/tools/1 5m",
            "/system/0 5m",
            "/messages/1/content/1 5m",
            "/messages/2/content/1 5m"
        ]
    );
    // A message that says nothing is marked at what stands before it; two marks become one.
    assert_eq!(placed(&[At(3), At(4)], short), ["/messages/2/content/1 5m"]);
    // Too many: the first are covered by the later ones.
    assert_eq!(
        placed(&[Tools, System, At(0), At(1), At(2), At(3)], short),
        [
            "/messages/0/content/0 5m",
            "/messages/1/content/1 5m",
            "/messages/2/content/0 5m",
            "/messages/2/content/1 5m"
        ]
    );
    // What lives longer comes first, whatever is asked for.
    assert_eq!(
        placed(&[Tools, System, At(3)], CacheRetention::Head),
        ["/tools/1 1h", "/system/0 1h", "/messages/2/content/1 5m"]
    );
    assert_eq!(
        placed(&[System, At(3)], CacheRetention::Long),
        ["/system/0 1h", "/messages/2/content/1 1h"]
    );
}

/// A program that runs at the provider's waits for a result: nothing else is said with it.
#[test]
fn a_program_that_waits_for_a_result_gets_it_alone() {
    let text = r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[
        {"type":"server_tool_use","id":"srvtoolu_1","name":"code_execution","input":{"code": "q()"}},
        {"type":"tool_use","id":"a","name":"q","input":{},
         "caller":{"type":"code_execution_20250825","tool_id":"srvtoolu_1"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]}"#;
    let chat = read(text).unwrap();
    let given: Value = serde_json::from_str(text).unwrap();
    for model in ["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5"] {
        let profile = MessagesProfile::of_model(model);
        let input = RenderInput {
            model,
            context: Some("It is late."),
            ..RenderInput::default()
        };
        let out = render(&input, &chat.messages, &profile).unwrap();
        let body: Value = serde_json::from_slice(&out.body).unwrap();
        assert_eq!(validate(&body, &profile), [], "{model}");
        assert_eq!(out.notes, []);
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages[1..], given["messages"].as_array().unwrap()[1..]);
    }
}

/// A tool of the provider's own was still at work: the turn goes back as it stands, to every model.
#[test]
fn a_paused_turn_goes_on_from_where_it_stands() {
    let call = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query": "q"}}"#;
    let found = r#"{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]}"#;
    let block = |data: &str| {
        Part::Opaque(Opaque {
            origin: "anthropic".into(),
            data: data.into(),
        })
    };
    let paused = Message::Assistant {
        parts: vec![Part::text("Let me see."), block(call)],
    };
    let asked = [Message::user("q"), paused.clone()];
    for model in ["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5"] {
        let profile = MessagesProfile::of_model(model);
        let input = RenderInput {
            model,
            context: Some("It is late."),
            effort: Some(Effort::High),
            ..RenderInput::default()
        };
        let out = render(&input, &asked, &profile).unwrap();
        let body: Value = serde_json::from_slice(&out.body).unwrap();
        assert_eq!(validate(&body, &profile), [], "{model}");
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(String::from_utf8_lossy(&out.body).contains(call));
        // Who thinks by a budget goes on thinking only where the turn began so.
        let notes: Vec<LeftOut> = out.notes.iter().map(|note| note.what).collect();
        let off = (model == BUDGET).then_some(LeftOut::ThinkingOff);
        assert_eq!(notes, Vec::from_iter(off));
        // The rest of it is one turn with what was there.
        let rest = Message::Assistant {
            parts: vec![block(found), Part::text("It is so.")],
        };
        let whole = [Message::user("q"), paused.clone(), rest, Message::user("r")];
        let out = render(&input, &whole, &profile).unwrap();
        let body: Value = serde_json::from_slice(&out.body).unwrap();
        assert_eq!(validate(&body, &profile), [], "{model}");
        assert_eq!(body["messages"].as_array().unwrap().len(), 3);
        assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 4);
        assert_eq!(out.notes, []);
        // Somebody said something else: the call has no result, and stays away.
        let left = [Message::user("q"), paused.clone(), Message::user("stop")];
        let out = render(&input, &left, &profile).unwrap();
        let body: Value = serde_json::from_slice(&out.body).unwrap();
        assert_eq!(validate(&body, &profile), [], "{model}");
        assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 1);
        let what: Vec<LeftOut> = out.notes.iter().map(|note| note.what).collect();
        assert_eq!(what, [LeftOut::ServerCall]);
    }
}

/// AM12 with the planner: turn after turn, however many blocks one has, the newest entry of the
/// request before is found again.
#[test]
fn a_long_turn_has_a_breakpoint_where_the_request_before_it_ended() {
    let mut transcript = Transcript::new(Arc::new(Chars4));
    transcript.push(Message::user("the task ".repeat(2_000)));
    let mut trail = CacheTrail::default();
    let mut written: Option<usize> = None;
    for (turn, calls) in [1, 3, 30, 1, 12, 45, 2].into_iter().enumerate() {
        let items = transcript.items();
        let view = CacheView {
            tools: Tokens(0),
            system: Tokens(10),
            items,
            trail,
        };
        let plan = breakpoints(&view, &CacheConfig::default(), &CacheRules::default());
        let input = RenderInput {
            system: Some("Be brief."),
            cache: Some(&plan),
            ..input()
        };
        let messages: Vec<Message> = items.iter().map(|item| (*item.message).clone()).collect();
        let (body, _) = rendered(&input, &messages);
        // The blocks of all messages in order, and where breakpoints stand among them.
        let blocks = body["messages"].as_array().unwrap().iter();
        let blocks: Vec<&Value> = blocks
            .flat_map(|m| m["content"].as_array().unwrap())
            .collect();
        let marked = (0..blocks.len()).filter(|at| blocks[*at].get("cache_control").is_some());
        let marked: Vec<usize> = marked.collect();
        if let Some(written) = written {
            let found = marked
                .iter()
                .any(|mark| (written..written + 20).contains(mark));
            assert!(found, "turn {turn}: {written} is not found from {marked:?}");
        }
        written = marked.last().copied();
        assert_eq!(written, Some(blocks.len() - 1), "the end is marked");
        trail.sent(items);
        let id = |at: usize| format!("toolu_{turn}_{at}");
        let parts = (0..calls).map(|at| call(&id(at), "read", "{}")).collect();
        transcript.push(Message::Assistant { parts });
        for at in 0..calls {
            transcript.push(result(&id(at), vec![Part::text("done")], false));
        }
    }
}

#[test]
fn a_turn_that_was_paused_to_compact_goes_back_as_it_stands() {
    let block = r#"{"type":"compaction","content":"All so far.","encrypted_content":"Enc=="}"#;
    let compacted = Message::Assistant {
        parts: vec![Part::Opaque(Opaque {
            origin: "anthropic".into(),
            data: block.into(),
        })],
    };
    let messages = [Message::user("q"), compacted];
    let profile = MessagesProfile::of_model("claude-opus-4-6");
    let rendered = render(&RenderInput::default(), &messages, &profile).unwrap();
    let body = String::from_utf8(rendered.body).unwrap();
    assert!(body.contains(block), "{body}");
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["messages"].as_array().unwrap().len(), 2, "{body}");
}

#[test]
fn stop_sequences_of_white_space_are_not_sent() {
    let stop = ["\n\n".to_owned(), "END\n".to_owned(), String::new()];
    let input = RenderInput {
        stop: &stop,
        ..input()
    };
    let (body, notes) = rendered(&input, &[Message::user("q")]);
    assert_eq!(body["stop_sequences"], json!(["END\n"]));
    assert_eq!(notes, [(None, LeftOut::StopBlank)]);
}
