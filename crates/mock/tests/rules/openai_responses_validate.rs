//! The validator of OpenAI Responses: a failing and a passing request for each rule, with the real
//! API's messages. No JSON makes it panic.

use plimsoll_mock::rules::MAX_FAULTS;
use plimsoll_mock::rules::openai_responses::{refusal, tied, untied, validate};
use plimsoll_testkit::json_of;
use plimsoll_wire::Effort;
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile};
use plimsoll_wire::overflow::{Verdict, classify};
use proptest::prelude::*;
use serde_json::{Value, json};

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant",
        "content": [{"type": "output_text", "text": text}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "done"})
}

fn custom(id: &str) -> Value {
    json!({"type": "custom_tool_call", "call_id": id, "name": "f", "input": "x"})
}

fn custom_output(id: &str) -> Value {
    json!({"type": "custom_tool_call_output", "call_id": id, "output": "done"})
}

fn thought() -> Value {
    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
}

fn with(mut item: Value, key: &str, value: impl Into<Value>) -> Value {
    item[key] = value.into();
    item
}

fn without(mut item: Value, key: &str) -> Value {
    item.as_object_mut().unwrap().shift_remove(key);
    item
}

fn request(input: &[Value]) -> Value {
    json!({"model": "gpt-5", "input": input, "store": false,
        "include": ["reasoning.encrypted_content"]})
}

fn rules(request: &Value, profile: &ResponsesProfile) -> Vec<String> {
    let faults = validate(request, profile);
    faults.iter().map(|fault| fault.rule.to_string()).collect()
}

/// Breaks exactly these rules, the first in these words; the second list breaks none.
#[track_caller]
fn row(broken: &[&str], words: &str, bad: &[Value], good: &[Value]) {
    let openai = ResponsesProfile::openai();
    let faults = validate(&request(bad), &openai);
    let found: Vec<String> = faults.iter().map(|fault| fault.rule.to_string()).collect();
    assert_eq!(found, broken, "{bad:?}\n{faults:?}");
    assert!(faults[0].words.contains(words), "{}", faults[0].words);
    assert_eq!(rules(&request(good), &openai), [""; 0], "{good:?}");
}

#[test]
fn calls_and_outputs() {
    let good = [
        user("q"),
        thought(),
        call("a"),
        call("b"),
        output("a"),
        output("b"),
        said("x"),
    ];
    row(
        &["OR1"],
        "No tool output found for function call a.",
        &[user("q"), call("a")],
        &good,
    );
    row(
        &["OR1"],
        "No tool output found for function call a.",
        &[user("q"), call("a"), user("stop")],
        &good,
    );
    row(
        &["OR1", "V4"],
        "No tool output found for function call b.",
        &[user("q"), call("a"), call("b"), output("a")],
        &good,
    );
    row(
        &["OR2"],
        "No tool call found for function call output with call_id a.",
        &[user("q"), output("a")],
        &good,
    );
    row(
        &["OR2", "OR1"],
        "No tool call found for function call output with call_id a.",
        &[user("q"), output("a"), call("a")],
        &good,
    );
    row(
        &["V3"],
        "more than one result",
        &[user("q"), call("a"), output("a"), output("a")],
        &good,
    );
    row(
        &["V3"],
        "Duplicate 'call_id': a",
        &[user("q"), call("a"), call("a"), output("a"), output("a")],
        &good,
    );
    // In a later turn as well.
    row(
        &["V3"],
        "Duplicate 'call_id': a",
        &[
            user("q"),
            call("a"),
            output("a"),
            user("q"),
            call("a"),
            output("a"),
        ],
        &good,
    );
    // Pairs are known by their ids: in any order, with anything between.
    for list in [
        vec![user("q"), call("a"), call("b"), output("b"), output("a")],
        vec![user("q"), call("a"), user("hm"), output("a")],
        vec![user("q"), call("a"), said("hm"), output("a")],
    ] {
        assert_eq!(
            rules(&request(&list), &ResponsesProfile::openai()),
            [""; 0],
            "{list:?}"
        );
    }
    // An id that is used again names two calls, each of which needs its result.
    row(
        &["V3", "OR1"],
        "Duplicate 'call_id': a",
        &[user("q"), call("a"), output("a"), call("a")],
        &good,
    );
}

