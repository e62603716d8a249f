//! Properties of every view: the server of each dialect accepts it, older requests are prefixes of
//! newer ones, and everything that the protocol can represent is read back.

use plimsoll_context::{Image, Message, Part};
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_testkit::messages::{
    BatchCall, arguments, batch, between, data, history, image, opaque, some_text, text, thinking,
    url,
};
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat::{Dialect, EchoReasoning, read, render};
use proptest::prelude::*;
use serde_json::Value;

use crate::every_dialect::dialects;
use crate::unique_ids::with_unique_ids;

/// Parts that this protocol writes besides text.
fn attachment() -> impl Strategy<Value = Part> {
    let picture = prop_oneof![Just(url("https://x/y.png")), Just(data("image/png"))];
    let picture = picture.prop_map(|source| {
        Part::Image(Image {
            source,
            size: None,
            detail: Some("low".into()),
        })
    });
    let audio = r#"{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}"#;
    prop_oneof![picture, Just(Part::Opaque(opaque("openai-chat", audio)))]
}

fn user() -> impl Strategy<Value = Message> {
    let part = prop_oneof![2 => text().prop_map(Part::text), 1 => attachment()];
    proptest::collection::vec(part, 1..4).prop_map(|parts| Message::User { parts })
}

/// A piece of history that is whole in itself.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    let calls = (
        proptest::option::of(some_text()),
        proptest::option::of(some_text()),
        proptest::collection::vec((arguments(), text(), any::<bool>()), 1..4),
        // Some servers begin anew with each turn.
        prop_oneof![any::<u32>(), Just(0)],
    )
        .prop_map(|(thought, said, calls, number)| {
            let thought = thought.map(|text| thinking(&text));
            let parts = thought.into_iter().chain(said.map(Part::text)).collect();
            let calls = calls.into_iter().enumerate();
            let calls = calls.map(|(index, (arguments, text, with_image))| {
                let picture = with_image.then(|| image(url("https://x")));
                BatchCall {
                    name: "f".into(),
                    arguments,
                    opaque: None,
                    result: [Part::text(text)].into_iter().chain(picture).collect(),
                    is_error: index == 1,
                }
            });
            batch(parts, calls, |index| format!("call_{number}_{index}"))
        });
    prop_oneof![
        3 => user().prop_map(|message| vec![message]),
        3 => some_text().prop_map(|text| vec![Message::assistant(text)]),
        4 => calls,
        4 => between(),
    ]
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
        messages in history(exchange()),
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
        messages in history(exchange()),
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

    #[test]
    fn a_rendered_history_is_read_back(messages in history(exchange())) {
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
