//! Logs of every agent: read up to the active branch, repaired and compacted by `foreign`, and
//! written as copies that the same reader accepts.

mod damage;
mod originals;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_context::{
    CLOSED_CALL, Chars4, ContextStrategy, Message, SummaryConfig, TokenCounter, Tokens, ViewLimits,
};
use plimsoll_foreign::{Body, Reasoning, repair_request};
use plimsoll_logs::{Agent, Copy, Ids, LogError, SessionLog, copy};

const CODEX: &str = "rollout-2026-11-01T10-00-00-01a2108d-0000-7000-8000-000000000001.jsonl";
const GEMINI: &str = "session-2026-11-01T10-00-9e313100.jsonl";
const TASK: &str = "Port the lamp controller to Rust. Never touch the folder prod.";
const NEWEST: &str = "Now the tests. And keep the names of the functions.";

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

pub(crate) fn read(name: &str) -> SessionLog {
    SessionLog::read(&data(name), None).unwrap()
}

/// The messages of a history.
pub(crate) fn messages(log: &SessionLog, history: &str) -> Vec<Message> {
    Body::read(history, &log.target()).unwrap().messages
}

/// Roles, calls and results in short: `u`, `a text call_1`, `r call_1`.
pub(crate) fn shape(messages: &[Message]) -> Vec<String> {
    let one = |message: &Message| {
        let text = message.text();
        let words: Vec<&str> = text.split_whitespace().take(4).collect();
        let words = words.join(" ");
        let calls: Vec<&str> = message.calls().map(|call| call.id.0.as_str()).collect();
        let shape = match message {
            Message::System { .. } => format!("s {words}"),
            Message::Assistant { .. } => format!("a {words} {}", calls.join(" ")),
            Message::ToolResult(result) => {
                let error = if result.is_error { " error" } else { "" };
                format!("r {}{error}", result.call)
            }
            _ => format!("u {words}"),
        };
        shape.replace("  ", " ").trim().to_owned()
    };
    messages.iter().map(one).collect()
}

/// Repairs a history, and compacts it if there is a budget.
fn treated(log: &SessionLog, budget: Option<u64>) -> String {
    let target = log.target();
    let repaired = repair_request(&log.request(), &target, Reasoning::Keep).unwrap();
    let Some(budget) = budget else {
        return repaired.request;
    };
    let counter: Arc<dyn TokenCounter> = Arc::new(Chars4);
    let mut body = Body::read(&repaired.request, &target).unwrap();
    let view = body.transcript(&counter);
    let strategy = ContextStrategy::named("extract", None).unwrap();
    let policy = strategy.filter_policy(SummaryConfig::default().without_model());
    let line = ViewLimits::exactly(Tokens(budget));
    let cut = body.cut(&view, &policy.for_filter().filled(), &line);
    cut.unwrap()
        .map_or_else(|| repaired.request.clone(), |cut| cut.text)
}

fn copied(log: &SessionLog, history: &str, tokens: Option<u64>) -> Copy {
    copy(log, history, tokens, &mut Ids::new(b"test")).unwrap()
}

/// Reads a copy as its agent would find it.
fn read_back(copy: &Copy) -> SessionLog {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(copy.path.file_name().unwrap());
    std::fs::write(&path, &copy.text).unwrap();
    SessionLog::read(&path, None).unwrap()
}

fn assert_answered(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for message in messages {
        if let Message::ToolResult(result) = message {
            let at = open.iter().position(|id| *id == result.call.0);
            open.remove(at.expect("a result without a call"));
            continue;
        }
        assert!(open.is_empty(), "no result of {open:?}");
        open.extend(message.calls().map(|call| call.id.0.clone()));
    }
    assert!(open.is_empty(), "no result of {open:?}");
}

