//! Chats whose results stand late, twice or nowhere: no cut separates a result from its call, and none replaces
//! a result by the text that closes a call without one.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_context::{Chars4, TokenCounter, Tokens, ViewLimits};
use plimsoll_foreign::{Body, BodyCut, CLOSED_CALL, Chat, CutError, Reasoning, repair};
use plimsoll_wire::Target;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::cutting::policies;
use crate::judged::{faults, repaired};
use crate::random_chats::{chat, claude, history, step};

fn targets() -> [Target; 3] {
    let named = ["openai", "openai-responses", "anthropic"];
    named.map(|name| Target::of_protocol(name, None).unwrap())
}

fn counter() -> Arc<dyn TokenCounter> {
    Arc::new(Chars4)
}

/// Repairs and cuts, as the filter does.
fn cut<'a>(
    text: &'a str,
    target: &Target,
    budget: u64,
    policy: usize,
) -> Result<Option<BodyCut<'a>>, CutError> {
    let mut chat = Chat::read(text, target.protocol()).unwrap();
    repair(&mut chat, target, Reasoning::Keep);
    let body = Body::of(chat, target).unwrap();
    let view = body.transcript(&counter());
    let limits = ViewLimits::exactly(Tokens(budget));
    body.cut(&view, &policies()[policy], &limits)
}

/// The results of a request, by the ids of their calls.
fn results(request: &Value, target: &Target) -> BTreeMap<String, String> {
    let mut results = BTreeMap::new();
    let mut add = |id: &Value, content: &Value| {
        let id = id.as_str().unwrap_or_default().to_owned();
        results.entry(id).or_insert(content.to_string());
    };
    for entry in request[target.protocol().list()].as_array().unwrap() {
        let kind = entry["type"].as_str().unwrap_or_default();
        if entry["role"] == "tool" {
            add(&entry["tool_call_id"], &entry["content"]);
        } else if kind.ends_with("_output") {
            add(&entry["call_id"], &entry["output"]);
        }
        for block in entry["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                add(&block["tool_use_id"], &block["content"]);
            }
        }
    }
    results
}

/// Takes the results out of a request, and puts them back where `picks` says: late, twice or not at all.
fn scatter(request: &mut Value, target: &Target, picks: &mut dyn FnMut(usize) -> usize) {
    let is_result = |value: &Value| {
        let kind = value["type"].as_str().unwrap_or_default();
        value["role"] == "tool" || kind == "tool_result" || kind.ends_with("_output")
    };
    let list = request[target.protocol().list()].as_array_mut().unwrap();
    let mut late: Vec<(usize, Value)> = Vec::new();
    for (at, entry) in list.iter_mut().enumerate() {
        if let Some(blocks) = entry["content"].as_array_mut() {
            let count = blocks.len();
            blocks.retain(|block| {
                let stays = !is_result(block) || picks(3) > 0;
                if !stays {
                    late.push((at, json!({"role": "user", "content": [block]})));
                }
                stays
            });
            if blocks.is_empty() && count > 0 {
                blocks.push(json!({"type": "text", "text": "Wait."}));
            }
        } else if is_result(entry) && picks(3) == 0 {
            late.push((at, entry.take()));
        }
    }
    for (at, entry) in late.into_iter().rev() {
        let again = match picks(8) {
            0 => 0,
            1 => 2,
            _ => 1,
        };
        for _ in 0..again {
            let to = at + 1 + picks(list.len() - at);
            list.insert(to.min(list.len()), entry.clone());
        }
    }
    list.retain(|entry| !entry.is_null());
    list.push(json!({"role": "user", "content": "Go on."}));
}

