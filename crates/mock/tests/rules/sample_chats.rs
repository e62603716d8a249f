//! A valid chat in each protocol, with every kind of message that all servers of it accept. Tests damage
//! them.

use serde_json::{Value, json};

pub(crate) fn chat() -> Value {
    json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": [
                {"type": "text", "text": "q"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}}]},
            {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "read", "arguments": "{\"a\":1}"}},
                {"id": "call_b", "type": "function", "function": {"name": "list", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_a", "content": "r1"},
            {"role": "tool", "tool_call_id": "call_b", "content": [{"type": "text", "text": "r2"}]},
            {"role": "user", "content": "more"},
            {"role": "assistant", "content": "fine"},
            {"role": "user", "content": "and?"},
        ],
    })
}

pub(crate) fn responses() -> Value {
    json!({
        "model": "m", "instructions": "s",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "q"},
                {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"}]},
            {"type": "reasoning", "id": "rs_1", "encrypted_content": "gA==",
                "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "call_a", "name": "read", "arguments": "{\"a\":1}"},
            {"type": "custom_tool_call", "call_id": "call_c", "name": "patch", "input": "x"},
            {"type": "function_call_output", "call_id": "call_a", "output": "r"},
            {"type": "custom_tool_call_output", "call_id": "call_c",
                "output": [{"type": "input_text", "text": "x"}]},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            {"type": "message", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "t", "annotations": []}]},
            {"role": "developer", "content": "d"},
            {"role": "user", "content": "and?"},
        ],
        "store": false,
    })
}

pub(crate) fn messages() -> Value {
    json!({
        "model": "claude-sonnet-4-5", "max_tokens": 4096,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "EqQB"},
                {"type": "redacted_thinking", "data": "EmwK"},
                {"type": "text", "text": "look"},
                {"type": "tool_use", "id": "toolu_a", "name": "read", "input": {"a": 1}},
                {"type": "tool_use", "id": "toolu_b", "name": "list", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_a", "content": "r", "is_error": true},
                {"type": "tool_result", "tool_use_id": "toolu_b", "content": [
                    {"type": "text", "text": "x"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]},
                {"type": "text", "text": "more"}]},
            {"role": "assistant", "content": [
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
                {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                {"type": "text", "text": "done"}]},
            {"role": "user", "content": [{"type": "text", "text": "and?", "cache_control": {"type": "ephemeral"}}]},
        ],
    })
}
