//! No JSON makes a validator panic, and its faults are bounded.

use plimsoll_mock::rules::MAX_FAULTS;
use plimsoll_mock::rules::anthropic::sign;
use plimsoll_testkit::json_of;
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::{anthropic, openai_chat, openai_responses};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::server::Server;

/// Checks a value as a whole request, and as parts of a nearly valid one.
fn judge(protocol: &str, servers: &[&str], value: &Value, entries: &[Value]) {
    for name in servers {
        let server = Server::new(protocol, name);
        let keys = [
            "system",
            "tools",
            "thinking",
            "context_management",
            "toolConfig",
        ];
        let mut request: Value = keys
            .iter()
            .map(|key| ((*key).to_owned(), value.clone()))
            .collect();
        request["model"] = "m".into();
        request["max_tokens"] = 9.into();
        request[server.list()] = entries.into();
        for request in [&request, value, &json!([value])] {
            let faults = server.faults(request, "");
            assert!(faults.len() <= MAX_FAULTS);
            for fault in faults {
                let _ = server.refusal(&fault);
            }
            let _ = sign(request, "x");
        }
    }
}

/// Messages that are nearly valid.
fn entries(
    roles: [&'static str; 2],
    key: &'static str,
    parts: &[Value],
    any: impl Strategy<Value = Value> + 'static,
) -> impl Strategy<Value = Vec<Value>> {
    let part = prop_oneof![prop::sample::select(parts.to_vec()), any];
    let entry = (
        prop::sample::select(roles.to_vec()),
        prop::collection::vec(part, 0..4),
    );
    prop::collection::vec(
        entry.prop_map(move |(role, parts)| json!({"role": role, key: parts})),
        0..8,
    )
}

fn chat() -> impl Strategy<Value = Value> {
    json_of(
        "messages role content tool_calls tool_call_id id function arguments name type \
         reasoning_content",
        "user assistant tool system function a b",
    )
}

fn responses() -> impl Strategy<Value = Value> {
    json_of(
        "type role content input call_id id name arguments output summary encrypted_content \
         tools parameters properties text format schema reasoning effort items strict x",
        "message user assistant reasoning function_call function_call_output custom_tool_call \
         input_text output_text compaction item_reference object function json_schema \
         local_shell_call fc_1 a",
    )
}

fn messages() -> impl Strategy<Value = Value> {
    json_of(
        "role content type text id name input tool_use_id cache_control ttl source thinking \
         signature messages system tools max_tokens edits budget_tokens is_error x",
        "user assistant text tool_use tool_result thinking enabled adaptive a é 1h 5m \
         web_search_tool_result server_tool_use simulated-a-b image base64",
    )
}

fn gemini() -> impl Strategy<Value = Value> {
    json_of(
        "contents role parts text functionCall function_call functionResponse function_response \
         name id args response thoughtSignature tools functionDeclarations systemInstruction \
         cachedContent inlineData",
        "user model f",
    )
}

fn converse() -> impl Strategy<Value = Value> {
    json_of(
        "messages role content text toolUse toolResult toolUseId name input status toolConfig \
         tools toolSpec toolChoice none cachePoint",
        "user assistant a",
    )
}

proptest! {
    #[test]
    fn no_json_breaks_the_rules_of_chat(value in chat(), list in prop::collection::vec(chat(), 0..6)) {
        let servers = Dialect::names().map(|name| format!("{name}+mistral"));
        let servers: Vec<String> = servers.collect();
        let servers: Vec<&str> = servers.iter().map(String::as_str).collect();
        judge("chat", &servers, &value, &list);
    }

    #[test]
    fn no_json_breaks_the_rules_of_responses(
        value in responses(), list in prop::collection::vec(responses(), 0..6),
    ) {
        judge("responses", &["openai", "plain", "compatible"], &value, &list);
    }

    #[test]
    fn no_json_breaks_the_rules_of_messages(
        value in messages(), list in prop::collection::vec(messages(), 0..6),
    ) {
        let models = ["claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-5-5", "gopher"];
        judge("messages", &models, &value, &list);
    }

    #[test]
    fn no_json_breaks_the_rules_of_gemini(value in gemini(), list in entries(
        ["user", "model"],
        "parts",
        &[json!({"text": "x"}), json!({"functionCall": {"name": "f"}}),
            json!({"functionResponse": {"name": "f"}})],
        gemini(),
    )) {
        judge("gemini", &["gemini-2.5-pro", "gemini-3-pro", "gemini-9"], &value, &list);
    }

    #[test]
    fn no_json_breaks_the_rules_of_converse(value in converse(), list in entries(
        ["user", "assistant"],
        "content",
        &[json!({"text": "x"}),
            json!({"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}),
            json!({"toolResult": {"toolUseId": "a", "content": [{"text": "done"}]}})],
        converse(),
    )) {
        let models = ["anthropic.claude-sonnet-4-5-20250929-v1:0", "mistral.mistral-large-2407-v1:0"];
        judge("converse", &models, &value, &list);
    }
}

proptest! {
    #[test]
    fn reading_never_breaks(text in ".{0,200}", more in "[\\[\\]{}\":,a-z0-9 ]{0,60}") {
        let texts = [
            text.clone(),
            format!("[{{\"role\":\"user\",\"content\":{text}}}]"),
            format!("{{\"messages\":[{{\"role\":\"user\",\"content\":{more}}}]}}"),
            format!("{{\"input\":[{{\"type\":{text}}}],\"tools\":{text}}}"),
            format!("{{\"content\":{more}}}"),
        ];
        for text in &texts {
            let _ = (openai_chat::read(text), openai_responses::read(text), anthropic::read(text));
            let _ = (openai_chat::read_reply(text), anthropic::read_reply(text));
        }
    }
}

#[test]
fn the_number_of_faults_is_bounded() {
    let many = vec![json!({"role": "robot"}); 1_000];
    for (protocol, name) in [
        ("chat", "openai"),
        ("responses", "openai"),
        ("gemini", "gemini-2.5-pro"),
        ("converse", ""),
    ] {
        let server = Server::new(protocol, name);
        let request = json!({server.list(): many});
        assert_eq!(server.faults(&request, "").len(), MAX_FAULTS, "{protocol}");
    }
}
