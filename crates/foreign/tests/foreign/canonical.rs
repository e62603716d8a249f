//! Real damage, as reported by users of the providers, on each protocol: a refused request is
//! accepted after the repair, each repair is reported, all other parts keep their
//! bytes, and repairing is idempotent.

use plimsoll_foreign::{Chat, Protocol, Reasoning, RepairedRequest, Target, repair_request};
use plimsoll_mock::rules::{Rule, Validate as _};
use plimsoll_wire::openai_chat::{Dialect, Template};
use plimsoll_wire::{anthropic, openai_responses};
use serde_json::{Value, json};

use crate::judged;

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn chat(name: &str) -> Target {
    Target::Chat(Dialect::named(name).unwrap())
}

fn template(template: Template) -> Target {
    Target::Chat(Dialect::named("vllm").unwrap().with_template(template))
}

fn claude(model: &str) -> Target {
    Target::Messages(anthropic::MessagesProfile::of_model(model))
}

fn responses() -> Target {
    Target::Responses(openai_responses::ResponsesProfile::openai())
}

/// Checks that the rule refuses the request. Returns the repaired request.
#[track_caller]
fn repaired(request: &Value, target: &Target, rule: Rule) -> RepairedRequest {
    let faults = target.validate(request);
    assert!(
        faults.iter().any(|fault| fault.rule == rule),
        "{rule} is not broken: {faults:?}"
    );
    let text = request.to_string();
    let repaired = judged::repaired(&text, target);
    assert!(!repaired.repairs.is_empty(), "{}", repaired.request);
    repaired
}

fn told(repaired: &RepairedRequest) -> Vec<String> {
    repaired.repairs.iter().map(ToString::to_string).collect()
}

fn call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}})
}

