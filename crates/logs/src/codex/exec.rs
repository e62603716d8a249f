//! The output of `codex exec --json`: JSONL with events of a thread, its turns and their items. It
//! contains the texts and calls of the agent, but no messages of the user.

use std::path::Path;

use plimsoll_foreign::{Protocol, Role};
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::error::LogError;
use crate::input::for_each_entry;
use crate::session::{SessionLog, text};

/// Reads the output of a run, with items that did not end as calls without a result.
pub(crate) fn read(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::CodexExec, path, Protocol::Responses);
    let mut open: Vec<(usize, Value)> = Vec::new();
    for_each_entry(&mut log, |log, entry| {
        let value = |key: &str| entry.value(key).unwrap_or_default();
        let item = value("item");
        let is_same = |other: &Value| other.get("id") == item.get("id");
        match entry.text("type").unwrap_or_default().as_str() {
            "thread.started" => log.id = entry.text("thread_id").unwrap_or_default(),
            "item.started" | "item.updated" => {
                match open.iter_mut().find(|(_, other)| is_same(other)) {
                    Some((_, other)) => *other = item,
                    None => open.push((entry.line, item)),
                }
            }
            "item.completed" => {
                open.retain(|(_, other)| !is_same(other));
                push(log, entry.line, &item, true);
            }
            "error" => log.last_error = entry.text("message"),
            "turn.failed" => {
                log.last_error = text(&value("error"), "/message").map(str::to_owned);
            }
            "turn.completed" => log.last_error = None,
            _ => {}
        }
    })?;
    for (line, item) in open {
        push(&mut log, line, &item, false);
    }
    log.checked("it contains no items; name the file with the whole output of the run")
}

/// Adds an item: a message, or a call and, if it `ended`, its result.
fn push(log: &mut SessionLog, line: usize, item: &Value, ended: bool) {
    let kind = text(item, "/type").or(text(item, "/item_type"));
    let (name, arguments, result) = match kind.unwrap_or_default() {
        "agent_message" | "assistant_message" => {
            let content = json!([{ "type": "output_text", "text": text(item, "/text") }]);
            let message = json!({ "type": "message", "role": "assistant", "content": content });
            log.push(line, [(0, Role::Own, message)]);
            return;
        }
        "command_execution" => {
            let output = text(item, "/aggregated_output").unwrap_or_default();
            let result = match (item.get("exit_code").and_then(Value::as_i64), output) {
                (Some(code), output) => format!("Exit code: {code}\nOutput:\n{output}"),
                (None, "") => status(item),
                (None, output) => output.to_owned(),
            };
            let arguments = json!({ "command": text(item, "/command") });
            ("shell".to_owned(), arguments, result)
        }
        "file_change" => {
            let changes = item.get("changes").and_then(Value::as_array);
            let changes: Vec<String> = changes.into_iter().flatten().filter_map(heading).collect();
            let arguments = json!({ "changes": changes });
            ("file_change".to_owned(), arguments, status(item))
        }
        "mcp_tool_call" => {
            let part = |key| text(item, key).unwrap_or_default();
            let name = format!("{}__{}", part("/server"), part("/tool"));
            let arguments = item.get("arguments").filter(|value| value.is_object());
            let arguments = arguments.cloned().unwrap_or_else(|| json!({}));
            let result = match text(item, "/error/message") {
                Some(error) => format!("Error: {error}"),
                None => content(item).unwrap_or_else(|| status(item)),
            };
            (name, arguments, result)
        }
        "web_search" => {
            let arguments = json!({ "query": text(item, "/query") });
            ("web_search".to_owned(), arguments, status(item))
        }
        "todo_list" => {
            let steps = item.get("items").and_then(Value::as_array);
            let steps = steps.into_iter().flatten().map(|step| {
                let is_done = step.get("completed") == Some(&Value::Bool(true));
                let status = if is_done { "completed" } else { "pending" };
                json!({ "step": text(step, "/text"), "status": status })
            });
            let arguments = json!({ "plan": steps.collect::<Vec<_>>() });
            ("update_plan".to_owned(), arguments, status(item))
        }
        // Reasoning and notes of Codex are not part of a history.
        _ => return,
    };
    let id = format!("exec_{line}");
    let call = json!({
        "type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string(),
    });
    let output = json!({ "type": "function_call_output", "call_id": id, "output": result });
    let output = ended.then_some((1, Role::Own, output));
    log.push(line, std::iter::once((0, Role::Own, call)).chain(output));
}

/// Returns a changed file in the form of a patch's heading. The output contains no more of a patch.
fn heading(change: &Value) -> Option<String> {
    let action = match text(change, "/kind") {
        Some("add") => "Add",
        Some("delete") => "Delete",
        _ => "Update",
    };
    Some(format!("*** {action} File: {}", text(change, "/path")?))
}

/// Returns the texts in the result of an MCP tool.
fn content(item: &Value) -> Option<String> {
    let blocks = item.pointer("/result/content")?.as_array()?;
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| text(block, "/text"))
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Returns a result for an item whose output is not recorded.
fn status(item: &Value) -> String {
    match text(item, "/status") {
        Some("failed") => "Error: failed".to_owned(),
        Some("declined") => "Error: declined".to_owned(),
        _ => "completed".to_owned(),
    }
}
