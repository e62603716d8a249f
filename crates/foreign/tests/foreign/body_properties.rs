//! Properties of every body that is cut, on each protocol, for every model and every budget: it is
//! valid and within its budget, unedited messages keep their bytes, and another cut changes
//! nothing. Tested on random transcripts, and on recorded sessions if they exist.

use plimsoll_mock::rules::Validate as _;
use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_context::{Chars4, Estimate, Policy, TokenCounter, Tokens, ViewLimits};
use plimsoll_foreign::{Body, BodyCut, Chat, CutError, Reasoning, repair, repair_request};
use plimsoll_mock::rules as judge;
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::{anthropic, openai_responses};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cutting::{fixed, policies, weighs};
use crate::random_chats::{Step, chat, claude, history, step};
use crate::targets::{chats, claudes, responses};
use plimsoll_testkit::recorded_sessions;

/// Mends and cuts, as the filter does.
fn cut<'a>(
    text: &'a str,
    target: &Target,
    budget: u64,
    policy: &Policy,
    counter: &Arc<dyn TokenCounter>,
) -> (String, Result<Option<BodyCut<'a>>, CutError>) {
    let mut chat = Chat::read(text, target.protocol()).unwrap();
    repair(&mut chat, target, Reasoning::Keep);
    let repaired = chat.write().into_owned();
    let body = Body::of(chat, target).unwrap();
    let view = body.transcript(counter);
    let cut = body.cut(&view, policy, &ViewLimits::exactly(Tokens(budget)));
    (repaired, cut)
}

/// The texts of a list's entries, and of the blocks in them.
fn texts(text: &str, key: &str) -> Vec<(String, Vec<String>)> {
    let list = |raw: &str| -> Vec<String> {
        let list: Result<Vec<&RawValue>, _> = serde_json::from_str(raw);
        list.unwrap_or_default()
            .iter()
            .map(|raw| raw.get().to_owned())
            .collect()
    };
    let inside = |raw: &str, key: &str| -> String {
        let object: std::collections::HashMap<String, &RawValue> =
            serde_json::from_str(raw).unwrap();
        object
            .get(key)
            .map(|raw| raw.get().to_owned())
            .unwrap_or_default()
    };
    let of = if text.starts_with('[') {
        list(text)
    } else {
        list(&inside(text, key))
    };
    of.into_iter()
        .map(|entry| (entry.clone(), list(&inside(&entry, "content"))))
        .collect()
}

/// What is judged of every cut; says how much was repaired behind it, if there was one.
fn judge(
    request: &Value,
    target: &Target,
    share: u64,
    policy: &Policy,
    counter: &Arc<dyn TokenCounter>,
) -> Result<Option<usize>, TestCaseError> {
    let text = request.to_string();
    let whole = weighs(&text, target, counter);
    let fixed = fixed(&text, target, counter);
    let budget = (fixed + (whole - fixed) * share / 100).max(1);
    let (before, after) = cut(&text, target, budget, policy, counter);
    let what = |after: &str| format!("{target:?}\n{budget} of {whole}\n{before}\n{after}");
    let cut = match after {
        Ok(Some(cut)) => cut,
        Ok(None) => {
            prop_assert!(weighs(&before, target, counter) <= budget);
            return Ok(None);
        }
        Err(CutError::CannotFit(error)) => {
            prop_assert!(
                error.minimum.0 > budget && budget < whole,
                "{error}\n{}",
                what("")
            );
            return Ok(None);
        }
        Err(error) => return Err(TestCaseError::fail(format!("{error}\n{}", what("")))),
    };
    let mut sent: Value = serde_json::from_str(&cut.chat.write()).unwrap();
    if sent.is_array() || sent.get("model").is_none() {
        sent = json!({"model": "m", "max_tokens": 1, target.protocol().list(): if sent.is_array() { sent } else { sent[target.protocol().list()].take() }});
    }
    let mut faults = target.validate(&sent);
    faults.retain(|fault| {
        fault.place.starts_with(target.protocol().list()) || fault.place.starts_with("system")
    });
    prop_assert!(faults.is_empty(), "{faults:?}\n{}", what(&cut.chat.write()));
    prop_assert!(
        weighs(&cut.chat.write(), target, counter) <= budget,
        "{}\n{}",
        weighs(&cut.chat.write(), target, counter),
        what(&cut.chat.write())
    );
    prop_assert!(cut.repairs.is_empty() || !policy.stages().is_empty());
    let (key, fresh) = (
        target.protocol().list(),
        texts(&before, target.protocol().list()),
    );
    let entries: BTreeSet<&str> = fresh.iter().map(|(entry, _)| entry.as_str()).collect();
    let blocks: BTreeSet<&str> = fresh
        .iter()
        .flat_map(|(_, blocks)| blocks)
        .map(String::as_str)
        .collect();
    let mut edited = 0;
    for (entry, inside) in texts(&cut.chat.write(), key) {
        let kept = entries.contains(entry.as_str())
            || (!inside.is_empty() && inside.iter().all(|block| blocks.contains(block.as_str())));
        edited += usize::from(!kept);
    }
    // What is written otherwise was edited: by the plan, or by what is told. A turn of Responses is
    // several items, of which one edit may touch all.
    let planned = 5 * cut.plan.edits.len();
    prop_assert!(
        edited <= planned + 4 * cut.repairs.len(),
        "{edited} {:?} {:?}\n{}",
        cut.plan,
        cut.repairs,
        what(&cut.chat.write())
    );
    // Other keys.
    for key in ["tools", "seed", "instructions", "max_tokens", "store"] {
        prop_assert_eq!(sent.get(key), request.get(key).or(sent.get(key)), "{}", key);
    }
    // Nothing more is to do with it, and the same bytes come out the second time.
    let once = cut.chat.write();
    let (same, again) = self::cut(&once, target, budget, policy, counter);
    prop_assert_eq!(&same, &cut.chat.write(), "{}", what(&cut.chat.write()));
    prop_assert!(
        matches!(again, Ok(None)),
        "{:?}\n{}",
        again,
        what(&cut.chat.write())
    );
    let (_, twice) = self::cut(&text, target, budget, policy, counter);
    prop_assert_eq!(twice.unwrap().unwrap().chat.write(), cut.chat.write());
    Ok(Some(cut.repairs.len()))
}