fn asks(ids: &[&str]) -> Value {
    let calls: Vec<Value> = ids.iter().map(|id| call(id)).collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

fn tool(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": format!("r{id}")})
}

/// The messages in short: who, and which calls.
fn shape(repaired: &RepairedRequest) -> String {
    let request: Value = serde_json::from_str(&repaired.request).unwrap();
    let messages = request["messages"].as_array().unwrap();
    let one = |message: &Value| {
        let role = &message["role"].as_str().unwrap()[..1];
        let ids = |list: &Value, key: &str| -> String {
            let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
            let ids = list.iter().filter_map(|call| call[key].as_str());
            ids.collect()
        };
        match message["tool_call_id"].as_str() {
            Some(id) if message["content"].to_string().contains("aborted") => format!("x{id}"),
            Some(id) => format!("t{id}"),
            None => format!("{role}{}", ids(&message["tool_calls"], "id")),
        }
    };
    messages.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn chats_of_openai() {
    let rows = [
        // A run was killed while its tools ran (OC1).
        (
            Rule::Oc1,
            json!([user("q"), asks(&["1", "2"]), tool("1")]),
            "u a12 t1 x2",
        ),
        (
            Rule::Oc1,
            json!([user("q"), asks(&["1"]), user("stop")]),
            "u a1 x1 u",
        ),
        // The user typed while a tool ran (OC3).
        (
            Rule::Oc3,
            json!([user("q"), asks(&["1"]), user("wait"), tool("1")]),
            "u a1 t1 u",
        ),
        // Half of a history was cut off (OC2).
        (Rule::Oc2, json!([tool("0"), user("q")]), "u"),
        (
            Rule::Oc2,
            json!([user("q"), {"role": "assistant", "content": "a"}, tool("9")]),
            "u a",
        ),
        // A client sends an empty list of calls.
        (
            Rule::Shape,
            json!([user("q"), {"role": "assistant", "content": "a", "tool_calls": []}, user("q")]),
            "u a u",
        ),
        // Two calls of one message have the same id; both results stay.
        (
            Rule::V3,
            json!([user("q"), asks(&["1", "1"]), tool("1"), tool("1")]),
            "u a11_2 t1 t1_2",
        ),
        // A result was recorded twice; an orphan of another session came in.
        (
            Rule::V3,
            json!([user("q"), asks(&["1"]), tool("1"), tool("1")]),
            "u a1 t1",
        ),
        (
            Rule::Oc2,
            json!([user("q"), asks(&["1"]), tool("1"), tool("7")]),
            "u a1 t1",
        ),
        // Parallel calls were answered as they finished, and that stays; the last result came twice.
        (
            Rule::V3,
            json!([
                user("q"),
                asks(&["1", "2"]),
                tool("2"),
                tool("1"),
                tool("1")
            ]),
            "u a12 t2 t1",
        ),
        // Half of a batch was left (V4).
        (
            Rule::V4,
            json!([user("q"), asks(&["1", "2"]), tool("2"), user("?")]),
            "u a12 t2 x1 u",
        ),
        // Two calls of one message have one id.
        (
            Rule::V3,
            json!([user("q"), asks(&["1", "1"]), tool("1")]),
            "u a11_2 t1 x1_2",
        ),
        // An id is used again in a later message, and only there answered.
        (
            Rule::Oc1,
            json!([user("q"), asks(&["1"]), asks(&["1"]), tool("1")]),
            "u a1 x1 a1 t1",
        ),
        // A stream broke off before anything was said (OC5).
        (
            Rule::Oc5,
            json!([user("q"), {"role": "assistant", "content": null}, user("?")]),
            "u u",
        ),
    ];
    for (rule, messages, expected) in rows {
        for request in [
            messages.clone(),
            json!({"model": "gpt-5", "messages": messages, "seed": 1}),
        ] {
            let mut faults = request.clone();
            if faults.is_array() {
                faults = json!({"messages": faults});
            }
            let repaired = repaired(&faults, &chat("openai"), rule);
            assert_eq!(shape(&repaired), expected, "{faults}");
        }
    }
}

#[test]
fn arguments_that_are_no_text_become_one() {
    let mut broken = asks(&["1"]);
    broken["tool_calls"][0]["function"]["arguments"] = json!({"path": "a"});
    let request = json!({"messages": [user("q"), broken, tool("1")]});
    let fixed = repaired(&request, &chat("openai"), Rule::Oc4);
    assert!(fixed.request.contains(r#""arguments":"{\"path\":\"a\"}""#));
    assert_eq!(told(&fixed), ["messages[1]: changed tool_calls (shapes)"]);
    // A model's arguments were cut off; a template parses them.
    let mut cut = asks(&["1"]);
    cut["tool_calls"][0]["function"]["arguments"] = json!("{\"path\":");
    let request = json!({"messages": [user("q"), cut, tool("1")]});
    let fixed = repaired(&request, &chat("llama.cpp"), Rule::Oc4);
    assert!(
        fixed.request.contains("malformed_arguments"),
        "{}",
        fixed.request
    );
}

#[test]
fn reasoning_that_has_to_be_given_back_is_stood_in_for() {
    let request = json!({"messages": [user("q"), asks(&["1"]), tool("1"), user("?")]});
    let fixed = repaired(&request, &chat("kimi"), Rule::Oc6);
    assert!(fixed.request.contains(r#""reasoning_content":" ""#));
    let fixed = repaired(&request, &chat("deepseek"), Rule::Oc6);
    assert!(fixed.request.contains(r#""reasoning_content":"""#));
    // Of an exchange with tools the answer at its end has to have some, too.
    let mut call = asks(&["1"]);
    call["reasoning_content"] = json!("hm");
    let answer = json!({"role": "assistant", "content": "done"});
    let request = json!({"messages": [user("q"), call, tool("1"), answer, user("and?")]});
    let fixed = repaired(&request, &chat("deepseek"), Rule::Oc6);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    assert_eq!(after["messages"][3]["reasoning_content"], "");
    assert_eq!(after["messages"][1], request["messages"][1]);
}

#[test]
fn mistral_gets_ids_counts_and_turns_as_it_wants_them() {
    let named = json!({"role": "tool", "tool_call_id": "call_1", "name": "read", "content": "r"});
    let request = json!({"messages": [user("q"), asks(&["call_1"]), named, user("and?")]});
    let fixed = repaired(&request, &chat("mistral"), Rule::Oc7);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    let id = after["messages"][1]["tool_calls"][0]["id"]
        .as_str()
        .unwrap();
    assert_eq!(id.len(), 9);
    assert_eq!(after["messages"][2]["tool_call_id"], id);
    // Keys that no wire of ours knows stay.
    assert_eq!(after["messages"][2]["name"], "read");
    assert_eq!(shape(&fixed), format!("u a{id} t{id} a u"));
    let open =
        json!({"messages": [user("q"), asks(&["abcdefgh1", "abcdefgh2"]), tool("abcdefgh1")]});
    let fixed = repaired(&open, &chat("mistral"), Rule::Oc7);
    assert_eq!(shape(&fixed), "u aabcdefgh1abcdefgh2 tabcdefgh1 xabcdefgh2");
}

/// It refuses what it does not know, reasoning of others among it.
#[test]
fn mistral_gets_no_keys_that_it_does_not_know() {
    let answer =
        json!({"role": "assistant", "content": "a", "reasoning_content": "hm", "prefix": false});
    let request =
        json!({"model": "mistral-large-latest", "messages": [user("q"), answer, user("?")]});
    let fixed = repaired(&request, &chat("mistral"), Rule::Shape);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    assert_eq!(
        after["messages"][1],
        json!({"role": "assistant", "content": "a", "prefix": false})
    );
    assert_eq!(
        told(&fixed),
        ["messages[1]: changed reasoning_content (shapes)"]
    );
    let faults =
        chat("mistral").validate(&json!({"model": "m", "seed": 7, "messages": [user("q")]}));
    assert_eq!(
        faults[0].to_string(),
        "seed: Extra inputs are not permitted (shape)"
    );
}

/// What is told is what was done: keys that stay are not told as taken out.
#[test]
fn keys_that_stay_are_not_told_as_gone() {
    let mut calls = asks(&["call_1"]);
    calls["mine"] = json!(1);
    let mut result = tool("call_1");
    result["name"] = json!("read");
    let given = json!({"model": "m", "messages": [user("q"), calls, result]});
    let fixed = repaired(&given, &chat("mistral"), Rule::Oc7);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    assert_eq!(after["messages"][1]["mine"], 1);
    assert_eq!(after["messages"][2]["name"], "read");
    let told = told(&fixed);
    for one in told {
        assert!(
            !one.contains("taken out") && !one.contains("put in"),
            "{one}"
        );
    }
}

#[test]
fn templates_get_the_turns_that_they_insist_on() {
    let system = |text: &str| json!({"role": "system", "content": text});
    let says = json!({"role": "assistant", "content": "a"});
    let rows = [
        (
            Template::Gemma,
            Rule::T1,
            json!([user("a"), user("b")]),
            "u",
        ),
        (
            Template::Gemma,
            Rule::T3,
            json!([user("a"), says, system("later"), says, user("b")]),
            "u a u a u",
        ),
        (
            Template::Mistral,
            Rule::T2,
            json!([
                user("a"),
                asks(&["abcdefgh1"]),
                tool("abcdefgh1"),
                user("b")
            ]),
            "u aabcdefgh1 tabcdefgh1 a u",
        ),
        (
            Template::Qwen,
            Rule::T4,
            json!([system("s"), asks(&["1"]), tool("1")]),
            "s u a1 t1",
        ),
        (
            Template::Llama31,
            Rule::T5,
            json!([user("a"), asks(&["1", "2"]), tool("1"), tool("2")]),
            "u a1 t1 a2 t2",
        ),
    ];
    for (which, rule, messages, expected) in rows {
        let fixed = repaired(&json!({ "messages": messages }), &template(which), rule);
        assert_eq!(shape(&fixed), expected, "{which:?} {:?}", told(&fixed));
    }
}

#[test]
fn only_a_request_must_not_end_with_the_assistant() {
    let messages = json!([user("q"), {"role": "assistant", "content": "done"}]);
    let history = json!({"messages": messages.clone()}).to_string();
    let kept = repair_request(&history, &chat("kimi"), Reasoning::Keep).unwrap();
    assert_eq!((kept.request, kept.repairs), (history, vec![]));
    let request = json!({"model": "kimi-k2", "messages": messages});
    let fixed = repaired(&request, &chat("kimi"), Rule::Oc8);
    assert_eq!(shape(&fixed), "u a u");
    assert!(told(&fixed)[0].starts_with("the end: put a short message of the user's"));
}

#[test]
fn what_is_no_message_is_told_and_left_out() {
    let request =
        json!({"messages": [user("q"), {"content": "who?"}, 7, {"role": "tool", "content": "r"}]});
    let fixed = repaired(&request, &chat("openai"), Rule::Shape);
    assert_eq!(shape(&fixed), "u u u");
    let places: Vec<&str> = fixed.repairs.iter().map(|r| r.place.as_str()).collect();
    assert_eq!(places, ["messages[1]", "messages[2]", "messages[3]"]);
}

/// What a server of Responses takes stays byte for byte: ids without reasoning, outputs in any order
/// and with anything between, an echo of what the model said.
#[test]
fn what_responses_takes_stays_as_it_is() {
    let echo = json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": "so", "annotations": [], "logprobs": []}]});
    let mut one = item_call("1");
    one["id"] = "fc_1".into();
    one["status"] = "completed".into();
    for input in [
        json!([user("q"), echo, one, output("1")]),
        json!([
            user("q"),
            item_call("1"),
            item_call("2"),
            output("2"),
            output("1")
        ]),
        json!([user("q"), item_call("1"), user("w"), output("1"), user("x")]),
    ] {
        let request = json!({"model": "gpt-5", "store": false, "input": input}).to_string();
        let kept = repair_request(&request, &responses(), Reasoning::Keep).unwrap();
        assert_eq!(told(&kept), [""; 0], "{request}");
        assert_eq!(kept.request, request);
    }
    // The same where something else is wrong.
    let input = json!([
        user("q"),
        item_call("1"),
        item_call("2"),
        output("2"),
        output("1"),
        output("1")
    ]);
    let request = json!({"model": "gpt-5", "store": false, "input": input});
    assert_eq!(
        items(&repaired(&request, &responses(), Rule::V3)),
        "u c1 c2 o2 o1"
    );
}

#[test]
fn results_of_messages_may_stand_in_any_order() {
    let given = request("u:text q | a:use 1,use 2 | u:result 2,result 1 | a:text so | u:text r");
    let kept = repair_request(
        &given.to_string(),
        &claude("claude-sonnet-4-5"),
        Reasoning::Keep,
    )
    .unwrap();
    assert_eq!((told(&kept), kept.request), (vec![], given.to_string()));
    let given = request("u:text q | a:use 1,use 2 | u:result 2,result 1,result 3");
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am2);
    assert_eq!(
        notation(&fixed),
        "u:text q | a:use 1,use 2 | u:result 2,result 1"
    );
}

/// Providers pair results by their ids, in whatever order they come.
#[test]
fn results_of_a_batch_may_stand_in_any_order() {
    let request = json!({"model": "m", "messages": [user("q"), asks(&["1", "2", "3"]), tool("3"),
        tool("1"), tool("2"), user("?")]});
    for name in Dialect::NAMES {
        if ["mistral", "deepseek", "kimi", "lmstudio"].contains(&name) {
            continue;
        }
        let text = request.to_string();
        let fixed = repair_request(&text, &chat(name), Reasoning::Keep).unwrap();
        assert_eq!(told(&fixed), [""; 0], "{name}");
        assert_eq!(fixed.request, text);
    }
    // Not where one stood elsewhere: then all stand in the order of their calls.
    let request =
        json!({"messages": [user("q"), asks(&["1", "2"]), tool("2"), user("?"), tool("1")]});
    let fixed = repaired(&request, &chat("openai"), Rule::Oc1);
    assert_eq!(shape(&fixed), "u a12 t2 t1 u");
}

/// All faults are repaired at once: time grows as the history does, not as its square.
#[test]
fn a_long_history_takes_its_length() {
    let exchanges = (0..6_000).flat_map(|index| {
        let id = format!("call_{index}");
        [user("q"), asks(&[&id]), tool(&id)]
    });
    let mut messages: Vec<Value> = exchanges.collect();
    messages.push(user("?"));
    let fixed = repaired(&json!({"messages": messages}), &chat("mistral"), Rule::Oc7);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    // A word stands between each result and what the user said then.
    assert_eq!(after["messages"].as_array().unwrap().len(), 24_001);
    assert!(fixed.repairs.len() >= 18_000);
}

#[test]
fn what_is_not_wrong_keeps_its_bytes() {
    let text = r#"{ "model":"gpt-5", "messages":[ {"role":"user",  "content":"q","name":"ann"},
        {"content":null,"role":"assistant","annotations":[],"tool_calls":[{"type":"function","id":"1","function":{"arguments":"{ }","name":"read"}}]},
        {"role":"tool","tool_call_id":"2","content":"orphan"} ],  "seed":1.50}"#;
    let fixed = repair_request(text, &chat("openai"), Reasoning::Keep).unwrap();
    let list = r#"[{"role":"user",  "content":"q","name":"ann"},{"content":null,"role":"assistant","annotations":[],"tool_calls":[{"type":"function","id":"1","function":{"arguments":"{ }","name":"read"}}]},"#;
    assert!(fixed.request.contains(list), "{}", fixed.request);
    assert!(fixed.request.ends_with(r#""seed":1.50}"#));
    assert_eq!(
        told(&fixed),
        [
            "messages[2]: this result answers no open call `2`; dropped it (orphans)",
            "messages[1]: call `1` has no result; closed it as aborted (unanswered)",
        ]
    );
}

fn item_call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"})
}

fn output(id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": "r"})
}

fn rs(id: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAAA"})
}

/// The items in short.
fn items(repaired: &RepairedRequest) -> String {
    let request: Value = serde_json::from_str(&repaired.request).unwrap();
    let one = |item: &Value| match item["type"].as_str() {
        Some("function_call") => format!("c{}", item["call_id"].as_str().unwrap()),
        Some("function_call_output") if item["output"].to_string().contains("aborted") => {
            format!("x{}", item["call_id"].as_str().unwrap())
        }
        Some("function_call_output") => format!("o{}", item["call_id"].as_str().unwrap()),
        Some("reasoning") => "r".to_owned(),
        Some("message") | None => item["role"].as_str().unwrap()[..1].to_owned(),
        Some(other) => other.to_owned(),
    };
    let list = request["input"].as_array().unwrap();
    list.iter().map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn histories_of_responses() {
    let own = |mut item: Value, id: &str| {
        item["id"] = id.into();
        item
    };
    let computer = json!({"type": "computer_call", "id": "cu_1", "call_id": "k", "action": {"type": "wait"}, "status": "completed", "pending_safety_checks": []});
    let rows = [
        (Rule::Or1, json!([user("q"), item_call("1")]), "u c1 x1"),
        (Rule::Or2, json!([user("q"), output("1")]), "u"),
        (
            Rule::V3,
            json!([user("q"), item_call("1"), output("1"), output("1")]),
            "u c1 o1",
        ),
        (
            Rule::V3,
            json!([
                user("q"),
                item_call("1"),
                item_call("1"),
                output("1"),
                output("1")
            ]),
            "u c1 c1_2 o1 o1_2",
        ),
        // Reasoning of which nothing came (OR3).
        (Rule::Or3, json!([user("q"), rs("rs_1")]), "u"),
        (Rule::Or3, json!([user("q"), rs("rs_1"), user("?")]), "u u"),
        // Reasoning that nobody stored.
        (
            Rule::Or4,
            json!([user("q"), {"type": "reasoning", "id": "rs_1", "summary": []}, item_call("1"), output("1")]),
            "u c1 o1",
        ),
        // An id that is too long, or is none of this API's (OR5).
        (
            Rule::Or5,
            json!([
                user("q"),
                rs("rs_1"),
                own(item_call("1"), "call_1"),
                output("1")
            ]),
            "u r c1 o1",
        ),
        (Rule::Or1, json!([user("q"), computer]), "u"),
        (
            Rule::Or6,
            json!([{"type": "compaction", "id": "cmp_1"}, user("q")]),
            "u",
        ),
    ];
    for (rule, input, expected) in rows {
        let request = json!({"model": "gpt-5", "store": false, "input": input});
        let fixed = repaired(&request, &responses(), rule);
        assert_eq!(items(&fixed), expected, "{request} {:?}", told(&fixed));
    }
}

fn block(kind: &str, id: &str) -> Value {
    match kind {
        "use" => json!({"type": "tool_use", "id": id, "name": "read", "input": {}}),
        "result" => json!({"type": "tool_result", "tool_use_id": id, "content": "r"}),
        "think" => json!({"type": "thinking", "thinking": id, "signature": "EqQB"}),
        _ => json!({"type": "text", "text": id}),
    }
}

/// A message in tiny notation: `a:use 1,use 2`.
fn message(notation: &str) -> Value {
    let (role, blocks) = notation.split_once(':').unwrap();
    let role = if role == "a" { "assistant" } else { "user" };
    let blocks = blocks.split(',').filter(|block| !block.is_empty());
    let blocks: Vec<Value> = blocks
        .map(|one| {
            let (kind, id) = one.split_once(' ').unwrap_or((one, ""));
            block(kind, id)
        })
        .collect();
    json!({"role": role, "content": blocks})
}

fn request(messages: &str) -> Value {
    let messages: Vec<Value> = messages.split(" | ").map(message).collect();
    json!({"model": "claude", "max_tokens": 9000, "messages": messages})
}

fn notation(repaired: &RepairedRequest) -> String {
    let request: Value = serde_json::from_str(&repaired.request).unwrap();
    let one = |message: &Value| {
        let role = &message["role"].as_str().unwrap()[..1];
        let block = |block: &Value| match block["type"].as_str().unwrap() {
            "tool_use" => format!("use {}", block["id"].as_str().unwrap()),
            "tool_result" if block["content"].to_string().contains("aborted") => {
                format!("closed {}", block["tool_use_id"].as_str().unwrap())
            }
            "tool_result" => format!("result {}", block["tool_use_id"].as_str().unwrap()),
            "thinking" => format!("think {}", block["thinking"].as_str().unwrap()),
            "text" => format!("text {}", block["text"].as_str().unwrap()),
            other => other.to_owned(),
        };
        let blocks: Vec<String> = match &message["content"] {
            Value::String(text) => vec![format!("text {text}")],
            content => content.as_array().unwrap().iter().map(block).collect(),
        };
        format!("{role}:{}", blocks.join(","))
    };
    let list = request["messages"].as_array().unwrap();
    list.iter().map(one).collect::<Vec<_>>().join(" | ")
}

#[test]
fn messages_of_anthropic() {
    let rows = [
        (
            Rule::Am1,
            "u:text q | a:use 1,use 2 | u:result 1",
            "u:text q | a:use 1,use 2 | u:result 1,closed 2",
        ),
        (
            Rule::Am1,
            "u:text q | a:use 1 | u:text stop",
            "u:text q | a:use 1 | u:closed 1,text stop",
        ),
        (
            Rule::Am1,
            "u:text q | a:use 1",
            "u:text q | a:use 1 | u:closed 1",
        ),
        (Rule::Am2, "u:result 0,text q", "u:text q"),
        (
            Rule::Am2,
            "u:text q | a:text a | u:result 9,text b",
            "u:text q | a:text a | u:text b",
        ),
        (
            Rule::Am3,
            "u:text q | a:use 1 | u:text w,result 1",
            "u:text q | a:use 1 | u:result 1,text w",
        ),
        (
            Rule::Am1,
            "u:text q | a:use 1 | u:text w | u:result 1",
            "u:text q | a:use 1 | u:result 1,text w",
        ),
        (
            Rule::Am4,
            "u:text q | a:use 1 | u:result 1,result 1",
            "u:text q | a:use 1 | u:result 1",
        ),
        (
            Rule::Am6,
            "u:text q | a:text | u:text b",
            "u:text q | u:text b",
        ),
        (Rule::Am6, "u:text q,text", "u:text q"),
        (
            Rule::Am7,
            "a:text hello | u:text q",
            "u:text (The user has said nothing yet.) | a:text hello | u:text q",
        ),
        (
            Rule::Am9,
            "u:text q | a:text a,think t | u:text b",
            "u:text q | a:text a | u:text b",
        ),
    ];
    for (rule, given, expected) in rows {
        for model in ["claude-sonnet-4-5", "claude-opus-5-5"] {
            let fixed = repaired(&request(given), &claude(model), rule);
            let expected = if expected.starts_with("u:text (") {
                notation(&fixed)
            } else {
                expected.to_owned()
            };
            assert_eq!(notation(&fixed), expected, "{given} {:?}", told(&fixed));
        }
    }
}

#[test]
fn ids_of_anthropic_are_legal_and_each_is_used_once() {
    for given in [
        "u:text q | a:use a.b:c | u:result a.b:c",
        "u:text q | a:use 1 | u:result 1 | a:use 1 | u:result 1",
    ] {
        let rule = if given.contains("a.b") {
            Rule::Am5
        } else {
            Rule::V3
        };
        let fixed = repaired(&request(given), &claude("claude-sonnet-4-5"), rule);
        assert_eq!(
            notation(&fixed).matches("result").count(),
            given.matches("result").count()
        );
    }
}

#[test]
fn who_may_not_have_the_last_word_does_not_have_it() {
    let given = request("u:text q | a:text so");
    let fixed = repaired(&given, &claude("claude-opus-4-6"), Rule::Am8);
    assert!(notation(&fixed).starts_with("u:text q | a:text so | u:text "));
    // An older model may be given the beginning of its answer, without white space behind it.
    let older = claude("claude-sonnet-4-5");
    let given = json!({"model": "c", "max_tokens": 9, "messages": [user("q"), {"role": "assistant", "content": "so "}]});
    assert_eq!(
        notation(&repaired(&given, &older, Rule::Am6)),
        "u:text q | a:text so"
    );
}

#[test]
fn thinking_that_nobody_signed_goes_for_its_whole_loop() {
    let mut given = request(
        "u:text a | a:think old,text b | u:text c | a:think one,use 1 | u:result 1 | a:think two,use 2 | u:result 2",
    );
    given["messages"][5]["content"][0]["signature"] = "".into();
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am10);
    assert_eq!(
        notation(&fixed),
        "u:text a | a:think old,text b | u:text c | a:use 1 | u:result 1 | a:use 2 | u:result 2"
    );
    let first = "messages[3]: left out its thinking (thinking)";
    assert!(
        told(&fixed).iter().any(|one| one == first),
        "{:?}",
        told(&fixed)
    );
}

/// The loop under way loses it; a loop that is over, and a history without a model, keep theirs.
#[test]
fn thinking_that_no_request_asks_for_goes_from_the_loop_under_way() {
    let all = "u:text a | a:think old,text b | u:text c | a:think one,use 1 | u:result 1 | a:think two,use 2 | u:result 2";
    let given = request(all);
    let target = claude("claude-sonnet-4-5");
    let fixed = repaired(&given, &target, Rule::Am9);
    assert_eq!(
        notation(&fixed),
        "u:text a | a:think old,text b | u:text c | a:use 1 | u:result 1 | a:use 2 | u:result 2"
    );
    let mut asked = given.clone();
    asked["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    let kept = repair_request(&asked.to_string(), &target, Reasoning::Keep).unwrap();
    assert_eq!(told(&kept), [""; 0]);
    let history = given["messages"].to_string();
    let kept = repair_request(&history, &target, Reasoning::Keep).unwrap();
    assert_eq!(
        (told(&kept), kept.request.as_str()),
        (vec![], history.as_str())
    );
}

#[test]
fn thinking_stays_behind_a_repair_only_where_it_is_bound_to_itself() {
    let given = request(
        "u:text q | a:think one,use 1 | u:text w | u:result 1 | a:think two,text a | u:text b | a:think three,text c | u:text d",
    );
    let kept = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am1);
    assert!(notation(&kept).contains("think one"), "{}", notation(&kept));
    assert!(
        notation(&kept).contains("think three"),
        "{} {:#?}",
        notation(&kept),
        kept.repairs
    );
    let bound = repaired(&given, &claude("claude-opus-5-5"), Rule::Am1);
    assert!(notation(&bound).contains("think one"));
    let behind = ["think two", "think three"];
    assert!(!behind.iter().any(|one| notation(&bound).contains(one)));
    // What stands before the repair was read as it was written.
    let given = request("u:text q | a:think one,text a | u:text b | a:think two,use 1");
    let bound = repaired(&given, &claude("claude-opus-5-5"), Rule::Am1);
    assert_eq!(
        notation(&bound),
        "u:text q | a:think one,text a | u:text b | a:think two,use 1 | u:closed 1"
    );
}

#[test]
fn a_loop_that_began_without_thinking_goes_on_without() {
    let mut given = request("u:text q | a:use 1 | u:result 1");
    given["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am9);
    assert!(!fixed.request.contains("budget_tokens"));
    assert_eq!(
        told(&fixed),
        ["thinking: taken out: the current tool loop began without thinking (settings)"]
    );
}

/// What a setting is to blame for is no reason to write any message anew.
#[test]
fn messages_keep_their_bytes_where_only_thinking_goes() {
    let mut given = request("u:text q | a:use 1 | u:result 1");
    given["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    given["messages"][0] = json!({"role": "user", "mine": 1, "content": [
        {"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "r"}]});
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am9);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    assert_eq!(after["messages"], given["messages"]);
    assert_eq!(
        told(&fixed),
        ["thinking: taken out: the current tool loop began without thinking (settings)"]
    );
    // What a message is to blame for is repaired all the same.
    let mut given = request("u:text q | a:text a,think one | u:text b | a:use 1 | u:result 1");
    given["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    given["messages"][0]["mine"] = json!(1);
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am9);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    assert_eq!(after["messages"][0], given["messages"][0]);
    assert_eq!(after["messages"][3], given["messages"][3]);
}

/// The validator names a hundred faults at a time; whoever is not named keeps its bytes.
#[test]
fn thousands_of_faults_are_mended_one_by_one() {
    let mut messages =
        vec![json!({"role": "user", "content": [{"type": "text", "text": "q"}], "mine": 1})];
    for number in 0..1500 {
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": format!("a b {number}"), "name": "read", "input": {}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": format!("a b {number}"), "content": "r"}]}));
    }
    messages
        .push(json!({"role": "assistant", "content": [{"type": "text", "text": "a"}], "mine": 2}));
    messages.push(user("b"));
    let given = json!({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages});
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am5);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    for at in [0, 3001, 3002] {
        assert_eq!(after["messages"][at], given["messages"][at]);
    }
}

#[test]
fn breakpoints_are_four_at_most_and_stay_where_messages_are_mended() {
    let mark = json!({"type": "ephemeral"});
    let mut given = request("u:text a | a:text b | u:text c | a:text d | u:text e");
    for index in 0..5 {
        given["messages"][index]["content"][0]["cache_control"] = mark.clone();
    }
    given["system"] = json!([{"type": "text", "text": "s", "cache_control": mark}]);
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am11);
    assert_eq!(fixed.request.matches("cache_control").count(), 4);
    assert!(!fixed.request.contains(r#""text":"a","cache_control""#));
    // A repaired message keeps its breakpoint.
    let mut given = request("u:text q | a:use 1 | u:text w,result 1");
    given["messages"][2]["content"][1]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Am3);
    assert!(
        fixed
            .request
            .contains(r#""cache_control":{"type":"ephemeral","ttl":"1h"}"#),
        "{}",
        fixed.request
    );
}

#[test]
fn tools_of_anthropics_own_keep_their_pairs() {
    let server =
        |id: &str| json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}});
    let found =
        |id: &str| json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []});
    let of = |blocks: Value| json!({"model": "c", "max_tokens": 9, "messages": [user("q"), {"role": "assistant", "content": blocks}, user("b")]});
    let text = block("text", "a");
    let rows = [
        (
            Rule::Am1,
            json!([server("s1"), text]),
            "u:text q | a:text a | u:text b",
        ),
        (
            Rule::Am2,
            json!([found("s1"), text]),
            "u:text q | a:text a | u:text b",
        ),
        (
            Rule::Shape,
            json!([{"type": "frob"}, text]),
            "u:text q | a:text a | u:text b",
        ),
    ];
    for (rule, blocks, expected) in rows {
        let fixed = repaired(&of(blocks), &claude("claude-sonnet-4-5"), rule);
        assert_eq!(notation(&fixed), expected);
    }
    let whole = of(json!([server("s1"), found("s1"), text])).to_string();
    let kept = repair_request(&whole, &claude("claude-sonnet-4-5"), Reasoning::Keep).unwrap();
    assert_eq!((kept.repairs, kept.request), (vec![], whole));
}

