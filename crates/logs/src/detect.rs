//! [`detect`]: determines the agent that wrote a log by the keys at its beginning, independent of
//! the file name.

use plimsoll_wire::__internals::RawObject;

use crate::agent::{Agent, EntryMark};
use crate::input::BYTE_ORDER_MARK;

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
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    if head.starts_with(SQLITE) {
        return Some(Agent::Opencode);
    }
    let head = head.get(..HEAD.min(head.len())).unwrap_or_default();
    let lines = head.split(|byte| *byte == b'\n');
    let lines = lines
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty());
    let of_line = lines.take(LINES).find_map(of_object);
    // A document over several lines, as written by editors and `JSON.stringify(…, 2)`.
    of_line.or_else(|| of_object(head))
}

/// Returns the agent whose logs have an entry like the object at the beginning of a text.
fn of_object(text: &[u8]) -> Option<Agent> {
    let object = RawObject::of_start(text);
    let has = |key: &String| match (key.split_once('.'), key.strip_suffix('~')) {
        (Some((outer, key)), _) => {
            let outer = object.get(outer).map(serde_json::from_str::<RawObject<'_>>);
            outer.is_some_and(|outer| outer.is_ok_and(|outer| outer.get(key).is_some()))
        }
        (None, Some(key)) => object.get(key) == Some(""),
        (None, None) => object.get(key).is_some(),
    };
    let kind = object.get("type").unwrap_or_default().trim_matches('"');
    let fits = |mark: &EntryMark| {
        let is_of_type = mark.types.is_empty() || mark.types.iter().any(|of| of == kind);
        is_of_type && mark.keys.iter().all(has)
    };
    let mut agents = Agent::ALL.into_iter();
    agents.find(|agent| agent.facts().marks.iter().any(fits))
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
