//! Growing sessions: each body equals a complete rendering, and shares the chunks of the previous
//! one.

use plimsoll_context::{
    Breakpoint, CachePlan, CallId, Message, MessageList, Part, ToolCall, ToolResult,
};
use plimsoll_wire::openai_chat::{CacheMarks, Dialect};
use plimsoll_wire::{
    BodyChunks, EncodedRequest, RenderInput, WrittenMessages, anthropic, bedrock, gemini,
    openai_chat, openai_responses,
};

/// The session has about half a MB.
const MESSAGES: usize = 65;
/// Bytes of a result.
const RESULT: usize = 16_000;

/// A call or its result.
fn message(index: usize) -> Message {
    let id = CallId(format!("call_{}", index / 2));
    if index == 0 {
        return Message::user("Go on.");
    }
    if index.is_multiple_of(2) {
        return Message::ToolResult(ToolResult {
            call: CallId(format!("call_{}", (index - 1) / 2)),
            parts: vec![Part::text(format!("{index}\n").repeat(RESULT / 4))],
            is_error: false,
        });
    }
    let call = ToolCall {
        id,
        name: "read".to_owned(),
        arguments: format!(r#"{{"path":"{index}.txt"}}"#),
        opaque: None,
    };
    Message::Assistant {
        parts: vec![Part::ToolCall(call)],
    }
}

/// Renders a growing session, with breakpoints at its end and in its middle.
fn check(
    protocol: &str,
    next: impl Fn(&mut WrittenMessages, &RenderInput<'_>, &MessageList) -> EncodedRequest<BodyChunks>,
    whole: impl Fn(&RenderInput<'_>, &[Message]) -> EncodedRequest,
) {
    let messages: Vec<Message> = (0..MESSAGES).map(message).collect();
    let (mut list, mut written) = (MessageList::default(), WrittenMessages::default());
    let mut last: Vec<*const u8> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        list.push(message.clone().into());
        let breakpoints = [2, index / 2, index].map(Breakpoint::Message).into();
        let cache = CachePlan {
            breakpoints,
            ..CachePlan::default()
        };
        let input = RenderInput {
            model: "claude-opus-5-5",
            system: Some("Be brief."),
            cache: Some(&cache),
            ..RenderInput::default()
        };
        let body = next(&mut written, &input, &list).body;
        let chunks = body.clone().into_chunks();
        if index.is_multiple_of(8) {
            let is_same = body.into_vec() == whole(&input, &messages[..=index]).body;
            assert!(is_same, "{protocol}: message {index}");
        }
        // Breakpoints that moved cut other chunks: the others are shared.
        let shared = chunks.iter().filter(|chunk| last.contains(&chunk.as_ptr()));
        let shared: usize = shared.map(|chunk| chunk.len()).sum();
        let size: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        assert!(
            index < 40 || shared > size / 2,
            "{protocol}: {shared}/{size}"
        );
        let most = size / 32_000 + 12;
        assert!(chunks.len() <= most, "{protocol}: {} chunks", chunks.len());
        last = chunks.iter().map(|chunk| chunk.as_ptr()).collect();
    }
}

#[test]
fn chat_completions_share_their_chunks() {
    let dialect = Dialect {
        cache: CacheMarks::Parts,
        ..Dialect::openai()
    };
    check(
        "chat",
        |written, input, list| openai_chat::render_next(written, input, list, &dialect),
        |input, messages| openai_chat::render(input, messages, &dialect).unwrap(),
    );
}

#[test]
fn responses_share_their_chunks() {
    let profile = openai_responses::ResponsesProfile::openai();
    check(
        "responses",
        |written, input, list| openai_responses::render_next(written, input, list, &profile),
        |input, messages| openai_responses::render(input, messages, &profile).unwrap(),
    );
}

#[test]
fn messages_share_their_chunks() {
    let profile = anthropic::MessagesProfile::of_model("claude-opus-5-5");
    check(
        "messages",
        |written, input, list| anthropic::render_next(written, input, list, &profile),
        |input, messages| anthropic::render(input, messages, &profile).unwrap(),
    );
}

#[test]
fn gemini_and_converse_share_their_chunks() {
    let profile = gemini::GeminiProfile::of_model("gemini-3-pro");
    check(
        "gemini",
        |written, input, list| gemini::render_next(written, input, list, &profile),
        |input, messages| gemini::render(input, messages, &profile).unwrap(),
    );
    let profile = bedrock::ConverseProfile::of_model("anthropic.claude-sonnet-4-5-20250929-v1:0");
    check(
        "converse",
        |written, input, list| bedrock::render_next(written, input, list, &profile),
        |input, messages| bedrock::render(input, messages, &profile).unwrap(),
    );
}
