//! Properties of every view on Gemini and Converse: the server of each model accepts it, older
//! requests are prefixes of newer ones, and signed parts of a reply are returned unchanged.

use plimsoll_context::{Breakpoint, CachePlan, CallId, Message, Opaque, Part, Thinking, ToolSpec};
use plimsoll_mock::rules as judge;
use plimsoll_mock::rules::Fault;
use plimsoll_testkit::messages::{BatchCall, batch, data, file, history, image, opaque, url};
use plimsoll_wire::{
    Effort, EncodedRequest, RenderInput, StreamDecoder, ToolChoice, bedrock, gemini,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const GEMINIS: [&str; 5] = [
    "gemini-2.0-flash",
    "gemini-2.5-pro",
    "gemini-3-pro-preview",
    "gemini-3.6-flash",
    "learnlm",
];
const BEHIND_BEDROCK: [&str; 5] = [
    CLAUDE,
    "anthropic.claude-opus-4-8-v1",
    "us.amazon.nova-2-lite-v1:0",
    "mistral.mistral-large-2407-v1:0",
    "openai.gpt-oss-120b-1:0",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        "[a-z日本語🦀é\n\"\\\\]{1,12}",
        Just(" \n".to_owned()),
        Just(String::new())
    ]
}

/// Signatures of these and of other protocols, and broken ones.
fn signature() -> impl Strategy<Value = Option<Opaque>> {
    let data = prop_oneof![
        (0_usize..6, 0_usize..6).prop_map(|(from, to)| {
            json!({"thoughtSignature": "c2ln", "from": from, "to": to}).to_string()
        }),
        Just(json!({"thoughtSignature": "c2ln"}).to_string()),
        Just(json!({"model": CLAUDE, "signature": "c2ln"}).to_string()),
        Just(json!({"model": "m", "redactedContent": "c2ln"}).to_string()),
        Just("not JSON".to_owned()),
    ];
    let origin = prop_oneof![Just("gemini"), Just("bedrock"), Just("anthropic")];
    proptest::option::of((origin, data))
        .prop_map(|kept| kept.map(|(origin, data)| opaque(origin, data)))
}

fn thinking() -> impl Strategy<Value = Part> {
    (text(), signature()).prop_map(|(text, opaque)| Part::Thinking(Thinking { text, opaque }))
}

fn media() -> impl Strategy<Value = Part> {
    prop_oneof![
        Just(file(Some("ä.b/c.pdf"), data("application/pdf"))),
        Just(image(data("image/png"))),
        Just(image(data("image/tiff"))),
        Just(image(url("https://x/y.png?z"))),
        Just(image(url("https://x"))),
    ]
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let part = prop_oneof![4 => text().prop_map(Part::text), 2 => thinking(), 1 => media()];
    proptest::collection::vec(part, 0..4)
}

/// A piece of history that is whole in itself.
fn exchange() -> impl Strategy<Value = Vec<Message>> {
    let name = prop_oneof![
        Just("f"),
        Just("mcp.a/b c"),
        Just("7z"),
        Just(""),
        Just("ähm")
    ];
    let arguments = prop_oneof![
        Just("{\"path\": \"a b\", \"n\": 1.50}"),
        Just(" {} "),
        Just("[1]"),
        Just("{\"x\":"),
        Just(""),
    ];
    let call = (name, arguments, signature(), parts());
    let ids = prop_oneof![Just("call#f#"), Just("toolu_"), Just("a b/"), Just("")];
    let calls =
        (parts(), ids, proptest::collection::vec(call, 1..4)).prop_map(|(said, ids, calls)| {
            let calls = calls.into_iter().enumerate();
            let calls = calls.map(|(index, (name, arguments, opaque, result))| BatchCall {
                name: name.into(),
                arguments: arguments.into(),
                opaque,
                result,
                is_error: index == 1,
            });
            batch(said, calls, |index| format!("{ids}{index}"))
        });
    prop_oneof![
        3 => parts().prop_map(|parts| vec![Message::User { parts }]),
        3 => parts().prop_map(|parts| vec![Message::Assistant { parts }]),
        4 => calls,
        1 => parts().prop_map(|parts| vec![Message::System { parts }]),
        1 => text().prop_map(|text| vec![Message::Summary { text }]),
        1 => text().prop_map(|text| vec![Message::Notice { text }]),
    ]
}

fn tools(name: &str) -> Vec<ToolSpec> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "Does it.".into(),
        schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}),
    };
    vec![tool(name), tool("f")]
}

/// Returns the request to a model, and the faults that its server finds in it.
fn judged(
    model: &str,
    input: &RenderInput<'_>,
    messages: &[Message],
) -> (EncodedRequest, Vec<Fault>) {
    let value = |body: &[u8]| -> Value { serde_json::from_slice(body).unwrap() };
    if GEMINIS.contains(&model) {
        let profile = gemini::GeminiProfile::of_model(model);
        let rendered = gemini::render(input, messages, &profile).unwrap();
        let faults = judge::gemini::validate(&value(&rendered.body), &profile);
        (rendered, faults)
    } else {
        let profile = bedrock::ConverseProfile::of_model(model);
        let rendered = bedrock::render(input, messages, &profile).unwrap();
        let faults = judge::bedrock::validate(&value(&rendered.body), &profile);
        (rendered, faults)
    }
}

