//! Hosted tools: the ones that need no part of the client, and their events during a reply. Requests with
//! them are cases in `tests/cases/rendered`.

use plimsoll_context::{Delta, HostedTool};
use plimsoll_wire::{StreamDecoder, anthropic, openai_responses};
use serde_json::json;

#[test]
fn a_tool_that_the_client_takes_part_in_is_not_hosted() {
    for (tool, hosted) in [
        (
            json!({"type": "web_search_20250305", "name": "web_search"}),
            true,
        ),
        (
            json!({"type": "computer_20251124", "name": "computer"}),
            false,
        ),
        (json!({"type": "custom", "name": "x"}), false),
    ] {
        let why = anthropic::not_hosted(&HostedTool(tool.clone()));
        assert_eq!(why.is_none(), hosted, "{tool}: {why:?}");
    }
    for (tool, hosted) in [
        (json!({"type": "web_search"}), true),
        (json!({"type": "shell"}), false),
        (json!({"type": "function", "name": "x"}), false),
        (json!({"type": "image_generation"}), false),
        (json!({"type": "mcp", "server_label": "s"}), false),
        (
            json!({"type": "mcp", "server_label": "s", "require_approval": "always"}),
            false,
        ),
        (
            json!({"type": "mcp", "server_label": "s", "require_approval": "never"}),
            true,
        ),
    ] {
        let why = openai_responses::not_hosted(&HostedTool(tool.clone()));
        assert_eq!(why.is_none(), hosted, "{tool}: {why:?}");
    }
    assert!(anthropic::hosted_kinds().any(|kind| kind == "web_fetch"));
    assert!(openai_responses::hosted_kinds().all(|kind| kind != "shell"));
}

#[test]
fn calls_and_results_are_reported_once_while_they_arrive() {
    let mut stream = anthropic::MessagesStreamState::default();
    let mut told = Vec::new();
    for event in [
        json!({"type": "message_start", "message": {"model": "m", "usage": {}}}),
        json!({"type": "content_block_start", "index": 0, "content_block":
            {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta":
            {"type": "input_json_delta", "partial_json": "{\"query\":"}}),
        json!({"type": "content_block_delta", "index": 0, "delta":
            {"type": "input_json_delta", "partial_json": "\"sea\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block":
            {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}}),
        json!({"type": "content_block_stop", "index": 1}),
    ] {
        told.extend(stream.push(&event.to_string()).unwrap());
    }
    assert!(matches!(&told[..], [
        Delta::HostedCall { name, text, .. },
        Delta::HostedResult { call, is_error: false, .. },
    ] if name == "web_search" && text == r#"{"query":"sea"}"# && call.0 == "s1"));

    let mut stream = openai_responses::ResponsesStreamState::default();
    let item = json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
        "action": {"type": "search", "query": "sea"}});
    let response = json!({"id": "r", "status": "completed", "output": [item]});
    let mut told = Vec::new();
    for event in [
        json!({"type": "response.output_item.added", "output_index": 0,
            "item": {"type": "web_search_call", "id": "ws_1", "status": "in_progress"}}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response}),
    ] {
        told.extend(stream.push(&event.to_string()).unwrap());
    }
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(matches!(&told[0], Delta::HostedCall { text, .. } if text.contains("sea")));
}
