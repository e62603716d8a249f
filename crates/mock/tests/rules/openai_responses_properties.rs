//! Properties of every view on OpenAI Responses: each profile's server accepts it, older requests
//! are prefixes of newer ones, and everything that the protocol can represent is read back.

use plimsoll_context::{CallId, Image, Message, Opaque, Part, Thinking, ToolCall, ToolSpec};
use plimsoll_mock::rules::openai_responses::validate;
use plimsoll_testkit::messages::{
    BatchCall, arguments, batch, between, data, file, history, image, opaque, some_text, text,
    thinking, url,
};
use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile, read, read_reply, render};
use plimsoll_wire::{Effort, RenderInput};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::unique_ids::with_unique_ids;

fn own(data: impl Into<String>) -> Opaque {
    opaque("openai-responses", data)
}

fn attachment() -> impl Strategy<Value = Part> {
    let sources = prop_oneof![
        Just(data("image/png")),
        Just(url("https://x/y")),
        Just(url("file-123"))
    ];
    (sources, any::<bool>()).prop_map(|(source, image)| {
        if image {
            Part::Image(Image {
                source,
                size: None,
                detail: Some("low".into()),
            })
        } else {
            file(Some("a.pdf"), source)
        }
    })
}

fn audio() -> Part {
    Part::Opaque(own(
        r#"{"type":"input_audio", "input_audio":{"data":"AA==","n":1.50}}"#,
    ))
}

fn user() -> impl Strategy<Value = Message> {
    let part = prop_oneof![4 => text().prop_map(Part::text), 1 => attachment(), 1 => Just(audio())];
    prop::collection::vec(part, 1..4).prop_map(|parts| Message::User { parts })
}

