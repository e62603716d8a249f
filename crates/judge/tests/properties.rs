//! Properties of every view: the server of each dialect accepts it, older requests are prefixes of
//! newer ones, and everything that the protocol can represent is read back.

mod every_dialect;
mod unique_ids;

use every_dialect::dialects;
use std::sync::Arc;

use plimsoll_context::{
    Breakpoint, CachePlan, CallId, Image, Message, MessageList, Opaque, Part, Source, Thinking,
    ToolCall, ToolResult,
};
use plimsoll_judge::openai_chat::validate;
use plimsoll_wire::openai_chat::{Dialect, EchoReasoning, read, render, render_next};
use plimsoll_wire::{RenderInput, WrittenMessages};
use proptest::prelude::*;
use serde_json::Value;
use unique_ids::with_unique_ids;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        "[a-z日本語🦀é\n\"\\\\]{1,12}",
        Just(String::new())
    ]
}

fn some_text() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!("t{text}"))
}

fn image() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(Source::Url {
            url: "https://x/y.png".into()
        }),
        Just(Source::Data {
            media_type: "image/png".into(),
            base64: "AA==".into()
        }),
    ]
    .prop_map(|source| {
        Part::Image(Image {
            source,
            size: None,
            detail: Some("low".into()),
        })
    })
}

fn audio() -> impl Strategy<Value = Part> {
    Just(Part::Opaque(Opaque {
        origin: "openai-chat".into(),
        data: r#"{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}"#.into(),
    }))
}

fn user() -> impl Strategy<Value = Message> {
    let part = prop_oneof![4 => text().prop_map(Part::text), 1 => image(), 1 => audio()];
    proptest::collection::vec(part, 1..4).prop_map(|parts| Message::User { parts })
}

fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{\"path\": \"a b\", \"n\": 1.50}".to_owned()),
        text().prop_map(|text| serde_json::json!({ "x": text }).to_string()),
        // What models write when they go wrong.
        Just("{\"x\":".to_owned()),
        Just(String::new()),
    ]
}

/// A piece of history that is whole in itself.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    let batch = (
        proptest::option::of(some_text()),
        proptest::option::of(some_text()),
        proptest::collection::vec((arguments(), text(), any::<bool>()), 1..4),
        // Some servers begin anew with each turn.
        prop_oneof![any::<u32>(), Just(0)],
    )
        .prop_map(|(thinking, said, calls, number)| {
            let mut parts = Vec::new();
            parts.extend(thinking.map(|text| Part::Thinking(Thinking { text, opaque: None })));
            parts.extend(said.map(Part::text));
            let mut results = Vec::new();
            for (index, (arguments, text, with_image)) in calls.into_iter().enumerate() {
                let id = CallId(format!("call_{number}_{index}"));
                parts.push(Part::ToolCall(ToolCall {
                    id: id.clone(),
                    name: "f".into(),
                    arguments,
                    opaque: None,
                }));
                let mut out = vec![Part::text(text)];
                if with_image {
                    out.push(Part::Image(Image {
                        source: Source::Url {
                            url: "https://x".into(),
                        },
                        size: None,
                        detail: None,
                    }));
                }
                results.push(Message::ToolResult(ToolResult {
                    call: id,
                    parts: out,
                    is_error: index == 1,
                }));
            }
            let mut messages = vec![Message::Assistant { parts }];
            messages.append(&mut results);
            messages
        });
    prop_oneof![
        3 => user().prop_map(|message| vec![message]),
        3 => some_text().prop_map(|text| vec![Message::assistant(text)]),
        4 => batch,
        1 => some_text().prop_map(|text| vec![Message::system(text)]),
        1 => some_text().prop_map(|text| vec![Message::Summary { text }]),
        1 => some_text().prop_map(|text| vec![Message::Notice { text }]),
        1 => Just(vec![Message::Assistant { parts: vec![] }]),
    ]
}

fn history() -> impl Strategy<Value = Vec<Message>> {
    proptest::collection::vec(exchange(), 0..8)
        .prop_map(|exchanges| exchanges.into_iter().flatten().collect())
}

fn bytes(messages: &[Message], system: Option<&str>, dialect: &Dialect) -> Vec<u8> {
    let input = RenderInput {
        model: "m",
        system,
        ..RenderInput::default()
    };
    render(&input, messages, dialect).unwrap().body
}

/// The body up to the end of its last message.
fn prefix(body: &[u8]) -> &[u8] {
    let settings = body
        .windows(11)
        .rposition(|window| window == b"],\"stream\":")
        .unwrap();
    &body[..settings]
}

