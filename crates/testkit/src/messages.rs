//! Messages in one line, and random histories of the shapes that every protocol has to write.

use plimsoll_context::{
    CallId, File, Image, Message, Opaque, Part, Source, Thinking, ToolCall, ToolResult,
};
use proptest::prelude::*;

/// Returns a call of a tool.
pub fn tool_call(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: CallId(id.into()),
        name: name.into(),
        arguments: arguments.into(),
        opaque: None,
    })
}

/// Returns the result of a call.
pub fn tool_result(id: &str, parts: Vec<Part>, is_error: bool) -> Message {
    Message::ToolResult(ToolResult {
        call: CallId(id.into()),
        parts,
        is_error,
    })
}

/// Returns thinking without a signature.
pub fn thinking(text: &str) -> Part {
    Part::Thinking(Thinking {
        text: text.into(),
        opaque: None,
    })
}

/// Returns an image.
pub fn image(source: Source) -> Part {
    Part::Image(Image {
        source,
        size: None,
        detail: None,
    })
}

/// Returns a file.
pub fn file(name: Option<&str>, source: Source) -> Part {
    Part::File(File {
        name: name.map(str::to_owned),
        source,
    })
}

/// Returns the source of something at an address.
pub fn url(url: &str) -> Source {
    Source::Url { url: url.into() }
}

/// Returns the source of something that is sent with the request.
pub fn data(media_type: &str) -> Source {
    Source::Data {
        media_type: media_type.into(),
        base64: "AA==".into(),
    }
}

/// Returns data of a provider.
pub fn opaque(origin: &str, data: impl Into<String>) -> Opaque {
    Opaque {
        origin: origin.into(),
        data: data.into(),
    }
}

/// One call of a batch, and its result.
#[derive(Debug, Clone)]
pub struct BatchCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments, as the model wrote them.
    pub arguments: String,
    /// Data of the provider that belongs to the call.
    pub opaque: Option<Opaque>,
    /// The parts of the result.
    pub result: Vec<Part>,
    /// Whether the call failed.
    pub is_error: bool,
}

/// Returns an assistant message with these parts and calls, and the results. `id` names each call.
pub fn batch(
    mut parts: Vec<Part>,
    calls: impl IntoIterator<Item = BatchCall>,
    id: impl Fn(usize) -> String,
) -> Vec<Message> {
    let mut results = Vec::new();
    for (index, call) in calls.into_iter().enumerate() {
        let id = id(index);
        results.push(tool_result(&id, call.result, call.is_error));
        parts.push(Part::ToolCall(ToolCall {
            id: CallId(id),
            name: call.name,
            arguments: call.arguments,
            opaque: call.opaque,
        }));
    }
    let mut messages = vec![Message::Assistant { parts }];
    messages.append(&mut results);
    messages
}

/// Returns texts, empty ones and other scripts among them.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,20}",
        "[a-z日本語🦀é\n\"\\\\]{1,12}",
        Just(String::new())
    ]
}

/// Returns texts that are not blank.
pub fn some_text() -> impl Strategy<Value = String> {
    text().prop_map(|text| format!("t{text}"))
}

/// Returns arguments of a call, some of them broken as models break them.
pub fn arguments() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("{\"path\": \"a b\", \"n\": 1.50}".to_owned()),
        text().prop_map(|text| serde_json::json!({ "x": text }).to_string()),
        Just("{\"x\":".to_owned()),
        Just(String::new()),
    ]
}

/// Returns a system message, a summary, a notice or an assistant message without parts.
pub fn between() -> impl Strategy<Value = Vec<Message>> {
    prop_oneof![
        some_text().prop_map(|text| vec![Message::system(text)]),
        some_text().prop_map(|text| vec![Message::Summary { text }]),
        some_text().prop_map(|text| vec![Message::Notice { text }]),
        Just(vec![Message::Assistant { parts: vec![] }]),
    ]
}

/// Returns up to seven exchanges in a row. An exchange is complete: each call has its result.
pub fn history(
    exchange: impl Strategy<Value = Vec<Message>>,
) -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(exchange, 0..8).prop_map(|exchanges| exchanges.concat())
}