/// Reasoning of this wire, of another, and such that cannot be sent.
fn reasoning() -> impl Strategy<Value = Part> {
    let raw = (text(), any::<bool>(), any::<u16>()).prop_map(|(summary, encrypted, number)| {
        let content = if encrypted {
            r#","encrypted_content":"gA\u002b=""#
        } else {
            ""
        };
        let parts = json!([{"type": "summary_text", "text": summary}]);
        let raw = format!(
            r#"{{"id":"rs_{number}", "type":"reasoning","summary":{parts}{content},"n":1.50}}"#
        );
        (summary, own(raw))
    });
    let foreign = opaque("anthropic", r#"{"signature":"x"}"#);
    prop_oneof![
        6 => raw.prop_map(|(text, opaque)| Part::Thinking(Thinking { text, opaque: Some(opaque) })),
        1 => text().prop_map(|text| thinking(&text)),
        1 => text().prop_map(move |text| Part::Thinking(Thinking {
            text,
            opaque: Some(foreign.clone()),
        })),
    ]
}

fn item_ids() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![
        Just(None),
        Just(Some(r#"{"id":"fc_1"}"#)),
        Just(Some(r#"{"id":"call_1","namespace":"crm"}"#)),
        Just(Some(r#"{"type":"custom_tool_call","id":"ctc_1"}"#)),
        Just(Some(r#"{"type":"custom_tool_call"}"#)),
    ]
}

/// What the model says besides calls: never nothing, as no reply is.
fn said() -> impl Strategy<Value = Vec<Part>> {
    let phase = Part::Opaque(own(r#"{"phase":"commentary"}"#));
    let search = r#"{"type":"web_search_call", "id":"ws_1","status":"completed","n":1.50}"#;
    let search = Part::Opaque(own(search));
    prop_oneof![
        4 => some_text().prop_map(|text| vec![Part::text(text)]),
        1 => (some_text(), some_text()).prop_map(|(one, two)| vec![Part::text(one), Part::text(two)]),
        1 => some_text().prop_map(move |text| vec![phase.clone(), Part::text(text)]),
        1 => Just(vec![search]),
    ]
}

/// A piece of history that is whole in itself.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    let call = (
        arguments(),
        item_ids(),
        prop::collection::vec(text(), 0..3),
        any::<bool>(),
    );
    let names = prop::sample::select(vec!["read_file", "fs.read", "läs"]);
    let calls = (
        prop::collection::vec(reasoning(), 0..3),
        prop::option::of(said()),
        prop::option::of(reasoning()),
        prop::collection::vec(call, 1..4),
        prop::option::of(reasoning()),
        (
            prop_oneof![any::<u32>(), Just(0)],
            names,
            prop_oneof![Just(0usize), Just(70)],
        ),
    )
        .prop_map(
            |(first, said, second, calls, last, (number, name, padding))| {
                let mut parts = first;
                parts.extend(said.into_iter().flatten());
                parts.extend(second);
                let calls = calls.into_iter().enumerate();
                let calls = calls.map(|(index, (arguments, item, texts, with_image))| {
                    let picture = with_image.then(|| image(url("https://x")));
                    BatchCall {
                        name: name.into(),
                        arguments,
                        opaque: item.map(own),
                        result: texts.into_iter().map(Part::text).chain(picture).collect(),
                        is_error: index == 1,
                    }
                });
                parts.extend(last);
                let padding = "x".repeat(padding);
                batch(parts, calls, |index| {
                    format!("call_{number}_{index}{padding}")
                })
            },
        );
    let answer = (prop::option::of(reasoning()), said()).prop_map(|(thinking, said)| {
        let parts = thinking.into_iter().chain(said).collect();
        vec![Message::Assistant { parts }]
    });
    prop_oneof![
        3 => user().prop_map(|message| vec![message]),
        3 => answer,
        4 => calls,
        4 => between(),
        1 => reasoning().prop_map(|part| vec![Message::Assistant { parts: vec![part] }]),
    ]
}

fn profiles() -> Vec<ResponsesProfile> {
    vec![
        ResponsesProfile::openai(),
        ResponsesProfile::plain(),
        ResponsesProfile::compatible(),
        ResponsesProfile {
            efforts: vec![Effort::None, Effort::High, Effort::Xhigh],
            ..ResponsesProfile::openai()
        },
    ]
}

fn bytes(messages: &[Message], profile: &ResponsesProfile) -> Vec<u8> {
    let input = RenderInput {
        model: "m",
        system: Some("s"),
        ..RenderInput::default()
    };
    render(&input, messages, profile).unwrap().body
}

/// The body up to the end of its last item.
fn prefix(body: &[u8]) -> &[u8] {
    let settings = body
        .windows(9)
        .rposition(|window| window == b"],\"store\"")
        .unwrap();
    &body[..settings]
}

proptest! {
    #[test]
    fn every_server_accepts_every_view(
        messages in history(exchange()),
        schema in prop::sample::select(vec![json!(null), json!({"type": "object"}), json!({
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
            "additionalProperties": false})]),
        effort in prop::option::of(prop::sample::select(Effort::ALL.to_vec())),
        temperature in prop::option::of(Just(0.5)),
        max_output in prop::option::of(0u64..40),
    ) {
        let tools = [ToolSpec { name: "f".into(), description: "d".into(), schema: schema.clone() }];
        for profile in profiles() {
            let input = RenderInput {
                model: "m", tools: &tools, effort, temperature, max_output,
                context: Some("now"),
                ..RenderInput::default()
            };
            let rendered = render(&input, &messages, &profile).unwrap();
            prop_assert_eq!(&rendered, &render(&input, &messages, &profile).unwrap());
            let body: Value = serde_json::from_slice(&rendered.body).unwrap();
            let faults = validate(&body, &profile);
            prop_assert!(faults.is_empty(), "{} {:?} {}", profile.name, faults, body);
        }
    }

    /// A request is sent when the model's turn comes, and the history only grows after it.
    #[test]
    fn older_requests_are_prefixes_of_newer_ones(messages in history(exchange())) {
        for profile in profiles() {
            let whole = bytes(&messages, &profile);
            for at in 1..=messages.len() {
                let older = bytes(&messages[..at], &profile);
                // Somebody has to speak where nobody did.
                let items: Value = serde_json::from_slice(&older).unwrap();
                let opening = items["input"].as_array().unwrap().len() == 1;
                let older = prefix(&older);
                prop_assert!(
                    opening || whole.starts_with(older),
                    "{}\n{}", String::from_utf8_lossy(older), String::from_utf8_lossy(&whole)
                );
            }
        }
    }

    #[test]
    fn a_rendered_history_is_read_back(messages in history(exchange())) {
        let profile = ResponsesProfile { reasoning: ReasoningItems::Plain, ..ResponsesProfile::openai() };
        let held = held(messages);
        let body = String::from_utf8(bytes(&held, &profile)).unwrap();
        let chat = read(&body).unwrap();
        if !held.is_empty() {
            prop_assert_eq!(&chat.messages[1..], &held);
        }
        prop_assert_eq!(&chat.messages[0], &Message::system("s"));
        prop_assert_eq!(bytes(&chat.messages[1..], &profile), body.as_bytes());
    }

    /// What a model said goes back as it came: its items are the items of the next request.
    #[test]
    fn a_reply_goes_back_as_it_came(parts in said(), before in prop::option::of(reasoning())) {
        let profile = ResponsesProfile { reasoning: ReasoningItems::Plain, ..ResponsesProfile::openai() };
        let turn = Message::Assistant { parts: before.into_iter().chain(parts).collect() };
        let body: Value = serde_json::from_slice(&bytes(&[turn], &profile)).unwrap();
        let whole = json!({"status": "completed", "output": body["input"]}).to_string();
        let reply = read_reply(&whole).unwrap();
        let again = Message::Assistant { parts: reply.parts };
        let again: Value = serde_json::from_slice(&bytes(&[again], &profile)).unwrap();
        prop_assert_eq!(&again["input"], &body["input"]);
    }
}

/// The history without what the wire cannot hold.
fn held(messages: Vec<Message>) -> Vec<Message> {
    let mut held: Vec<Message> = Vec::new();
    for message in messages {
        let message = match message {
            Message::Notice { .. } => continue,
            Message::Assistant { mut parts } => {
                parts.retain(|part| match part {
                    Part::Thinking(thinking) => thinking
                        .opaque
                        .as_ref()
                        .is_some_and(|opaque| opaque.origin == "openai-responses"),
                    _ => true,
                });
                while let Some(Part::Thinking(_)) = parts.last() {
                    parts.pop();
                }
                for part in &mut parts {
                    if let Part::ToolCall(call) = part {
                        keep_of(call);
                    }
                }
                if parts.is_empty() {
                    continue;
                }
                // Two turns of the model's in a row may become one.
                if let Some(Message::Assistant { .. }) = held.last() {
                    held.push(Message::user("and"));
                }
                Message::Assistant { parts }
            }
            Message::ToolResult(mut result) => {
                result.is_error = false;
                result.call = short(&result.call);
                if result.parts.is_empty() {
                    result.parts.push(Part::text(""));
                }
                Message::ToolResult(result)
            }
            other => other,
        };
        held.push(message);
    }
    with_unique_ids(&mut held);
    held
}

fn keep_of(call: &mut ToolCall) {
    call.id = short(&call.id);
    call.name = "f".into();
    // An id that may not be sent.
    if call
        .opaque
        .as_ref()
        .is_some_and(|opaque| opaque.data.contains("call_1"))
    {
        call.opaque = Some(own(r#"{"namespace":"crm"}"#));
    }
    // The keys of a custom call come back in the wire's order.
}

/// An id that may be sent.
fn short(id: &CallId) -> CallId {
    CallId(id.0.trim_end_matches('x').to_owned())
}