#[test]
fn other_calls_are_paired_too() {
    row(
        &["OR1"],
        "No tool output found for custom tool call a.",
        &[user("q"), custom("a")],
        &[user("q"), custom("a"), custom_output("a")],
    );
    row(
        &["OR2", "OR1"],
        "No tool call found for function call output with call_id a.",
        &[user("q"), custom("a"), output("a")],
        &[user("q"), custom("a"), custom_output("a")],
    );
    let shell = json!({"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}});
    let shown = json!({"type": "shell_call_output", "call_id": "a", "output": []});
    row(
        &["OR1"],
        "No tool output found for shell call a.",
        &[user("q"), shell.clone()],
        &[user("q"), shell, shown],
    );
    // What the server runs by itself waits for nobody.
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    assert_eq!(
        rules(
            &request(&[user("q"), search, said("x")]),
            &ResponsesProfile::openai()
        ),
        [""; 0]
    );
}

#[test]
fn reasoning_is_followed_by_what_came_of_it() {
    let words = "Item 'rs_1' of type 'reasoning' was provided without its required following item.";
    let good = [
        user("q"),
        thought(),
        call("a"),
        output("a"),
        thought(),
        said("x"),
    ];
    row(&["OR3"], words, &[user("q"), thought()], &good);
    row(
        &["OR3"],
        words,
        &[user("q"), thought(), user("stop")],
        &good,
    );
    row(
        &["OR3"],
        words,
        &[user("q"), call("a"), thought(), output("a")],
        &good,
    );
    // Two in a row have one following item.
    row(
        &["OR3", "OR3"],
        words,
        &[user("q"), thought(), thought(), user("r")],
        &[user("q"), thought(), thought(), said("x")],
    );
}

/// OR4. An id alone says nothing of reasoning: who made the item knows.
#[test]
fn what_came_of_reasoning_has_it_before_it() {
    let item = with(call("a"), "id", "fc_1");
    let message = with(said("x"), "id", "msg_1");
    let openai = ResponsesProfile::openai();
    let alone = [user("q"), item.clone(), output("a"), message.clone()];
    assert_eq!(rules(&request(&alone), &openai), [""; 0]);

    let made = [thought(), message.clone(), item.clone()];
    let ties = tied(&made);
    let words = |list: &[Value]| untied(&request(list), &ties).map(|fault| fault.words);
    let fc = "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' \
              item: 'rs_1'.";
    let msg = "Item 'msg_1' of type 'message' was provided without its required 'reasoning' item: \
               'rs_1'.";
    let (fc, msg) = (Some(fc.to_owned()), Some(msg.to_owned()));
    assert_eq!(words(&[user("q"), item.clone(), output("a")]), fc);
    assert_eq!(words(&[user("q"), message.clone()]), msg);
    // That of an earlier turn is not its own.
    let earlier = [
        user("q"),
        thought(),
        said("x"),
        user("r"),
        item.clone(),
        output("a"),
    ];
    assert_eq!(words(&earlier), fc);
    for good in [
        vec![user("q"), thought(), message, item, output("a")],
        // Without its id it says nothing of reasoning.
        vec![user("q"), call("a"), output("a")],
        vec![user("q"), with(call("a"), "id", "fc_2"), output("a")],
    ] {
        assert_eq!(words(&good), None, "{good:?}");
    }
    // Nothing was reasoned before it.
    assert!(tied(&alone).is_empty());
}

/// Whatever the order, a long input is judged in one go.
#[test]
fn a_long_input_is_judged_quickly() {
    let many = 40_000;
    let mut list = vec![call("a")];
    list.extend(vec![user("hm"); many]);
    list.push(output("a"));
    list.extend(vec![thought(); many]);
    list.push(said("x"));
    list.extend((0..many).map(|at| call(&format!("c{at}"))));
    list.extend((0..many).rev().map(|at| output(&format!("c{at}"))));
    assert_eq!(rules(&request(&list), &ResponsesProfile::openai()), [""; 0]);
}

#[test]
fn where_nothing_is_stored_reasoning_brings_its_content() {
    let words = "Item with id 'rs_1' not found. Items are not persisted when `store` is set to \
                 false.";
    let empty = without(thought(), "encrypted_content");
    row(
        &["OR4"],
        words,
        &[user("q"), empty.clone(), said("x")],
        &[user("q"), thought(), said("x")],
    );
    row(
        &["OR4"],
        words,
        &[
            user("q"),
            json!({"type": "item_reference", "id": "rs_1"}),
            said("x"),
        ],
        &[user("q"), thought(), said("x")],
    );
    let stored = json!({"model": "m", "input": [user("q"), empty.clone(), said("x")]});
    assert_eq!(rules(&stored, &ResponsesProfile::openai()), [""; 0]);
    // A server that gives reasoning in the open.
    let open = json!({"model": "m", "store": false, "input": [user("q"), empty, said("x")]});
    assert_eq!(rules(&open, &ResponsesProfile::compatible()), [""; 0]);
}

#[test]
fn ids_begin_as_their_kind_and_are_short() {
    let turn = |item: Value| [user("q"), thought(), item, output("a")];
    let good = turn(with(call("a"), "id", "fc_1"));
    row(
        &["OR5"],
        "Invalid 'input[2].id': 'call_1'. Expected an ID that begins with 'fc'.",
        &turn(with(call("a"), "id", "call_1")),
        &good,
    );
    let long = format!("fc_{}", "x".repeat(450));
    row(
        &["OR5"],
        "Invalid 'input[2].id': string too long. Expected a string with maximum length 64, but \
         got a string with length 453 instead.",
        &turn(with(call("a"), "id", long.clone())),
        &good,
    );
    row(
        &["OR5"],
        "Expected an ID that begins with 'rs'",
        &[user("q"), with(thought(), "id", "x"), said("x")],
        &[user("q"), without(thought(), "id"), said("x")],
    );
    row(
        &["OR5"],
        "Expected an ID that begins with 'msg'",
        &[user("q"), thought(), with(said("x"), "id", "x")],
        &[
            with(user("q"), "id", "mine"),
            thought(),
            with(said("x"), "id", "msg_x"),
        ],
    );
    row(
        &["OR5"],
        "Expected an ID that begins with 'ctc'",
        &[
            user("q"),
            thought(),
            with(custom("a"), "id", "fc_1"),
            custom_output("a"),
        ],
        &[
            user("q"),
            thought(),
            with(custom("a"), "id", "ctc_1"),
            custom_output("a"),
        ],
    );
    row(
        &["OR5", "OR5"],
        "Invalid 'input[1].call_id': string too long.",
        &[user("q"), call(&long), output(&long)],
        &[user("q"), call("a"), output("a")],
    );
    row(
        &["OR5", "OR5"],
        "Invalid 'input[1].call_id': empty string.",
        &[user("q"), call(""), output("")],
        &[user("q"), call("a"), output("a")],
    );
}

#[test]
fn a_compaction_is_whole() {
    let whole = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"});
    row(
        &["OR6"],
        "Missing required parameter: 'input[0].encrypted_content'.",
        &[without(whole.clone(), "encrypted_content"), user("q")],
        &[whole, user("q")],
    );
}

#[test]
fn items_have_their_shape() {
    let good = [user("q"), call("a"), output("a")];
    let rows: [(&str, Value); 14] = [
        (
            "Invalid value: 'tool'. Supported values are: 'assistant'",
            json!({"role": "tool", "content": "x"}),
        ),
        (
            "Missing required parameter: 'input[1].content'.",
            json!({"role": "user"}),
        ),
        (
            "expected one of an array of objects or string, but got null",
            json!({"role": "user", "content": null}),
        ),
        (
            "Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
            json!({"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
        ),
        (
            "Invalid value: 'output_text'. Supported values are: 'input_text', 'input_image'",
            json!({"role": "user", "content": [{"type": "output_text", "text": "x"}]}),
        ),
        (
            "Missing required parameter: 'input[1].content[0].text'.",
            json!({"role": "user", "content": [{"type": "input_text"}]}),
        ),
        (
            "exactly one of 'image_url' and 'file_id'",
            json!({"role": "user", "content": [{"type": "input_image", "detail": "low"}]}),
        ),
        ("Missing required parameter: 'input[1].type'.", json!({})),
        (
            "Invalid value: 'tool_use'. Supported values are: 'message'",
            json!({"type": "tool_use"}),
        ),
        ("expected an input item, but got a string", json!("x")),
        (
            "Invalid type for 'input[1].arguments': expected a string, but got an object instead.",
            with(call("b"), "arguments", json!({})),
        ),
        (
            "Missing required parameter: 'input[1].name'.",
            without(call("b"), "name"),
        ),
        (
            "the pattern '^[a-zA-Z0-9_-]+$'",
            with(call("b"), "name", "fs.read"),
        ),
        (
            "Missing required parameter: 'input[1].summary'.",
            without(thought(), "summary"),
        ),
    ];
    for (words, bad) in rows {
        let faults = validate(
            &request(&[user("q"), bad.clone()]),
            &ResponsesProfile::openai(),
        );
        assert_eq!(faults[0].rule.to_string(), "shape", "{bad} {faults:?}");
        assert!(faults[0].words.contains(words), "{}", faults[0].words);
        assert_eq!(rules(&request(&good), &ResponsesProfile::openai()), [""; 0]);
    }
    let image = json!([{"type": "input_image", "image_url": "https://x/y.png"}]);
    let shown = with(output("a"), "output", image);
    row(
        &["shape"],
        "Invalid type for 'input[2].output'",
        &[
            user("q"),
            call("a"),
            with(output("a"), "output", json!({"x": 1})),
        ],
        &[user("q"), call("a"), shown],
    );
    for input in [json!(null), json!([])] {
        let faults = validate(
            &json!({"model": "m", "input": input}),
            &ResponsesProfile::openai(),
        );
        assert!(
            faults[0].words.starts_with("One of \"input\" or"),
            "{faults:?}"
        );
    }
    let text = json!({"model": "m", "input": "hi", "store": false});
    assert_eq!(rules(&text, &ResponsesProfile::openai()), [""; 0]);
    let number = json!({"model": "m", "input": 5});
    assert!(
        validate(&number, &ResponsesProfile::openai())[0]
            .words
            .contains("but got a number")
    );
}

#[test]
fn settings_are_what_the_model_takes() {
    let newer = ResponsesProfile {
        efforts: vec![Effort::None, Effort::Low, Effort::Medium, Effort::High],
        ..ResponsesProfile::openai()
    };
    let plain = ResponsesProfile::plain();
    let fits =
        json!({"type": "object", "additionalProperties": false, "properties": {}, "required": []});
    let loose = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let tool = |schema: &Value, strict: bool| json!([{"type": "function", "name": "f", "parameters": schema, "strict": strict}]);
    let format = |schema: &Value| json!({"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": true}});
    let rows: Vec<(&ResponsesProfile, &str, Value, Value, &str)> = vec![
        (
            &newer,
            "max_output_tokens",
            json!(5),
            json!(16),
            "integer below minimum value. Expected a value >= 16, but got 5 instead.",
        ),
        (
            &newer,
            "reasoning",
            json!({"effort": "minimal"}),
            json!({"effort": "none"}),
            "Unsupported value: 'minimal' is not supported with the 'm' model. Supported values \
             are: 'none', 'low', 'medium', and 'high'.",
        ),
        (
            &newer,
            "reasoning",
            json!({"effort": "hard"}),
            json!({"effort": "high", "summary": "auto"}),
            "Invalid value: 'hard'.",
        ),
        (
            &newer,
            "temperature",
            json!(0.5),
            json!(null),
            "Unsupported parameter: 'temperature' is not supported with this model.",
        ),
        (
            &plain,
            "temperature",
            json!(3),
            json!(2),
            "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 3 \
             instead.",
        ),
        (
            &newer,
            "include",
            json!(["zzz"]),
            json!(["reasoning.encrypted_content"]),
            "Invalid value: 'zzz'. Supported values are: 'file_search_call.results'",
        ),
        (
            &newer,
            "truncation",
            json!("zzz"),
            json!("auto"),
            "Invalid value: 'zzz'. Supported values are: 'auto' and 'disabled'.",
        ),
        (
            &newer,
            "prompt_cache_key",
            json!("k".repeat(65)),
            json!("k".repeat(64)),
            "string too long",
        ),
        (
            &newer,
            "tools",
            tool(&json!({"type": "string"}), false),
            tool(&loose, false),
            "Invalid schema for function 'f': schema must be a JSON Schema of 'type: \"object\"', \
             got 'type: \"string\"'.",
        ),
        (
            &newer,
            "tools",
            tool(&json!({"type": "object"}), false),
            tool(&loose, false),
            "object schema missing properties",
        ),
        (
            &newer,
            "tools",
            tool(&loose, true),
            tool(&fits, true),
            "'additionalProperties' is required to be supplied and to be false.",
        ),
        (
            &newer,
            "tools",
            json!([{"type": "function", "name": "a.b"}]),
            json!([{"type": "web_search"}]),
            "string does not match pattern",
        ),
        (
            &newer,
            "tools",
            json!([{"type": "function"}]),
            json!([{"type": "custom", "name": "x"}]),
            "Missing required parameter: 'tools[0].name'.",
        ),
        (
            &newer,
            "text",
            format(&loose),
            format(&fits),
            "Invalid schema for response_format 'answer': In context=()",
        ),
        (
            &newer,
            "text",
            json!({"format": {"type": "json_schema"}}),
            json!({"format": {"type": "text"}}),
            "Missing required parameter: 'text.format.name'.",
        ),
        (
            &newer,
            "tool_choice",
            json!({"type": "function", "name": "g"}),
            json!("none"),
            "Tool choice 'g' not found in 'tools' parameter.",
        ),
        (
            &newer,
            "model",
            json!(null),
            json!("m"),
            "Missing required parameter: 'model'.",
        ),
        (
            &newer,
            "seed",
            json!(1),
            json!(null),
            "Unknown parameter: 'seed'.",
        ),
        (
            &newer,
            "max_tokens",
            json!(100),
            json!(null),
            "has moved to 'max_output_tokens'",
        ),
    ];
    for (profile, key, bad, good, words) in rows {
        let request = |value: Value| {
            let request = json!({"model": "m", "input": "q", "store": false});
            match value {
                Value::Null if key != "model" => request,
                value => with(request, key, value),
            }
        };
        let faults = validate(&request(bad.clone()), profile);
        assert_eq!(faults.len(), 1, "{key} {bad} {faults:?}");
        assert!(faults[0].words.contains(words), "{}", faults[0].words);
        assert_eq!(rules(&request(good), profile), [""; 0], "{key}");
    }
    let asked = json!({"model": "m", "input": "q", "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"}});
    let faults = validate(&asked, &ResponsesProfile::plain());
    let words: Vec<&str> = faults.iter().map(|fault| fault.words.as_str()).collect();
    assert_eq!(
        words,
        [
            "Encrypted content is not supported with this model.",
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
        ]
    );
    assert_eq!(rules(&asked, &ResponsesProfile::openai()), [""; 0]);
    let warm = json!({"model": "m", "input": "q", "temperature": 0.5});
    assert_eq!(rules(&warm, &ResponsesProfile::plain()), [""; 0]);
    // A model that can do without thinking is sampled while it does.
    let newer = ResponsesProfile {
        efforts: vec![Effort::None, Effort::Low],
        ..ResponsesProfile::openai()
    };
    for key in ["temperature", "top_p"] {
        let asked = |effort: &str| json!({"model": "m", "input": "q", key: 0.5, "reasoning": {"effort": effort}});
        assert_eq!(rules(&asked("none"), &newer), [""; 0], "{key}");
        assert_eq!(rules(&asked("low"), &newer), ["shape"], "{key}");
        let unsaid = json!({"model": "m", "input": "q", key: 0.5});
        assert_eq!(
            rules(&unsaid, &ResponsesProfile::openai()),
            ["shape"],
            "{key}"
        );
    }
    assert!(ResponsesProfile::plain().sampling);
    assert_eq!(ResponsesProfile::plain().reasoning, ReasoningItems::None);
}

#[test]
fn a_choice_names_a_tool_or_the_server_of_one() {
    let asked = |choice: Value| {
        json!({"model": "m", "input": "q", "tool_choice": choice, "tools": [
            {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}},
            {"type": "mcp", "server_label": "deep", "server_url": "https://mcp.example/mcp"}]})
    };
    for choice in [
        json!("required"),
        json!({"type": "function", "name": "f"}),
        json!({"type": "mcp", "server_label": "deep", "name": "ask"}),
        json!({"type": "mcp", "server_label": "deep"}),
    ] {
        assert_eq!(
            rules(&asked(choice.clone()), &ResponsesProfile::openai()),
            [""; 0],
            "{choice}"
        );
    }
    for choice in [
        json!({"type": "function", "name": "g"}),
        json!({"type": "mcp", "server_label": "other", "name": "ask"}),
    ] {
        assert_eq!(
            rules(&asked(choice.clone()), &ResponsesProfile::openai()),
            ["shape"],
            "{choice}"
        );
    }
}

#[test]
fn a_refusal_is_in_the_real_form_and_is_understood() {
    let openai = ResponsesProfile::openai();
    for (input, status, param, code) in [
        (vec![user("q"), call("a")], 400, "input", Value::Null),
        (vec![user("q"), thought()], 400, "input", Value::Null),
        (
            vec![
                user("q"),
                without(thought(), "encrypted_content"),
                said("x"),
            ],
            404,
            "input",
            Value::Null,
        ),
        (
            vec![user("q"), thought(), with(said("x"), "id", "x")],
            400,
            "input[2].id",
            json!("invalid_value"),
        ),
        (
            vec![user("q"), call(&"a".repeat(65)), output(&"a".repeat(65))],
            400,
            "input[1].call_id",
            json!("string_above_max_length"),
        ),
        (
            vec![json!({"role": "user"})],
            400,
            "input[0].content",
            json!("missing_required_parameter"),
        ),
    ] {
        let fault = validate(&request(&input), &openai).remove(0);
        let (got, body) = refusal(&fault);
        assert_eq!(
            (got, &body["error"]["param"]),
            (status, &json!(param)),
            "{body}"
        );
        assert_eq!(body["error"]["code"], code, "{body}");
        assert_eq!(body["error"]["type"], "invalid_request_error");
        // The same request fails again, whatever the status is.
        let verdict = classify(Some(status), &body.to_string());
        assert_eq!(verdict, Verdict::Invalid, "{body}");
        // It may come from a proxy that has lost the status.
        if param == "input" {
            assert_eq!(
                classify(None, &body.to_string()),
                Verdict::Invalid,
                "{body}"
            );
        }
    }
}

#[test]
fn faults_are_bounded() {
    let input = vec![json!({"role": "tool"}); 1000];
    assert_eq!(
        validate(&json!(input), &ResponsesProfile::openai()).len(),
        MAX_FAULTS
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    json_of(
        "type role content input call_id id name arguments output summary encrypted_content \
         tools parameters properties text format schema reasoning effort items strict x",
        "message user assistant reasoning function_call function_call_output custom_tool_call \
         input_text output_text compaction item_reference object function json_schema \
         local_shell_call fc_1 a",
    )
}

proptest! {
    #[test]
    fn no_json_breaks_it(value in any_json(), input in prop::collection::vec(any_json(), 0..6)) {
        for profile in [ResponsesProfile::openai(), ResponsesProfile::plain(), ResponsesProfile::compatible()] {
            let _ = validate(&value, &profile);
            for fault in validate(&json!({"input": input, "tools": [value]}), &profile) {
                let _ = refusal(&fault);
            }
        }
    }
}
