//! Bounds of streamed replies of Responses, and their pieces cut anywhere. Other streams are cases in
//! `tests/cases/streams`.

use plimsoll_context::Delta;
use plimsoll_testkit::messages::tool_call;
use plimsoll_wire::openai_responses::{ResponsesStreamState, read_reply};
use plimsoll_wire::{StreamDecoder, WireError};
use proptest::prelude::*;
use serde_json::{Value, json};

fn push(events: &[Value]) -> (ResponsesStreamState, Vec<Delta>) {
    let mut state = ResponsesStreamState::new();
    let mut deltas = Vec::new();
    for event in events {
        deltas.extend(state.push(&event.to_string()).unwrap());
    }
    (state, deltas)
}

fn added(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn text(index: u64, more: &str) -> Value {
    json!({"type": "response.output_text.delta", "output_index": index, "content_index": 0,
        "item_id": "msg_1", "delta": more, "logprobs": [], "obfuscation": "x"})
}

fn arguments(index: u64, more: &str) -> Value {
    json!({"type": "response.function_call_arguments.delta", "output_index": index,
        "item_id": "fc_1", "delta": more})
}

fn message(words: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
        "content": [{"type": "output_text", "text": words, "annotations": []}]})
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name,
        "arguments": arguments, "status": "completed"})
}

fn usage() -> Value {
    json!({"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 800},
        "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 1050})
}

fn completed(output: Vec<Value>) -> Value {
    json!({"type": "response.completed", "response": {"id": "resp_1", "object": "response",
        "model": "gpt-5-2025-08-07", "status": "completed", "error": null,
        "incomplete_details": null, "output": output, "usage": usage()}})
}

#[test]
fn a_reply_is_bounded() {
    let mut state = ResponsesStreamState::new();
    let mut pushed = 0;
    let error = loop {
        pushed += 1;
        assert!(pushed < 5000, "no bound");
        if let Err(error) = state.push(&added(pushed, message("")).to_string()) {
            break error;
        }
    };
    assert_eq!(error, WireError::TooManyParts { limit: 1_024 });
    assert_eq!(pushed, 1_025);
    let mut state = ResponsesStreamState::new();
    let megabyte = text(0, &"x".repeat(1 << 20)).to_string();
    let refused = (0..64).find_map(|_| state.push(&megabyte).err());
    assert!(matches!(refused, Some(WireError::TooLarge { .. })));
}

fn any_event() -> impl Strategy<Value = String> {
    let kinds = prop::sample::select(vec![
        "response.created",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.refusal.delta",
        "response.reasoning_summary_text.delta",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
        "",
    ]);
    let items = prop::sample::select(vec![
        json!(null),
        json!(5),
        json!({}),
        message("x"),
        message(""),
        call("a", "f", "{}"),
        call("", "", ""),
        json!({"type": "reasoning", "summary": "x"}),
        json!({"type": "message", "content": {"a": 1}}),
        json!({"type": 5}),
        json!({"type": "function_call", "arguments": {"x": []}}),
    ]);
    let bits = prop_oneof![
        Just(json!(null)),
        any::<u8>().prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
        Just(json!({"output": [null, {"type": "message"}], "usage": {"input_tokens": -1}})),
        Just(json!({"output": {}, "status": 5})),
    ];
    (kinds, items, bits.clone(), bits, 0u64..4).prop_map(|(kind, item, delta, response, index)| {
        json!({"type": kind, "item": item, "delta": delta, "arguments": delta,
            "response": response, "output_index": index, "content_index": response})
        .to_string()
    })
}

proptest! {
    #[test]
    fn no_event_breaks_it(events in prop::collection::vec(any_event(), 0..12), text in ".{0,60}") {
        let mut state = ResponsesStreamState::new();
        for event in &events {
            let _ = state.push(event);
            let _ = state.partial();
        }
        let _ = state.push(&text);
        let _ = state.finish();
        let _ = read_reply(&text);
        for event in events {
            let _ = read_reply(&event);
        }
    }

    /// However the arguments are cut, they come whole, and the pieces told are all of them.
    #[test]
    fn pieces_are_told_once(cuts in prop::collection::vec(0usize..20, 0..5), skip in any::<bool>()) {
        let all = "{\"path\":\"a b c d\"}";
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(all.len())).collect();
        cuts.extend([0, all.len()]);
        cuts.sort_unstable();
        let mut events = vec![added(0, call("a", "f", ""))];
        events.extend(cuts.windows(2).map(|ends| arguments(0, &all[ends[0]..ends[1]])));
        if skip {
            events.truncate(events.len() / 2 + 1);
        }
        events.push(done(0, call("a", "f", all)));
        events.push(completed(vec![call("a", "f", all)]));
        let (state, deltas) = push(&events);
        let told: String = deltas
            .iter()
            .filter_map(|delta| match delta {
                Delta::CallArguments { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        prop_assert_eq!(told, all);
        prop_assert_eq!(state.finish().unwrap().parts, [tool_call("a", "f", all)]);
    }
}
