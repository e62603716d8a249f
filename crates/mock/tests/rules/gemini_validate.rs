//! Gemini's validator: a failing and a passing request for each rule, with the API's messages. No
//! JSON makes it panic.

use plimsoll_mock::rules::MAX_FAULTS;
use plimsoll_mock::rules::gemini::{refusal, validate};
use plimsoll_testkit::json_of;
use plimsoll_wire::gemini::GeminiProfile;
use plimsoll_wire::overflow::{Verdict, classify};
use proptest::prelude::*;
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

fn said(text: &str) -> Value {
    json!({"role": "model", "parts": [{"text": text}]})
}

/// The model calls these tools; the first call is signed.
fn asks(names: &[&str]) -> Value {
    let mut parts: Vec<Value> = names
        .iter()
        .map(|name| json!({"functionCall": {"name": name, "args": {}}}))
        .collect();
    if let Some(first) = parts.first_mut() {
        first["thoughtSignature"] = "c2lnbmVk".into();
    }
    json!({"role": "model", "parts": parts})
}

fn unsigned(names: &[&str]) -> Value {
    let mut content = asks(names);
    for part in content["parts"].as_array_mut().unwrap() {
        part.as_object_mut().unwrap().remove("thoughtSignature");
    }
    content
}

fn answer(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": "done"}}})
}

fn answers(names: &[&str]) -> Value {
    let parts: Vec<Value> = names.iter().map(|name| answer(name)).collect();
    json!({"role": "user", "parts": parts})
}

fn of(model: &str) -> GeminiProfile {
    GeminiProfile::of_model(model)
}

fn told(contents: &[Value], model: &str) -> Vec<(String, String)> {
    let faults = validate(&json!({ "contents": contents }), &of(model));
    let told = faults.into_iter().map(|fault| {
        let (status, body) = refusal(&fault);
        // Whoever gets it must not send the same request again.
        assert_eq!(classify(Some(status), &body.to_string()), Verdict::Invalid);
        assert_eq!(body["error"]["message"], fault.words.as_str());
        (fault.rule.to_string(), fault.words)
    });
    told.collect()
}

/// Breaks exactly these rules, the first in these words; the second list breaks none.
fn row(model: &str, broken: &[&str], words: &str, bad: &[Value], good: &[Value]) {
    let told_of_bad = told(bad, model);
    let rules: Vec<&str> = told_of_bad.iter().map(|(rule, _)| rule.as_str()).collect();
    assert_eq!(rules, broken, "{bad:?}");
    let said = told_of_bad.iter().any(|(_, said)| said.contains(words));
    assert!(said, "{words}: {told_of_bad:?}");
    assert_eq!(told(good, model), [], "{good:?}");
}

const COUNT: &str = "Please ensure that the number of function response parts is equal to the \
                     number of function call parts of the function call turn.";
const TURN: &str = "Please ensure that function call turn comes immediately after a user turn or \
                    after a function response turn.";

#[test]
fn gm1_as_many_responses_as_calls() {
    let good = [
        user("q"),
        asks(&["f", "g"]),
        answers(&["f", "g"]),
        said("x"),
        user("r"),
    ];
    for model in ["gemini-2.5-pro", "gemini-3-pro", "gemini-3.7-flash"] {
        row(model, &["GM1"], COUNT, &[user("q"), asks(&["f"])], &good);
        row(
            model,
            &["GM1"],
            COUNT,
            &[user("q"), asks(&["f"]), user("r")],
            &good,
        );
        row(
            model,
            &["GM1", "V4"],
            COUNT,
            &[user("q"), asks(&["f", "g"]), answers(&["f"])],
            &good,
        );
        row(
            model,
            &["GM1"],
            COUNT,
            &[user("q"), asks(&["f"]), answers(&["f", "f"])],
            &good,
        );
        row(
            model,
            &["GM1"],
            "Please ensure that function response turn comes immediately after a function call turn",
            &[user("q"), answers(&["f"])],
            &good,
        );
    }
    let mut both = asks(&["f"]);
    both["parts"].as_array_mut().unwrap().push(answer("f"));
    row(
        "gemini-2.5-pro",
        &["GM1"],
        "can not be mixed with function_response parts",
        &[user("q"), both],
        &good,
    );
}

#[test]
fn gm2_calls_follow_the_user_or_responses() {
    let good = [
        user("q"),
        asks(&["f"]),
        answers(&["f"]),
        asks(&["g"]),
        answers(&["g"]),
    ];
    let model = "gemini-2.5-pro";
    row(
        model,
        &["GM2"],
        TURN,
        &[asks(&["f"]), answers(&["f"])],
        &good,
    );
    row(
        model,
        &["GM2"],
        TURN,
        &[user("q"), said("x"), asks(&["f"]), answers(&["f"])],
        &good,
    );
    let mut users = asks(&["f"]);
    users["role"] = "user".into();
    row(
        model,
        &["GM2"],
        TURN,
        &[user("q"), users, answers(&["f"])],
        &good,
    );
}

