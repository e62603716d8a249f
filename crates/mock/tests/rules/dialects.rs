//! Each named dialect of Chat Completions, and each family of templates, by its peculiarities: one
//! history as each server gets it. Single settings are in `render.rs`.

use plimsoll_context::{
    CachePlan, CallId, Image, Message, Part, Source, Tokens, ToolCall, ToolResult,
};
use plimsoll_mock::rules::openai_chat::{refusal, validate};
use plimsoll_testkit::messages::thinking;
use plimsoll_wire::openai_chat::{
    CacheMarks, ChatStreamState, Dialect, Template, read_reply, render,
};
use plimsoll_wire::prompt_texts;
use plimsoll_wire::{RenderInput, StreamDecoder};
use serde_json::{Value, json};

use crate::named;

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId(id.into()),
        name: "read".into(),
        arguments: arguments.into(),
        opaque: None,
    })
}

fn done(id: &str) -> Message {
    Message::ToolResult(ToolResult {
        call: CallId(id.into()),
        parts: vec![Part::text("done")],
        is_error: false,
    })
}

fn image() -> Part {
    Part::Image(Image {
        source: Source::Data {
            media_type: "image/png".into(),
            base64: "AA==".into(),
        },
        size: None,
        detail: None,
    })
}

/// 0 a question with an image, 1 a thoughtful batch without a word and with broken arguments, 2 and
/// 3 its results, 4 what the user adds, 5 a call without a thought, 6 its result, 7 a late rule, 8
/// and 9 two things that the user says, 10 an answer.
fn history() -> Vec<Message> {
    vec![
        Message::User {
            parts: vec![Part::text("what is"), Part::text("this?"), image()],
        },
        Message::Assistant {
            parts: vec![thinking("hm"), call("call_1", "{}"), call("call_2", "{\"x")],
        },
        done("call_1"),
        done("call_2"),
        Message::user("go on"),
        Message::Assistant {
            parts: vec![call("call_3", "{}")],
        },
        done("call_3"),
        Message::system("a rule"),
        Message::user("one"),
        Message::user("two"),
        Message::assistant("an answer"),
    ]
}

/// The history as this server gets it, which accepts it.
fn sent(dialect: &Dialect) -> Value {
    let plan = CachePlan {
        breakpoints: Vec::new(),
        key: Some("session-1".into()),
        ..CachePlan::default()
    };
    let input = RenderInput {
        model: "m",
        system: Some("Be brief."),
        max_output: Some(100),
        cache: Some(&plan),
        ..RenderInput::default()
    };
    let body = render(&input, &history(), dialect).unwrap().body;
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(validate(&body, dialect), [], "{}", dialect.name);
    body
}

/// Who speaks: a letter a message, a number the calls of one.
fn roles(body: &Value) -> String {
    let messages = body["messages"].as_array().unwrap();
    let role = |message: &Value| {
        let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
        let role = message["role"].as_str().unwrap();
        let letter = if role == "tool" { "t" } else { &role[..1] };
        match calls {
            0 => letter.to_owned(),
            calls => format!("{letter}{calls}"),
        }
    };
    messages.iter().map(role).collect()
}

/// The first message that calls tools.
fn asks(body: &Value) -> &Value {
    let mut messages = body["messages"].as_array().unwrap().iter();
    messages
        .find(|message| message.get("tool_calls").is_some())
        .unwrap()
}

fn reasoning(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    let said = messages.filter_map(|message| message.get("reasoning_content"));
    said.map(|text| text.as_str().unwrap()).collect()
}

fn ids(body: &Value) -> Vec<&str> {
    let messages = body["messages"].as_array().unwrap().iter();
    let calls = messages.filter_map(|message| message["tool_calls"].as_array());
    let calls = calls.flatten().map(|call| call["id"].as_str().unwrap());
    calls.collect()
}

/// What servers have in common that only copy the wire.
fn is_plain(body: &Value) {
    assert_eq!(roles(body), "sua2ttua1tsuuau");
    assert_eq!(body["max_tokens"], 100);
    assert_eq!(body["stream_options"]["include_usage"], true);
    assert_eq!(body.get("prompt_cache_key"), None);
    let asks = asks(body);
    assert_eq!(asks["content"], Value::Null);
    let broken = json!({"malformed_arguments": "{\"x"}).to_string();
    assert_eq!(asks["tool_calls"][1]["function"]["arguments"], broken);
    // The assistant does not have the last word.
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["content"], prompt_texts::GO_ON);
    assert_eq!(ids(body), ["call_1", "call_2", "call_3"]);
}

