//! Describes a provider's own tools for the user: calls and results for a caller that shows a run. The
//! blocks themselves are opaque, are sent back unchanged, and are not changed here.

use plimsoll_context::{Bytes, CallId, Delta, Opaque, clip};
use serde_json::Value;

use crate::value::{some_text, text};
use crate::{anthropic, openai_responses};

/// The maximum length of a described call or result. The reply itself contains it whole.
pub const MAX_TOLD: Bytes = Bytes(2 * 1024);
/// The suffix of call types in Responses.
const CALL: &str = "_call";
/// The suffix of result types in Messages.
const RESULT: &str = "_tool_result";

/// Returns the message for a tool that is not one of the provider's own.
pub(crate) fn not_hosted(kind: &str, why: &str, kinds: &[&str]) -> String {
    let kinds = kinds.join(", ");
    format!("`{kind}` {why}, so that it is none of hosted_tools; there are: {kinds}")
}

/// Returns the call, the result, or both in a block of a tool that the provider runs. Empty for any
/// other block.
///
/// ```
/// use plimsoll_context::{Delta, Opaque};
/// use plimsoll_wire::{anthropic, hosted};
/// let block = r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"sea"}}"#;
/// let told = hosted::deltas(&Opaque { origin: anthropic::ORIGIN.into(), data: block.into() });
/// assert!(matches!(&told[..], [Delta::HostedCall { name, text, .. }]
///     if name == "web_search" && text == r#"{"query":"sea"}"#));
/// ```
#[must_use]
pub fn deltas(block: &Opaque) -> Vec<Delta> {
    // Most blocks are of other types, so they are not parsed.
    let of = |origin: &str, part: &str| block.origin == origin && block.data.contains(part);
    let read = || serde_json::from_str::<Value>(&block.data).unwrap_or_default();
    if of(anthropic::ORIGIN, "_tool_") {
        of_messages(&read()).into_iter().collect()
    } else if of(openai_responses::ORIGIN, CALL) {
        of_responses(&read())
    } else {
        Vec::new()
    }
}

fn of_messages(block: &Value) -> Option<Delta> {
    let kind = text(block, "type");
    if matches!(kind, "server_tool_use" | "mcp_tool_use") {
        return Some(Delta::HostedCall {
            call: CallId(text(block, "id").to_owned()),
            name: text(block, "name").to_owned(),
            text: short(block.get("input").unwrap_or(&Value::Null)),
        });
    }
    let name = kind.strip_suffix(RESULT)?;
    let content = block.get("content").unwrap_or(&Value::Null);
    let error = some_text(content, "error_code");
    let failed = error.is_some() || block.get("is_error") == Some(&Value::Bool(true));
    Some(Delta::HostedResult {
        call: CallId(text(block, "tool_use_id").to_owned()),
        name: name.to_owned(),
        text: match (error, content) {
            (Some(error), _) => error.to_owned(),
            (None, Value::Array(list)) => listed(list),
            (None, content) => ran(content).unwrap_or_else(|| short(content)),
        },
        is_error: failed,
    })
}

/// Returns search results, one per line.
fn listed(list: &[Value]) -> String {
    let lines = list.iter().map(|one| {
        match joined(["title", "url", "text"].map(|key| text(one, key)), " ") {
            fields if fields.is_empty() => text(one, "type").to_owned(),
            fields => fields,
        }
    });
    cut(&lines.collect::<Vec<_>>().join("\n"))
}

/// Joins the texts that are not empty.
fn joined<const N: usize>(texts: [&str; N], between: &str) -> String {
    let texts = texts.into_iter().filter(|text| !text.is_empty());
    texts.collect::<Vec<_>>().join(between)
}

/// Returns the output of a program.
fn ran(content: &Value) -> Option<String> {
    content.get("return_code")?;
    let outputs = ["stdout", "stderr"].map(|key| text(content, key).trim());
    Some(cut(&joined(outputs, "\n")))
}

