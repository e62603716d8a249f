//! Hosted tools: the ones that need no part of the client. Requests with them are cases in
//! `tests/cases/rendered`, their events are cases of wire.

use plimsoll_context::HostedTool;
use plimsoll_wire::{anthropic, openai_responses};
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
    assert!(anthropic::hosted_kinds().contains(&"web_fetch"));
    assert!(!openai_responses::hosted_kinds().contains(&"shell"));
}
