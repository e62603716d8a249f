//! Random sessions in each of the three protocols.

use plimsoll_mock::rules as judge;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Few words or many, so that some must be cut and some can leave.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z日🦀\"\\\\]{1,12}",
        3 => (1_usize..120, "[a-z/_.]{1,8}").prop_map(|(count, word)| format!("{word} ").repeat(count) + "end"),
        1 => (20_usize..400).prop_map(|lines| (0..lines).map(|at| format!("{at}: value\n")).collect::<String>() + "end"),
    ]
}

/// One step of a session, as no wire has it yet.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Asks {
        text: String,
        image: bool,
    },
    Answers {
        text: String,
        thinks: bool,
    },
    Works {
        said: Option<String>,
        thinks: bool,
        calls: Vec<(String, String, u8)>,
        more: Option<String>,
    },
    Own(u8),
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let call = (text(), text(), 0_u8..5);
    prop_oneof![
        2 => (text(), any::<bool>()).prop_map(|(text, image)| Step::Asks { text, image }),
        2 => (text(), any::<bool>()).prop_map(|(text, thinks)| Step::Answers { text, thinks }),
        5 => (prop::option::of(text()), any::<bool>(), prop::collection::vec(call, 1..4), prop::option::weighted(0.2, text()))
            .prop_map(|(said, thinks, calls, more)| Step::Works { said, thinks, calls, more }),
        1 => (0_u8..4).prop_map(Step::Own),
    ]
}

fn image(kind: u8) -> Value {
    match kind {
        0 => json!({"type": "image_url", "image_url": {"url": "https://x/y.png"}}),
        1 => json!({"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"}),
        _ => {
            json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}})
        }
    }
}