#[test]
fn every_named_dialect_has_its_test_here() {
    let here = [
        "compatible",
        "openai",
        "llama.cpp",
        "ollama",
        "lmstudio",
        "vllm",
        "mistral",
        "deepseek",
        "kimi",
        "groq",
        "openrouter",
        "xai",
        "together",
        "cohere",
    ];
    assert_eq!(Dialect::NAMES, here);
}

#[test]
fn compatible_and_those_who_only_copy() {
    for name in ["compatible", "together"] {
        let body = sent(&named(name));
        is_plain(&body);
        assert_eq!(reasoning(&body), [""; 0]);
    }
}

#[test]
fn cohere_is_not_asked_for_usage() {
    let dialect = named("cohere");
    assert!(!dialect.asks_for_usage);
    assert_eq!(sent(&dialect).get("stream_options"), None);
}

#[test]
fn openai() {
    let dialect = named("openai");
    let body = sent(&dialect);
    assert_eq!(body["max_completion_tokens"], 100);
    assert_eq!(body.get("max_tokens"), None);
    assert_eq!(body["prompt_cache_key"], "session-1");
    // Texts are parts, arguments are what the model wrote, and a prefill is one.
    assert_eq!(body["messages"][1]["content"].as_array().unwrap().len(), 3);
    assert_eq!(
        asks(&body)["tool_calls"][1]["function"]["arguments"],
        "{\"x"
    );
    assert_eq!(roles(&body), "sua2ttua1tsuua");
    assert!(dialect.prefill);
}

#[test]
fn deepseek() {
    let body = sent(&named("deepseek"));
    is_plain(&body);
    // Reasoning goes back with every call and answer, and where there was none as an empty text.
    assert_eq!(reasoning(&body), ["hm", "", ""]);
    assert!(!body.to_string().contains("image_url"));
    assert!(body.to_string().contains(prompt_texts::LEFT_OUT));
    let usage = json!({"choices": [{"index": 0, "message": {"content": "x",
        "reasoning_content": "hm"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 5,
            "prompt_cache_hit_tokens": 800, "prompt_cache_miss_tokens": 200}});
    let reply = read_reply(&usage.to_string()).unwrap();
    assert_eq!(reply.parts, [thinking("hm"), Part::text("x")]);
    assert_eq!(reply.usage.unwrap().cache_read, Tokens(800));
}

#[test]
fn kimi() {
    let body = sent(&named("kimi"));
    is_plain(&body);
    // An empty text counts as none; a space does not.
    assert_eq!(reasoning(&body), ["hm", " "]);
}

#[test]
fn mistral() {
    let dialect = named("mistral");
    let body = sent(&dialect);
    // A word between results and the user, and no system message after either.
    assert_eq!(roles(&body), "sua2ttaua1tauau");
    for at in [5, 9] {
        assert_eq!(body["messages"][at]["content"], prompt_texts::BRIDGE);
    }
    let ids = ids(&body);
    assert_eq!(ids.len(), 3);
    for id in ids {
        assert!(id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()));
    }
    assert_eq!(asks(&body)["content"], "");
    assert_eq!(body.get("stream_options"), None);
    // Keys that it does not know are refused.
    let input = RenderInput {
        model: "mistral-large-latest",
        seed: Some(7),
        ..RenderInput::default()
    };
    let rendered = render(&input, &[Message::user("q")], &dialect).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!((&body["random_seed"], body.get("seed")), (&json!(7), None));
    // Its reasoning models write lists of parts.
    let mut state = ChatStreamState::new();
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "x"}]);
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": parts},
        "finish_reason": "stop"}]});
    state.push(&chunk.to_string()).unwrap();
    assert_eq!(
        state.finish().unwrap().parts,
        [thinking("hm"), Part::text("x")]
    );
}

#[test]
fn groq() {
    is_plain(&sent(&named("groq")));
    // Its streams report usage beside the wire, and reasoning under another key.
    let mut state = ChatStreamState::new();
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": "x", "reasoning": "hm"},
        "finish_reason": "stop"}],
        "x_groq": {"id": "req_1", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}});
    state.push(&chunk.to_string()).unwrap();
    let reply = state.finish().unwrap();
    assert_eq!(reply.parts, [thinking("hm"), Part::text("x")]);
    assert_eq!(reply.usage.unwrap().input, Tokens(7));
}