/// A program of Anthropic's waits for the results of the host's tools: it is left where it stands.
#[test]
fn a_program_that_waits_for_results_stays() {
    let code = json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "code_execution", "input": {}});
    let asks = json!({"type": "tool_use", "id": "a", "name": "q", "input": {},
        "caller": {"type": "code_execution_20250825", "tool_id": "srvtoolu_1"}});
    let target = claude("claude-sonnet-4-5");
    let of = |blocks: Value, more: &[Value]| {
        let mut messages = vec![user("q"), json!({"role": "assistant", "content": blocks})];
        messages.extend_from_slice(more);
        json!({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages})
    };
    let result = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "a", "content": "r"}]});
    let whole = of(json!([code, asks]), &[result]).to_string();
    let kept = repair_request(&whole, &target, Reasoning::Keep).unwrap();
    assert_eq!((kept.repairs, kept.request), (vec![], whole));
    // A run that died before the result came.
    let died = repaired(&of(json!([code, asks]), &[]), &target, Rule::Am1);
    let request: Value = serde_json::from_str(&died.request).unwrap();
    assert_eq!(request["messages"][1]["content"], json!([code, asks]));
}

#[test]
fn a_system_message_in_the_list_stands_beside_it() {
    let given = json!({"model": "c", "max_tokens": 9, "messages": [{"role": "system", "content": "s"}, user("q")]});
    let fixed = repaired(&given, &claude("claude-sonnet-4-5"), Rule::Shape);
    let after: Value = serde_json::from_str(&fixed.request).unwrap();
    assert_eq!(after["system"], json!([{"type": "text", "text": "s"}]));
    assert_eq!(notation(&fixed), "u:text q");
}

