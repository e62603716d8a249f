//! [`detect`]: determines the agent that wrote a log by the keys at its beginning, independent of
//! the file name.

use crate::agent::Agent;

/// The number of bytes at the beginning of a log that determine its format.
pub const HEAD: usize = 256 * 1024;
/// The number of lines that are examined, since the first ones may be damaged.
const LINES: usize = 64;
/// The first bytes of an SQLite database.
pub(crate) const SQLITE: &[u8] = b"SQLite format 3\0";

/// Returns the agent that wrote a log which begins with these bytes. Returns `None` for anything
/// else, such as a request to a model.
#[must_use]
pub fn detect(head: &[u8]) -> Option<Agent> {
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

fn of_keys(keys: &[(String, String)]) -> Option<Agent> {
    let has = |name: &str| keys.iter().any(|(key, _)| key == name);
    let kind = keys.iter().find(|(key, _)| key == "type");
    let kind = kind.map_or("", |(_, value)| value.as_str());
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
    if has("trajectory_format") || has("info.exit_status") || has("info.mini_version") {
        return Some(Agent::MiniSweAgent);
    }
    if has("info") && has("messages") {
        // A session of opencode has an id, which a trajectory does not need.
        return Some(if has("info.id") {
            Agent::Opencode
        } else {
            Agent::MiniSweAgent
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

/// Returns the keys of the JSON object at the beginning of the text, with their values if these are
/// short strings. The keys of the object `info` are included as `info.KEY`. The text may be cut off
/// at any position.
fn keys(text: &[u8]) -> Vec<(String, String)> {
    let mut keys: Vec<(String, String)> = Vec::new();
    let mut depth = 0_usize;
    let mut key: Option<String> = None;
    let mut is_of_info = false;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => {
                if depth == 0 && *byte == b'[' {
                    return keys;
                }
                depth += 1;
                if depth == 2
                    && let Some(name) = key.take()
                {
                    is_of_info = name == "info";
                    keys.push((name, String::new()));
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return keys;
                }
            }
            b'"' => {
                let end = end_of_text(text, at + 1);
                let value = text.get(at + 1..end).unwrap_or_default();
                let value = String::from_utf8_lossy(value.get(..128).unwrap_or(value));
                let behind = text.get(end + 1..).unwrap_or_default().trim_ascii_start();
                let is_info = depth == 2 && is_of_info && behind.first() == Some(&b':');
                match (depth, key.take()) {
                    (1, Some(name)) => keys.push((name, value.into_owned())),
                    (1, None) => key = Some(value.into_owned()),
                    _ if is_info => keys.push((format!("info.{value}"), String::new())),
                    _ => {}
                }
                at = end;
            }
            b',' if depth == 1 => {
                // The value was a number, a bool or null.
                if let Some(name) = key.take() {
                    keys.push((name, String::new()));
                }
            }
            _ if depth == 0 && !byte.is_ascii_whitespace() => return keys,
            _ => {}
        }
        at += 1;
    }
    keys
}

/// Returns the end of the string that begins at `at`.
fn end_of_text(text: &[u8], mut at: usize) -> usize {
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
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
