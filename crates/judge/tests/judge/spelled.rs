//! Misspelled requests that no reader accepts: their content is kept, only meaningless parts are
//! removed, and every change is reported with its place.

use plimsoll_judge::canonical::Rules;
use plimsoll_judge::canonical::{Reasoning, RepairedRequest, Target, repair_request};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::{anthropic, openai_responses};
use proptest::prelude::*;
use serde_json::{Value, json};

fn chat() -> Target {
    Target::Chat(Dialect::openai())
}

fn claude() -> Target {
    Target::Messages(anthropic::MessagesProfile::of_model("claude-sonnet-4-5"))
}

fn responses() -> Target {
    Target::Responses(openai_responses::ResponsesProfile::openai())
}

/// The list of the request that it is repaired to, after it was found to be no request.
#[track_caller]
fn repaired(list: &Value, target: &Target) -> (Value, Vec<String>) {
    let key = match target {
        Target::Responses(_) => "input",
        _ => "messages",
    };
    let mut request = json!({"model": "m", key: list});
    if key == "messages" {
        request["max_tokens"] = json!(100);
    }
    let RepairedRequest {
        request,
        repairs,
        faults,
    } = repair_request(&request.to_string(), target, Reasoning::Keep).unwrap();
    assert_eq!(faults, [], "{request}");
    assert!(!repairs.is_empty(), "{request}");
    let again = repair_request(&request, target, Reasoning::Keep).unwrap();
    assert_eq!(again.repairs, [], "{request}");
    assert_eq!(again.request, request);
    let after: Value = serde_json::from_str(&request).unwrap();
    let told = repairs.iter().map(ToString::to_string).collect();
    (after[key].clone(), told)
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

/// What is said in a message, whatever it is written in.
fn said(message: &Value) -> String {
    match &message["content"] {
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("|")
        }
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

#[test]
fn one_odd_part_does_not_cost_the_message() {
    for target in [chat(), claude(), responses()] {
        for (content, text) in [
            (
                json!([{"text": "important"}, {"type": "text", "text": "too"}]),
                "important|too",
            ),
            (
                json!([{"type": "text", "text": null}, {"type": "text", "text": "important"}]),
                "important",
            ),
            (json!([null, "important"]), "important"),
            (json!([{"type": "text", "text": 8431}]), "8431"),
            (json!([8431, {"type": "text", "text": "x"}]), "8431|x"),
            (json!({"type": "text", "text": "important"}), "important"),
            (json!({"port": 8431}), r#"{"port":8431}"#),
            (json!(8431), "8431"),
        ] {
            let (list, told) = repaired(&json!([user(content.clone())]), &target);
            assert_eq!(list.as_array().unwrap().len(), 1, "{list}");
            assert_eq!(said(&list[0]), text, "{content}: {told:?}");
        }
    }
    let (_, told) = repaired(
        &json!([
            user(json!("q")),
            user(json!([{"type": "text", "text": null}, {"type": "text", "text": "x"}]))
        ]),
        &chat(),
    );
    assert_eq!(
        told,
        ["messages[1].content[0]: left it out: it says nothing (shape)"]
    );
}

#[test]
fn parts_of_chats_stand_in_responses() {
    let url = "data:image/png;base64,AAAA";
    let content = json!([{"type": "input_text", "text": "what is this?"},
        {"type": "image_url", "image_url": {"url": url, "detail": "low"}},
        {"type": "file", "file": {"file_id": "file-1"}}, {"type": "question", "q": "?"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]);
    let (list, told) = repaired(&json!([user(content)]), &responses());
    assert_eq!(
        list[0]["content"],
        json!([{"type": "input_text", "text": "what is this?"},
            {"type": "input_image", "image_url": url, "detail": "low"},
            {"file_id": "file-1", "type": "input_file"},
            {"type": "input_text", "text": r#"{"type":"question","q":"?"}"#}])
    );
    assert_eq!(told.len(), 4, "{told:?}");
}

#[test]
fn what_a_tool_said_is_its_text() {
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let q = user(json!("q"));
    for (output, text) in [
        (json!({"port": 8431}), r#"{"port":8431}"#),
        (json!(null), ""),
        (json!(5), "5"),
    ] {
        let result = json!({"type": "function_call_output", "call_id": "a", "output": output});
        let (list, told) = repaired(&json!([q, call, result]), &responses());
        assert_eq!(list[2]["output"], text);
        assert!(told[0].starts_with("input[2].output: "), "{told:?}");
        assert_eq!(list[1], call);
    }
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    for (content, text) in [(json!(5), "5"), (json!({"port": 8431}), r#"{"port":8431}"#)] {
        let result = user(json!([{"type": "tool_result", "tool_use_id": "a", "content": content}]));
        let (list, told) = repaired(&json!([q, call, result]), &claude());
        assert_eq!(list[2]["content"][0]["content"], text);
        assert!(
            told[0].starts_with("messages[2].content[0].content: "),
            "{told:?}"
        );
    }
}

/// A history with one call, and a result that holds this.
fn returned(target: &Target, content: &Value) -> Value {
    let q = user(json!("q"));
    match target {
        Target::Chat(_) => {
            let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}});
            json!([q, {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c", "content": content}])
        }
        Target::Responses(_) => json!([q,
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": content}]),
        Target::Messages(_) => json!([q,
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
            user(json!([{"type": "tool_result", "tool_use_id": "c", "content": content}]))]),
    }
}

/// What the last result of a history says.
fn output(list: &Value, target: &Target) -> String {
    let last = list.as_array().unwrap().last().unwrap();
    said(&match target {
        Target::Chat(_) => last.clone(),
        Target::Responses(_) => json!({"content": last["output"]}),
        Target::Messages(_) => last["content"][0].clone(),
    })
}

#[test]
fn what_a_tool_returns_is_no_part_because_it_has_a_type() {
    for target in [chat(), claude(), responses()] {
        for content in [
            json!({"type": "success", "rows": [1, 2, 3]}),
            json!({"type": "error", "error": {"message": "no such row"}}),
            json!({"type": "text", "value": 8431}),
            json!({"type": "file", "name": "a.txt", "size": 3}),
            json!({"type": "image", "width": 640}),
            json!({"type": "document", "title": "t"}),
            json!({"type": "reasoning", "because": "x"}),
            json!({"type": "tool_use", "id": "x", "name": "g", "input": {}}),
        ] {
            let (list, told) = repaired(&returned(&target, &content), &target);
            assert_eq!(output(&list, &target), content.to_string(), "{told:?}");
            let two = json!([content, {"type": "text", "text": "and"}, content]);
            let (list, told) = repaired(&returned(&target, &two), &target);
            let all = format!("{content}|and|{content}");
            assert_eq!(output(&list, &target).replace('\n', "|"), all, "{told:?}");
        }
        // As MCP has it.
        let resource =
            json!({"type": "resource", "resource": {"uri": "file:///a", "text": "important"}});
        let (list, _) = repaired(&returned(&target, &json!([resource])), &target);
        assert_eq!(output(&list, &target), resource.to_string());
        // Bytes are not written out as a text.
        let bytes = json!([{"type": "text", "text": "see"},
            {"type": "resource", "resource": {"uri": "file:///a", "blob": "AAAA"}},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]);
        let (list, _) = repaired(&returned(&target, &bytes), &target);
        assert!(!list.to_string().contains("AAAA"), "{list}");
    }
}

#[test]
fn what_somebody_says_is_no_part_because_it_has_a_type() {
    for target in [chat(), claude(), responses()] {
        let question = json!({"type": "question", "q": "what is it?"});
        let (list, told) = repaired(&json!([user(question.clone())]), &target);
        assert_eq!(said(&list[0]), question.to_string(), "{told:?}");
        let answer = json!({"type": "answer", "a": 42});
        let history =
            json!([user(json!("q")), {"role": "assistant", "content": answer}, user(json!("r"))]);
        let (list, told) = repaired(&history, &target);
        assert_eq!(said(&list[1]), answer.to_string(), "{told:?}");
        // What a model thinks is not said aloud.
        let thinking = json!({"type": "reasoning", "text": "secret"});
        let history =
            json!([user(json!("q")), {"role": "assistant", "content": thinking}, user(json!("r"))]);
        let (list, _) = repaired(&history, &target);
        assert!(!list.to_string().contains("secret"), "{list}");
    }
}

#[test]
fn arguments_are_what_they_say() {
    let q = user(json!("q"));
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": {"x": 1}});
    let result = json!({"type": "function_call_output", "call_id": "a", "output": "r"});
    let (list, _) = repaired(&json!([q, call, result]), &responses());
    assert_eq!(list[1]["arguments"], r#"{"x":1}"#);
    assert_eq!(list[2], result);
    let call = json!({"role": "assistant", "content": "keep me", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": 5}}]});
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "r"});
    let (list, _) = repaired(&json!([q, call, result]), &chat());
    assert_eq!(list[1]["content"], "keep me");
    assert_eq!(list[1]["tool_calls"][0]["function"]["arguments"], "5");
    assert_eq!(list[2], result);
    // An object in a text is that object.
    let call = json!({"role": "assistant", "content": [
        {"type": "tool_use", "id": "a", "name": "f", "input": "{\"x\":1}"}]});
    let result = user(json!([{"type": "tool_result", "tool_use_id": "a", "content": "r"}]));
    let (list, told) = repaired(&json!([q, call, result]), &claude());
    assert_eq!(list[1]["content"][0]["input"], json!({"x": 1}));
    assert_eq!(
        told,
        ["messages[1].content[0].input: took the object out of its text (shape)"]
    );
    assert_eq!(list[2], result);
}

#[test]
fn calls_and_results_without_an_id_find_each_other() {
    let q = user(json!("q"));
    let call = |id: Value| {
        let mut call = json!({"type": "function", "function": {"name": "f", "arguments": "{}"}});
        if !id.is_null() {
            call["id"] = id;
        }
        call
    };
    let asks =
        |calls: &[Value]| json!({"role": "assistant", "content": "keep me", "tool_calls": calls});
    let result = |id: Value, text: &str| {
        let mut result = json!({"role": "tool", "content": text});
        if !id.is_null() {
            result["tool_call_id"] = id;
        }
        result
    };
    for (list, ids) in [
        // Nobody has one.
        (
            json!([
                q,
                asks(&[call(json!(null)), call(json!(null))]),
                result(json!(null), "1"),
                result(json!(null), "2")
            ]),
            ["call_1_0", "call_1_1"],
        ),
        // Only the results have.
        (
            json!([
                q,
                asks(&[call(json!(null)), call(json!(null))]),
                result(json!("x"), "1"),
                result(json!("y"), "2")
            ]),
            ["x", "y"],
        ),
        // Only the calls have, and one result.
        (
            json!([
                q,
                asks(&[call(json!("x")), call(json!("y"))]),
                result(json!("x"), "1"),
                result(json!(null), "2")
            ]),
            ["x", "y"],
        ),
        // Numbers.
        (
            json!([
                q,
                asks(&[call(json!(1)), call(json!(2))]),
                result(json!(1), "1"),
                result(json!(2), "2")
            ]),
            ["1", "2"],
        ),
    ] {
        let (after, told) = repaired(&list, &chat());
        let calls = after[1]["tool_calls"].as_array().unwrap();
        assert_eq!(after[1]["content"], "keep me");
        assert_eq!([&calls[0]["id"], &calls[1]["id"]], ids, "{told:?}");
        for (at, id) in ids.iter().enumerate() {
            assert_eq!(after[at + 2]["tool_call_id"], *id, "{told:?}");
            assert_eq!(after[at + 2]["content"], (at + 1).to_string());
        }
    }
    let call = json!({"role": "assistant", "content": [{"type": "text", "text": "keep me"},
        {"type": "tool_use", "name": "f", "input": {}}]});
    let result = user(json!([{"type": "tool_result", "content": "r"}]));
    let (list, told) = repaired(&json!([q, call, result]), &claude());
    assert_eq!(list[1]["content"][0]["text"], "keep me");
    assert_eq!(
        list[1]["content"][1]["id"],
        list[2]["content"][0]["tool_use_id"]
    );
    assert_eq!(list[2]["content"][0]["content"], "r");
    assert_eq!(told.len(), 2, "{told:?}");
    let call = json!({"type": "function_call", "name": "f", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "output": "r"});
    let (list, _) = repaired(&json!([q, call, result]), &responses());
    assert_eq!(list[1]["call_id"], list[2]["call_id"]);
    assert_eq!(list[2]["output"], "r");
}

#[test]
fn one_id_is_not_that_of_two_calls() {
    let q = user(json!("q"));
    let chats = |ids: &[Option<&str>]| {
        let call = json!({"type": "function", "function": {"name": "f", "arguments": "{}"}});
        let mut list = vec![
            q.clone(),
            json!({"role": "assistant", "content": "keep me", "tool_calls": vec![call; ids.len()]}),
        ];
        list.extend(ids.iter().enumerate().map(|(at, id)| {
            let mut result = json!({"role": "tool", "content": at.to_string()});
            if let Some(id) = id {
                result["tool_call_id"] = json!(id);
            }
            result
        }));
        Value::from(list)
    };
    for (ids, all) in [
        (&[Some("x"), Some("x")][..], &["x", "call_1_1"][..]),
        (
            &[Some("x"), Some("x"), Some("x")],
            &["x", "call_1_1", "call_1_2"],
        ),
        (&[Some("x"), Some("x"), Some("y")], &["x", "call_1_1", "y"]),
        (&[Some("x"), None, Some("y")], &["x", "call_1_1", "y"]),
        (
            &[None, Some("x"), Some("x")],
            &["call_1_0", "x", "call_1_2"],
        ),
    ] {
        let (list, told) = repaired(&chats(ids), &chat());
        let list = list.as_array().unwrap();
        let calls = list[1]["tool_calls"].as_array().unwrap();
        assert_eq!(calls.len(), ids.len(), "{told:?}");
        assert_eq!(list.len(), ids.len() + 2, "{told:?}");
        for (at, id) in all.iter().enumerate() {
            assert_eq!(calls[at]["id"], *id, "{ids:?} {told:?}");
            assert_eq!(list[at + 2]["tool_call_id"], *id, "{ids:?} {told:?}");
            assert_eq!(list[at + 2]["content"], at.to_string());
        }
    }
    let call = json!({"type": "function_call", "name": "f", "arguments": "{}"});
    let output =
        |said: &str| json!({"type": "function_call_output", "call_id": "x", "output": said});
    let (list, _) = repaired(
        &json!([q, call, call, output("1"), output("2")]),
        &responses(),
    );
    let ids: Vec<&Value> = list.as_array().unwrap()[1..]
        .iter()
        .map(|item| &item["call_id"])
        .collect();
    assert_eq!(ids.len(), 4, "{list}");
    assert_eq!(ids[0], "x");
    assert_ne!(ids[1], "x");
    assert_eq!((ids[0], ids[1]), (ids[2], ids[3]));
    assert_eq!(
        (&list[3]["output"], &list[4]["output"]),
        (&json!("1"), &json!("2"))
    );
    let call = json!({"type": "tool_use", "name": "f", "input": {}});
    let result = |said: &str| json!({"type": "tool_result", "tool_use_id": "x", "content": said});
    let list = json!([q, {"role": "assistant", "content": [call, call]}, user(json!([result("1"), result("2")]))]);
    let (list, _) = repaired(&list, &claude());
    let (calls, results) = (&list[1]["content"], &list[2]["content"]);
    assert_eq!(calls[0]["id"], "x");
    assert_ne!(calls[1]["id"], "x");
    for (at, said) in ["1", "2"].iter().enumerate() {
        assert_eq!(calls[at]["id"], results[at]["tool_use_id"], "{list}");
        assert_eq!(results[at]["content"], *said, "{list}");
    }
}

#[test]
fn a_result_in_the_words_of_chats_is_one() {
    let q = user(json!("q"));
    let result = json!({"role": "tool", "tool_call_id": "a", "content": "r"});
    let call = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]});
    let (list, _) = repaired(&json!([q, call, result]), &claude());
    let expected = json!({"type": "tool_result", "tool_use_id": "a", "content": "r"});
    assert_eq!(list[2], user(json!([expected])));
    let call = json!({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"});
    let (list, _) = repaired(&json!([q, call, result]), &responses());
    assert_eq!(
        list[2],
        json!({"type": "function_call_output", "call_id": "a", "output": "r"})
    );
}

#[test]
fn what_is_no_message_is_told_where_it_stands() {
    let list = json!([user(json!("q")), {"role": 5, "content": "x"}]);
    let (_, told) = repaired(&list, &chat());
    assert_eq!(
        told,
        [
            "messages[1]: it is no message (messages[1].role: expected string, got number); left it out"
        ]
    );
}

/// A value of any kind where another is expected.
fn odd() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!(5)),
        Just(json!(true)),
        Just(json!("x")),
        Just(json!("")),
        Just(json!({})),
        Just(json!([])),
        Just(json!({"port": 8431})),
        Just(json!("{\"x\":1}")),
        Just(json!({"type": "text", "text": "y"})),
        Just(json!({"text": "y"})),
        Just(json!({"type": "text", "text": null})),
        Just(json!({"type": "image_url", "image_url": {"url": "https://a/b.png"}})),
        Just(json!({"type": "image_url"})),
        Just(json!({"type": "success", "rows": [1]})),
        Just(json!({"type": "text", "value": 1})),
        Just(json!({"type": "file", "name": "a.txt"})),
        Just(json!({"type": "refusal", "refusal": "no"})),
        Just(json!({"type": "reasoning", "text": "t"})),
        Just(json!({"type": "input_image", "image_url": "https://a/b.png"})),
        Just(json!({"type": "image", "data": "AA==", "mimeType": "image/png"})),
        Just(json!({"type": "audio", "data": "AA=="})),
        Just(json!({"type": "resource", "resource": {"uri": "u", "text": "t"}})),
        Just(json!({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "row"}]})),
        Just(json!({"type": "tool_use", "name": "f", "input": "{}"})),
        Just(json!({"type": "tool_use", "id": "a", "name": 5})),
        Just(json!({"type": "tool_result", "content": 5})),
        Just(json!({"type": "tool_result", "tool_use_id": "a", "content": {"k": [1]}})),
        Just(json!({"id": "a", "function": {"name": "f", "arguments": 7}})),
        Just(json!({"function": {"name": "f"}})),
        Just(json!({"name": "f", "arguments": {"x": 1}})),
        Just(json!({"type": "custom", "id": 9, "custom": {"input": "ls"}})),
    ];
    let list = proptest::collection::vec(leaf.clone(), 0..4).prop_map(Value::from);
    prop_oneof![leaf, list]
}

/// A message or an item of which anything may be odd.
fn entry() -> impl Strategy<Value = Value> {
    let role = prop_oneof![
        4 => Just(json!("user")),
        4 => Just(json!("assistant")),
        3 => Just(json!("tool")),
        1 => Just(json!("system")),
        1 => Just(Value::Null),
    ];
    let kind = prop_oneof![
        4 => Just(Value::Null),
        1 => Just(json!("message")),
        2 => Just(json!("function_call")),
        2 => Just(json!("function_call_output")),
        1 => Just(json!("custom_tool_call")),
    ];
    let keys = prop_oneof![
        Just("content"),
        Just("tool_calls"),
        Just("tool_call_id"),
        Just("call_id"),
        Just("name"),
        Just("arguments"),
        Just("input"),
        Just("output"),
    ];
    let rest = proptest::collection::vec((keys, odd()), 0..5);
    (role, kind, rest).prop_map(|(role, kind, rest)| {
        let mut entry = serde_json::Map::new();
        for (key, value) in [("role", role), ("type", kind)] {
            if !value.is_null() {
                entry.insert(key.into(), value);
            }
        }
        entry.extend(rest.into_iter().map(|(key, value)| (key.to_owned(), value)));
        Value::Object(entry)
    })
}

proptest! {
    /// Whatever is odd in it, what comes of a request is valid, the same each time, and at rest.
    #[test]
    fn whatever_is_odd_is_mended_once(list in proptest::collection::vec(prop_oneof![9 => entry(), 1 => odd()], 0..6)) {
        for target in [chat(), Target::Chat(Dialect::named("mistral").unwrap()), claude(), responses()] {
            let key = match target {
                Target::Responses(_) => "input",
                _ => "messages",
            };
            let mut request = json!({"model": "m", key: list});
            if matches!(target, Target::Messages(_)) {
                request["max_tokens"] = json!(100);
            }
            let text = request.to_string();
            let one = repair_request(&text, &target, Reasoning::Keep).unwrap();
            prop_assert_eq!(&one.faults, &vec![], "{}\n{}", text, one.request);
            prop_assert_eq!(&repair_request(&text, &target, Reasoning::Keep).unwrap(), &one);
            let again = repair_request(&one.request, &target, Reasoning::Keep).unwrap();
            prop_assert_eq!(&again.repairs, &vec![], "{}\n{}\n{}", text, one.request, again.request);
            prop_assert_eq!(&again.request, &one.request);
            let after: Value = serde_json::from_str(&one.request).unwrap();
            prop_assert_eq!(target.validate(&after), vec![]);
        }
    }
}
