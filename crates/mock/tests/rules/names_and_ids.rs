//! Names and ids of earlier tool calls in the form that the APIs accept: a model invents names,
//! other providers' ids are longer, and some servers use the same ids in every turn.

use std::collections::BTreeMap;

use plimsoll_context::{CallId, Message, Part, ToolCall};
use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_mock::rules as judge;
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_wire::CallIdForm;
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::{Dialect, render};
use plimsoll_wire::overflow::{Verdict, classify};
use plimsoll_wire::{LeftOut, RenderInput};
use plimsoll_wire::{anthropic, openai_responses};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::every_dialect::dialects;

fn called(name: &str, id: &str) -> Vec<Message> {
    let call = ToolCall {
        id: CallId(id.into()),
        name: name.into(),
        arguments: "{}".into(),
        opaque: None,
    };
    vec![
        Message::user("q"),
        Message::Assistant {
            parts: vec![Part::ToolCall(call)],
        },
        Message::result(CallId(id.into()), "there is no such tool"),
    ]
}

fn request(messages: &[Message], dialect: &Dialect) -> (Value, Vec<LeftOut>) {
    let input = RenderInput {
        model: "m",
        ..RenderInput::default()
    };
    let rendered = render(&input, messages, dialect).unwrap();
    let notes = rendered.notes.iter().map(|note| note.what).collect();
    (serde_json::from_slice(&rendered.body).unwrap(), notes)
}

#[test]
fn an_invalid_name_of_a_tool_is_sent_as_a_valid_one_to_every_server() {
    for (name, sent) in [
        ("functions.read", "functions_read"),
        ("läs fil", "l_s_fil"),
        ("", "_"),
        ("read-file_2", "read-file_2"),
    ] {
        for dialect in dialects() {
            let (request, notes) = request(&called(name, "call_1"), &dialect);
            let call = &request["messages"][1]["tool_calls"][0];
            assert_eq!(call["function"]["name"], sent);
            assert_eq!(notes.contains(&LeftOut::Name), name != sent);
            assert_eq!(validate(&request, &dialect), []);
        }
    }
    let long = "x".repeat(70);
    let (request, _) = request(&called(&long, "call_1"), &Dialect::openai());
    let sent = request["messages"][1]["tool_calls"][0]["function"]["name"].as_str();
    assert_eq!(sent.unwrap().len(), 64);
}

#[test]
fn an_invalid_id_is_sent_as_a_valid_one_to_every_server() {
    let long = "ws_689e2d4880a0819d98acca37694989b00b15d90494fc6b87";
    let forty = "ws_689e2d4880a0819d98acca37694989b00b15d";
    let ids = [
        ("call_1", true),
        (forty, true),
        ("functions.f:0", true),
        (long, false),
    ];
    for (id, kept) in ids
        .into_iter()
        .chain([("", false), ("a b", false), ("ü", false)])
    {
        for dialect in dialects() {
            let (request, _) = request(&called("f", id), &dialect);
            let sent = request["messages"][1]["tool_calls"][0]["id"]
                .as_str()
                .unwrap();
            let mistral = dialect.call_ids == CallIdForm::NineAlphanumeric;
            let is_kept = kept && !mistral;
            assert_eq!((sent == id, sent.len() <= 40), (is_kept, true), "{sent}");
            assert_eq!(request["messages"][2]["tool_call_id"], sent);
            assert_eq!(validate(&request, &dialect), []);
        }
    }
}

/// Histories of several batches whose ids are few, so that they repeat. The arguments of a call and the
/// text of its result are the same.
fn reused() -> impl Strategy<Value = Vec<Message>> {
    let long = "x".repeat(70);
    let ids = ["call_0", "call_1", "D681PevKs", "a.b:c", "", &long];
    let id = prop::sample::select(ids.map(str::to_owned).to_vec());
    let batches = prop::collection::vec(prop::collection::vec(id, 1..4), 1..6);
    batches.prop_map(|batches| {
        let mut messages = vec![Message::user("q")];
        for (batch, ids) in batches.into_iter().enumerate() {
            let said = |at: usize| json!({ "n": format!("{batch}.{at}") }).to_string();
            let call = |(at, id): (usize, &String)| {
                Part::ToolCall(ToolCall {
                    id: CallId(id.clone()),
                    name: "f".into(),
                    arguments: said(at),
                    opaque: None,
                })
            };
            let parts = ids.iter().enumerate().map(call).collect();
            messages.push(Message::Assistant { parts });
            let results = ids.iter().enumerate();
            let results = results.map(|(at, id)| Message::result(CallId(id.clone()), said(at)));
            messages.extend(results);
        }
        messages
    })
}

/// The ids and arguments of the calls in a request, and the ids and texts of the results.
type ExchangedIds = (Vec<(String, String)>, Vec<(String, String)>);

fn exchanged(request: &Value) -> ExchangedIds {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = request.get("messages").or_else(|| request.get("input"));
    for entry in list.unwrap().as_array().unwrap() {
        match (entry["type"].as_str(), entry["role"].as_str()) {
            (Some("function_call"), _) => {
                calls.push((text(&entry["call_id"]), text(&entry["arguments"])));
            }
            (Some("function_call_output"), _) => {
                results.push((text(&entry["call_id"]), text(&entry["output"])));
            }
            (_, Some("tool")) => {
                results.push((text(&entry["tool_call_id"]), text(&entry["content"])));
            }
            _ => {}
        }
        for call in entry["tool_calls"].as_array().into_iter().flatten() {
            calls.push((text(&call["id"]), text(&call["function"]["arguments"])));
        }
        for block in entry["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => calls.push((text(&block["id"]), block["input"].to_string())),
                Some("tool_result") => {
                    let content = &block["content"];
                    let said = content.as_str().map(str::to_owned);
                    let said = said.unwrap_or_else(|| text(&content[0]["text"]));
                    results.push((text(&block["tool_use_id"]), said));
                }
                _ => {}
            }
        }
    }
    (calls, results)
}

