//! Properties of every view on Anthropic Messages: each model accepts it, older requests are
//! prefixes of newer ones, and everything that the protocol can represent is read back.

use plimsoll_context::{
    Breakpoint, CachePlan, CacheRetention, CallId, Message, Part, ToolCall, ToolResult, ToolSpec,
};
use plimsoll_mock::rules::anthropic::validate;
use plimsoll_testkit::messages::{
    BatchCall, arguments, batch, between, data, file, history, image, opaque, some_text, thinking,
    url,
};
use plimsoll_wire::anthropic::{MessagesProfile, read, render};
use plimsoll_wire::{Effort, RenderInput, ToolChoice};
use proptest::prelude::*;
use serde_json::{Value, json};

/// One model of each kind.
const MODELS: [&str; 6] = [
    "claude-3-5-haiku-latest",
    "claude-sonnet-4-5",
    "claude-opus-4-6",
    "claude-opus-4-8",
    "claude-opus-5-5",
    "gopher",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ -~]{0,20}",
        4 => "[a-z日本語🦀é\n\"\\\\]{1,12}",
        1 => Just(String::new()),
        1 => Just(" \n".to_owned()),
    ]
}

fn media() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(image(url("https://x/y.png"))),
        Just(image(url("file_010"))),
        Just(image(data("image/png"))),
        Just(file(Some("a.pdf"), data("application/pdf"))),
        Just(file(None, url("file_011"))),
    ]
}

/// What some models read and this API does not, and what is another provider's.
fn foreign() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(image(data("image/tiff"))),
        Just(Part::Opaque(opaque(
            "openai-chat",
            r#"{"type":"input_audio"}"#
        ))),
        Just(Part::Opaque(opaque("anthropic", "[]"))),
        Just(thinking("hm")),
    ]
}

fn user() -> impl Strategy<Value = Message> {
    let search = r#"{"type":"search_result", "source":"s","title":"t","content":[]}"#;
    let search = Part::Opaque(opaque("anthropic", search));
    let part = prop_oneof![
        4 => text().prop_map(Part::text),
        1 => media(),
        1 => foreign(),
        1 => Just(search),
    ];
    proptest::collection::vec(part, 1..4).prop_map(|parts| Message::User { parts })
}

/// Arguments of a call, some of them broken in ways that this API refuses.
fn any_arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => arguments(),
        1 => Just("{\"x\":1e999}".to_owned()),
        1 => Just("[]".to_owned()),
    ]
}

fn signed(kind: u8, text: &str) -> Part {
    let data = match kind {
        0 => json!({"type": "redacted_thinking", "data": "EmwK"}).to_string(),
        // Keys in no usual order, and spaces.
        1 => format!(
            r#"{{"signature": "EqQB","type":"thinking", "thinking":{}}}"#,
            json!(text)
        ),
        _ => {
            let block = json!({"type": "thinking", "thinking": text, "signature": "EqQB"});
            json!({"model": "other", "prefix": "00", "block": block}).to_string()
        }
    };
    Part::Thinking(plimsoll_context::Thinking {
        text: if kind == 0 {
            String::new()
        } else {
            text.into()
        },
        opaque: Some(opaque("anthropic", data)),
    })
}

/// A block of a model of another provider, beside its texts and calls.
fn of_another() -> impl Strategy<Value = Part> {
    let search = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#;
    let details = r#"{"reasoning_details":[{"type":"reasoning.text","text":"hm"}]}"#;
    let code = r#"{"executableCode":{"language":"PYTHON","code":"1"}}"#;
    let reasoning = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA=="}"#;
    let thought = plimsoll_context::Thinking {
        text: "hm".into(),
        opaque: Some(opaque("openai-responses", reasoning)),
    };
    prop_oneof![
        Just(Part::Opaque(opaque("openai-responses", search))),
        Just(Part::Opaque(opaque("openai-chat", details))),
        Just(Part::Opaque(opaque("gemini", code))),
        Just(Part::Thinking(thought)),
    ]
}

/// Whether this API could have signed the thinking.
fn is_own(thinking: &plimsoll_context::Thinking) -> bool {
    let own = thinking.opaque.as_ref();
    let own = own.filter(|own| own.origin == "anthropic");
    own.is_some_and(|own| !own.data.starts_with("{\"model"))
}

