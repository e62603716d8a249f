//! Rollouts of Codex: JSONL, each line with a `type` and a `payload`. Lines with the type
//! `response_item` contain the Responses items of the session.

pub(crate) mod copy;
pub(crate) mod exec;

use std::borrow::Cow;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::error::LogError;
use crate::input::for_each_line;
use crate::session::{HistoryBlock, Role, SessionLog, Wire, quoted};

#[derive(Deserialize)]
struct CodexEntry<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    id: String,
    cwd: Option<String>,
    base_instructions: Option<Instructions>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Instructions {
    Text(String),
    Object { text: String },
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TurnContext {
    model: Option<String>,
    cwd: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ItemKeys<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    role: Cow<'a, str>,
}

#[derive(Deserialize)]
struct CodexCompaction<'a> {
    #[serde(default)]
    message: String,
    #[serde(borrow, default)]
    replacement_history: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CodexEvent {
    #[serde(rename = "type")]
    kind: String,
    message: Option<String>,
    info: Option<TokenInfo>,
    model_context_window: Option<u64>,
    num_turns: usize,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenInfo {
    last_token_usage: Option<TokenUsage>,
    model_context_window: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TokenUsage {
    total_tokens: u64,
}

/// Reads a log and returns the history that Codex would send next.
pub(crate) fn read(path: &Path) -> Result<SessionLog, LogError> {
    let mut log = SessionLog::new(Agent::Codex, path, Wire::Responses);
    for_each_line(path, |number, line| {
        let Some(entry) = log.parse::<CodexEntry<'_>>(number, &line) else {
            return;
        };
        if let Err(error) = take(&mut log, number, &entry) {
            let kind = &entry.kind;
            log.damaged(number, format!("its {kind} cannot be read: {error}"));
        }
    })?;
    log.checked("it contains no messages; choose another session with --list")
}

fn take(log: &mut SessionLog, number: usize, entry: &CodexEntry<'_>) -> serde_json::Result<()> {
    let payload = entry.payload.get();
    match entry.kind.as_ref() {
        // A fork repeats the entries of its parent, including the first entry.
        "session_meta" if log.id.is_empty() => {
            let meta: Meta = serde_json::from_str(payload)?;
            log.id = meta.id;
            log.directory = meta.cwd;
            log.instructions = match meta.base_instructions {
                Some(Instructions::Text(text) | Instructions::Object { text }) => Some(text),
                Some(Instructions::Other(_)) | None => None,
            };
        }
        "turn_context" => {
            let context: TurnContext = serde_json::from_str(payload)?;
            log.model = context.model.or(log.model.take());
            log.directory = context.cwd.or(log.directory.take());
        }
        "response_item" => {
            let item: ItemKeys<'_> = serde_json::from_str(payload)?;
            // The state of the working tree, for undo; the model never sees it.
            if item.kind != "ghost_snapshot" {
                log.push(role(&item), number, payload.to_owned());
                log.last_error = None;
            }
        }
        "compacted" => {
            let compacted: CodexCompaction<'_> = serde_json::from_str(payload)?;
            log.compactions += 1;
            log.reported_at = None;
            compact(log, number, &compacted)?;
        }
        "event_msg" => event(log, serde_json::from_str(payload)?),
        _ => {}
    }
    Ok(())
}

fn role(item: &ItemKeys<'_>) -> Role {
    match (item.kind.as_ref(), item.role.as_ref()) {
        ("message", "user") => Role::User,
        ("message", "assistant") => Role::Assistant,
        _ => Role::Other,
    }
}

/// Applies a compaction: the history becomes the listed items, or else the user's messages and the
/// summary.
fn compact(
    log: &mut SessionLog,
    number: usize,
    compacted: &CodexCompaction<'_>,
) -> serde_json::Result<()> {
    if let Some(items) = &compacted.replacement_history {
        log.blocks.clear();
        for item in items {
            let keys: ItemKeys<'_> = serde_json::from_str(item.get())?;
            log.push(role(&keys), number, item.get().to_owned());
        }
        return Ok(());
    }
    log.blocks
        .retain(|block: &HistoryBlock| block.role == Role::User);
    let summary = quoted(&compacted.message);
    let item = format!(
        "{{\"type\":\"message\",\"role\":\"user\",\"content\":[{{\"type\":\"input_text\",\"text\":{summary}}}]}}"
    );
    log.push(Role::User, number, item);
    Ok(())
}

fn event(log: &mut SessionLog, event: CodexEvent) {
    match event.kind.as_str() {
        "token_count" => {
            let info = event.info.unwrap_or_default();
            log.window = info.model_context_window.or(log.window);
            if let Some(usage) = info.last_token_usage.filter(|usage| usage.total_tokens > 0) {
                log.report(usage.total_tokens);
            }
        }
        "task_started" => log.window = event.model_context_window.or(log.window),
        "error" => log.last_error = event.message,
        "thread_rolled_back" => {
            for _ in 0..event.num_turns {
                let user_message = log
                    .blocks
                    .iter()
                    .rposition(|block| block.role == Role::User);
                log.blocks.truncate(user_message.unwrap_or_default());
            }
        }
        _ => {}
    }
}
