//! Peculiarities of replies of single dialects of Chat Completions. Their requests are the cases in
//! `tests/cases/rendered/dialects.txt`.

use plimsoll_context::{Part, Tokens};
use plimsoll_testkit::messages::thinking;
use plimsoll_wire::StreamDecoder;
use plimsoll_wire::openai_chat::{ChatStreamState, read_reply};
use serde_json::{Value, json};

#[test]
fn deepseek_reports_cache_hits_beside_the_prompt() {
    let usage = json!({"choices": [{"index": 0, "message": {"content": "x",
        "reasoning_content": "hm"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 5,
            "prompt_cache_hit_tokens": 800, "prompt_cache_miss_tokens": 200}});
    let reply = read_reply(&usage.to_string()).unwrap();
    assert_eq!(reply.parts, [thinking("hm"), Part::text("x")]);
    assert_eq!(reply.usage.unwrap().cache_read, Tokens(800));
}

#[test]
fn mistral_writes_reasoning_as_parts() {
    // Its reasoning models write lists of parts.
    let mut state = ChatStreamState::new();
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "x"}]);
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": parts},
        "finish_reason": "stop"}]});
    state.push(&chunk.to_string()).unwrap();
    assert_eq!(
        state.finish().unwrap().parts,
        [thinking("hm"), Part::text("x")]
    );
}

#[test]
fn groq_reports_usage_and_reasoning_under_its_own_keys() {
    // Its streams report usage beside the wire, and reasoning under another key.
    let mut state = ChatStreamState::new();
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": "x", "reasoning": "hm"},
        "finish_reason": "stop"}],
        "x_groq": {"id": "req_1", "usage": {"prompt_tokens": 7, "completion_tokens": 2}}});
    state.push(&chunk.to_string()).unwrap();
    let reply = state.finish().unwrap();
    assert_eq!(reply.parts, [thinking("hm"), Part::text("x")]);
    assert_eq!(reply.usage.unwrap().input, Tokens(7));
}

#[test]
fn xai_counts_reasoning_beside_the_completion() {
    // Its reasoning is not in what was completed.
    let reply = json!({"choices": [{"index": 0, "message": {"content": "x"},
        "finish_reason": "stop"}], "usage": {"prompt_tokens": 10, "completion_tokens": 2,
        "total_tokens": 42, "completion_tokens_details": {"reasoning_tokens": 30}}});
    let usage = read_reply(&reply.to_string()).unwrap().usage.unwrap();
    assert_eq!((usage.output, usage.reasoning), (Tokens(32), Tokens(30)));
}

#[test]
fn openrouter_has_details_of_reasoning() {
    // Its reasoning has another key, its details go back as they came, and comments of the gateway are nothing.
    let reply = json!({"choices": [{"index": 0, "message": {"content": "x", "reasoning": "hm",
        "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        "finish_reason": "stop", "native_finish_reason": "end_turn"}]});
    let reply = read_reply(&reply.to_string()).unwrap();
    let [readable, Part::Opaque(details), text] = reply.parts.as_slice() else {
        unreachable!("{reply:?}");
    };
    assert_eq!((readable, text), (&thinking("hm"), &Part::text("x")));
    let details: Value = serde_json::from_str(&details.data).unwrap();
    assert_eq!(
        details,
        json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]})
    );
}
