//! Histories of any kind, including those of other providers and damaged files. Every rendered
//! request follows the rules of the API.

use plimsoll_agent::{ThinkingLevel, ToolChoice};
use plimsoll_context::{Message, Opaque, Part, Thinking};
use plimsoll_testkit::messages::{BatchCall, batch, data, image, opaque, url};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::eventstream;
use super::fake::{Fake, FakeAnswer};
use super::{call, judge, provider, request_of};

const MODELS: [&str; 5] = [
    "gemini/gemini-3.6-flash",
    "gemini/gemini-2.5-pro",
    "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "bedrock/amazon.nova-pro-v1:0",
    "bedrock/mistral.mistral-large-2407-v1:0",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" \n".to_owned()),
        ".{1,12}",
        Just("größe 🦀".to_owned()),
    ]
}

/// What is kept with thinking or a call, of several providers, also broken.
fn signature() -> impl Strategy<Value = Option<Opaque>> {
    let origin = prop_oneof![Just("gemini"), Just("bedrock"), Just("anthropic")];
    let data = prop_oneof![
        Just(r#"{"thoughtSignature":"c2ln","from":0,"to":2}"#),
        Just(r#"{"thoughtSignature":"c2ln","from":9,"to":3}"#),
        Just(r#"{"model":"us.anthropic.claude-sonnet-4-5-20250929-v1:0","signature":"c2ln"}"#),
        Just(r#"{"model":"amazon.nova-pro-v1:0","redactedContent":"c2ln"}"#),
        Just("not JSON"),
    ];
    proptest::option::of((origin, data)).prop_map(|kept| {
        let (origin, data) = kept?;
        Some(opaque(origin, data))
    })
}

fn part() -> impl Strategy<Value = Part> {
    let kind = prop_oneof![
        Just("image/png"),
        Just("image/tiff"),
        Just("application/pdf")
    ];
    prop_oneof![
        4 => text().prop_map(Part::text),
        2 => (text(), signature()).prop_map(|(text, opaque)| Part::Thinking(Thinking { text, opaque })),
        1 => kind.prop_map(|kind| image(data(kind))),
        1 => Just(image(url("https://h/a.png"))),
    ]
}

/// Calls and their results, in order.
fn calls() -> impl Strategy<Value = Vec<Message>> {
    let name = prop_oneof![
        Just("read"),
        Just("mcp.a/b c"),
        Just("7z"),
        Just(""),
        Just("ähm")
    ];
    let arguments = prop_oneof![Just("{\"a\":1}"), Just(""), Just("[1]"), Just("{\"a\":")];
    let one = (
        name,
        arguments,
        signature(),
        proptest::collection::vec(part(), 0..3),
    );
    let ids = prop_oneof![Just("call#x#"), Just("toolu_"), Just("a b/"), Just("")];
    let said = proptest::collection::vec(part(), 0..3);
    (ids, said, proptest::collection::vec(one, 1..4)).prop_map(|(ids, said, ones)| {
        let calls = ones.into_iter().enumerate();
        let calls = calls.map(|(at, (name, arguments, opaque, result))| BatchCall {
            name: name.into(),
            arguments: arguments.into(),
            opaque,
            result,
            is_error: at % 2 == 1,
        });
        batch(said, calls, |at| format!("{ids}{at}"))
    })
}

fn history() -> impl Strategy<Value = Vec<Message>> {
    let parts = || proptest::collection::vec(part(), 0..4);
    let some = prop_oneof![
        3 => calls(),
        2 => parts().prop_map(|parts| vec![Message::User { parts }]),
        2 => parts().prop_map(|parts| vec![Message::Assistant { parts }]),
        1 => text().prop_map(|text| vec![Message::Notice { text }]),
        1 => text().prop_map(|text| vec![Message::Summary { text }]),
        1 => text().prop_map(|text| vec![Message::system(text)]),
    ];
    proptest::collection::vec(some, 0..7).prop_map(|all| all.concat())
}

/// A short answer of the API of that model.
fn answer(model: &str) -> FakeAnswer {
    if model.starts_with("gemini") {
        let end = json!({"candidates": [{"content": {"parts": [{"text": "ok"}]},
            "finishReason": "STOP"}]});
        return FakeAnswer::events(&[&end.to_string()]);
    }
    let said = [json!({"text": "ok"})];
    eventstream::stream(eventstream::reply(&said, "end_turn", &json!({})))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 48,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn whatever_is_in_a_history_breaks_no_rule(
        messages in history(),
        thinks in any::<bool>(),
        tools in any::<bool>(),
        context in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        runtime.block_on(async {
            for model in MODELS {
                let then = move |_: &Value| answer(model);
                let fake = Fake::answering(judge(model), [], Box::new(then)).await;
                let mut request = request_of(messages.clone());
                if thinks {
                    request.sampling.thinking = Some(ThinkingLevel::Medium);
                    request.tool_choice = ToolChoice::None;
                }
                if !tools {
                    request.tools = [].into();
                }
                if !context {
                    request.dynamic_context = None;
                }
                let reply = call(&provider(model, &fake), &request).await.0;
                assert!(reply.is_ok(), "{model}: {reply:?}\n{:#}", fake.asked()[0].body);
            }
        });
    }
}