#[test]
fn all_thinking_goes_where_a_provider_refuses_its_signature() {
    let given =
        request("u:text q | a:think one,use 1 | u:result 1 | a:think two,text a | u:text b")
            .to_string();
    let target = claude("claude-sonnet-4-5");
    let kept = repair_request(&given, &target, Reasoning::Keep).unwrap();
    assert_eq!((kept.repairs, kept.request), (vec![], given.clone()));
    let dropped = repair_request(&given, &target, Reasoning::Drop).unwrap();
    assert_eq!(
        notation(&dropped),
        "u:text q | a:use 1 | u:result 1 | a:text a | u:text b"
    );
    assert_eq!(
        told(&dropped),
        [
            "messages[1]: left out its thinking (thinking)",
            "messages[3]: left out its thinking (thinking)"
        ]
    );
}

/// On Responses too: what the model said keeps its annotations, and loses only the id that asks for
/// the reasoning.
#[test]
fn what_was_said_with_dropped_reasoning_keeps_its_annotations() {
    let said = json!({"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
        "content": [{"type": "output_text", "text": "ok", "annotations": [
            {"type": "url_citation", "url": "https://e.org", "title": "e", "start_index": 0, "end_index": 2}]}]});
    let given = json!({"model": "gpt-5", "store": false, "input": [
        {"type": "message", "role": "user", "content": "q"},
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
        said,
        {"type": "message", "role": "user", "content": "r"}]});
    let dropped = repair_request(&given.to_string(), &responses(), Reasoning::Drop).unwrap();
    let after: Value = serde_json::from_str(&dropped.request).unwrap();
    let mut kept = said;
    kept.as_object_mut().unwrap().remove("id");
    assert_eq!(after["input"][1], kept);
    assert_eq!(
        told(&dropped),
        [
            "input[1]: left out its thinking (thinking)",
            "input[2]: left out its id, which belongs to its thinking (thinking)"
        ]
    );
    let again = repair_request(&dropped.request, &responses(), Reasoning::Drop).unwrap();
    assert_eq!((again.repairs, again.request), (vec![], dropped.request));
}