/// Makes calls of another kind, with their outputs, of some calls of functions.
fn mix(request: &mut Value, picks: &mut dyn FnMut(usize) -> usize) {
    let list = request["input"].as_array_mut().unwrap();
    let mut patched = Vec::new();
    for item in list {
        let is = |kind: &str| item["type"] == kind;
        if is("function_call") && picks(3) == 0 {
            *item = json!({"type": "apply_patch_call", "call_id": item["call_id"], "status": "completed",
                "operation": {"type": "delete_file", "path": item["arguments"]}});
            patched.push(item["call_id"].clone());
        } else if is("function_call_output") && patched.contains(&item["call_id"]) {
            *item = json!({"type": "apply_patch_call_output", "call_id": item["call_id"],
                "status": "completed", "output": item["output"].to_string()});
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_cut_loses_the_result_of_a_call_that_stays(
        steps in prop::collection::vec(step(), 1..8),
        protocol in 0_usize..3,
        share in 5_u64..100,
        policy in 0_usize..4,
        picks in prop::collection::vec(any::<usize>(), 40),
    ) {
        let target = &targets()[protocol];
        let mut request = match protocol {
            0 => chat(&steps),
            1 => history(&steps, false),
            _ => claude(&steps, false),
        };
        let mut picks = picks.into_iter();
        if protocol == 1 {
            mix(&mut request, &mut |below| picks.next().unwrap_or(7) % below.max(1));
        }
        scatter(&mut request, target, &mut |below| picks.next().unwrap_or(7) % below.max(1));
        let text = request.to_string();
        let before = results(&request, target);
        let budget = Chars4.text(&text).0 * share / 100;
        let Ok(Some(cut)) = cut(&text, target, budget, policy) else { return Ok(()) };
        prop_assert_eq!(faults(&cut.chat.write(), target), [""; 0], "{}\n{}", text, cut.chat.write());
        let after: Value = serde_json::from_str(&cut.chat.write()).unwrap();
        for (id, result) in results(&after, target) {
            let is_closed = result.contains(CLOSED_CALL);
            prop_assert!(!is_closed || !before.contains_key(&id), "{id}\n{text}\n{}", cut.chat.write());
        }
    }
}

fn words(count: usize, word: &str) -> String {
    format!("{word} ").repeat(count)
}

fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": text})
}

/// Parallel calls as separate messages, with their results behind both.
#[test]
fn a_result_that_moves_into_a_message_that_lost_its_own_keeps_its_content() {
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {}});
    let result = |id: &str| {
        let content = format!("result of {id}");
        json!({"type": "tool_result", "tool_use_id": id, "content": content})
    };
    let says = |role: &str, block: Value| json!({"role": role, "content": [block]});
    let request = json!({"model": "m", "max_tokens": 9, "messages": [
        user("Both."), says("assistant", call("a")), says("assistant", call("b")),
        says("user", result("a")), says("user", result("b")), user("Go on."),
    ]});
    let target = &targets()[2];
    let repaired = repaired(&request.to_string(), target);
    let after: Value = serde_json::from_str(&repaired.request).unwrap();
    assert_eq!(results(&after, target), results(&request, target));
}

