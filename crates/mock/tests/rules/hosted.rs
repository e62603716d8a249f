//! Hosted tools, on the protocols that have them: accepted definitions, their announcement, the
//! events during a reply, and thinking around a pause.

use plimsoll_context::{
    Breakpoint, CachePlan, CacheRetention, Delta, HostedTool, Message, Opaque, ToolSpec,
};
use plimsoll_mock::rules as judge;
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat::{self, Dialect};
use plimsoll_wire::{StreamDecoder, anthropic, openai_responses};
use serde_json::{Value, json};

fn definition(tool: &Value, origin: &str) -> Opaque {
    Opaque {
        origin: origin.to_owned(),
        data: tool.to_string(),
    }
}

/// What the rules of Messages say of a request with this tool, and what announces it.
fn of_messages(tool: &Value) -> (Vec<String>, Vec<&'static str>) {
    let profile = anthropic::MessagesProfile::of_model("claude-opus-5");
    let hosted = [definition(tool, anthropic::ORIGIN)];
    let input = RenderInput {
        model: "claude-opus-5",
        hosted_tools: &hosted,
        ..RenderInput::default()
    };
    let message = Message::user("Hello.");
    let rendered = anthropic::render(&input, [&message], &profile).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    assert_eq!(body["tools"], json!([tool]));
    let faults = judge::anthropic::validate(&body, &profile).into_iter();
    (faults.map(|fault| fault.words).collect(), rendered.betas)
}

fn of_responses(tool: &Value) -> Vec<String> {
    let profile = openai_responses::ResponsesProfile::openai();
    let hosted = [definition(tool, openai_responses::ORIGIN)];
    let input = RenderInput {
        model: "gpt-5",
        hosted_tools: &hosted,
        ..RenderInput::default()
    };
    let message = Message::user("Hello.");
    let rendered = openai_responses::render(&input, [&message], &profile).unwrap();
    let body: Value = serde_json::from_slice(&rendered.body).unwrap();
    let faults = judge::openai_responses::validate(&body, &profile).into_iter();
    faults.map(|fault| fault.words).collect()
}

#[test]
fn messages_takes_its_own_tools_by_their_names() {
    for tool in [
        json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5}),
        json!({"type": "web_fetch_20260318", "name": "web_fetch"}),
        json!({"type": "code_execution_20250825", "name": "code_execution"}),
        json!({"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}),
        // Those that the client runs are tools of the API too.
        json!({"type": "bash_20250124", "name": "bash"}),
        json!({"type": "text_editor_20250728", "name": "str_replace_based_edit_tool"}),
    ] {
        assert_eq!(of_messages(&tool), (vec![], vec![]), "{tool}");
    }
    for (tool, words) in [
        (
            json!({"type": "web_search_20250305"}),
            "name: Field required",
        ),
        (
            json!({"type": "web_search_20250305", "name": "search"}),
            "Input should be 'web_search'",
        ),
        (
            json!({"type": "web_search", "name": "web_search"}),
            "Input tag 'web_search'",
        ),
        (
            json!({"type": "web_search_2025", "name": "web_search"}),
            "Input tag",
        ),
        (
            json!({"type": "web_surf_20250305", "name": "web_surf"}),
            "Input tag",
        ),
        (
            json!({"type": "mcp_toolset"}),
            "mcp_server_name: Field required",
        ),
    ] {
        let (faults, _) = of_messages(&tool);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains(words), "{faults:?}");
    }
}

#[test]
fn what_is_not_yet_part_of_the_api_is_announced() {
    for (tool, beta) in [
        (
            json!({"type": "advisor_20260301", "name": "advisor"}),
            "advisor-tool-2026-03-01",
        ),
        (
            json!({"type": "code_execution_20250522", "name": "code_execution"}),
            "code-execution-2025-05-22",
        ),
        (
            json!({"type": "mcp_toolset", "mcp_server_name": "ship"}),
            "mcp-client-2025-11-20",
        ),
    ] {
        assert_eq!(of_messages(&tool).1, [beta]);
    }
}