proptest! {
    #[test]
    fn every_server_accepts_every_view(
        messages in history(),
        system in proptest::option::of(some_text()),
        context in proptest::option::of(some_text()),
        question in some_text(),
    ) {
        let mut messages = messages;
        messages.push(Message::user(question));
        for dialect in dialects() {
            let input = RenderInput {
                model: "m",
                system: system.as_deref(),
                context: context.as_deref(),
                ..RenderInput::default()
            };
            let rendered = render(&input, &messages, &dialect).unwrap();
            prop_assert_eq!(&rendered, &render(&input, &messages, &dialect).unwrap());
            let body: Value = serde_json::from_slice(&rendered.body).unwrap();
            let faults = validate(&body, &dialect);
            prop_assert!(faults.is_empty(), "{} {:?} {}", dialect.name, faults, body);
        }
    }

    /// A request is sent when the assistant's turn comes, and the history only grows after it.
    #[test]
    fn older_requests_are_prefixes_of_newer_ones(
        messages in history(),
        system in proptest::option::of(some_text()),
    ) {
        for dialect in dialects() {
            let whole = bytes(&messages, system.as_deref(), &dialect);
            for (at, pair) in messages.windows(2).enumerate() {
                let asked = matches!(
                    pair,
                    [Message::User { .. } | Message::ToolResult(_), Message::Assistant { parts }]
                        if !parts.is_empty()
                );
                // The rest of a batch is not history yet.
                let older = &messages[..=at];
                let open = matches!(
                    messages.get(at + 1), Some(Message::ToolResult(_))
                );
                if !asked || open {
                    continue;
                }
                let older = bytes(older, system.as_deref(), &dialect);
                let older = prefix(&older);
                prop_assert!(
                    whole.starts_with(older),
                    "{}\n{}\n{}",
                    dialect.name,
                    String::from_utf8_lossy(older),
                    String::from_utf8_lossy(&whole)
                );
            }
        }
    }

    /// At every length, whatever was asked before: the kept bytes are those of a new request.
    #[test]
    fn a_chat_that_grows_is_rendered_as_a_whole_one(
        messages in history(),
        system in proptest::option::of(some_text()),
        context in proptest::option::of(some_text()),
    ) {
        for dialect in dialects() {
            let (mut list, mut written) = (MessageList::default(), WrittenMessages::default());
            let messages: Vec<&Message> = messages.iter().collect();
            for index in 0..messages.len() {
                let cache = CachePlan {
                    breakpoints: vec![Breakpoint::System, Breakpoint::Message(index / 2), Breakpoint::Message(index)],
                    ..CachePlan::default()
                };
                let input = RenderInput {
                    model: "m",
                    system: system.as_deref(),
                    context: context.as_deref().filter(|_| index % 2 == 0),
                    cache: Some(&cache),
                    ..RenderInput::default()
                };
                list.push(Arc::new(messages[index].clone()));
                let whole = render(&input, messages[..=index].iter().copied(), &dialect).unwrap();
                let grown = render_next(&mut written, &input, &list, &dialect);
                let grown = grown.into_whole();
                prop_assert_eq!(&grown.body, &whole.body, "{}", dialect.name);
                prop_assert_eq!(&grown.notes, &whole.notes, "{}", dialect.name);
            }
        }
    }

    #[test]
    fn what_the_wire_holds_comes_back(messages in history()) {
        let dialect = Dialect { echo_reasoning: EchoReasoning::Always, ..Dialect::openai() };
        let mut held: Vec<Message> = messages.into_iter().filter_map(held).collect();
        with_unique_ids(&mut held);
        // Where nothing is said, the wire puts in a word.
        prop_assume!(!held.is_empty());
        let body = bytes(&held, None, &dialect);
        let body = String::from_utf8(body).unwrap();
        let chat = read(&body).unwrap();
        prop_assert_eq!(&chat.messages, &held);
        prop_assert_eq!(bytes(&chat.messages, None, &dialect), body.into_bytes());
    }

    #[test]
    fn reading_never_breaks(text in ".{0,200}") {
        let _ = read(&text);
        let _ = read(&format!("[{{\"role\":\"user\",\"content\":{text}}}]"));
    }
}

/// The message without what the wire cannot hold; `None` for one that is left out.
fn held(message: Message) -> Option<Message> {
    match message {
        Message::Notice { .. } => None,
        Message::Assistant { parts } if parts.is_empty() => None,
        Message::ToolResult(mut result) => {
            result.is_error = false;
            result
                .parts
                .retain(|part| matches!(part, Part::Text { .. }));
            Some(Message::ToolResult(result))
        }
        other => Some(other),
    }
}