fn chars4() -> Arc<dyn TokenCounter> {
    Arc::new(Chars4)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn every_cut_chat_is_valid(steps in prop::collection::vec(step(), 1..14), share in 5_u64..105, policy in 0_usize..4, one in 0_usize..100) {
        let request = chat(&steps);
        let targets = chats();
        judge(&request, &Target::Chat(Dialect::openai()), share, &policies()[policy], &chars4())?;
        judge(&request, &targets[one % targets.len()], share, &policies()[policy], &chars4())?;
    }

    #[test]
    fn every_cut_history_of_responses_is_valid(steps in prop::collection::vec(step(), 1..14), share in 5_u64..105, policy in 0_usize..4, stored in any::<bool>()) {
        let request = history(&steps, stored);
        for target in responses() {
            judge(&request, &target, share, &policies()[policy], &chars4())?;
        }
    }

    #[test]
    fn every_cut_request_to_claude_is_valid(steps in prop::collection::vec(step(), 1..14), share in 5_u64..105, policy in 0_usize..4, thinks in any::<bool>(), one in 0_usize..100) {
        let models = claudes();
        for target in [&models[one % models.len()], &models[4]] {
            let Target::Messages(profile) = target else { continue };
            let budget = matches!(
                profile.thinking,
                anthropic::ThinkingStyle::Budget | anthropic::ThinkingStyle::Unknown
            );
            judge(&claude(&steps, thinks && budget), target, share, &policies()[policy], &chars4())?;
        }
    }

    #[test]
    fn a_bare_list_is_taken_for_what_it_is(steps in prop::collection::vec(step(), 0..14), bare in any::<bool>()) {
        for (whole, key, protocol) in [
            (chat(&steps), "messages", "openai"),
            (history(&steps, false), "input", "openai-responses"),
            (claude(&steps, false), "messages", "anthropic"),
        ] {
            // One that names no model says no more of itself than its list.
            let list = if bare || key == "input" { whole[key].clone() } else { json!({"max_tokens": 100, "messages": whole[key]}) };
            let target = Target::of_request(&list);
            let text = list.to_string();
            let repaired = repair_request(&text, &target, Reasoning::Keep).unwrap();
            // Texts alone are the same in all of them.
            prop_assert!(target.protocol().name() == protocol || repaired.request == text, "{protocol}: {target:?}\n{text}");
        }
    }
}

/// The thinking that is left is byte for byte what was signed; the validator verifies each signature.
#[test]
fn signatures_are_judged() {
    let target = claudes().remove(2);
    let step = Step::Works {
        said: None,
        thinks: true,
        calls: vec![("a".into(), "r".into(), 3)],
        more: None,
    };
    let request = claude(&[step], false);
    assert_eq!(target.validate(&request), []);
    let broken: Value =
        serde_json::from_str(&request.to_string().replace("I thought", "I doubt")).unwrap();
    assert_eq!(target.validate(&broken).len(), 1);
}

