//! The validator: a failing and a passing request for each rule. No JSON makes it panic.

use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_mock::rules::MAX_FAULTS;
use plimsoll_mock::rules::openai_chat::{refusal, validate};
use plimsoll_testkit::json_of;
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::{Dialect, NoContent, Template};
use plimsoll_wire::overflow::{Verdict, classify};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{named, said, user};

fn asks(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id, "{}")).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "done"})
}

fn rules(messages: &[Value], dialect: &Dialect) -> Vec<String> {
    let faults = validate(&json!({"model": "m", "messages": messages}), dialect);
    faults.iter().map(|fault| fault.rule.to_string()).collect()
}

/// Breaks exactly these rules under the dialect; the second list breaks none.
fn row(dialect: &Dialect, broken: &[&str], bad: &[Value], good: &[Value]) {
    assert_eq!(rules(bad, dialect), broken, "{bad:?}");
    assert_eq!(rules(good, dialect), [""; 0], "{good:?}");
}

/// Mistral goes on with an answer that asks for it; nobody else knows that key.
#[test]
fn mistral_goes_on_with_a_prefix() {
    let prefix = json!({"role": "assistant", "content": "It is", "prefix": true});
    let mistral = named("mistral");
    let middle = [user("q"), prefix.clone(), user("r"), said("x")];
    row(&mistral, &["OC8"], &middle, &[user("q"), prefix.clone()]);
    assert_eq!(rules(&[user("q"), prefix.clone()], &named("vllm")), ["OC8"]);
    let mut off = prefix.clone();
    off["prefix"] = false.into();
    assert_eq!(rules(&[user("q"), off], &mistral), ["OC8"]);
    // The canonicaliser leaves it where it is, whatever else it repairs.
    let target = Target::Chat(mistral);
    let given = json!({"model": "m", "messages": [user("q"), prefix.clone()]}).to_string();
    let same = repair_request(&given, &target, Reasoning::Keep).unwrap();
    assert_eq!((same.repairs, same.request), (vec![], given));
    let messages = json!([user("q"), asks(&["a"]), tool("a"), prefix]);
    let given = json!({"model": "m", "messages": messages}).to_string();
    let fixed = repair_request(&given, &target, Reasoning::Keep).unwrap();
    assert!(!fixed.repairs.is_empty(), "its id is no id of Mistral's");
    let fixed: Value = serde_json::from_str(&fixed.request).unwrap();
    assert_eq!(fixed["messages"][3], prefix);
    assert_eq!(fixed["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn calls_and_results() {
    let openai = Dialect::openai();
    let good = [
        user("q"),
        asks(&["a", "b"]),
        tool("a"),
        tool("b"),
        said("x"),
    ];
    row(&openai, &["OC1"], &[user("q"), asks(&["a"])], &good);
    row(
        &openai,
        &["OC1"],
        &[user("q"), asks(&["a"]), said("x")],
        &good,
    );
    row(
        &openai,
        &["OC1", "V4"],
        &[user("q"), asks(&["a", "b"]), tool("a")],
        &good,
    );
    row(&openai, &["OC2"], &[user("q"), tool("a")], &good);
    row(
        &openai,
        &["OC2"],
        &[user("q"), asks(&["a"]), tool("a"), tool("z")],
        &good,
    );
    row(
        &openai,
        &["OC2"],
        &[user("q"), asks(&["a"]), tool("a"), said("x"), tool("a")],
        &good,
    );
    row(
        &openai,
        &["OC1", "OC3", "OC2"],
        &[user("q"), asks(&["a"]), user("stop"), tool("a")],
        &good,
    );
    let otherwise = [user("q"), asks(&["a", "b"]), tool("b"), tool("a")];
    row(&openai, &[], &otherwise, &good);
    row(
        &openai,
        &["V3"],
        &[user("q"), asks(&["a"]), tool("a"), tool("a")],
        &good,
    );
    row(
        &openai,
        &["V3"],
        &[user("q"), asks(&["a", "a"]), tool("a"), tool("a")],
        &good,
    );
}

#[test]
fn a_tool_message_is_text() {
    let image = json!({"role": "tool", "tool_call_id": "a",
        "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]});
    let text = json!({"role": "tool", "tool_call_id": "a",
        "content": [{"type": "text", "text": "x"}]});
    row(
        &Dialect::openai(),
        &["OC3"],
        &[user("q"), asks(&["a"]), image],
        &[user("q"), asks(&["a"]), text],
    );
}

#[test]
fn arguments_are_a_string() {
    let with = |arguments: Value| {
        let call = json!({"id": "a", "type": "function",
            "function": {"name": "f", "arguments": arguments}});
        json!({"role": "assistant", "tool_calls": [call]})
    };
    let history = |arguments| [user("q"), with(arguments), tool("a")];
    row(
        &Dialect::openai(),
        &["OC4"],
        &history(json!({"x": 1})),
        // OpenAI does not look into the text; a template does.
        &history(json!("{\"x\"")),
    );
    for broken in ["{\"x\"", "", "5", "[]"] {
        row(
            &named("llama.cpp"),
            &["OC4"],
            &history(json!(broken)),
            &history(json!("{\"x\": 1}")),
        );
    }
}

#[test]
fn an_assistant_says_something() {
    let assistant = |content: Value| json!({"role": "assistant", "content": content});
    let openai = Dialect::openai();
    for silent in [
        assistant(json!(null)),
        assistant(json!("")),
        assistant(json!([])),
        json!({"role": "assistant"}),
    ] {
        row(
            &openai,
            &["OC5"],
            &[user("q"), silent],
            &[user("q"), assistant(json!(" "))],
        );
    }
    let no_calls =
        |content: Value| json!({"role": "assistant", "content": content, "tool_calls": []});
    assert_eq!(
        rules(&[user("q"), no_calls(json!(null))], &openai),
        ["shape", "OC5"]
    );
    row(
        &openai,
        &["shape"],
        &[user("q"), no_calls(json!("a"))],
        &[user("q"), assistant(json!("a"))],
    );
    let with = |content: Value| {
        let mut message = asks(&["a"]);
        message["content"] = content;
        [user("q"), message, tool("a")]
    };
    let no_null = Dialect {
        no_content: NoContent::Empty,
        ..openai.clone()
    };
    row(&no_null, &["OC5"], &with(json!(null)), &with(json!("")));
    let no_key = Dialect {
        no_content: NoContent::Omit,
        ..openai.clone()
    };
    let mut omitted = with(json!(null));
    omitted[1].as_object_mut().unwrap().remove("content");
    row(&no_key, &["OC5"], &with(json!("")), &omitted);
    row(&openai, &[], &with(json!(null)), &omitted);
}

#[test]
fn reasoning_comes_back() {
    let step = |id: &str, reasoning: Option<&str>| {
        let mut message = asks(&[id]);
        if let Some(reasoning) = reasoning {
            message["reasoning_content"] = reasoning.into();
        }
        message
    };
    let history = |reasoning| [user("q"), step("a", reasoning), tool("a")];
    row(
        &named("kimi"),
        &["OC6"],
        &history(None),
        &history(Some(" ")),
    );
    row(
        &named("kimi"),
        &["OC6"],
        &history(Some("")),
        &history(Some("hm")),
    );
    row(
        &named("deepseek"),
        &["OC6"],
        &history(None),
        &history(Some("")),
    );
    // It wants all of an exchange in which a tool was called, and none of another.
    let answer = |reasoning: Option<&str>| {
        let mut answer = said("done");
        if let Some(text) = reasoning {
            answer["reasoning_content"] = json!(text);
        }
        let mut messages = history(Some("hm")).to_vec();
        messages.extend([answer, user("and?"), said("so"), user("?")]);
        messages
    };
    row(
        &named("deepseek"),
        &["OC6"],
        &answer(None),
        &answer(Some("")),
    );
}

#[test]
fn mistral() {
    let mistral = named("mistral");
    let asks = |ids: &[&str]| {
        let mut message = asks(ids);
        message["content"] = "".into();
        message
    };
    let good = [
        user("q"),
        asks(&["D681PevKs"]),
        tool("D681PevKs"),
        said("x"),
        user("r"),
    ];
    row(
        &mistral,
        &["OC7"],
        &[user("q"), asks(&["call_1"]), tool("call_1")],
        &good,
    );
    row(
        &mistral,
        &["OC7"],
        &[
            user("q"),
            asks(&["D681PevKs"]),
            tool("D681PevKs"),
            user("r"),
        ],
        &good,
    );
    row(
        &mistral,
        &["OC7"],
        &[user("q"), asks(&["D681PevKs"]), said("x"), user("r")],
        &good,
    );
    row(&mistral, &["OC7"], &[user("q"), tool("D681PevKs")], &good);
    // A rule that comes late, and two answers in a row.
    let system = || json!({"role": "system", "content": "s"});
    for late in [
        vec![
            user("q"),
            asks(&["D681PevKs"]),
            tool("D681PevKs"),
            system(),
            said("x"),
            user("r"),
        ],
        vec![user("q"), said("x"), system(), user("r")],
        vec![user("q"), said("x"), said("y"), user("r")],
    ] {
        let first = [system(), user("q"), user("r")];
        row(&mistral, &["OC7"], &late, &first);
    }
}

#[test]
fn the_last_word() {
    row(
        &named("llama.cpp"),
        &["OC8"],
        &[user("q"), said("x")],
        &[user("q"), said("x"), user("r")],
    );
    row(
        &Dialect::openai(),
        &[],
        &[user("q"), said("x")],
        &[user("q")],
    );
}

#[test]
fn templates() {
    let plain = Dialect::openai();
    let system = |text: &str| json!({"role": "system", "content": text});
    let gemma = plain.clone().with_template(Template::Gemma);
    let good = [system("s"), user("q"), said("x"), user("r")];
    row(&gemma, &["T1"], &[user("q"), user("r")], &good);
    row(&gemma, &["T1"], &[system("s"), said("x"), user("r")], &good);
    row(
        &gemma,
        &["T3"],
        &[user("q"), system("s"), said("x"), user("r")],
        &good,
    );
    row(
        &gemma,
        &["T3"],
        &[system("s"), system("s"), user("q")],
        &good,
    );
    let mistral = plain.clone().with_template(Template::Mistral);
    row(
        &mistral,
        &["T2"],
        &[
            user("q"),
            asks(&["abcdefgh1"]),
            tool("abcdefgh1"),
            user("r"),
        ],
        &[
            user("q"),
            asks(&["abcdefgh1"]),
            tool("abcdefgh1"),
            said("x"),
            user("r"),
        ],
    );
    let qwen = plain.clone().with_template(Template::Qwen);
    row(
        &qwen,
        &["T4"],
        &[system("s"), asks(&["a"]), tool("a")],
        &[user("q"), asks(&["a"]), tool("a")],
    );
    let llama = plain.clone().with_template(Template::Llama31);
    row(
        &llama,
        &["T5"],
        &[user("q"), asks(&["a", "b"]), tool("a"), tool("b")],
        &[user("q"), asks(&["a"]), tool("a"), asks(&["b"]), tool("b")],
    );
    // Under the plain dialect all of these are fine.
    row(
        &plain,
        &[],
        &[user("q"), system("s"), user("r"), said("x"), said("y")],
        &[said("x")],
    );
}

#[test]
fn shapes() {
    let openai = Dialect::openai();
    for (request, place) in [
        (json!({}), "messages"),
        (json!(5), "messages"),
        (json!({"messages": {}}), "messages"),
        (json!({"messages": []}), "messages"),
        (json!([5]), "messages[0].role"),
        (
            json!([{"role": "robot", "content": "x"}]),
            "messages[0].role",
        ),
        (json!([{"role": "user"}]), "messages[0].content"),
        (
            json!([{"role": "user", "content": 5}]),
            "messages[0].content",
        ),
        (
            json!([{"role": "user", "content": [{}]}]),
            "messages[0].content[0]",
        ),
    ] {
        let faults = validate(&request, &openai);
        assert_eq!(faults.len(), 1, "{request} {faults:?}");
        assert_eq!(
            (
                faults[0].rule.to_string().as_str(),
                faults[0].place.as_str()
            ),
            ("shape", place)
        );
    }
    let many = vec![json!({"role": "user"}); 1000];
    assert_eq!(validate(&Value::Array(many), &openai).len(), MAX_FAULTS);
}

#[test]
fn faults_are_told_in_the_servers_words() {
    let told = |name: &str, messages: &[Value]| {
        let dialect = named(name);
        let faults = validate(&json!(messages), &dialect);
        let (status, body) = refusal(&faults[0], &dialect);
        // Whoever gets it must not send the same request again.
        assert_eq!(
            classify(Some(status), &body.to_string()),
            Verdict::Invalid,
            "{body}"
        );
        (status, body)
    };
    let (status, body) = told("openai", &[user("q"), asks(&["a", "b"]), said("x")]);
    assert_eq!(status, 400);
    assert_eq!(
        body["error"]["message"],
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: a, b"
    );
    let (_, body) = told("openai", &[user("q"), tool("a")]);
    assert_eq!(
        body["error"]["message"],
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message \
         with 'tool_calls'."
    );
    let (status, body) = told("llama.cpp", &[user("q"), user("r")]);
    assert_eq!(
        (status, &body["error"]["message"]),
        (
            500,
            &json!(
                "Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/..."
            )
        )
    );
    let mut short = asks(&["call_1"]);
    short["content"] = "".into();
    let (status, body) = told("mistral", &[user("q"), short, tool("call_1")]);
    assert_eq!((status, &body["code"]), (400, &json!("3280")));
    assert_eq!(
        body["message"],
        "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
    );
    let mut thinks = said("x");
    thinks["reasoning_content"] = json!("hm");
    let (status, body) = told("mistral", &[user("q"), thinks, user("r")]);
    assert_eq!(status, 422);
    assert_eq!(
        body["message"]["detail"][0]["loc"],
        json!(["body", "messages", 1, "reasoning_content"])
    );
    let (_, body) = told("kimi", &[user("q"), asks(&["a"]), tool("a")]);
    assert_eq!(
        body["error"]["message"],
        "thinking is enabled but reasoning_content is missing in assistant tool call message at \
         index 1"
    );
    let (_, body) = told("deepseek", &[user("q"), asks(&["a"]), tool("a")]);
    assert_eq!(
        body["error"]["message"],
        "The `reasoning_content` in the thinking mode must be passed back to the API."
    );
}

/// JSON made of the keys and values that the validator looks for, in places they belong or not.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    json_of(
        "messages role content tool_calls tool_call_id id function arguments name type \
         reasoning_content",
        "user assistant tool system function a b",
    )
}

proptest! {
    #[test]
    fn no_json_breaks_it(value in arbitrary_json(), messages in proptest::collection::vec(arbitrary_json(), 0..6)) {
        for name in Dialect::NAMES {
            let dialect = named(name).with_template(Template::Mistral);
            let _ = validate(&value, &dialect);
            for fault in validate(&json!({"messages": messages}), &dialect) {
                let _ = refusal(&fault, &dialect);
            }
        }
    }
}