/// A piece of history that is whole in itself.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    let calls = (
        proptest::option::of(of_another()),
        proptest::option::of((0_u8..3, some_text())),
        proptest::option::of(text()),
        proptest::collection::vec((any_arguments(), text(), 0_u8..8), 1..4),
        prop_oneof![Just("toolu_"), Just("call."), Just("")],
        prop_oneof![any::<u16>(), Just(0)],
    )
        .prop_map(|(other, thought, said, calls, prefix, number)| {
            let thought = thought.map(|(kind, text)| signed(kind, &text));
            let thoughts = other.into_iter().chain(thought);
            let parts = thoughts.chain(said.map(Part::text)).collect();
            let calls = calls.into_iter().map(|(arguments, text, what)| {
                let picture = (what > 5).then(|| image(data("image/png")));
                BatchCall {
                    name: if what == 0 { "no such/name" } else { "read" }.into(),
                    arguments,
                    opaque: None,
                    result: [Part::text(text)].into_iter().chain(picture).collect(),
                    is_error: what % 2 == 1,
                }
            });
            batch(parts, calls, |index| format!("{prefix}{number}_{index}"))
        });
    let thought = (0_u8..3, some_text(), text()).prop_map(|(kind, thought, said)| {
        vec![Message::Assistant {
            parts: vec![signed(kind, &thought), Part::text(said)],
        }]
    });
    let other = (of_another(), proptest::option::of(text()), any::<bool>());
    let other = other.prop_map(|(part, said, is_first)| {
        let mut parts: Vec<Part> = said.map(Part::text).into_iter().collect();
        parts.insert(if is_first { 0 } else { parts.len() }, part);
        vec![Message::Assistant { parts }]
    });
    prop_oneof![
        3 => user().prop_map(|message| vec![message]),
        1 => other,
        2 => some_text().prop_map(|text| vec![Message::assistant(text)]),
        1 => thought,
        5 => calls,
        4 => between(),
        1 => text().prop_map(|text| vec![Message::Notice { text }]),
    ]
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str, schema| ToolSpec {
        name: name.into(),
        description: "x".into(),
        schema,
    };
    vec![
        tool("write", json!({"type": "object", "properties": {}})),
        tool("read", json!({})),
        tool("list", Value::Null),
    ]
}

const RETENTIONS: [CacheRetention; 3] = [
    CacheRetention::Usual,
    CacheRetention::Head,
    CacheRetention::Long,
];

fn effort() -> impl Strategy<Value = Option<Effort>> {
    prop_oneof![
        Just(None),
        Just(Some(Effort::Minimal)),
        Just(Some(Effort::Low)),
        Just(Some(Effort::Medium)),
        Just(Some(Effort::High)),
    ]
}

fn bytes(messages: &[Message], input: &RenderInput<'_>, profile: &MessagesProfile) -> Vec<u8> {
    render(input, messages, profile).unwrap().body
}

/// The body up to the end of its last block.
fn prefix(body: &[u8]) -> &[u8] {
    let settings = body
        .windows(15)
        .rposition(|window| window == b"]}],\"max_tokens")
        .unwrap();
    &body[..settings]
}

proptest! {
    #[test]
    fn every_model_accepts_every_view(
        messages in history(exchange()),
        system in proptest::option::of(text()),
        context in proptest::option::of(text()),
        effort in effort(),
        max_output in proptest::option::of(1_u64..200_000),
        temperature in proptest::option::of(-1.0..3.0),
        calls in any::<bool>(),
        marks in proptest::collection::btree_set(0_usize..12, 0..7),
        retention in 0_u8..3,
    ) {
        let tools = tools();
        let mut breakpoints = vec![Breakpoint::Tools, Breakpoint::System];
        breakpoints.extend(marks.into_iter().map(Breakpoint::Message));
        let retention = RETENTIONS[usize::from(retention)];
        let cache = CachePlan { breakpoints, retention, ..CachePlan::default() };
        for model in MODELS {
            let profile = MessagesProfile::of_model(model);
            let input = RenderInput {
                model,
                system: system.as_deref(),
                tools: &tools,
                tool_choice: if calls { ToolChoice::Auto } else { ToolChoice::None },
                max_output,
                effort,
                temperature,
                context: context.as_deref(),
                cache: Some(&cache),
                ..RenderInput::default()
            };
            let rendered = render(&input, &messages, &profile).unwrap();
            prop_assert_eq!(&rendered, &render(&input, &messages, &profile).unwrap());
            let body: Value = serde_json::from_slice(&rendered.body).unwrap();
            let faults = validate(&body, &profile);
            prop_assert!(faults.is_empty(), "{model} {faults:?} {body}");
        }
    }

    /// A request is sent when the assistant's turn comes, and the history only grows after it.
    #[test]
    fn older_requests_are_prefixes_of_newer_ones(
        messages in history(exchange()),
        system in proptest::option::of(some_text()),
    ) {
        let tools = tools();
        for model in MODELS {
            let profile = MessagesProfile::of_model(model);
            // Of thinking that came without its prefix only that of the newest loop goes back to
            // models that bind it, so there older requests differ.
            if model == "claude-opus-5-5" {
                continue;
            }
            let input = RenderInput {
                model,
                system: system.as_deref(),
                tools: &tools,
                ..RenderInput::default()
            };
            let whole = bytes(&messages, &input, &profile);
            for (at, pair) in messages.windows(2).enumerate() {
                let asked = matches!(
                    pair,
                    [Message::User { .. } | Message::ToolResult(_), Message::Assistant { parts }]
                        if !parts.is_empty()
                );
                let says = pair[0].parts().iter().any(|part| {
                    matches!(part, Part::Text { text } if !text.trim().is_empty())
                });
                if !asked || !(says || matches!(pair[0], Message::ToolResult(_))) {
                    continue;
                }
                // Thinking of a loop goes whole, when a later part of the loop says so.
                let foreign = messages[at..].iter().take_while(|message| !message.is_user());
                if foreign.flat_map(Message::parts).any(|part| {
                    matches!(part, Part::Thinking(thinking) if !is_own(thinking))
                }) {
                    continue;
                }
                let older = bytes(&messages[..=at], &input, &profile);
                let older = prefix(&older);
                prop_assert!(
                    whole.starts_with(older),
                    "{model}\n{}\n{}",
                    String::from_utf8_lossy(older),
                    String::from_utf8_lossy(&whole)
                );
            }
        }
    }

    #[test]
    fn a_rendered_history_is_read_back(messages in history(exchange())) {
        // Its thinking goes back, whether or not it is asked to think on.
        let profile = MessagesProfile {
            unasked_thinking: true,
            ..MessagesProfile::of_model("claude-sonnet-4-5")
        };
        let held = held(messages);
        let input = RenderInput { model: "claude-sonnet-4-5", ..RenderInput::default() };
        let rendered = render(&input, &held, &profile).unwrap();
        prop_assert_eq!(&rendered.notes, &[]);
        let body = String::from_utf8(rendered.body).unwrap();
        let chat = read(&body).unwrap();
        prop_assert_eq!(&chat.messages, &held);
        prop_assert_eq!(bytes(&chat.messages, &input, &profile), body.into_bytes());
    }
}

