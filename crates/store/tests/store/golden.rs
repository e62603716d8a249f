//! A log of every format so far: it can always be parsed and folded. Once released, the files under
//! `golden/` are never rewritten; a new kind of entry gets a new file.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_agent::{Entry, State};
use plimsoll_context::{Message, Part, Seq, TokenCounter, Tokens, Usage};
use plimsoll_core::{LogEntry, SessionInfo};

/// The entries of an export: every kind of message, part, edit and end, and most kinds of entries.
const ENTRIES: &str = include_str!("../golden/entries.jsonl");

/// The counter of the golden log, by which its plans were weighed. It never changes, whatever
/// becomes of the counters in use.
#[derive(Debug)]
struct FourBytes;

impl TokenCounter for FourBytes {
    fn name(&self) -> &'static str {
        "four-bytes"
    }

    fn text(&self, text: &str) -> Tokens {
        Tokens(text.len().div_ceil(4) as u64)
    }

    fn message(&self, message: &Message) -> Tokens {
        Tokens(1) + self.text(&message.text())
    }
}

fn golden() -> Vec<LogEntry> {
    let lines = ENTRIES.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

fn entries() -> Vec<Entry> {
    golden().into_iter().map(|line| line.entry).collect()
}

/// The value of `key` wherever it stands below.
fn tags(value: &serde_json::Value, key: &str, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            let here = map.get(key).and_then(|tag| tag.as_str());
            found.extend(here.map(str::to_owned));
            map.values().for_each(|value| tags(value, key, found));
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| tags(value, key, found)),
        _ => {}
    }
}

#[test]
fn the_golden_log_has_one_of_everything() {
    let value: serde_json::Value =
        serde_json::from_str(&format!("[{}]", ENTRIES.trim_end().replace('\n', ","))).unwrap();
    let table: [(&str, &[&str]); 9] = [
        (
            "entry",
            &[
                "message",
                "opened",
                "plan_applied",
                "reply",
                "run_ended",
                "run_started",
                "tool_result",
                "tool_started",
                "window_learned",
            ],
        ),
        (
            "role",
            &[
                "assistant",
                "notice",
                "summary",
                "system",
                "tool_result",
                "user",
            ],
        ),
        (
            "type",
            &["file", "image", "opaque", "text", "thinking", "tool_call"],
        ),
        ("kind", &["data", "url"]),
        ("edit", &["drop", "shrink"]),
        ("why", &["asked", "overflow", "request"]),
        (
            "stop",
            &["content_filter", "length", "other", "stop", "tool_calls"],
        ),
        (
            "reason",
            &[
                "answered",
                "cannot_fit",
                "failed",
                "interrupted",
                "max_turns",
                "tool_limit",
            ],
        ),
        (
            "failure",
            &[
                "auth",
                "garbled",
                "output_too_large",
                "overflow",
                "rate_limited",
                "refused",
                "transient",
            ],
        ),
    ];
    for (key, expected) in table {
        let mut found = BTreeSet::new();
        tags(&value, key, &mut found);
        assert_eq!(Vec::from_iter(found), expected, "{key}");
    }
}

#[test]
fn the_golden_log_is_read_whole() {
    for (k, line) in golden().into_iter().enumerate() {
        assert_eq!(line.n, k as u64 + 1);
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<LogEntry>(&text).unwrap(), line);
    }
}

#[test]
fn the_golden_log_folds_to_the_same_state() {
    let entries = entries();
    let state = State::fold(Arc::new(FourBytes), &entries).unwrap();
    let view: Vec<(Seq, &Message)> = state
        .transcript()
        .items()
        .iter()
        .map(|item| (item.seq, item.message.as_ref()))
        .collect();
    let seqs: Vec<u64> = view.iter().map(|(seq, _)| seq.0).collect();
    assert_eq!(seqs, [0, 1, 4, 5, 6, 7, 8, 9, 10, 11]);
    let texts: Vec<String> = view.iter().map(|(_, message)| message.text()).collect();
    assert_eq!(
        texts,
        [
            "What is in notes.txt?\nAnd what does the picture show?",
            "[3 messages were removed here]",
            "A list.",
            "[1 message was removed here]",
            "How many eggs?",
            "The user asked about notes.txt; it is a shopping list.",
            "Twel",
            "The last turn is used; answer now.",
            "Go on.",
            "Twelve.",
        ]
    );
    assert_eq!(state.transcript().tokens(), Tokens(73));
    assert_eq!(state.runs(), 12);
    assert_eq!(state.learned_window(), Some(Tokens(4_096)));
    assert_eq!(
        state.usage(),
        Usage {
            input: Tokens(40),
            output: Tokens(30),
            reasoning: Tokens(20),
            cache_read: Tokens(800),
            cache_write: Tokens(60),
            ..Usage::default()
        }
    );
    assert_eq!(SessionInfo::title_of(&entries), "What is in notes.txt?");

    // What a provider needs to have back is there to the byte.
    let opaque = entries.iter().find_map(|entry| match entry {
        Entry::Reply { message, .. } => message.parts().iter().find_map(|part| match part {
            Part::Thinking(thinking) => thinking.opaque.clone(),
            _ => None,
        }),
        _ => None,
    });
    assert_eq!(
        opaque.unwrap().data,
        "{\"signature\":  \"c2ln\", \"n\": 1.50}"
    );
}