#[test]
fn gm3_the_first_call_of_each_step_is_signed() {
    let words = "Function call is missing a thought_signature in functionCall parts. This is \
                 required for tools to work correctly, and missing thought_signature may lead to \
                 degraded model performance. Additional data, function call `default_api:g` , \
                 position 4. Please refer to \
                 https://ai.google.dev/gemini-api/docs/thought-signatures for more details.";
    let good = [
        user("q"),
        asks(&["f", "g"]),
        answers(&["f", "g"]),
        asks(&["g"]),
        answers(&["g"]),
    ];
    let mut bad = good.clone();
    bad[3] = unsigned(&["g"]);
    row("gemini-3-pro-preview", &["GM3"], words, &bad, &good);
    // The second of a batch is not the first of a step.
    let mut second = good.clone();
    second[1] = unsigned(&["f", "g"]);
    second[1]["parts"][1]["thoughtSignature"] = "c2lnbmVk".into();
    row(
        "gemini-3-pro-preview",
        &["GM3"],
        "position 2.",
        &second,
        &good,
    );
    // Older turns are not looked at: a transcript may be shortened before the current one.
    let older = [user("q"), unsigned(&["f"]), answers(&["f"]), user("r")];
    assert_eq!(told(&older, "gemini-3-pro-preview"), []);
    // Nor is anything by older models.
    assert_eq!(told(&bad, "gemini-2.5-pro"), []);
    // The other spelling is read too.
    let mut snake = unsigned(&["f"]);
    snake["parts"][0]["thought_signature"] = "c2lnbmVk".into();
    let snake = [user("q"), snake, answers(&["f"])];
    assert_eq!(told(&snake, "gemini-3-pro-preview"), []);
}

#[test]
fn gm4_the_responses_of_a_batch_stand_in_one_content_first() {
    let good = [user("q"), asks(&["f", "g"]), answers(&["f", "g"])];
    let model = "gemini-2.5-pro";
    row(
        model,
        &["GM4"],
        COUNT,
        &[
            user("q"),
            asks(&["f", "g"]),
            answers(&["f"]),
            answers(&["g"]),
        ],
        &good,
    );
    let with = |parts: Vec<Value>| {
        let content = json!({"role": "user", "parts": parts});
        [user("q"), asks(&["f"]), content]
    };
    let text_first = with(vec![json!({"text": "and now"}), answer("f")]);
    let text_last = with(vec![answer("f"), json!({"text": "and now"})]);
    row(
        model,
        &["GM4"],
        "comes immediately after",
        &text_first,
        &text_last,
    );
    // With the newest, nothing may share that content.
    row(
        "gemini-3.6-flash",
        &["GM4"],
        "Requests ending with a model turn are not supported.",
        &text_last,
        &good,
    );
}

#[test]
fn gm5_roles_contents_and_parts() {
    let model = "gemini-2.5-pro";
    let good = [user("q"), said("x"), user("r")];
    row(
        model,
        &["GM5"],
        "* GenerateContentRequest.contents: contents is not specified",
        &[],
        &good,
    );
    row(
        model,
        &["GM5"],
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
        &[user("q"), json!({"role": "model", "parts": []}), user("r")],
        &good,
    );
    row(
        model,
        &["GM5"],
        "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have \
         one initialized field",
        &[user("")],
        &good,
    );
    for role in ["system", "assistant", "function", ""] {
        let bad = json!({"role": role, "parts": [{"text": "x"}]});
        let words = "Please use a valid role: user, model.";
        row(model, &["GM5"], words, &[bad, user("q")], &good);
    }
    row(
        "gemini-3.7-flash",
        &["GM5"],
        "Requests ending with a model turn are not supported.",
        &[user("q"), said("x")],
        &good,
    );
    assert_eq!(told(&[user("q"), said("x")], "gemini-3.5-flash"), []);
    // One content alone is the user's; an empty text may carry a signature.
    assert_eq!(told(&[json!({"parts": [{"text": "q"}]})], model), []);
    let signed = json!({"role": "model", "parts": [{"text": "", "thoughtSignature": "eA=="}]});
    assert_eq!(told(&[user("q"), signed, user("r")], model), []);
}