/// A chat that says nothing is opened, as no provider takes an empty one.
#[test]
fn who_says_nothing_begins_all_the_same() {
    let given = json!({"model": "c", "max_tokens": 9, "messages": [user("")]});
    let fixed = judged::repaired(&given.to_string(), &claude("c"));
    assert!(fixed.request.contains("Begin."), "{}", fixed.request);
}

/// A history is no request: the keys beside it are its owner's.
#[test]
fn the_keys_of_a_history_are_no_settings() {
    let history = json!({"title": "t", "max_tokens": 0, "messages": [user("q")]}).to_string();
    for target in [chat("openai"), claude("claude-sonnet-4-5")] {
        let kept = repair_request(&history, &target, Reasoning::Keep).unwrap();
        assert_eq!(kept.repairs, []);
        assert_eq!(kept.request, history);
    }
}

/// What is too deep to be judged is not judged in silence.
#[test]
fn what_is_nested_too_deep_is_said() {
    let deep = format!("{}1{}", "[".repeat(160), "]".repeat(160));
    let text = format!(
        r#"{{"model":"c","max_tokens":9,"messages":[{{"role":"user","content":"q"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"n","input":{{"a":{deep}}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"r"}}]}}]}}"#
    );
    for target in [claude("c"), chat("openai"), responses()] {
        for error in [
            repair_request(&text, &target, Reasoning::Keep).unwrap_err(),
            Chat::read(&text, Protocol::of(&target)).unwrap_err(),
        ] {
            let said = error.to_string();
            assert!(
                said.contains("nested deeper than 127 levels at line 1 column"),
                "{said}"
            );
            assert!(said.contains("put it in as text"), "{said}");
        }
    }
}

