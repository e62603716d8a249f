//! The cache requests of each dialect.

use plimsoll_context::{
    Breakpoint, CachePlan, CallId, Message, Part, ToolCall, ToolResult, ToolSpec,
};
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat::{CacheMarks, Dialect, render};
use serde_json::{Value, json};

fn marking() -> Dialect {
    Dialect {
        cache: CacheMarks::Parts,
        ..Dialect::named("openrouter").unwrap()
    }
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: String::new(),
        schema: json!({"type": "object"}),
    };
    vec![tool("write"), tool("read")]
}

fn calls(ids: &[&str], text: Option<&str>) -> Message {
    let call = |id: &&str| {
        Part::ToolCall(ToolCall {
            id: CallId((*id).into()),
            name: "read".into(),
            arguments: "{}".into(),
            opaque: None,
        })
    };
    let text = text.map(Part::text).into_iter();
    Message::Assistant {
        parts: text.chain(ids.iter().map(call)).collect(),
    }
}

/// 0 the task, 1 a batch without a word, 2 and 3 its results, 4 a batch with one, 5 its result.
fn history() -> Vec<Message> {
    vec![
        Message::user("the task"),
        calls(&["a", "b"], None),
        Message::result(CallId("a".into()), "A"),
        Message::ToolResult(ToolResult {
            call: CallId("b".into()),
            parts: vec![Part::text("B1"), Part::text("B2")],
            is_error: false,
        }),
        calls(&["c"], Some("and now c")),
        Message::result(CallId("c".into()), "C"),
    ]
}

fn body(dialect: &Dialect, breakpoints: &[Breakpoint], messages: &[Message]) -> Value {
    let plan = CachePlan {
        breakpoints: breakpoints.to_vec(),
        key: Some("session-1".into()),
        ..CachePlan::default()
    };
    let tools = tools();
    let input = RenderInput {
        model: "m",
        system: Some("Be brief."),
        tools: &tools,
        context: Some("It is late."),
        cache: Some(&plan),
        ..RenderInput::default()
    };
    let rendered = render(&input, messages, dialect).unwrap();
    serde_json::from_slice(&rendered.body).unwrap()
}

/// Where breakpoints stand, as JSON pointers; and takes them out.
fn take_marks(value: &mut Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            if let Some(mark) = map.remove("cache_control") {
                assert_eq!(mark, json!({"type": "ephemeral"}));
                found.push(at.to_owned());
            }
            for (key, value) in map {
                take_marks(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(list) => {
            for (index, value) in list.iter_mut().enumerate() {
                take_marks(value, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// A list of one text is the text.
fn plain(mut body: Value) -> Value {
    for message in body["messages"].as_array_mut().unwrap() {
        let text = match message["content"].as_array().map(Vec::as_slice) {
            Some([only]) if only["type"] == "text" => only["text"].clone(),
            _ => continue,
        };
        message["content"] = text;
    }
    body
}

#[test]
fn breakpoints_stand_on_parts_and_change_nothing_else() {
    use Breakpoint::{Message as At, System, Tools};
    let dialect = marking();
    let unmarked = body(&dialect, &[], &history());
    for (breakpoints, places) in [
        (vec![], vec![]),
        (
            vec![Tools, System, At(0), At(5)],
            vec![
                "/messages/0/content/0",
                "/messages/1/content/0",
                "/messages/6/content/0",
                "/tools/1",
            ],
        ),
        // A batch without a word cannot be marked; what stands before it can.
        (vec![At(1)], vec!["/messages/1/content/0"]),
        (vec![At(0), At(1)], vec!["/messages/1/content/0"]),
        (
            vec![At(3), At(4)],
            vec!["/messages/4/content/0", "/messages/5/content/0"],
        ),
        // Whatever a plan says, a place that is not there is not marked.
        (vec![At(99)], vec![]),
    ] {
        let mut marked = body(&dialect, &breakpoints, &history());
        assert!(validate(&marked, &dialect).is_empty());
        let mut found = Vec::new();
        take_marks(&mut marked, "", &mut found);
        found.sort();
        assert_eq!(found, places, "{breakpoints:?}");
        assert_eq!(plain(marked), unmarked, "{breakpoints:?}");
    }
}

#[test]
fn cached_messages_are_sent_unchanged() {
    use Breakpoint::Message as At;
    let dialect = marking();
    let history = history();
    let sent = |len: usize| {
        let marks: Vec<Breakpoint> = [0, len.saturating_sub(2), len - 1].map(At).to_vec();
        let mut body = body(&dialect, &marks, &history[..len]);
        take_marks(&mut body, "", &mut Vec::new());
        plain(body)["messages"].as_array().unwrap().clone()
    };
    let mut before: Vec<Value> = Vec::new();
    for len in [1, 4, 6] {
        let mut now = sent(len);
        assert!(now.starts_with(&before), "{now:?}");
        // The dynamic context stands behind what is cached.
        assert_eq!(now.pop().unwrap()["content"], "It is late.");
        before = now;
    }
}

#[test]
fn a_dialect_without_words_for_it_says_nothing() {
    use Breakpoint::{Message as At, System, Tools};
    let all = [Tools, System, At(0), At(5)];
    for name in Dialect::NAMES {
        let dialect = Dialect::named(name).unwrap();
        let body = body(&dialect, &all, &history());
        let text = body.to_string();
        assert!(!text.contains("cache_control"), "{name}");
        let key = (name == "openai").then_some("session-1");
        assert_eq!(body["prompt_cache_key"].as_str(), key, "{name}");
    }
}

#[test]
fn a_setting_of_the_user_stands_above_the_key() {
    let plan = CachePlan {
        breakpoints: Vec::new(),
        key: Some("session-1".into()),
        ..CachePlan::default()
    };
    let extra = json!({"prompt_cache_key": "mine"});
    let messages = [Message::user("hi")];
    let input = RenderInput {
        model: "m",
        cache: Some(&plan),
        extra: extra.as_object(),
        ..RenderInput::default()
    };
    let rendered = render(&input, &messages, &Dialect::openai()).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!(body["prompt_cache_key"], "mine");
}