/// The server's own tools: their calls and their responses are parts like others.
#[test]
fn gm5_server_tools_are_parts() {
    for key in ["toolCall", "tool_call", "toolResponse", "tool_response"] {
        let part = json!({key: {"toolType": "GOOGLE_SEARCH_WEB", "id": "s1"}});
        let contents = [
            user("q"),
            json!({"role": "model", "parts": [part]}),
            user("r"),
        ];
        assert_eq!(told(&contents, "gemini-3-pro"), [], "{key}");
    }
    let unknown = json!({"role": "model", "parts": [{"toolAnswer": {}}]});
    assert_eq!(
        told(&[user("q"), unknown, user("r")], "gemini-3-pro").len(),
        1
    );
}

#[test]
fn v3_responses_stand_in_the_order_of_their_calls() {
    row(
        "gemini-2.5-pro",
        &["V3"],
        "in the order of its calls",
        &[user("q"), asks(&["f", "g"]), answers(&["g", "f"])],
        &[user("q"), asks(&["f", "g"]), answers(&["f", "g"])],
    );
    let with_ids = |ids: [&str; 2]| {
        let mut asked = asks(&["f", "f"]);
        let mut given = answers(&["f", "f"]);
        for at in 0..2 {
            asked["parts"][at]["functionCall"]["id"] = ["1", "2"][at].into();
            given["parts"][at]["functionResponse"]["id"] = ids[at].into();
        }
        [user("q"), asked, given]
    };
    row(
        "gemini-2.5-pro",
        &["V3"],
        "in the order of its calls",
        &with_ids(["2", "1"]),
        &with_ids(["1", "2"]),
    );
}

#[test]
fn shapes() {
    let with = |key: &str, value: Value| json!({"contents": [user("q")], key: value});
    let name = |name: &str| json!([{"functionDeclarations": [{"name": name}]}]);
    let cached = json!({"contents": [user("q")], "cachedContent": "cachedContents/x",
        "systemInstruction": {"parts": [{"text": "s"}]}});
    for (request, place) in [
        (with("tools", json!([{}])), "tools[0]"),
        (
            with("tools", name("")),
            "tools[0].function_declarations[0].name",
        ),
        (
            with("tools", name("9")),
            "tools[0].function_declarations[0].name",
        ),
        (
            with("tools", name(&"x".repeat(65))),
            "tools[0].function_declarations[0].name",
        ),
        (cached, "cached_content"),
    ] {
        let faults = validate(&request, &of("gemini-2.5-pro"));
        assert_eq!(faults.len(), 1, "{request} {faults:?}");
        assert_eq!(
            (faults[0].rule.name(), faults[0].place.as_str()),
            ("shape", place)
        );
    }
    for fine in [
        with("tools", name("read_file")),
        with("tools", json!([{"googleSearch": {}}])),
        with("cachedContent", json!("cachedContents/x")),
        with("systemInstruction", json!({"parts": [{"text": "s"}]})),
    ] {
        assert_eq!(validate(&fine, &of("gemini-2.5-pro")), [], "{fine}");
    }
    let mut list = asks(&["f"]);
    list["parts"][0]["functionCall"]["args"] = json!([1]);
    row(
        "gemini-3-pro",
        &["shape"],
        "(type.googleapis.com/google.protobuf.Struct)",
        &[user("q"), list, answers(&["f"])],
        &[user("q"), asks(&["f"]), answers(&["f"])],
    );
    let many = vec![json!({"role": "robot"}); 1000];
    let faults = validate(&json!({ "contents": many }), &of(""));
    assert_eq!(faults.len(), MAX_FAULTS);
}

/// JSON made of the keys and values that the validator looks for, in places they belong or not.
fn arbitrary_json() -> impl Strategy<Value = Value> {
    json_of(
        "contents role parts text functionCall function_call functionResponse function_response \
         name id args response thoughtSignature tools functionDeclarations systemInstruction \
         cachedContent inlineData",
        "user model f",
    )
}

/// Contents that are nearly right.
fn content() -> impl Strategy<Value = Value> {
    let part = prop_oneof![
        Just(json!({"text": "x"})),
        Just(json!({"functionCall": {"name": "f"}})),
        Just(json!({"functionResponse": {"name": "f"}})),
        arbitrary_json(),
    ];
    let role = prop_oneof![Just("user"), Just("model")];
    (role, proptest::collection::vec(part, 0..4))
        .prop_map(|(role, parts)| json!({"role": role, "parts": parts}))
}

proptest! {
    #[test]
    fn no_json_breaks_it(
        value in arbitrary_json(),
        contents in proptest::collection::vec(content(), 0..8),
    ) {
        for model in ["gemini-2.5-pro", "gemini-3-pro", "gemini-9"] {
            let _ = validate(&value, &of(model));
            let _ = validate(&json!([value]), &of(model));
            for fault in validate(&json!({ "contents": contents }), &of(model)) {
                let _ = refusal(&fault);
            }
        }
    }
}