fn of_responses(item: &Value) -> Vec<Delta> {
    let (input_key, output_key) = match text(item, "type") {
        "web_search_call" => ("action", "status"),
        "file_search_call" => ("queries", "results"),
        "code_interpreter_call" => ("code", "outputs"),
        "image_generation_call" => ("revised_prompt", "status"),
        "mcp_call" => ("arguments", "output"),
        _ => return Vec::new(),
    };
    let call = CallId(text(item, "id").to_owned());
    let name = match (text(item, "server_label"), text(item, "name")) {
        ("", "") => text(item, "type").trim_end_matches(CALL).to_owned(),
        (server, name) => format!("{server}.{name}"),
    };
    let value = |key: &str| item.get(key).filter(|value| !value.is_null());
    let error = value("error");
    let failed = error.is_some() || matches!(text(item, "status"), "failed" | "incomplete");
    let output = error
        .or_else(|| value(output_key))
        .or_else(|| value("status"));
    vec![
        Delta::HostedCall {
            call: call.clone(),
            name: name.clone(),
            text: value(input_key).map_or_else(String::new, short),
        },
        Delta::HostedResult {
            call,
            name,
            text: output.map_or_else(String::new, short),
            is_error: failed,
        },
    ]
}

/// Returns a short form of a value: a text unchanged, other values as JSON.
fn short(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => cut(text),
        other => cut(&other.to_string()),
    }
}

fn cut(text: &str) -> String {
    clip(text, MAX_TOLD).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tell(origin: &str, block: &Value) -> Vec<(String, String, String, bool)> {
        let origin = origin.to_owned();
        let data = block.to_string();
        let deltas = deltas(&Opaque { origin, data }).into_iter();
        let deltas = deltas.map(|delta| match delta {
            Delta::HostedCall { call, name, text } => (call.0, name, text, false),
            Delta::HostedResult {
                call,
                name,
                text,
                is_error,
            } => (call.0, name, text, is_error),
            other => panic!("{other:?}"),
        });
        deltas.collect()
    }

    #[test]
    fn what_came_of_a_call_is_told_in_few_words() {
        let row = |call: &str, name: &str, text: &str, failed| {
            (call.to_owned(), name.to_owned(), text.to_owned(), failed)
        };
        let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [
            {"type": "web_search_result", "title": "Sea", "url": "https://s.example",
                "encrypted_content": "x".repeat(9_000)}]});
        let rows = tell(anthropic::ORIGIN, &found);
        assert_eq!(
            rows,
            [row("s1", "web_search", "Sea https://s.example", false)]
        );
        let failed = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content":
            {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}});
        let rows = tell(anthropic::ORIGIN, &failed);
        assert_eq!(rows, [row("s1", "web_search", "max_uses_exceeded", true)]);
        let ran = json!({"type": "bash_code_execution_tool_result", "tool_use_id": "s2",
            "content": {"type": "bash_code_execution_result", "stdout": "42\n", "stderr": "",
                "return_code": 0, "content": []}});
        let rows = tell(anthropic::ORIGIN, &ran);
        assert_eq!(rows, [row("s2", "bash_code_execution", "42", false)]);
        let searched = json!({"type": "web_search_call", "id": "ws_1", "status": "completed",
            "action": {"type": "search", "query": "sea"}});
        let rows = tell(openai_responses::ORIGIN, &searched);
        let query = r#"{"type":"search","query":"sea"}"#;
        let expected = [
            row("ws_1", "web_search", query, false),
            row("ws_1", "web_search", "completed", false),
        ];
        assert_eq!(rows, expected);
        let remote = json!({"type": "mcp_call", "id": "mcp_1", "server_label": "ship",
            "name": "sail", "arguments": "{}", "error": "no wind", "output": null});
        let rows = tell(openai_responses::ORIGIN, &remote);
        assert_eq!(rows[1], row("mcp_1", "ship.sail", "no wind", true));
    }

    #[test]
    fn all_else_tells_nothing_and_nothing_is_told_at_length() {
        for (origin, block) in [
            (anthropic::ORIGIN, json!({"type": "container_upload"})),
            (anthropic::ORIGIN, json!("_tool_result")),
            (
                openai_responses::ORIGIN,
                json!({"type": "function_call", "call_id": "c"}),
            ),
            (
                openai_responses::ORIGIN,
                json!({"type": "local_shell_call", "id": "l"}),
            ),
            ("openai-chat", json!({"type": "server_tool_use", "id": "s"})),
        ] {
            assert!(tell(origin, &block).is_empty(), "{block}");
        }
        let long = json!({"type": "server_tool_use", "id": "s", "name": "web_fetch",
            "input": {"url": "é".repeat(9_000)}});
        let rows = tell(anthropic::ORIGIN, &long);
        assert!(
            rows[0].2.len() as u64 <= MAX_TOLD.0 + 8,
            "{}",
            rows[0].2.len()
        );
    }
}