/// Returns the list of messages in a body.
fn listed(body: &[u8]) -> Vec<Value> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let list = body.get("contents").or(body.get("messages"));
    list.and_then(Value::as_array).unwrap().clone()
}

proptest! {
    #[test]
    fn every_server_accepts_every_view(
        messages in history(exchange()),
        system in proptest::option::of(text()),
        context in proptest::option::of(text()),
        name in prop_oneof![Just("read"), Just("7 z"), Just("f")],
        calls in any::<bool>(),
        effort in proptest::option::of(proptest::sample::select(Effort::ALL.to_vec())),
        max_output in proptest::option::of(1_u64..100_000),
        with_tools in any::<bool>(),
    ) {
        let tools = if with_tools { tools(name) } else { Vec::new() };
        let breakpoints = (0..messages.len()).map(Breakpoint::Message);
        let cache = CachePlan {
            breakpoints: [Breakpoint::Tools, Breakpoint::System].into_iter().chain(breakpoints).collect(),
            ..CachePlan::default()
        };
        for model in GEMINIS.into_iter().chain(BEHIND_BEDROCK) {
            let input = RenderInput {
                model,
                system: system.as_deref(),
                tools: &tools,
                tool_choice: if calls { ToolChoice::Auto } else { ToolChoice::None },
                max_output,
                effort,
                temperature: Some(0.5),
                context: context.as_deref(),
                cache: Some(&cache),
                ..RenderInput::default()
            };
            let (rendered, faults) = judged(model, &input, &messages);
            prop_assert!(faults.is_empty(), "{model} {faults:?} {}", String::from_utf8_lossy(&rendered.body));
            prop_assert_eq!(&rendered, &judged(model, &input, &messages).0);
        }
    }

    /// A request is sent when the model's turn comes, and the history only grows after it.
    #[test]
    fn older_requests_are_prefixes_of_newer_ones(
        messages in history(exchange()),
        question in "[a-z]{1,9}",
        more in history(exchange()),
    ) {
        let mut messages = messages;
        messages.push(Message::user(question));
        let mut grown = messages.clone();
        grown.push(Message::assistant("so"));
        grown.extend(more);
        let tools = tools("g");
        for model in GEMINIS.into_iter().chain(BEHIND_BEDROCK) {
            let input = RenderInput { model, tools: &tools, ..RenderInput::default() };
            let (old, _) = judged(model, &input, &messages);
            let (new, _) = judged(model, &input, &grown);
            let (old, new) = (listed(&old.body), listed(&new.body));
            prop_assert_eq!(&old[..], &new[..old.len()], "{}", model);
        }
    }

    #[test]
    fn signatures_of_calls_of_gemini_are_sent_back_unchanged(
        pieces in proptest::collection::vec((0_u8..3, "[a-zé🦀]{0,5}", any::<bool>()), 1..8),
    ) {
        let mut state = gemini::GeminiStreamState::new(0);
        let mut sent: Vec<Value> = Vec::new();
        for (kind, text, is_signed) in pieces {
            let mut part = match kind {
                0 => json!({"functionCall": {"name": "f", "args": {"a": text}}}),
                _ => json!({"text": text}),
            };
            if is_signed {
                part["thoughtSignature"] = "c2ln".into();
            }
            let event = json!({"candidates": [{"content": {"parts": [part]}}]});
            state.push(&event.to_string()).unwrap();
            // Texts in a row are one, without signatures.
            match sent.last_mut() {
                _ if part["text"] == "" => {}
                Some(last) if kind > 0 && last.get("text").is_some() => {
                    last["text"] = format!("{}{text}", last["text"].as_str().unwrap()).into();
                }
                _ if kind > 0 => sent.push(json!({"text": text})),
                _ => sent.push(part),
            }
        }
        state.push(r#"{"candidates":[{"finishReason":"STOP"}]}"#).unwrap();
        let reply = state.finish().unwrap();
        prop_assume!(!sent.is_empty());
        let mut messages = vec![Message::user("go"), Message::Assistant { parts: reply.parts }];
        let calls: Vec<CallId> = messages[1].calls().map(|call| call.id.clone()).collect();
        messages.extend(calls.into_iter().map(|id| Message::result(id, "done")));
        let model = "gemini-2.5-pro";
        let input = RenderInput { model, ..RenderInput::default() };
        let (rendered, faults) = judged(model, &input, &messages);
        prop_assert!(faults.is_empty(), "{faults:?}");
        prop_assert_eq!(&listed(&rendered.body)[1]["parts"], &Value::from(sent));
    }
}