#[test]
fn responses_takes_its_own_tools_with_what_each_needs() {
    for tool in [
        json!({"type": "web_search"}),
        json!({"type": "web_search_preview", "search_context_size": "low"}),
        json!({"type": "file_search", "vector_store_ids": ["vs_1"]}),
        json!({"type": "code_interpreter", "container": {"type": "auto"}}),
        json!({"type": "mcp", "server_label": "ship", "server_url": "https://s.example"}),
        json!({"type": "mcp", "server_label": "ship", "connector_id": "connector_dropbox"}),
        json!({"type": "custom", "name": "patch"}),
    ] {
        assert_eq!(of_responses(&tool), [""; 0], "{tool}");
    }
    for (tool, words) in [
        (json!({"type": "web_surf"}), "Invalid value: 'web_surf'"),
        (
            json!({"type": "file_search"}),
            "'tools[0].vector_store_ids'",
        ),
        (json!({"type": "code_interpreter"}), "'tools[0].container'"),
        (
            json!({"type": "mcp", "server_url": "https://s.example"}),
            "'tools[0].server_label'",
        ),
        (
            json!({"type": "mcp", "server_label": "ship"}),
            "'tools[0].server_url'",
        ),
    ] {
        let faults = of_responses(&tool);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains(words), "{faults:?}");
    }
}

#[test]
fn what_the_client_has_a_part_in_is_not_asked_for_as_hosted() {
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
fn calls_and_results_are_told_while_they_come_and_once() {
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

/// Thinking behind a pause is bound to what was said before the pause, too.
#[test]
fn thinking_that_came_after_a_pause_is_verified_with_what_was_paused() {
    let profile = anthropic::MessagesProfile::of_model("claude-opus-5-5");
    let question = json!({"role": "user", "content": "What does the sea do?"});
    let call = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let said = json!({"type": "text", "text": "I look."});
    let tools = json!([{"type": "web_search_20250305", "name": "web_search"}]);
    let request = |messages: Value| {
        json!({"model": "claude-opus-5-5", "max_tokens": 1_000, "tools": tools,
            "thinking": {"type": "adaptive"}, "messages": messages})
    };
    let paused = request(json!([question, {"role": "assistant", "content": [said, call]}]));
    let thought = json!({"type": "thinking", "thinking": "It ebbs.",
        "signature": judge::anthropic::sign(&paused, "It ebbs.")});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": []});
    let answer = json!({"type": "text", "text": "It ebbs."});
    let after = |first: &Value| {
        request(json!([
            question,
            {"role": "assistant", "content": [first, call, thought, found, answer]},
            {"role": "user", "content": "Sure?"},
        ]))
    };
    assert_eq!(judge::anthropic::validate(&after(&said), &profile), []);
    let other = json!({"type": "text", "text": "I looked."});
    let faults = judge::anthropic::validate(&after(&other), &profile);
    assert!(
        faults[0].words.contains("bound to a different"),
        "{faults:?}"
    );
}

#[test]
fn a_gateway_is_told_for_how_long() {
    let dialect = Dialect {
        cache: openai_chat::CacheMarks::Parts,
        ..Dialect::named("openrouter").unwrap()
    };
    let spec = ToolSpec {
        name: "read".into(),
        description: String::new(),
        schema: json!({"type": "object"}),
    };
    for (retention, marks) in [(CacheRetention::Usual, 0), (CacheRetention::Long, 3)] {
        let plan = CachePlan {
            breakpoints: vec![
                Breakpoint::Tools,
                Breakpoint::System,
                Breakpoint::Message(0),
            ],
            retention,
            ..CachePlan::default()
        };
        let input = RenderInput {
            model: "anthropic/claude-opus-5",
            system: Some("Be brief."),
            tools: std::slice::from_ref(&spec),
            cache: Some(&plan),
            ..RenderInput::default()
        };
        let message = Message::user("Hello.");
        let body = openai_chat::render(&input, [&message], &dialect)
            .unwrap()
            .body;
        let body = String::from_utf8(body).unwrap();
        assert_eq!(body.matches("\"cache_control\"").count(), 3);
        assert_eq!(body.matches("\"ttl\":\"1h\"").count(), marks, "{body}");
    }
}