/// Recorded sessions, each on all three wires.
#[test]
fn every_recorded_session_can_be_cut() {
    let Some(recorded) = recorded_sessions::sessions() else {
        return;
    };
    let counter: Arc<dyn TokenCounter> = Arc::new(Estimate);
    let (mut sessions, mut cuts, mut repaired) = (0_usize, 0_usize, 0_usize);
    for (_, line) in recorded {
        let session: Value = serde_json::from_str(&line).unwrap();
        let messages = session["messages"].as_array().unwrap();
        sessions += 1;
        let requests = [
            (
                json!({"model": "m", "messages": messages}),
                Target::Chat(Dialect::openai()),
            ),
            (
                as_responses(messages),
                Target::Responses(openai_responses::ResponsesProfile::openai()),
            ),
            (
                as_claude(messages),
                Target::Messages(anthropic::MessagesProfile::of_model("claude-sonnet-4-5")),
            ),
            (
                as_claude(messages),
                Target::Messages(anthropic::MessagesProfile::of_model("claude-opus-5-5")),
            ),
        ];
        // Each on one wire, and the larger ones on another.
        for (at, (request, target)) in requests.iter().enumerate() {
            if at != sessions % 4 && (messages.len() < 60 || at != (sessions + 2) % 4) {
                continue;
            }
            let share = [30, 10, 60][sessions % 3];
            let policies = policies();
            let cut = judge(
                request,
                target,
                share,
                &policies[(sessions + at) % policies.len()],
                &counter,
            );
            let cut = cut.unwrap_or_else(|error| panic!("{}: {error}", session["id"]));
            cuts += usize::from(cut.is_some());
            repaired += usize::from(cut.is_some_and(|repairs| repairs > 0));
        }
    }
    println!("{sessions} sessions, {cuts} cuts, {repaired} of them repaired afterwards");
    assert!(sessions > 0 && cuts > sessions / 2);
}

fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

fn as_responses(messages: &[Value]) -> Value {
    let mut input = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let text = content(message);
        let thought = message["reasoning_content"]
            .as_str()
            .is_some_and(|text| !text.is_empty());
        match message["role"].as_str().unwrap() {
            "tool" => input.push(json!({"type": "function_call_output", "call_id": message["tool_call_id"], "output": text})),
            "assistant" => {
                if thought {
                    input.push(json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": [], "encrypted_content": "gAAA"}));
                }
                if !text.is_empty() {
                    input.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]}));
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let mut item = json!({"type": "function_call", "call_id": call["id"], "name": call["function"]["name"], "arguments": call["function"]["arguments"]});
                    if thought {
                        item["id"] = format!("fc_{}", call["id"].as_str().unwrap()).into();
                    }
                    input.push(item);
                }
            }
            role => input.push(json!({"type": "message", "role": role, "content": text})),
        }
    }
    json!({"model": "m", "instructions": "You mend.", "store": false, "input": input})
}

fn as_claude(messages: &[Value]) -> Value {
    let mut request = json!({"model": "claude", "max_tokens": 4000, "system": "", "messages": []});
    for message in messages {
        let text = content(message);
        let text_block = |text: &str| json!({"type": "text", "text": text});
        let (role, blocks) = match message["role"].as_str().unwrap() {
            "system" => {
                let before = request["system"].as_str().unwrap().to_owned();
                request["system"] = format!("{before}{text}").into();
                continue;
            }
            "tool" => (
                "user",
                vec![
                    json!({"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": text}),
                ],
            ),
            "assistant" => {
                let mut blocks = Vec::new();
                let thought = message["reasoning_content"]
                    .as_str()
                    .filter(|text| !text.is_empty());
                if let Some(thought) = thought {
                    let signature = judge::anthropic::sign(&request, thought);
                    blocks.push(
                        json!({"type": "thinking", "thinking": thought, "signature": signature}),
                    );
                }
                if !text.trim().is_empty() {
                    blocks.push(text_block(&text));
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let input = call["function"]["arguments"].as_str().unwrap_or("{}");
                    let input: Value = serde_json::from_str(input).unwrap_or(json!({}));
                    blocks.push(json!({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": if input.is_object() { input } else { json!({}) }}));
                }
                ("assistant", blocks)
            }
            _ => ("user", vec![text_block(&text)]),
        };
        let list = request["messages"].as_array_mut().unwrap();
        match list
            .last_mut()
            .filter(|last| last["role"] == role && role == "user")
        {
            Some(last) => last["content"].as_array_mut().unwrap().extend(blocks),
            None => list.push(json!({"role": role, "content": blocks})),
        }
    }
    request
}