/// The history as each API is sent it.
fn requests(messages: &[Message]) -> Vec<(String, Value)> {
    let mut requests = Vec::new();
    for dialect in dialects() {
        let (request, _) = request(messages, &dialect);
        assert_eq!(validate(&request, &dialect), [], "{}", dialect.name);
        requests.push((dialect.name.to_string(), request));
    }
    for profile in [
        openai_responses::ResponsesProfile::openai(),
        openai_responses::ResponsesProfile::plain(),
        openai_responses::ResponsesProfile::compatible(),
    ] {
        let input = RenderInput {
            model: "m",
            ..RenderInput::default()
        };
        let rendered = openai_responses::render(&input, messages, &profile).unwrap();
        let request = serde_json::from_slice(&rendered.body).unwrap();
        assert_eq!(
            judge::openai_responses::validate(&request, &profile),
            [],
            "{}",
            profile.name
        );
        requests.push((profile.name, request));
    }
    let profile = anthropic::MessagesProfile::of_model("claude-sonnet-4-5");
    let input = RenderInput {
        model: "claude-sonnet-4-5",
        ..RenderInput::default()
    };
    let rendered = anthropic::render(&input, messages, &profile).unwrap();
    let request = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!(judge::anthropic::validate(&request, &profile), []);
    requests.push(("anthropic".into(), request));
    requests
}

proptest! {
    #[test]
    fn every_call_has_an_id_of_its_own_and_its_own_result(messages in reused()) {
        for (name, request) in requests(&messages) {
            let (calls, results) = exchanged(&request);
            let of: BTreeMap<_, _> = calls.iter().cloned().collect();
            prop_assert_eq!(of.len(), calls.len(), "{} {}", name, request);
            prop_assert_eq!(results.len(), calls.len());
            for (id, said) in results {
                prop_assert_eq!(of.get(&id), Some(&said), "{} {}", name, request);
            }
        }
    }
}

#[test]
fn only_an_id_that_was_used_before_is_mapped() {
    let mut messages = called("f", "call_0");
    messages.extend(called("f", "call_1"));
    messages.extend(called("f", "call_0"));
    messages.extend(called("f", "call_2"));
    // What was sent before stays as it was.
    let before = requests(&messages[..6]);
    for ((name, request), (_, before)) in requests(&messages).into_iter().zip(before) {
        let (calls, _) = exchanged(&request);
        let kept: Vec<bool> = ["call_0", "call_1", "call_0", "call_2"]
            .iter()
            .zip(&calls)
            .map(|(given, (sent, _))| given == sent)
            .collect();
        // Mistral takes none of them as it is.
        let nine = calls[0].0.len() == 9;
        assert_eq!(kept, [!nine, !nine, false, !nine], "{name}");
        let (before, _) = exchanged(&before);
        assert_eq!(calls[..2], before[..], "{name}");
    }
}

/// Servers of Responses pair calls and outputs in the whole input.
#[test]
fn responses_refuses_a_reused_id_and_mending_gives_it_another() {
    let pair = |n: u8| {
        [
            json!({"type": "message", "role": "user", "content": format!("q{n}")}),
            json!({"type": "function_call", "call_id": "call_0", "name": "f", "arguments": format!("{{\"n\":{n}}}")}),
            json!({"type": "function_call_output", "call_id": "call_0", "output": format!("{{\"n\":{n}}}")}),
        ]
    };
    let input: Vec<Value> = [pair(1), pair(2), pair(3)].concat();
    let given = json!({"model": "m", "input": input});
    let profile = openai_responses::ResponsesProfile::openai();
    let faults = judge::openai_responses::validate(&given, &profile);
    let places: Vec<&str> = faults.iter().map(|fault| fault.place.as_str()).collect();
    assert_eq!(
        places,
        ["input[4].call_id", "input[7].call_id"],
        "{faults:?}"
    );
    assert_eq!(faults[0].words, "Duplicate 'call_id': call_0");
    let (status, body) = judge::openai_responses::refusal(&faults[0]);
    assert_eq!(classify(Some(status), &body.to_string()), Verdict::Invalid);

    let target = Target::Responses(profile);
    let repaired = repair_request(&given.to_string(), &target, Reasoning::Keep).unwrap();
    let request: Value = serde_json::from_str(&repaired.request).unwrap();
    assert_eq!(
        judge::openai_responses::validate(&request, &openai_responses::ResponsesProfile::openai()),
        []
    );
    let (calls, results) = exchanged(&request);
    assert_eq!(calls, results);
    assert_eq!((calls.len(), calls[0].0.as_str()), (3, "call_0"));
    assert_eq!(request["input"][0], input[0]);
    assert!(
        repaired
            .repairs
            .iter()
            .any(|repair| repair.place == "input[4]"),
        "{:?}",
        repaired.repairs
    );
}