#[test]
fn every_format_is_read_up_to_its_active_branch() {
    let table = [
        (
            "claude-code.jsonl",
            Agent::ClaudeCode,
            vec![
                "u Port the lamp controller",
                "a toolu_1 toolu_2",
                "r toolu_1",
                "r toolu_2",
                "a It turns once in toolu_3",
                "r toolu_3 error",
                "a toolu_4",
                "r toolu_4",
                "a Done. Which part is",
                "u Now the tests. And",
                "a toolu_5",
            ],
        ),
        (
            "claude-code-compacted.jsonl",
            Agent::ClaudeCode,
            vec!["u This session is being", "a I go on."],
        ),
        (
            CODEX,
            Agent::Codex,
            vec![
                "s You are Codex.",
                "s <permissions instructions> read-only",
                "u Port the lamp controller",
                "a call_1 call_2",
                "r call_1",
                "r call_2",
                "a It turns once in",
                "u Now the tests. And",
                "a call_3",
            ],
        ),
        (
            "codex-compacted.jsonl",
            Agent::Codex,
            vec![
                "s You are Codex.",
                "u Port the lamp controller",
                "u Summary: all ported.",
                "u Go on.",
                "u Summary: nearly done.",
                "u Finish.",
            ],
        ),
        (
            "pi-v1.jsonl",
            Agent::Pi,
            vec!["u The session before this", "a 2", "u Three."],
        ),
        (
            GEMINI,
            Agent::Gemini,
            vec![
                "u Port the lamp controller",
                "a I look. read-1 read-2",
                "r read-1",
                "r read-2",
                "a It turns once in",
                "u Now the tests. And",
                "a bash-3",
            ],
        ),
        ("gemini-old.json", Agent::Gemini, vec!["u One.", "a 1"]),
        (
            "opencode.json",
            Agent::Opencode,
            vec![
                "u Port the lamp controller",
                "a I look. call_1 call_2",
                "r call_1",
                "r call_2",
                "a It turns once in",
                "u Now the tests. And",
                "a I run them. call_3",
            ],
        ),
        (
            "swe-agent.traj",
            Agent::SweAgent,
            vec![
                "s You are an agent.",
                "u Port the lamp controller",
                "a I look. call_1",
                "r call_1",
            ],
        ),
        (
            "mini-swe-agent.traj.json",
            Agent::MiniSweAgent,
            vec![
                "s You are an agent.",
                "u Port the lamp controller",
                "a I look. call_1",
                "r call_1",
            ],
        ),
        (
            "mini-swe-agent-text.traj.json",
            Agent::MiniSweAgent,
            vec![
                "s You are an agent.",
                "u Port the lamp controller",
                "a THOUGHT: I look. ```bash",
                "u <returncode>0</returncode> <output> lamp.c </output>",
            ],
        ),
        (
            "codex-exec.jsonl",
            Agent::CodexExec,
            vec![
                "a I look. exec_7",
                "r exec_7",
                "a exec_8",
                "r exec_8",
                "a exec_9",
                "r exec_9",
                "a exec_10",
                "r exec_10",
                "a exec_3 exec_12",
            ],
        ),
        (
            "openhands.jsonl",
            Agent::OpenHands,
            vec![
                "s You are an agent.",
                "u Port the lamp controller",
                "a I look. call_1",
                "r call_1",
            ],
        ),
    ];
    for (name, agent, expected) in table {
        let log = read(name);
        assert_eq!(log.agent, agent, "{name}");
        assert_eq!(shape(&messages(&log, &log.request())), expected, "{name}");
    }
}