#[test]
fn settings_are_left_alone() {
    let given = json!({"model": "c", "max_tokens": 0, "messages": [user("q"), message("a:use 1")]});
    let fixed = repair_request(
        &given.to_string(),
        &claude("claude-sonnet-4-5"),
        Reasoning::Keep,
    )
    .unwrap();
    assert_eq!(fixed.repairs.len(), 1);
}

#[test]
fn a_protocol_is_known_by_its_shape() {
    let of = |request: Value| Target::of_request(&request).protocol();
    for (request, protocol) in [
        (json!([user("q"), asks(&["1"])]), "openai"),
        (json!({"model": "gpt-5", "messages": [user("q")]}), "openai"),
        (
            json!({"model": "anthropic/claude-x", "messages": [user("q")]}),
            "openai",
        ),
        (
            json!({"model": "claude-opus-4-6", "messages": [user("q")]}),
            "anthropic",
        ),
        // Claude behind a server of Chat Completions.
        (
            json!({"model": "claude-opus-4-6", "messages": [user("q"), asks(&["1"])]}),
            "openai",
        ),
        (json!({"system": "s", "messages": [user("q")]}), "anthropic"),
        (json!([message("a:use 1")]), "anthropic"),
        (json!({"input": "q"}), "openai-responses"),
        (json!([user("q"), item_call("1")]), "openai-responses"),
        (
            json!([{"type": "message", "role": "user", "content": "q"}]),
            "openai-responses",
        ),
        (json!([user("q"), {"type": "mcp_call"}]), "openai-responses"),
        (
            json!([user("q"), {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]}]),
            "openai-responses",
        ),
        // Some clients have its words in a chat.
        (
            json!({"messages": [{"role": "user", "content": [{"type": "input_text", "text": "q"}]}]}),
            "openai",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}]}]),
            "openai",
        ),
        (
            json!([user("q"), {"type": "message", "role": "assistant", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "a"}]}]),
            "anthropic",
        ),
        (
            json!({"messages": [user("q")], "stop_sequences": ["x"]}),
            "anthropic",
        ),
        (
            json!({"messages": [user("q")], "tools": [{"name": "f", "input_schema": {"type": "object"}}]}),
            "anthropic",
        ),
        (
            json!([{"role": "user", "content": [{"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]}]),
            "anthropic",
        ),
        // Behind others, a chat has breakpoints, too.
        (
            json!({"model": "anthropic/claude-x", "messages": [{"role": "user", "content": [
                {"type": "text", "text": "q", "cache_control": {"type": "ephemeral"}}]}]}),
            "openai",
        ),
        (
            json!([{"role": "system", "content": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]}, user("q")]),
            "openai",
        ),
        (
            json!([user("q"), asks(&["1"]), {"role": "tool", "tool_call_id": "1", "content": [
                {"type": "text", "text": "r", "cache_control": {"type": "ephemeral"}}]}]),
            "openai",
        ),
    ] {
        assert_eq!(of(request.clone()), protocol, "{request}");
    }
    for name in Target::PROTOCOLS {
        assert_eq!(Target::of_protocol(name, None).unwrap().protocol(), name);
    }
    assert_eq!(Target::of_protocol("gopher", None), None);
}

#[test]
fn what_names_no_model_is_left_as_it_is() {
    let compaction = json!([
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "EEEE"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}]},
    ]);
    let of_user = |blocks: Value| json!([{"role": "user", "content": blocks}]);
    let document = of_user(
        json!([{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "d"}},
        {"type": "text", "text": "what?"}]),
    );
    let image = of_user(
        json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
        {"type": "text", "text": "what?"}]),
    );
    let found = of_user(
        json!([{"type": "search_result", "source": "https://x", "title": "t", "content": [{"type": "text", "text": "c"}]},
        {"type": "text", "text": "what?"}]),
    );
    for (request, protocol) in [
        (compaction, "openai-responses"),
        (
            json!({"max_tokens": 100, "messages": document}),
            "anthropic",
        ),
        (json!({"max_tokens": 100, "messages": found}), "anthropic"),
        (document, "anthropic"),
        (image, "anthropic"),
        (found, "anthropic"),
    ] {
        let target = Target::of_request(&request);
        assert_eq!(target.protocol(), protocol, "{request}");
        let text = request.to_string();
        let repaired = repair_request(&text, &target, Reasoning::Keep).unwrap();
        assert_eq!(told(&repaired), [""; 0], "{request}");
        assert_eq!(repaired.request, text);
    }
}

/// A key of the request that looks like the place of a message is no message: all stays as it is.
#[test]
fn a_key_that_looks_like_a_place_is_not_taken_for_one() {
    let target = chat("openai");
    for key in [
        "messages[1]tools",
        "messages.1",
        "messages2",
        "systems",
        "system[0]",
    ] {
        let mut request = json!({"model": "m", "messages": [
            user("go"),
            {"role": "assistant", "content": "ok", "unusual": 1},
            user("and?"),
        ]});
        request[key] = json!(1);
        let text = request.to_string();
        let repaired = repair_request(&text, &target, Reasoning::Keep).unwrap();
        assert_eq!(repaired.request, text, "{key}");
        assert_eq!(repaired.repairs, [], "{key}");
    }
}