/// The messages without what the wire cannot hold.
fn held(messages: Vec<Message>) -> Vec<Message> {
    let mut held: Vec<Message> = Vec::new();
    let mut ids = std::collections::BTreeMap::new();
    let mut calls = 0;
    for message in messages {
        let message = match message {
            Message::System { .. } | Message::Notice { .. } => continue,
            Message::Summary { text } => Message::Summary { text },
            Message::User { parts } => Message::User { parts: kept(parts) },
            Message::Assistant { parts } => Message::Assistant {
                parts: kept(parts)
                    .into_iter()
                    .map(|part| call_of(part, &mut ids, &mut calls))
                    .collect(),
            },
            Message::ToolResult(result) => {
                let failed = result.is_error;
                let mut parts = kept(result.parts);
                parts.retain(|part| !failed || matches!(part, Part::Text { .. }));
                let call = ids.get(&result.call).cloned().unwrap_or(result.call);
                Message::ToolResult(ToolResult {
                    call,
                    parts,
                    ..result
                })
            }
        };
        let silent = message
            .parts()
            .iter()
            .all(|part| matches!(part, Part::Thinking(_)));
        match (&message, held.last()) {
            (Message::ToolResult(_) | Message::Summary { .. }, _) => {}
            _ if silent => continue,
            // Neighbours become one, the user speaks first, and a prefill is for another test.
            (Message::User { .. }, Some(Message::User { .. }))
            | (Message::Assistant { .. }, Some(Message::Assistant { .. }) | None) => continue,
            _ => {}
        }
        held.push(message);
    }
    if matches!(held.last(), Some(Message::Assistant { .. }) | None) {
        held.push(Message::user("and now?"));
    }
    held
}

fn kept(parts: Vec<Part>) -> Vec<Part> {
    let mut parts: Vec<Part> = parts
        .into_iter()
        .filter(|part| match part {
            Part::Text { text } => !text.trim().is_empty(),
            Part::Image(shown) => *part != image(data("image/tiff")) || shown.size.is_some(),
            Part::Opaque(opaque) => opaque.origin == "anthropic" && opaque.data.starts_with('{'),
            Part::Thinking(thinking) => is_own(thinking),
            _ => true,
        })
        .collect();
    while matches!(parts.last(), Some(Part::Thinking(_))) {
        parts.pop();
    }
    parts
}

/// The call as the wire holds it: an id and a name of legal characters, an object for arguments.
fn call_of(
    part: Part,
    ids: &mut std::collections::BTreeMap<CallId, CallId>,
    calls: &mut usize,
) -> Part {
    let Part::ToolCall(call) = part else {
        return part;
    };
    let id = CallId(format!("toolu_{calls}"));
    *calls += 1;
    ids.insert(call.id, id.clone());
    let fine = serde_json::from_str::<Value>(&call.arguments).is_ok_and(|value| value.is_object());
    Part::ToolCall(ToolCall {
        id,
        name: "read".into(),
        arguments: if fine { call.arguments } else { "{}".into() },
        opaque: None,
    })
}
