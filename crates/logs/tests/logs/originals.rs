//! Logs written by the agents themselves, checked against known facts. Skipped with a note if they
//! do not exist.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use plimsoll_context::Message;
use plimsoll_logs::SessionLog;
use serde_json::Value;

use super::{assert_answered, copied, messages, messages_of, read_back, shape};

fn folder() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("../../../shared/data");
    if !folder.is_dir() {
        eprintln!("skipped: no recorded sessions in {}", folder.display());
        return None;
    }
    Some(folder)
}

fn files(folder: &Path, source: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("originals").join(source)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The ids of calls in the normalized sessions of a source, behind the last compaction, by the names
/// of their originals.
fn known_calls(folder: &Path, source: &str) -> HashMap<String, HashSet<String>> {
    let file = File::open(folder.join(format!("normalized/{source}.jsonl.gz"))).unwrap();
    let mut known = HashMap::new();
    for line in BufReader::new(GzDecoder::new(file)).lines() {
        let session: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let name = session["path"].as_str().unwrap().replace('/', "_") + ".gz";
        let last = session["events"]
            .as_array()
            .and_then(|events| events.last());
        let from = last.map_or(0, |event| event["at"].as_u64().unwrap());
        let messages = session["messages"].as_array().unwrap();
        let messages = messages.iter().skip(usize::try_from(from).unwrap());
        let calls =
            messages.flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
        let ids = calls.map(|call| call["id"].as_str().unwrap().to_owned());
        known.insert(name, ids.collect());
    }
    known
}

fn calls(messages: &[Message]) -> HashSet<String> {
    let calls = messages.iter().flat_map(Message::calls);
    calls.map(|call| call.id.0.clone()).collect()
}

#[test]
fn claude_code_has_the_calls_that_are_known() {
    let Some(folder) = folder() else { return };
    let known = known_calls(&folder, "claude-code-packmind");
    let files = files(&folder, "claude-code-packmind");
    assert_eq!(files.len(), 12);
    for path in files {
        let log = SessionLog::read(&path, None).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert_eq!(log.damaged, 0, "{name}: {:?}", log.damage);
        let read = messages_of(log);
        assert_eq!(calls(&read), known[name], "{name}");
        assert_answered(&read);
    }
}

#[test]
fn pi_has_the_calls_that_are_known() {
    let Some(folder) = folder() else { return };
    let known = known_calls(&folder, "pi-mono-fixtures");
    for path in files(&folder, "pi-mono-fixtures") {
        let log = SessionLog::read(&path, None).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let damaged = log.damaged;
        let messages = messages_of(log);
        let read = calls(&messages);
        // A compaction of pi keeps messages before it.
        let mut texts = messages.iter().map(Message::text);
        let is_compacted = texts.any(|text| text.contains("<summary>"));
        assert!(read.is_superset(&known[name]) || is_compacted, "{name}");
        assert!(!read.is_empty() && damaged == 0, "{name}");
    }
}

#[test]
fn codex_and_trajectories_have_their_calls() {
    let Some(folder) = folder() else { return };
    let table = [
        ("codex-agentv", 76, 0),
        ("swe-smith-trajs", 76, 0),
        ("openhands-eval-examples", 23, 1),
    ];
    for (source, expected, open) in table {
        let (mut found, mut answered) = (0, 0);
        for path in files(&folder, source) {
            let log = SessionLog::read(&path, None).unwrap();
            let read = messages_of(log);
            found += read.iter().flat_map(Message::calls).count();
            answered += read
                .iter()
                .filter(|one| matches!(one, Message::ToolResult(_)))
                .count();
        }
        assert_eq!((found, found - answered), (expected, open), "{source}");
    }
}

#[test]
fn copies_of_real_sessions_are_read_back() {
    let Some(folder) = folder() else { return };
    for source in ["claude-code-packmind", "codex-agentv", "pi-mono-fixtures"] {
        for path in files(&folder, source) {
            for every in [usize::MAX, 7] {
                let mut log = SessionLog::read(&path, None).unwrap();
                let mut chat = log.take_chat();
                // Whole, and with every seventh result cut.
                let is_result = |value: &Value| {
                    value["type"] == "tool_result" || value["type"] == "function_call_output"
                };
                let results = chat.units.iter_mut().filter(|unit| is_result(unit.value()));
                for unit in results.skip(6).step_by(every) {
                    let key = if unit.value()["type"] == "tool_result" {
                        "content"
                    } else {
                        "output"
                    };
                    unit.edit()[key] = "[cut]".into();
                }
                let again = read_back(&copied(&log, &chat, None));
                assert_eq!(again.damaged, 0, "{}: {:?}", path.display(), again.damage);
                let after = messages_of(again);
                let expected = messages(&chat);
                assert_eq!(shape(&after), shape(&expected), "{}", path.display());
                let texts =
                    |messages: &[Message]| messages.iter().map(Message::text).collect::<Vec<_>>();
                assert_eq!(texts(&after), texts(&expected), "{}", path.display());
            }
        }
    }
}
