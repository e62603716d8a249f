//! `plimsoll compact` on the three protocols, for a user whose session has died: the same request
//! is returned, smaller, and is accepted.

use plimsoll::Tokens;
use plimsoll::foreign::{Body, Target};
use plimsoll::tokens::{Chars4, TokenCounter};
use plimsoll::wire::openai_chat::Dialect;
use plimsoll::wire::{anthropic, openai_responses};
use plimsoll_mock::rules::Validate as _;
use serde_json::{Value, json};

use super::chats::{QUESTION, TASK, messages};
use super::command::Home;

const MODEL: &str = "claude-opus-4-6";

/// Long lines, as a tool prints them.
fn printed(at: usize) -> String {
    let lines = (0..40).map(|line| format!("{line}: let value_{line} = step({at}, {line});"));
    lines.collect::<Vec<_>>().join("\n")
}

/// A request to Claude that thinks, in which each thought is signed as it would be there.
fn claude(count: usize, model: &str) -> Value {
    let mut request = json!({"model": model, "max_tokens": 8192,
        "system": [{"type": "text", "text": "You mend programs.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "read", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}],
        "messages": [{"role": "user", "content": TASK}]});
    let push = |request: &mut Value, role: &str, content: Value| {
        let list = request["messages"].as_array_mut().unwrap();
        list.push(json!({"role": role, "content": content}));
    };
    for at in 0..count {
        let thought = format!("Part {at} may hold it.");
        let signature = plimsoll_mock::rules::anthropic::sign(&request, &thought);
        let id = format!("toolu_{at}");
        let path = format!("src/part{at}.rs");
        push(
            &mut request,
            "assistant",
            json!([
            {"type": "thinking", "thinking": thought, "signature": signature},
            {"type": "tool_use", "id": id, "name": "read", "input": {"path": path, "n": 1.50}}]),
        );
        push(
            &mut request,
            "user",
            json!([{"type": "tool_result", "tool_use_id": id, "content": printed(at)}]),
        );
    }
    push(
        &mut request,
        "assistant",
        json!([{"type": "text", "text": "The fault was an off-by-one."}]),
    );
    push(
        &mut request,
        "user",
        json!([{"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}]),
    );
    request
}

fn responses(count: usize) -> Value {
    let mut input = vec![json!({"role": "user", "content": TASK})];
    for at in 0..count {
        let arguments = json!({"path": format!("src/part{at}.rs")}).to_string();
        input.push(json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": [], "encrypted_content": "gAAA="}));
        input.push(json!({"type": "function_call", "id": format!("fc_{at}"), "call_id": format!("call_{at}"), "name": "read", "arguments": arguments}));
        input.push(json!({"type": "function_call_output", "call_id": format!("call_{at}"), "output": printed(at)}));
    }
    input.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "The fault was an off-by-one.", "annotations": []}]}));
    input.push(json!({"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}));
    json!({"model": "gpt-5", "instructions": "You mend programs.", "store": false, "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "read", "description": "Reads a file.", "parameters": {"type": "object", "properties": {}}}],
        "input": input})
}

fn chat(count: usize) -> Value {
    json!({"model": "gpt-5", "messages": messages(count), "tools": super::chats::tools()})
}

/// A request of each wire, and whose rules hold for it.
fn wires(count: usize) -> [(Value, Target); 4] {
    let bound = "claude-opus-5-5";
    [
        (chat(count), Target::Chat(Dialect::openai())),
        (
            responses(count),
            Target::Responses(openai_responses::ResponsesProfile::openai()),
        ),
        (
            claude(count, MODEL),
            Target::Messages(anthropic::MessagesProfile::of_model(MODEL)),
        ),
        (
            claude(count, bound),
            Target::Messages(anthropic::MessagesProfile::of_model(bound)),
        ),
    ]
}

fn weight(text: &str, target: &Target) -> Tokens {
    let counter = Chars4;
    let body = Body::read(text, target).unwrap();
    let messages: Tokens = body.messages.iter().map(|one| counter.message(one)).sum();
    messages + body.overhead(&counter)
}

fn asked(text: &str, target: &Target) -> Vec<String> {
    let body = Body::read(text, target).unwrap();
    let users = body.messages.iter().filter(|one| one.is_user());
    users.map(|one| one.text()).collect()
}

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
fn a_request_that_died_comes_back_smaller_on_its_own_wire() {
    let home = Home::new();
    for (request, target) in wires(30) {
        let text = request.to_string();
        assert_eq!(target.validate(&request), [], "the test's own request");
        let whole = weight(&text, &target);
        for policy in ["extract", "evict", "sliding_window"] {
            for budget in [700_u64, 4_000, whole.0 - 1] {
                let budget_text = budget.to_string();
                let args = [
                    "compact",
                    "--counter",
                    "chars4",
                    "--budget",
                    &budget_text,
                    "--policy",
                    policy,
                ];
                let said = home.pipe(args, &text).done();
                let out: Value = serde_json::from_str(&said.out).unwrap();
                let what = format!(
                    "{} {policy} {budget}\n{}",
                    target.protocol().name(),
                    said.out
                );
                assert_eq!(target.validate(&out), [], "{what}");
                assert!(weight(&said.out, &target).0 <= budget, "{what}");
                assert_eq!(keys(&out), keys(&request), "{what}");
                for key in [
                    "model",
                    "system",
                    "instructions",
                    "tools",
                    "max_tokens",
                    "include",
                ] {
                    assert_eq!(out.get(key), request.get(key), "{what}");
                }
                let users = asked(&said.out, &target);
                assert_eq!(
                    (
                        users.first().map(String::as_str),
                        users.last().map(String::as_str)
                    ),
                    (Some(TASK), Some(QUESTION)),
                    "{what}"
                );
                // What is there that was not: results that became shorter, a summary or a marker.
                let list =
                    |value: &Value| value[target.protocol().list()].as_array().unwrap().clone();
                let before = list(&request);
                let fresh: Vec<Value> = list(&out)
                    .into_iter()
                    .filter(|one| !before.contains(one))
                    .collect();
                for one in &fresh {
                    let raw = one.to_string();
                    let is_result = ["tool_result", "function_call_output", "\"role\":\"tool\""]
                        .iter()
                        .any(|kind| raw.contains(kind));
                    let unbound = target.protocol().name() == "anthropic"
                        && raw.contains("tool_use")
                        && said.err.contains("(AM10)");
                    assert!(
                        is_result
                            || raw.contains("[handover ")
                            || raw.contains("messages were removed here]")
                            || unbound,
                        "{raw}\n{what}"
                    );
                }
                assert!(
                    said.err
                        .starts_with(&format!("plimsoll: {whole} tokens became")),
                    "{}",
                    said.err
                );
                assert!(!said.err.contains("repaired"), "{}", said.err);
                // Thinking and reasoning come with their messages or not at all.
                for at in 0..30 {
                    let (thought, call) =
                        (format!("Part {at} may"), format!("\"toolu_{at}\",\"name\""));
                    assert!(
                        !said.out.contains(&thought) || said.out.contains(&call),
                        "{what}"
                    );
                    let (thought, call) = (format!("\"rs_{at}\""), format!("\"fc_{at}\""));
                    assert_eq!(
                        said.out.contains(&thought),
                        said.out.contains(&call),
                        "{what}"
                    );
                }
                let again = home.pipe(args, &said.out).done();
                assert_eq!((again.out, again.err), (said.out.clone(), String::new()));
                assert_eq!(home.pipe(args, &text).done().out, said.out);
            }
        }
        // Within its budget it is the same text.
        let said = home
            .pipe(
                [
                    "compact",
                    "--counter",
                    "chars4",
                    "--budget",
                    &whole.0.to_string(),
                ],
                &text,
            )
            .done();
        assert_eq!(
            (said.out.trim_end(), said.err.as_str()),
            (text.as_str(), "")
        );
    }
}

#[test]
fn the_wire_is_recognised_or_said() {
    let home = Home::new();
    for (request, target) in wires(12) {
        // The list alone, and within an object that names no model.
        let list = request[target.protocol().list()].clone();
        let bare = list.to_string();
        let within = json!({ target.protocol().list(): list, "budget_tokens": 900 }).to_string();
        let protocol = target.protocol().name();
        for args in [
            &["compact", "--counter", "chars4", "--budget", "900"][..],
            &[
                "compact",
                "--counter",
                "chars4",
                "--budget",
                "900",
                "--protocol",
                protocol,
            ],
        ] {
            let out = home.pipe(args, &bare).done().out;
            assert!(
                out.starts_with('[') && weight(&out, &target).0 <= 900,
                "{protocol} {out}"
            );
            let out = home.pipe(args, &within).done().out;
            let value: Value = serde_json::from_str(&out).unwrap();
            assert_eq!(value["budget_tokens"], 900);
            assert!(weight(&out, &target).0 <= 900);
        }
        if protocol == "anthropic" {
            // A model may be named: its thinking is bound or not.
            for (model, stays) in [
                ("anthropic/claude-opus-4-6", true),
                ("anthropic/claude-opus-5-5", false),
            ] {
                let said = home
                    .pipe(
                        [
                            "compact",
                            "--counter",
                            "chars4",
                            "--budget",
                            "2500",
                            "--model",
                            model,
                        ],
                        &bare,
                    )
                    .done();
                assert_eq!(said.out.contains("signature"), stays, "{}", said.out);
                assert_eq!(said.err.contains("(AM10)"), !stays, "{}", said.err);
            }
        }
    }
    let hi = "[{\"role\":\"user\",\"content\":\"hi\"}]";
    home.pipe(
        [
            "compact",
            "--counter",
            "chars4",
            "--budget",
            "9",
            "--protocol",
            "gemini",
        ],
        hi,
    )
    .misspelled(&["'gemini'", "openai, openai-responses, anthropic"]);
    home.pipe(
        [
            "compact",
            "--counter",
            "chars4",
            "--budget",
            "9",
            "--protocol",
            "openai-responses",
        ],
        "{\"messages\":[]}",
    )
    .refused(1, &["input: expected", "got nothing"]);
    home.pipe(
        ["compact", "--counter", "chars4", "--budget", "9"],
        "{\"input\":7}",
    )
    .refused(1, &["input: expected", "got number"]);
    home.pipe(
        ["compact", "--counter", "chars4", "--budget", "9"],
        "{\"input\":[],\"instructions\":[]}",
    )
    .refused(1, &["instructions"]);
    let said = home
        .pipe(
            ["compact", "--counter", "chars4", "--budget", "9"],
            "{\"system\":\"s\",\"messages\":[]}",
        )
        .done();
    assert_eq!(said.out, "{\"system\":\"s\",\"messages\":[]}");
}

#[test]
fn lines_may_be_of_any_wire() {
    let home = Home::new();
    let requests = wires(12);
    let mut lines: Vec<String> = requests
        .iter()
        .map(|(request, _)| request.to_string())
        .collect();
    lines.insert(1, "{\"input\":{}}".to_owned());
    let said = home.pipe(
        [
            "compact",
            "--counter",
            "chars4",
            "--lines",
            "--budget",
            "1500",
        ],
        lines.join("\n"),
    );
    assert_eq!(said.code, Some(1), "{}", said.err);
    let mut out: Vec<&str> = said.out.lines().collect();
    assert!(out.remove(1).contains("input: expected"), "{}", said.out);
    assert_eq!(out.len(), requests.len());
    for (line, (_, target)) in out.iter().zip(&requests) {
        let value: Value = serde_json::from_str(line).unwrap();
        assert_eq!(target.validate(&value), [], "{line}");
        assert!(weight(line, target).0 <= 1_500);
    }
}

#[test]
fn a_damaged_session_is_mended_before_it_is_cut() {
    let home = Home::new();
    // The run was killed between call and result, and the user wrote on.
    let mut request = claude(20, MODEL);
    let list = request["messages"].as_array_mut().unwrap();
    list.remove(4);
    list.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_last", "name": "read", "input": {}}]}));
    list.push(json!({"role": "user", "content": "Well?"}));
    let target = Target::of_request(&request);
    assert_ne!(target.validate(&request), []);
    for policy in ["extract", "evict"] {
        let args = [
            "compact",
            "--counter",
            "chars4",
            "--budget",
            "2500",
            "--policy",
            policy,
        ];
        let said = home.pipe(args, request.to_string()).done();
        assert_eq!(
            target.validate(&serde_json::from_str(&said.out).unwrap()),
            [],
            "{}",
            said.out
        );
        for words in [
            "repaired: messages[3]: call `toolu_1` has no result",
            "(unanswered)",
            "`toolu_last`",
        ] {
            assert!(said.err.contains(words), "no {words}: {}", said.err);
        }
        let again = home.pipe(args, &said.out).done();
        assert_eq!(again.out, said.out);
        assert_eq!(again.err, "");
    }
    // A result without its call.
    let mut request = responses(20);
    let list = request["input"].as_array_mut().unwrap();
    list.insert(
        7,
        json!({"type": "function_call_output", "call_id": "nobody", "output": "lost"}),
    );
    let target = Target::of_request(&request);
    assert_ne!(target.validate(&request), []);
    let said = home
        .pipe(
            ["compact", "--counter", "chars4", "--budget", "2500"],
            request.to_string(),
        )
        .done();
    assert_eq!(
        target.validate(&serde_json::from_str(&said.out).unwrap()),
        [],
        "{}",
        said.out
    );
    assert!(
        said.err.contains("(orphans)") && said.err.contains("`nobody`"),
        "{}",
        said.err
    );
}

#[test]
fn what_must_stay_says_the_least_that_is_enough() {
    let home = Home::new();
    for (request, _) in wires(5) {
        let text = request.to_string();
        let said = home.pipe(["compact", "--counter", "chars4", "--budget", "45"], &text);
        said.refused(4, &["cannot be made smaller than", "allow at least"]);
        let least = said.err.split("allow at least ").nth(1).unwrap();
        let least = least.split(',').next().unwrap();
        home.pipe(["compact", "--counter", "chars4", "--budget", least], &text)
            .done();
    }
}

#[test]
fn a_chat_of_any_wire_is_counted() {
    let home = Home::new();
    for (request, target) in wires(3) {
        let text = request.to_string();
        let said = home
            .pipe(["count", "--counter", "chars4", "--json"], &text)
            .done();
        let counted: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(counted["total"], weight(&text, &target).0);
        assert!(counted["tools"].as_u64().unwrap() > 0);
        assert_eq!(counted["messages"][0]["role"], "system");
        let lines = home
            .pipe(["count", "--counter", "chars4"], &text)
            .done()
            .out;
        assert!(lines.contains(TASK) && lines.contains("tool"), "{lines}");
    }
}
