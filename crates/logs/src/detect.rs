//! [`detect`]: determines the agent that wrote a log by the keys at its beginning, independent of
//! the file name.

use std::fmt;

use plimsoll_wire::__internals::RawObject;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::agent::Agent;
use crate::input::BYTE_ORDER_MARK;

/// The number of bytes at the beginning of a log that determine its format.
pub const HEAD: usize = 256 * 1024;
/// The number of lines that are examined, since the first ones may be damaged.
const LINES: usize = 64;
/// The maximum length of a type, in bytes.
const SHORT: usize = 128;
/// The first bytes of an SQLite database.
pub(crate) const SQLITE: &[u8] = b"SQLite format 3\0";

/// Returns the agent that wrote a log which begins with these bytes. Returns `None` for anything
/// else, such as a request to a model.
#[must_use]
pub fn detect(head: &[u8]) -> Option<Agent> {
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    if head.starts_with(SQLITE) {
        return Some(Agent::Opencode);
    }
    let head = head.get(..HEAD.min(head.len())).unwrap_or_default();
    let lines = head.split(|byte| *byte == b'\n');
    let lines = lines
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty());
    let of_line = lines.take(LINES).find_map(|line| of_keys(&keys(line)));
    // A document over several lines, as written by editors and `JSON.stringify(…, 2)`.
    of_line.or_else(|| of_keys(&keys(head)))
}

fn of_keys(keys: &[(String, &str)]) -> Option<Agent> {
    let has = |name: &str| keys.iter().any(|(key, _)| key == name);
    let value = |name: &str| {
        keys.iter()
            .find(|(key, _)| key == name)
            .map(|(_, raw)| *raw)
    };
    let kind = value("type").filter(|raw| raw.starts_with('"') && raw.len() <= SHORT);
    let kind = kind.unwrap_or_default().trim_matches('"');
    if has("payload") || kind == "session_meta" {
        let kinds = [
            "session_meta",
            "response_item",
            "event_msg",
            "turn_context",
            "compacted",
        ];
        return kinds.contains(&kind).then_some(Agent::Codex);
    }
    if has("parentUuid") || has("isSidechain") || kind == "file-history-snapshot" {
        return Some(Agent::ClaudeCode);
    }
    if kind == "session" && has("id") && (has("cwd") || has("timestamp")) {
        return Some(Agent::Pi);
    }
    if has("sessionId") && has("projectHash") {
        return Some(Agent::Gemini);
    }
    // A trajectory may be cut off in the submission, which is part of `info`.
    let info = value("info").filter(|info| info.is_empty() || has("messages"));
    if let Some(info) = info {
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

/// Returns the keys of the JSON object at the beginning of the text, with the raw texts of their values. The text may be
/// cut off at any position; a value that is cut off is empty.
fn keys(text: &[u8]) -> Vec<(String, &str)> {
    let mut keys = Vec::new();
    // An error ends the collection.
    let _ = serde_json::Deserializer::from_slice(text).deserialize_map(KeyCollector(&mut keys));
    keys
}

/// Collects the keys of an object.
struct KeyCollector<'k, 't>(&'k mut Vec<(String, &'t str)>);

impl<'t> Visitor<'t> for KeyCollector<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            self.0.push((key, ""));
            let raw = map.next_value::<&RawValue>()?;
            if let Some((_, value)) = self.0.last_mut() {
                *value = raw.get();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_their_keys_and_requests_are_left_alone() {
        let table = [
            (
                r#"{"parentUuid":null,"type":"user","message":{"role":"user"#,
                Some(Agent::ClaudeCode),
            ),
            (
                "junk\n{\"type\":\"summary\",\"sessionId\":\"1\"}",
                Some(Agent::ClaudeCode),
            ),
            (
                r#"{"timestamp":"1","type":"session_meta","payload":{"id""#,
                Some(Agent::Codex),
            ),
            (
                r#"{"type":"session","version":3,"id":"x","cwd":"/"}"#,
                Some(Agent::Pi),
            ),
            (
                "{\n  \"sessionId\": \"1\",\n  \"projectHash\": \"2\"",
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
                r#"{"info":{"config":{"id":1},"exit_status":"Submitted","submission":"cut off"#,
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
            ("{\n  \"trajectory\": [\n    {\n", Some(Agent::SweAgent)),
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