#[test]
fn what_a_log_says_about_its_session_is_told() {
    let claude = read("claude-code.jsonl");
    assert_eq!(claude.id, "5e551011-0000-4000-8000-000000000001");
    assert_eq!(claude.model.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!(claude.directory.as_deref(), Some("/home/me/lamp"));
    assert_eq!(claude.side_messages, 1);
    assert!(claude.last_error.unwrap().contains("203456 tokens"));
    assert_eq!(claude.reported.unwrap().tokens, 4_260);
    assert_eq!(claude.damage.len(), 1);
    assert_eq!(claude.damage[0].what, "cut off in the middle");

    let codex = read(CODEX);
    assert_eq!(codex.model.as_deref(), Some("gpt-5.5"));
    assert_eq!(codex.window, Some(258_400));
    assert_eq!(codex.reported.unwrap().tokens, 4_100);
    assert_eq!(codex.damage.len(), 1, "the last line is being written");

    let pi = read("pi.jsonl");
    let pi = shape(&messages(&pi, &pi.request()));
    assert!(!pi.iter().any(|one| one.contains("This branch was")));
    assert!(pi.iter().any(|one| one == "u Ran `git status` ```"));

    let mini = read("mini-swe-agent.traj.json");
    assert_eq!(mini.model.as_deref(), Some("anthropic/claude-sonnet-4-5"));
    let exec = read("codex-exec.jsonl");
    assert_eq!(exec.id, "01a2108d-0000-7000-8000-000000000002");
    assert!(exec.last_error.as_ref().unwrap().contains("context window"));
    let exec = exec.request();
    for text in [
        "lamp.c",
        "*** Add File: src/lamp.rs",
        "*** Delete File: lamp.c",
        "Lamps turn once.",
        "Error: no such page",
        "docs__read",
    ] {
        assert!(exec.contains(text), "{text}");
    }
    assert!(!exec.contains("**Looking**"), "no model sees its summary");

    assert_eq!(read("claude-code-compacted.jsonl").compactions, 1);
    assert_eq!(read("codex-compacted.jsonl").compactions, 2);
    let opencode = read("opencode.json");
    assert!(opencode.last_error.unwrap().contains("140000 tokens"));
}

/// The logs of which there are copies, each with a budget for its compaction.
const COPIED: [(&str, u64); 5] = [
    ("claude-code.jsonl", 700),
    (CODEX, 700),
    ("pi.jsonl", 700),
    (GEMINI, 500),
    ("opencode.json", 500),
];

#[test]
fn a_repaired_copy_is_read_back_with_every_call_answered() {
    for (name, _) in COPIED {
        let log = read(name);
        let before = messages(&log, &log.request());
        let history = treated(&log, None);
        let copy = copied(&log, &history, None);
        let again = read_back(&copy);
        let after = messages(&again, &again.request());
        assert_answered(&after);
        assert_eq!(
            shape(&after),
            shape(&messages(&log, &history)),
            "{name}: the copy says what the repaired history says"
        );
        assert_eq!(again.id, copy.id, "{name}");
        assert_ne!(again.id, log.id, "{name}");
        assert!(again.damage.is_empty(), "{name}: {:?}", again.damage);
        assert!(copy.resume.contains(&copy.id), "{name}: {}", copy.resume);
        // All that was there is there, and calls without results were closed.
        let said: HashSet<String> = shape(&after).into_iter().collect();
        for one in shape(&before) {
            assert!(said.contains(&one), "{name}: {one}");
        }
        let closed = after.iter().filter(|one| one.text() == CLOSED_CALL);
        assert_eq!(closed.count(), 1, "{name}");
    }
}

#[test]
fn a_compacted_copy_keeps_the_task_and_is_as_recorded() {
    for (name, budget) in COPIED {
        let log = read(name);
        let history = treated(&log, Some(budget));
        let copy = copied(&log, &history, Some(budget));
        let again = read_back(&copy);
        let after = messages(&again, &again.request());
        assert_answered(&after);
        let text: String = after.iter().map(Message::text).collect();
        assert!(text.contains("Never touch the folder prod"), "{name}");
        assert!(text.contains(NEWEST), "{name}");
        assert!(after.iter().any(|one| one.text().contains(TASK)), "{name}");
        assert_eq!(shape(&after), shape(&messages(&log, &history)), "{name}");
        assert!(copy.text.len() < std::fs::read(data(name)).unwrap().len());
        as_recorded(name, &copy.text);
    }
}

/// Compares a copy with the recorded one. `PLIMSOLL_BLESS=1` writes it anew, to be read in the diff.
fn as_recorded(name: &str, text: &str) {
    let path = data("copies").join(name);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).display().to_string();
    let text = text.replace(&root, "");
    if std::env::var_os("PLIMSOLL_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let recorded = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, recorded, "{name}");
}

#[test]
fn a_copy_of_a_whole_session_changes_nothing_but_ids_and_links() {
    let log = read("claude-code-compacted.jsonl");
    let copy = copied(&log, &log.request(), None);
    let lines: Vec<serde_json::Value> = copy
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 3, "the messages behind the boundary");
    assert_eq!(lines[0]["parentUuid"], serde_json::Value::Null);
    assert_eq!(lines[0]["isCompactSummary"], true);
    for pair in lines.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
        assert_eq!(pair[1]["sessionId"], copy.id.as_str());
    }
    assert_eq!(
        lines[2]["message"]["usage"]["cache_read_input_tokens"],
        4_000
    );
    assert_eq!(copy.path, data(&format!("{}.jsonl", copy.id)));
}

#[test]
fn agents_do_not_find_the_old_size_in_a_compacted_copy() {
    // They would compact again at once.
    let log = read("claude-code.jsonl");
    let copy = copied(&log, &treated(&log, Some(700)), Some(1_234));
    let lines = copy.text.lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line
    });
    let answers = lines.filter(|line| line["type"] == "assistant");
    for answer in answers {
        assert_eq!(answer["message"]["usage"]["input_tokens"], 1_234);
        assert_eq!(answer["message"]["usage"]["cache_read_input_tokens"], 0);
    }
    let log = read(CODEX);
    let copy = copied(&log, &treated(&log, Some(700)), Some(1_234));
    assert!(!copy.text.contains("token_count"));
    for (at, line) in copy.text.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["ordinal"], at, "its lines are numbered without a gap");
    }
}

#[test]
fn trajectories_are_read_only() {
    for name in [
        "swe-agent.traj",
        "openhands.jsonl",
        "mini-swe-agent.traj.json",
        "codex-exec.jsonl",
    ] {
        let log = read(name);
        assert_answered(&messages(&log, &treated(&log, None)));
        let error = copy(&log, &log.request(), None, &mut Ids::new(b"")).unwrap_err();
        assert!(matches!(error, LogError::NoCopy { .. }));
        assert!(error.to_string().contains("sessions import"));
    }
}