/// Codex answers a call of its local shell as one of a function, and the API accepts that.
#[test]
fn a_local_shell_that_is_answered_as_a_function_stays() {
    let call = json!({"type": "local_shell_call", "call_id": "c", "id": "lsh_1", "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}}});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "a.txt"});
    let request = json!({"model": "m", "input": [user("List."), call, output]}).to_string();
    let repaired = repaired(&request, &targets()[1]);
    assert_eq!(repaired.request, request, "{:?}", repaired.repairs);
}

/// A batch with a call of another kind is not cut in two, and shortened as its kind requires.
#[test]
fn a_cut_keeps_a_batch_of_several_kinds_whole() {
    let patch = json!({"type": "apply_patch_call", "call_id": "c2", "status": "completed",
        "operation": {"type": "delete_file", "path": "a"}});
    let shell = json!({"type": "local_shell_call", "call_id": "c2", "id": "lsh_1", "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}}});
    let call =
        |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let result =
        |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "short"});
    for (other, output) in [
        (patch, "apply_patch_call_output"),
        (shell, "local_shell_call_output"),
    ] {
        let mut output = json!({"type": output, "call_id": "c2", "output": words(300, "out")});
        if other["type"] == "apply_patch_call" {
            output["status"] = "completed".into();
        }
        let request = json!({"model": "m", "store": false, "input": [
            user("The task."), call("c1"), other, call("c3"), result("c1"), output, result("c3"),
            call("c4"), {"type": "function_call_output", "call_id": "c4", "output": words(900, "new")},
            user("Go on."),
        ]});
        let text = request.to_string();
        let target = &targets()[1];
        let whole = Chars4.text(&text).0;
        for share in [30, 50, 60, 70, 80, 90] {
            for policy in 0..4 {
                let cut = cut(&text, target, whole * share / 100, policy)
                    .unwrap()
                    .unwrap();
                assert_eq!(cut.repairs, [], "{share} {policy} {}", cut.chat.write());
                assert_eq!(faults(&cut.chat.write(), target), [""; 0]);
            }
        }
    }
}

/// A result that stands before its call finds it, and keeps its content.
#[test]
fn a_result_before_its_call_finds_it() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let output = json!({"type": "function_call_output", "call_id": "c", "output": "8431"});
    let block = json!({"type": "tool_use", "id": "c", "name": "f", "input": {}});
    let result = json!({"type": "tool_result", "tool_use_id": "c", "content": "8431"});
    for (protocol, list) in [
        (1, json!([user("q"), output, call])),
        (
            2,
            json!([user("q"), {"role": "user", "content": [result]},
            {"role": "assistant", "content": [block]}]),
        ),
    ] {
        let target = &targets()[protocol];
        let request =
            json!({"model": "m", "max_tokens": 9, target.protocol().list(): list}).to_string();
        let repaired = repaired(&request, target).request;
        assert!(repaired.contains("8431"), "{request}\n{repaired}");
        assert!(!repaired.contains(CLOSED_CALL), "{request}\n{repaired}");
    }
}

/// Nothing of the model stands behind the result: the call is still the newest one.
#[test]
fn a_late_result_at_the_end_can_be_cut() {
    let call = json!({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"});
    let output =
        json!({"type": "function_call_output", "call_id": "c", "output": words(900, "out")});
    for more in [vec![], vec![user("Go on.")]] {
        let items = [
            vec![
                user("The task."),
                call.clone(),
                user("And hurry."),
                output.clone(),
            ],
            more,
        ];
        let text = json!({"model": "m", "store": false, "input": items.concat()}).to_string();
        let target = &targets()[1];
        for policy in 0..3 {
            let cut = cut(&text, target, Chars4.text(&text).0 / 4, policy);
            let cut = cut.unwrap().unwrap();
            assert_eq!(faults(&cut.chat.write(), target), [""; 0]);
            assert!(
                cut.chat.write().contains("And hurry."),
                "{}",
                cut.chat.write()
            );
        }
    }
}

/// The user writes while a tool runs, so the result stands behind the message.
#[test]
fn a_late_result_of_responses_moves_behind_its_call_and_stays_in_a_cut() {
    let call = |kind: &str| match kind {
        "function_call" => json!({"type": kind, "call_id": "c", "name": "f", "arguments": "{}"}),
        kind => json!({"type": kind, "call_id": "c", "id": "lsh_1", "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}}}),
    };
    for kind in ["function_call", "local_shell_call"] {
        let output =
            json!({"type": format!("{kind}_output"), "call_id": "c", "output": "THE PORT IS 8431"});
        let request = json!({"model": "m", "store": false, "input": [
            user("The task."),
            {"type": "message", "role": "assistant", "content": words(900, "old")},
            user(&words(900, "past")),
            call(kind),
            user("And hurry."),
            output,
            {"type": "message", "role": "assistant", "content": "Done."},
            user("Go on."),
        ]});
        let text = request.to_string();
        let target = &targets()[1];
        let whole = Chars4.text(&text).0;
        let told: Vec<String> = repaired(&text, target)
            .repairs
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            told,
            ["input[5]: moved this result to its call `c` (order)"]
        );
        for policy in 0..3 {
            let cut = cut(&text, target, whole / 2, policy).unwrap().unwrap();
            assert!(
                cut.chat.write().contains("8431"),
                "{kind} {policy}: {}",
                cut.chat.write()
            );
            assert!(
                !cut.chat.write().contains(CLOSED_CALL),
                "{kind} {policy}: {}",
                cut.chat.write()
            );
            assert_eq!(faults(&cut.chat.write(), target), [""; 0]);
            assert!(cut.repairs.is_empty(), "{:?}", cut.repairs);
        }
    }
}
