//! The arguments of calls in Chat Completions, cut into pieces anywhere. Other streams are cases in
//! `tests/cases/streams`.

use plimsoll_context::{Delta, Part, Reply, ToolCall};
use plimsoll_wire::openai_chat::ChatStreamState;
use plimsoll_wire::{StreamDecoder, WireError};
use proptest::prelude::*;
use serde_json::{Value, json};

fn chunk(delta: Value) -> String {
    json!({"id": "r1", "model": "m", "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    .to_string()
}

fn end(reason: &str) -> String {
    json!({"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

fn piece(call: Value) -> String {
    chunk(json!({"tool_calls": [call]}))
}

/// Id, name and arguments of a call.
type CallParts = (String, String, String);

fn run<S: AsRef<str>>(chunks: &[S]) -> Result<(Reply, Vec<Delta>), WireError> {
    let mut state = ChatStreamState::new();
    let mut deltas = Vec::new();
    for chunk in chunks {
        deltas.extend(state.push(chunk.as_ref())?);
    }
    Ok((state.finish()?, deltas))
}

fn calls(reply: &Reply) -> Vec<CallParts> {
    let call = |part: &Part| match part {
        Part::ToolCall(ToolCall {
            id,
            name,
            arguments,
            ..
        }) => Some((id.0.clone(), name.clone(), arguments.clone())),
        _ => None,
    };
    reply.parts.iter().filter_map(call).collect()
}

fn call(id: &str, name: &str, arguments: &str) -> CallParts {
    (id.into(), name.into(), arguments.into())
}

/// Some servers name the tool in every piece; what was there is not read again each time.
#[test]
fn many_pieces_with_a_name_take_no_longer_than_others() {
    let mut state = ChatStreamState::new();
    state
        .push(&piece(
            json!({"index": 0, "function": {"name": "f", "arguments": "{\"x\":\""}}),
        ))
        .unwrap();
    let more = piece(
        json!({"index": 0, "function": {"name": "f", "arguments": "abcdefghij".repeat(100)}}),
    );
    // A parse of all of it at each piece would be 25 thousand million bytes.
    for _ in 0..7_000 {
        state.push(&more).unwrap();
    }
    state
        .push(&piece(
            json!({"index": 0, "function": {"arguments": "\"}"}}),
        ))
        .unwrap();
    state.push(&end("tool_calls")).unwrap();
    let reply = state.finish().unwrap();
    assert_eq!(calls(&reply)[0].2.len(), 7_000_000 + 8);
}

proptest! {
    /// However the arguments are cut into pieces, and with or without ids and indexes after the
    /// first piece, the reply is the same; cut short anywhere, it is an error that keeps a part.
    #[test]
    fn cutting_changes_nothing(
        values in proptest::collection::vec("[a-z{}\"\\\\ 🦀]{0,12}", 1..4),
        cuts in proptest::collection::vec(1_usize..8, 0..8),
        text in "[a-z ]{0,10}",
        bare in any::<bool>(),
        keep in 0_usize..40,
    ) {
        let mut chunks = vec![chunk(json!({"content": text}))];
        let mut expected = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let arguments = json!({"v": value}).to_string();
            let id = format!("c{index}");
            let mut rest: Vec<char> = arguments.chars().collect();
            chunks.push(piece(json!({"index": index, "id": id, "function": {"name": "f"}})));
            for cut in cuts.iter().chain([&1000]) {
                let tail = rest.split_off((*cut).min(rest.len()));
                let text: String = rest.iter().collect();
                chunks.push(if bare {
                    piece(json!({"function": {"arguments": text}}))
                } else {
                    piece(json!({"index": index, "function": {"arguments": text}}))
                });
                rest = tail;
            }
            expected.push(call(&id, "f", &arguments));
        }
        let cut = keep.min(chunks.len());
        let partial = run(&chunks[..cut]);
        let is_cut = matches!(partial, Err(WireError::Cut { .. }));
        prop_assert!(is_cut);
        chunks.push(end("tool_calls"));
        let (reply, deltas) = run(&chunks).unwrap();
        prop_assert_eq!(calls(&reply), expected);
        let streamed: String = deltas.iter().filter_map(|delta| match delta {
            Delta::CallArguments { text, .. } => Some(text.as_str()),
            _ => None,
        }).collect();
        let whole: String = calls(&reply).into_iter().map(|call| call.2).collect();
        prop_assert_eq!(streamed, whole);
    }
}