pub(crate) fn chat(steps: &[Step]) -> Value {
    let mut list = vec![
        json!({"role": "system", "content": "You mend."}),
        json!({"role": "user", "content": "The task."}),
    ];
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Asks { text, image: true } => list.push(
                json!({"role": "user", "content": [{"type": "text", "text": text}, image(0)]}),
            ),
            Step::Asks { text, .. } => {
                list.push(json!({"role": "user", "content": text, "name": "ann"}))
            }
            Step::Answers { text, thinks } => {
                let mut message = json!({"role": "assistant", "content": text, "annotations": []});
                if *thinks {
                    message["reasoning_content"] = "I thought.".into();
                }
                list.push(message);
            }
            Step::Works {
                said, calls, more, ..
            } => {
                let call = |(nth, (arguments, ..)): (usize, &(String, String, u8))| json!({"id": format!("c{at}x{nth}"), "type": "function", "function": {"name": "f", "arguments": json!({"a": arguments}).to_string()}});
                let asked: Vec<Value> = calls.iter().enumerate().map(call).collect();
                list.push(json!({"role": "assistant", "content": said, "tool_calls": asked}));
                for (nth, (_, result, _)) in calls.iter().enumerate() {
                    list.push(json!({"role": "tool", "tool_call_id": format!("c{at}x{nth}"), "content": result}));
                }
                list.extend(
                    more.iter()
                        .map(|text| json!({"role": "user", "content": text})),
                );
            }
            Step::Own(_) => {
                list.push(json!({"role": "assistant", "content": "Refused.", "refusal": "no"}))
            }
        }
    }
    list.push(json!({"role": "user", "content": "Go on."}));
    json!({"model": "m", "messages": list, "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}], "seed": 1})
}

pub(crate) fn history(steps: &[Step], stored: bool) -> Value {
    let mut list = vec![json!({"role": "user", "content": "The task."})];
    let reasoning = |at: usize| json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": [{"type": "summary_text", "text": "I thought."}], "encrypted_content": "g".repeat(60)});
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Asks { text, image: true } => list.push(json!({"role": "user", "content": [{"type": "input_text", "text": text}, image(1)]})),
            Step::Asks { text, .. } => list.push(json!({"type": "message", "role": "user", "content": text})),
            Step::Answers { text, thinks } => {
                let mut said = json!({"type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": [{"type": "url_citation", "url": "u"}]}]});
                if *thinks {
                    list.push(reasoning(at));
                    said["id"] = format!("msg_{at}").into();
                }
                list.push(said);
            }
            Step::Works { said, thinks, calls, more } => {
                if *thinks {
                    list.push(reasoning(at));
                }
                list.extend(said.iter().map(|text| json!({"role": "assistant", "content": text})));
                for (nth, (arguments, _, kind)) in calls.iter().enumerate() {
                    let id = format!("c{at}x{nth}");
                    let mut call = match kind {
                        0 => json!({"type": "custom_tool_call", "call_id": id, "name": "g", "input": arguments}),
                        _ => json!({"type": "function_call", "call_id": id, "name": "f", "arguments": json!({"a": arguments}).to_string(), "status": "completed"}),
                    };
                    if *thinks {
                        let prefix = if *kind == 0 { "ctc" } else { "fc" };
                        call["id"] = format!("{prefix}_{at}_{nth}").into();
                    }
                    list.push(call);
                }
                for (nth, (_, result, kind)) in calls.iter().enumerate() {
                    let output = match kind {
                        1 => json!([{"type": "input_text", "text": result}, image(1)]),
                        _ => json!(result),
                    };
                    let of = if *kind == 0 { "custom_tool_call_output" } else { "function_call_output" };
                    list.push(json!({"type": of, "call_id": format!("c{at}x{nth}"), "output": output}));
                }
                list.extend(more.iter().map(|text| json!({"role": "user", "content": text})));
            }
            Step::Own(0) => list.push(json!({"type": "web_search_call", "id": format!("ws_{at}"), "status": "completed"})),
            Step::Own(1) => list.push(json!({"type": "compaction", "encrypted_content": "gC"})),
            Step::Own(_) => {
                list.push(json!({"type": "computer_call", "call_id": format!("k{at}"), "id": format!("cu_{at}"), "action": {"type": "click"}}));
                list.push(json!({"type": "computer_call_output", "call_id": format!("k{at}"), "output": {"type": "computer_screenshot"}}));
            }
        }
    }
    list.push(json!({"role": "user", "content": "Go on."}));
    json!({"model": "m", "instructions": "You mend.", "input": list, "store": stored,
        "tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "web_search"}]})
}

/// With thinking that is signed as a strict server signs it, so that it is judged byte for byte and by
/// what it is bound to.
pub(crate) fn claude(steps: &[Step], thinks_now: bool) -> Value {
    let mut request = json!({"model": "claude", "max_tokens": 4000, "system": [{"type": "text", "text": "You mend.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "f", "input_schema": {"type": "object"}}], "messages": [{"role": "user", "content": "The task."}]});
    if thinks_now {
        request["thinking"] = json!({"type": "enabled", "budget_tokens": 2000});
    }
    let say = |request: &mut Value, role: &str, mut blocks: Vec<Value>| {
        let list = request["messages"].as_array_mut().unwrap();
        match list
            .last_mut()
            .filter(|last| last["role"] == role && last["content"].is_array())
        {
            Some(last) => last["content"].as_array_mut().unwrap().append(&mut blocks),
            None => list.push(json!({"role": role, "content": blocks})),
        }
    };
    for (at, step) in steps.iter().enumerate() {
        // What a turn begins with is signed under all that came before it.
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let fresh = last["role"] == "user";
        let thought = |request: &Value| {
            let text = format!("I thought of {at}.");
            json!({"signature": judge::anthropic::sign(request, &text), "thinking": text, "type": "thinking"})
        };
        match step {
            Step::Asks { text, image: true } => say(
                &mut request,
                "user",
                vec![json!({"type": "text", "text": text}), image(2)],
            ),
            Step::Asks { text, .. } => say(
                &mut request,
                "user",
                vec![json!({"type": "text", "text": text, "x": 1})],
            ),
            Step::Answers { text, thinks } => {
                let mut blocks = Vec::new();
                if *thinks && fresh {
                    blocks.push(thought(&request));
                }
                blocks.push(json!({"type": "text", "text": text, "citations": [{"type": "char_location", "cited_text": "c"}]}));
                say(&mut request, "assistant", blocks);
            }
            Step::Works {
                said,
                thinks,
                calls,
                more,
            } => {
                let mut blocks = Vec::new();
                if *thinks && fresh {
                    blocks.push(thought(&request));
                }
                blocks.extend(
                    said.iter()
                        .map(|text| json!({"type": "text", "text": text})),
                );
                for (nth, (arguments, ..)) in calls.iter().enumerate() {
                    blocks.push(json!({"type": "tool_use", "id": format!("c{at}x{nth}"), "name": "f", "input": {"a": arguments, "n": 1.50}}));
                }
                say(&mut request, "assistant", blocks);
                let mut results = Vec::new();
                for (nth, (_, result, kind)) in calls.iter().enumerate() {
                    let content = match kind {
                        0 => json!([{"type": "text", "text": result}, image(2)]),
                        1 => json!([{"type": "text", "text": result}]),
                        _ => json!(result),
                    };
                    let mut result = json!({"type": "tool_result", "tool_use_id": format!("c{at}x{nth}"), "content": content});
                    if *kind == 2 {
                        result["is_error"] = true.into();
                    }
                    results.push(result);
                }
                results.extend(
                    more.iter()
                        .map(|text| json!({"type": "text", "text": text})),
                );
                say(&mut request, "user", results);
            }
            Step::Own(0) => say(
                &mut request,
                "assistant",
                vec![json!({"type": "compaction", "content": "What was."})],
            ),
            Step::Own(_) => {
                let id = format!("srv{at}");
                say(
                    &mut request,
                    "assistant",
                    vec![
                        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}),
                        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []}),
                        json!({"type": "text", "text": "Searched."}),
                    ],
                );
            }
        }
    }
    say(
        &mut request,
        "user",
        vec![json!({"type": "text", "text": "Go on.", "cache_control": {"type": "ephemeral"}})],
    );
    request
}
