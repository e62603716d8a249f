//! [`detect`]: determines the agent that wrote a log by the keys at its beginning, independent of
//! the file name.

use plimsoll_wire::__internals::RawObject;

use crate::agent::Agent;
use crate::input::{BYTE_ORDER_MARK, Entry, entries};

/// The number of lines that are examined, since the first ones may be damaged.
const LINES: usize = 64;
/// The maximum length of a type, in bytes.
const SHORT: usize = 128;
/// The first bytes of an SQLite database.
pub(crate) const SQLITE: &[u8] = b"SQLite format 3\0";

/// Returns the agent that wrote a log with this text. Returns `None` for anything
/// else, such as a request to a model.
#[must_use]
pub fn detect(text: &[u8]) -> Option<Agent> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    if text.starts_with(SQLITE) {
        return Some(Agent::Opencode);
    }
    let lines = text.split(|byte| *byte == b'\n').take(LINES);
    let mut lines = lines.flat_map(|line| entries(0, line).flatten());
    // A document over several lines, as written by editors and `JSON.stringify(…, 2)`.
    let whole = || of_entry(&Entry::parse(0, text).ok()?);
    lines.find_map(|entry| of_entry(&entry)).or_else(whole)
}

fn of_entry(entry: &Entry<'_>) -> Option<Agent> {
    let has = |name: &str| entry.raw(name).is_some();
    let kind = entry
        .raw("type")
        .filter(|raw| raw.starts_with('"') && raw.len() <= SHORT);
    let kind = kind.unwrap_or_default().trim_matches('"');
    if has("payload") && !kind.is_empty() {
        return Some(Agent::Codex);
    }
    if has("parentUuid") || has("isSidechain") || kind == "file-history-snapshot" {
        return Some(Agent::ClaudeCode);
    }
    if kind == "session" && has("id") && (has("cwd") || has("timestamp")) {
        return Some(Agent::Pi);
    }
    let is_record = kind == "gemini" || has("$set") || has("$rewindTo");
    if has("sessionId") && has("projectHash") || is_record {
        return Some(Agent::Gemini);
    }
    if let Some(info) = entry.raw("info").filter(|_| has("messages")) {
        // A session of opencode has an id, which a trajectory does not need.
        let info: RawObject<'_> = serde_json::from_str(info).unwrap_or_default();
        return Some(match info.get("id") {
            Some(_) => Agent::Opencode,
            None => Agent::MiniSweAgent,
        });
    }
    let of_item = kind.starts_with("item.") && has("item");
    if of_item || (kind == "thread.started" && has("thread_id")) {
        return Some(Agent::CodexExec);
    }
    if has("sessionId") && !kind.is_empty() {
        return Some(Agent::ClaudeCode);
    }
    if has("trajectory") {
        return Some(Agent::SweAgent);
    }
    if has("history") && (has("instance_id") || has("instance") || has("metadata")) {
        return Some(Agent::OpenHands);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_keys_and_requests_are_left_alone() {
        let table = [
            (
                r#"{"parentUuid":null,"type":"user","message":{"role":"user"}}"#,
                Some(Agent::ClaudeCode),
            ),
            (
                "junk\n{\"type\":\"summary\",\"sessionId\":\"1\"}",
                Some(Agent::ClaudeCode),
            ),
            (
                r#"{"timestamp":"1","type":"session_meta","payload":{"id":1}}"#,
                Some(Agent::Codex),
            ),
            (
                r#"{"type":"session","version":3,"id":"x","cwd":"/"}"#,
                Some(Agent::Pi),
            ),
            (
                "{\n  \"sessionId\": \"1\",\n  \"projectHash\": \"2\"}",
                Some(Agent::Gemini),
            ),
            (
                r#"{"info":{"id":"ses_1"},"messages":[]}"#,
                Some(Agent::Opencode),
            ),
            (
                r#"{"info":{"title":"exit_status","id":"ses_1"},"messages":[]}"#,
                Some(Agent::Opencode),
            ),
            (
                r#"{"info":{},"messages":[{"role":"user","content":"x"}]}"#,
                Some(Agent::MiniSweAgent),
            ),
            (
                r#"{"type":"thread.started","thread_id":"t"}"#,
                Some(Agent::CodexExec),
            ),
            (
                r#"{"type":"item.completed","item":{"id":"item_0"}}"#,
                Some(Agent::CodexExec),
            ),
            (r#"{"type":"item.completed"}"#, None),
            ("SQLite format 3\0\u{1}", Some(Agent::Opencode)),
            (
                r#"{"environment":"x","trajectory":[],"history":[]}"#,
                Some(Agent::SweAgent),
            ),
            ("{\n  \"trajectory\": [\n    ]}", Some(Agent::SweAgent)),
            (
                r#"{"instance_id":"x","history":[]}"#,
                Some(Agent::OpenHands),
            ),
            (r#"{"model":"claude","messages":[{"parentUuid":1}]}"#, None),
            (r#"[{"parentUuid":null}]"#, None),
            (r#"{"input":"{\"parentUuid\":1}"}"#, None),
            ("", None),
            ("\u{0}\u{1}\u{2}", None),
            (r#"{"type":"#, None),
        ];
        for (text, expected) in table {
            assert_eq!(detect(text.as_bytes()), expected, "{text}");
        }
    }
}