#[test]
fn xai() {
    is_plain(&sent(&named("xai")));
    // Its reasoning is not in what was completed.
    let reply = json!({"choices": [{"index": 0, "message": {"content": "x"},
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 10, "completion_tokens": 2,
        "total_tokens": 42, "completion_tokens_details": {"reasoning_tokens": 30}}});
    let usage = read_reply(&reply.to_string()).unwrap().usage.unwrap();
    assert_eq!((usage.output, usage.reasoning), (Tokens(32), Tokens(30)));
}

#[test]
fn openrouter() {
    let dialect = named("openrouter");
    is_plain(&sent(&dialect));
    // For models that want breakpoints they stand on parts.
    let marking = Dialect {
        cache: CacheMarks::Parts,
        ..dialect
    };
    let plan = CachePlan {
        breakpoints: vec![plimsoll_context::Breakpoint::Message(0)],
        key: None,
        ..CachePlan::default()
    };
    let input = RenderInput {
        cache: Some(&plan),
        ..RenderInput::default()
    };
    let body = render(&input, &[Message::user("q")], &marking)
        .unwrap()
        .body;
    let body: Value = serde_json::from_slice(&body).unwrap();
    let part = &body["messages"][0]["content"][0];
    assert_eq!(part["cache_control"], json!({"type": "ephemeral"}));
    // Its reasoning has another key, its details go back as they came, and comments of the gateway are nothing.
    let reply = json!({"choices": [{"index": 0, "message": {"content": "x", "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        "finish_reason": "stop", "native_finish_reason": "end_turn"}]});
    let reply = read_reply(&reply.to_string()).unwrap();
    let [readable, Part::Opaque(details), text] = reply.parts.as_slice() else {
        unreachable!("{reply:?}");
    };
    assert_eq!((readable, text), (&thinking("hm"), &Part::text("x")));
    let details: Value = serde_json::from_str(&details.data).unwrap();
    assert_eq!(
        details,
        json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]})
    );
}

/// What servers demand that run the model's own template.
fn is_templated(body: &Value) {
    assert_eq!(roles(body), "sua2ttua1tuau", "{body}");
    let late = format!("{}\n\na rule\n\none\n\ntwo", prompt_texts::LATER_SYSTEM);
    assert_eq!(body["messages"][8]["content"], late);
    assert_eq!(body["max_tokens"], 100);
    let broken = json!({"malformed_arguments": "{\"x"}).to_string();
    assert_eq!(asks(body)["tool_calls"][1]["function"]["arguments"], broken);
}

#[test]
fn vllm_and_ollama() {
    for name in ["vllm", "ollama"] {
        let body = sent(&named(name));
        is_templated(&body);
        assert_eq!(asks(&body)["content"], Value::Null);
        assert!(body.to_string().contains("image_url"));
    }
    // Ollama may drop the only question (T6): there is always one.
    let asked = [Message::system("s")];
    let body = render(&RenderInput::default(), &asked, &named("ollama")).unwrap();
    let body: Value = serde_json::from_slice(&body.body).unwrap();
    assert_eq!(roles(&body), "su");
    assert_eq!(body["messages"][1]["content"], prompt_texts::OPENING);
}

#[test]
fn llama_cpp() {
    let dialect = named("llama.cpp");
    let body = sent(&dialect);
    is_templated(&body);
    assert!(!body.to_string().contains("image_url"));
    // It refuses with 500 what its template refuses.
    let two = json!([{"role": "user", "content": "q"}, {"role": "user", "content": "r"}]);
    let (status, body) = refusal(&validate(&two, &dialect)[0], &dialect);
    assert_eq!(status, 500);
    let words = body["error"]["message"].as_str().unwrap();
    assert!(words.starts_with("Jinja Exception: "), "{words}");
}

#[test]
fn lm_studio() {
    let body = sent(&named("lmstudio"));
    is_templated(&body);
    assert_eq!(asks(&body)["content"], "");
}

#[test]
fn templates_of_families() {
    let of = |template| sent(&named("vllm").with_template(template));
    // Qwen wants a user: all local servers are treated so.
    is_templated(&of(Template::Qwen));
    // Gemma's: no user right after a result, and one call a message.
    let body = of(Template::Gemma);
    assert_eq!(roles(&body), "sua1ta1taua1tauau");
    // Mistral's: no user right after a result.
    let body = of(Template::Mistral);
    assert_eq!(roles(&body), "sua2ttaua1tauau");
    assert_eq!(body["messages"][5]["content"], prompt_texts::BRIDGE);
    // Llama 3.1: one call a message.
    let body = of(Template::Llama31);
    assert_eq!(roles(&body), "sua1ta1tua1tuau");
    // A hosted server without a template has none of it, whatever the model is called.
    let hosted = named("openrouter").with_template(Template::Qwen);
    assert_eq!(roles(&sent(&hosted)), "sua2ttua1tsuuau");
}
