//! Rollouts of Codex: JSONL, each line with a `type` and a `payload`. Lines with the type
//! `response_item` contain the Responses items of the session.

pub(crate) mod copy;
pub(crate) mod exec;

use plimsoll_foreign::{Role, Unit};
use serde_json::{Value, json};

use crate::error::LogError;
use crate::input::{EntryPlace, for_each_entry};
use crate::read::NO_MESSAGE;
use crate::session::{SessionLog, text};

/// Events that describe the old history or its failure. Other events are displayed, and copied.
const NOT_COPIED: [&str; 4] = ["token_count", "error", "stream_error", "context_compacted"];

/// Reads a log and returns the history that Codex would send next.
pub(crate) fn read(log: &mut SessionLog) -> Result<&'static str, LogError> {
    for_each_entry(log, |log, entry| {
        let kind = entry.text("type").unwrap_or_default();
        match entry.value("payload") {
            Ok(Value::Null) => log.damaged(entry.place, 0, format!("its {kind} is missing")),
            Ok(payload) => {
                log.began = log.began.take().or_else(|| entry.text("timestamp"));
                take(log, entry.place, &kind, payload);
            }
            Err(error) => log.unread(entry, &format!("its {kind}"), &error),
        }
    })?;
    Ok(NO_MESSAGE)
}

fn take(log: &mut SessionLog, place: EntryPlace, kind: &str, mut payload: Value) {
    let owned = |pointer: &str| text(&payload, pointer).map(str::to_owned);
    match kind {
        // A fork repeats the entries of its parent, including the first entry.
        "session_meta" if log.id.is_empty() => {
            log.id = owned("/id").unwrap_or_default();
            log.directory = owned("/cwd");
            log.instructions = owned("/base_instructions/text").or(owned("/base_instructions"));
            log.push(place, []);
        }
        "session_meta" | "token_usage_record" => {}
        "turn_context" => {
            log.model = owned("/model").or(log.model.take());
            log.directory = owned("/cwd").or(log.directory.take());
            log.push(place, []);
        }
        // The state of the working tree, for undo; the model never sees it.
        "response_item" if text(&payload, "/type") == Some("ghost_snapshot") => log.push(place, []),
        "response_item" => {
            log.last_error = None;
            log.push(place, [(0, Role::Own, payload)]);
        }
        "compacted" => {
            let items = payload.get_mut("replacement_history").map(Value::take);
            let is_encrypted = |item: &Value| text(item, "/type") == Some("compaction");
            let list = items.as_ref().and_then(Value::as_array);
            log.has_encrypted = list.is_some_and(|list| list.iter().any(is_encrypted));
            if log.has_encrypted && log.ignores_encrypted {
                let done = "left out its encrypted compaction; the messages before it come back";
                log.repaired_by("thinking", place, done);
                return;
            }
            (log.reported, log.begin) = (None, place.number);
            if let Some(Value::Array(items)) = items {
                log.units.clear();
                log.branch.retain(|entry| entry.units == 0);
                let items = items.into_iter().enumerate();
                log.push(place, items.map(|(at, item)| (at, Role::Own, item)));
                return;
            }
            // The history becomes the messages of the user and the summary.
            log.units.retain(is_of_user);
            let summary = text(&payload, "/message").unwrap_or_default();
            let content = json!([{ "type": "input_text", "text": summary }]);
            let item = json!({ "type": "message", "role": "user", "content": content });
            log.push(place, [(0, Role::Own, item)]);
        }
        "event_msg" => event(log, place, &payload),
        _ => log.push(place, []),
    }
}

fn is_of_user(unit: &Unit<'_>) -> bool {
    let item = unit.value();
    text(item, "/type") == Some("message") && text(item, "/role") == Some("user")
}

fn event(log: &mut SessionLog, place: EntryPlace, event: &Value) {
    let number = |pointer: &str| event.pointer(pointer).and_then(Value::as_u64);
    let window = number("/info/model_context_window").or(number("/model_context_window"));
    log.window = window.or(log.window);
    match text(event, "/type").unwrap_or_default() {
        // Without input, it is no size of a request: Codex fills the window after a refusal.
        "token_count" if number("/info/last_token_usage/input_tokens") == Some(0) => {}
        "token_count" => {
            log.report(number("/info/last_token_usage/total_tokens").unwrap_or_default());
        }
        "error" => log.last_error = text(event, "/message").map(str::to_owned),
        "task_complete" => {
            let error = text(event, "/error/message").map(str::to_owned);
            log.last_error = error.or(log.last_error.take());
            log.push(place, []);
        }
        "thread_name_updated" => log.title = text(event, "/thread_name").map(str::to_owned),
        "thread_rolled_back" => {
            for _ in 0..number("/num_turns").unwrap_or_default() {
                let from = log.units.iter().rposition(is_of_user).unwrap_or_default();
                let entry = log.units.get(from).and_then(|unit| Some(unit.place?.entry));
                log.units.truncate(from);
                let Some(entry) = entry else { break };
                log.branch.truncate(entry);
            }
        }
        kind if NOT_COPIED.contains(&kind) => {}
        _ => log.push(place, []),
    }
}
