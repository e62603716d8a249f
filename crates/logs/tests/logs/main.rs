//! Logs of every agent: read up to the active branch, repaired and compacted by `foreign`, and
//! written as copies that the same reader accepts.

mod damage;
mod originals;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use plimsoll_context::{Message, typed_words};
use plimsoll_foreign::CLOSED_CALL;
use plimsoll_foreign::{Chat, Protocol, Reasoning, Role, Target, Unit, repair};
use plimsoll_logs::{Agent, Copy, Ids, LogError, SessionLog, copy};
use plimsoll_wire::{Document, anthropic, openai_chat, openai_responses};
use serde_json::{Value, json};

const CODEX: &str = "rollout-2026-11-01T10-00-00-01a2108d-0000-7000-8000-000000000001.jsonl";
const GEMINI: &str = "session-2026-11-01T10-00-9e313100.jsonl";
const TASK: &str = "Port the lamp controller to Rust. Never touch the folder prod.";
const NEWEST: &str = "Now the tests. And keep the names of the functions.";
const SUMMARY: &str = "<summary>They talked about lamps.</summary>";

pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

pub(crate) fn read(name: &str) -> SessionLog {
    SessionLog::read(&data(name), None).unwrap()
}

/// The messages of a chat.
pub(crate) fn messages(chat: &Chat<'_>) -> Vec<Message> {
    let format = match chat.protocol {
        Protocol::Messages => &anthropic::FORMAT,
        Protocol::Responses => &openai_responses::FORMAT,
        Protocol::Chat => &openai_chat::FORMAT,
    };
    Document::read(&chat.write(), format).unwrap().messages
}

/// The messages that a log contains.
pub(crate) fn messages_of(mut log: SessionLog) -> Vec<Message> {
    messages(&log.take_chat())
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

/// Closes calls without a result. If it `cuts`, it also shortens a result, and replaces an exchange and its neighbors
/// by a summary.
fn treated(log: &mut SessionLog, cuts: bool) -> Chat<'static> {
    let mut chat = log.take_chat();
    let is_messages = chat.protocol == Protocol::Messages;
    let key = if is_messages {
        "tool_use_id"
    } else {
        "call_id"
    };
    let id = |unit: &Unit<'_>| {
        let value = unit.value();
        let id = value.get(if is_messages { "id" } else { "call_id" });
        let is_call = ["tool_use", "function_call"]
            .iter()
            .any(|kind| value["type"] == *kind);
        id.filter(|_| is_call)
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    let is_result = |unit: &Unit<'_>| {
        ["tool_result", "function_call_output"]
            .iter()
            .any(|kind| unit.value()["type"] == *kind)
    };
    let answered: HashSet<String> = chat
        .units
        .iter()
        .filter(|unit| is_result(unit))
        .map(|unit| unit.value()[key].as_str().unwrap().to_owned())
        .collect();
    let open: Vec<(usize, String)> = chat
        .units
        .iter()
        .enumerate()
        .filter_map(|(at, unit)| Some((at, id(unit)?)))
        .filter(|(_, id)| !answered.contains(id))
        .collect();
    for (at, id) in open.into_iter().rev() {
        let turn = chat.new_turn();
        let unit = if is_messages {
            let result = json!({"type": "tool_result", "tool_use_id": id, "content": CLOSED_CALL, "is_error": true});
            Unit::inserted(Role::User, turn, result)
        } else {
            let result =
                json!({"type": "function_call_output", "call_id": id, "output": CLOSED_CALL});
            Unit::inserted(Role::Own, turn, result)
        };
        chat.units.insert(at + 1, unit);
    }
    if !cuts {
        return chat;
    }
    let results: Vec<usize> = (0..chat.units.len())
        .filter(|at| is_result(&chat.units[*at]))
        .collect();
    let content = if is_messages { "content" } else { "output" };
    chat.units[results[0]].edit()[content] = "[cut]".into();
    // The text before the newest message of the user.
    let newest = chat
        .units
        .iter()
        .position(|unit| unit.value().to_string().contains(NEWEST))
        .unwrap();
    let dropped = newest - 1;
    chat.units[dropped].remove();
    let turn = chat.units[newest].turn;
    let unit = if is_messages {
        Unit::inserted(Role::User, turn, json!({"type": "text", "text": SUMMARY}))
    } else {
        let content = json!([{"type": "input_text", "text": SUMMARY}]);
        Unit::inserted(
            Role::Own,
            turn,
            json!({"type": "message", "role": "user", "content": content}),
        )
    };
    chat.units.insert(newest, unit);
    chat
}

/// A copy that was written.
struct Copied {
    id: String,
    path: PathBuf,
    text: String,
}

impl Copied {
    fn of(copy: Copy<'_>) -> Self {
        let (id, path, mut text) = (copy.id.clone(), copy.path.clone(), Vec::new());
        copy.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        Self { id, path, text }
    }
}

fn copied(log: &SessionLog, chat: &Chat<'_>, tokens: Option<u64>) -> Copied {
    Copied::of(copy(log, &chat.units, tokens, Ids::new(b"test")).unwrap())
}

/// Reads a copy as its agent would find it.
fn read_back(copy: &Copied) -> SessionLog {
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
            vec!["u <summary> This session is", "a I go on."],
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
        assert_eq!(shape(&messages_of(log)), expected, "{name}");
    }
}

#[test]
fn what_a_log_says_about_its_session_is_told() {
    let claude = read("claude-code.jsonl");
    assert_eq!(claude.id, "5e551011-0000-4000-8000-000000000001");
    assert_eq!(claude.model.as_deref(), Some("claude-sonnet-4-5"));
    assert_eq!(claude.directory.as_deref(), Some("/home/me/lamp"));
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
    let pi = shape(&messages_of(pi));
    assert!(!pi.iter().any(|one| one.contains("This branch was")));
    assert!(pi.iter().any(|one| one == "u Ran `git status` ```"));

    let mini = read("mini-swe-agent.traj.json");
    assert_eq!(mini.model.as_deref(), Some("anthropic/claude-sonnet-4-5"));
    let exec = read("codex-exec.jsonl");
    assert_eq!(exec.id, "01a2108d-0000-7000-8000-000000000002");
    assert!(exec.last_error.as_ref().unwrap().contains("context window"));
    let exec = { exec }.take_chat().write().into_owned();
    for text in [
        "lamp.c",
        "src/lamp.rs",
        "Lamps turn once.",
        "no such page",
        "mcp_tool_call",
    ] {
        assert!(exec.contains(text), "{text}");
    }
    assert!(!exec.contains("**Looking**"), "no model sees its summary");

    let opencode = read("opencode.json");
    assert!(opencode.last_error.unwrap().contains("140000 tokens"));
}

/// The logs that are copied.
const COPIED: [&str; 5] = [
    "claude-code.jsonl",
    CODEX,
    "pi.jsonl",
    GEMINI,
    "opencode.json",
];

#[test]
fn a_repaired_copy_is_read_back_with_every_call_answered() {
    for name in COPIED {
        let mut log = read(name);
        let before = shape(&messages_of(read(name)));
        let chat = treated(&mut log, false);
        let copy = copied(&log, &chat, None);
        let again = read_back(&copy);
        assert_eq!(again.id, copy.id, "{name}");
        assert_ne!(again.id, log.id, "{name}");
        assert!(again.damage.is_empty(), "{name}: {:?}", again.damage);
        assert!(again.last_error.is_none(), "{name}: {:?}", again.last_error);
        assert!(
            again.is_copy() && !log.is_copy(),
            "{name}: {:?}",
            again.title
        );
        let after = messages_of(again);
        assert_answered(&after);
        assert_eq!(shape(&after), shape(&messages(&chat)), "{name}");
        // All that was there is there, and calls without results were closed.
        let said: HashSet<String> = shape(&after).into_iter().collect();
        for one in before {
            assert!(said.contains(&one), "{name}: {one}");
        }
        let closed = after.iter().filter(|one| one.text() == CLOSED_CALL);
        assert_eq!(closed.count(), 1, "{name}");
    }
}

#[test]
fn a_compacted_copy_has_the_changes_and_is_as_recorded() {
    for name in COPIED {
        let mut log = read(name);
        let chat = treated(&mut log, true);
        let copy = copied(&log, &chat, Some(1_234));
        let after = messages_of(read_back(&copy));
        assert_answered(&after);
        assert_eq!(shape(&after), shape(&messages(&chat)), "{name}");
        let texts: Vec<String> = after.iter().map(Message::text).collect();
        assert!(texts.iter().any(|text| text.contains(TASK)), "{name}");
        assert!(texts.iter().any(|text| text == "[cut]"), "{name}");
        let text: String = texts.concat();
        assert!(
            text.find(SUMMARY).unwrap() < text.find(NEWEST).unwrap(),
            "{name}"
        );
        as_recorded(name, &copy.text);
    }
}

/// The first line of a chat of Gemini CLI names its project.
#[test]
fn a_copy_of_a_log_with_a_damaged_first_line_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(data(GEMINI)).unwrap();
    let path = folder.path().join(GEMINI);
    std::fs::write(&path, text.replacen("\"}\n", "\n", 1)).unwrap();
    let mut log = SessionLog::read(&path, None).unwrap();
    assert!(log.damage.iter().any(|damage| damage.line == 1));
    let chat = treated(&mut log, false);
    let copy = copied(&log, &chat, None);
    assert_eq!(read_back(&copy).agent, Agent::Gemini);
}

/// Gemini CLI numbers the messages of old chats, but a line without an id is no message to it.
#[test]
fn a_copied_message_of_gemini_without_an_id_gets_one() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(data("gemini-old.json")).unwrap();
    let json: Value = serde_json::from_str(&text).unwrap();
    let path = folder.path().join("session.json");
    // As Gemini CLI writes it, and on one line.
    for text in [
        serde_json::to_string_pretty(&json).unwrap(),
        json.to_string(),
    ] {
        std::fs::write(&path, text.replace("\"id\"", "\"number\"")).unwrap();
        let mut log = SessionLog::read(&path, None).unwrap();
        let chat = treated(&mut log, false);
        let copy = copied(&log, &chat, None);
        let again = read_back(&copy);
        assert_eq!(again.damage, []);
        assert_eq!(messages_of(again), messages(&chat));
    }
}

#[test]
fn a_unit_is_found_by_its_place_and_never_by_its_text() {
    // Two results with the same text: the second one changes.
    for name in ["claude-code.jsonl", "pi.jsonl"] {
        let folder = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(data(name)).unwrap();
        let text = text.replace("The lamp turns once in ten seconds.", "No such directory");
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut log = SessionLog::read(&path, None).unwrap();
        let mut chat = log.take_chat();
        let has = |unit: &Unit<'_>| {
            unit.value()["content"]
                .to_string()
                .contains("No such directory")
        };
        let equal: Vec<usize> = (0..chat.units.len())
            .filter(|at| has(&chat.units[*at]))
            .collect();
        assert!(equal.len() >= 2, "{name}");
        chat.units[equal[1]].edit()["content"] = "changed".into();
        let after = messages_of(read_back(&copied(&log, &chat, None)));
        let results: Vec<String> = after
            .iter()
            .filter(|one| matches!(one, Message::ToolResult(_)))
            .map(Message::text)
            .filter(|text| text.contains("No such directory") || text == "changed")
            .collect();
        let mut expected = vec!["No such directory".to_owned(); equal.len()];
        expected[1] = "changed".to_owned();
        assert_eq!(results, expected, "{name}");
    }
}

#[test]
fn lines_that_are_no_messages_are_copied() {
    let table = [
        (
            "claude-code.jsonl",
            r#"{"parentUuid":"00000000-0000-4000-8000-000000000002","isSidechain":false,"uuid":"u-new","type":"attachment","attachment":{"type":"skills","x":1.50}}"#,
            r#""x":1.50"#,
        ),
        (
            "pi.jsonl",
            r#"{"type":"custom","id":"zz","parentId":"00000003","data":{"x":1.50}}"#,
            r#""x":1.50"#,
        ),
        (
            CODEX,
            r#"{"timestamp":"t","type":"new_kind","payload":{"x":1.50}}"#,
            r#""x":1.50"#,
        ),
    ];
    for (name, line, expected) in table {
        let folder = tempfile::tempdir().unwrap();
        let text = std::fs::read_to_string(data(name)).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let at = lines.iter().position(|line| line.contains(TASK)).unwrap() + 1;
        // The entry behind it follows it.
        let own = |key: &str| {
            line.split(&format!("\"{key}\":\""))
                .nth(1)
                .map(|rest| rest.split('"').next().unwrap())
        };
        if let (Some(parent), Some(id)) = (
            own("parentUuid").or(own("parentId")),
            own("uuid").or(own("id")),
        ) {
            for one in lines.iter_mut().skip(at) {
                for key in ["parentUuid", "parentId"] {
                    *one = one.replace(
                        &format!("\"{key}\":\"{parent}\""),
                        &format!("\"{key}\":\"{id}\""),
                    );
                }
            }
        }
        lines.insert(at, line.to_owned());
        let path = folder.path().join(name);
        std::fs::write(&path, lines.join("\n")).unwrap();
        let mut log = SessionLog::read(&path, None).unwrap();
        let chat = treated(&mut log, false);
        let copy = copied(&log, &chat, None);
        assert!(copy.text.contains(expected), "{name}: {}", copy.text);
        assert_eq!(
            shape(&messages_of(read_back(&copy))),
            shape(&messages(&chat)),
            "{name}"
        );
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
    let mut log = read("claude-code-compacted.jsonl");
    let chat = log.take_chat();
    let copy = copied(&log, &chat, None);
    let lines: Vec<Value> = copy
        .text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines.len(),
        4,
        "the messages behind the boundary, and the title"
    );
    assert_eq!(lines[0]["parentUuid"], Value::Null);
    assert_eq!(lines[0]["isCompactSummary"], true);
    for pair in lines[..3].windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
        assert_eq!(pair[1]["sessionId"], copy.id.as_str());
    }
    assert_eq!(
        lines[2]["message"]["usage"]["cache_read_input_tokens"],
        4_000
    );
    assert_eq!(lines[3]["type"], "custom-title");
    assert_eq!(copy.path, data(&format!("{}.jsonl", copy.id)));
}

/// The provider has not counted what came after its last answer, so it is estimated.
#[test]
fn a_long_text_behind_the_last_answer_counts_and_an_image_as_an_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let used = |last: Value| {
        let first = json!({"type": "user", "message": {"role": "user", "content": "Do it."}});
        let role = "\"role\":\"assistant\"";
        let usage = format!("{role},\"usage\":{{\"input_tokens\":500}}");
        let log = claude_log(&[first]).replace(role, &usage);
        let entry = json!({"parentUuid": "00000000-0000-4000-9000-000000000000", "uuid": "u", "type": "user",
            "message": {"role": "user", "content": [last]}});
        std::fs::write(&path, format!("{log}{entry}\n")).unwrap();
        SessionLog::read(&path, None)
            .unwrap()
            .used_tokens()
            .unwrap()
    };
    let long = "lamp ".repeat(100_000);
    assert!(used(json!({"type": "text", "text": long})) > 125_000);
    let source = json!({"type": "base64", "media_type": "image/png", "data": long});
    assert!(used(json!({"type": "image", "source": source})) < 7_000);
}

#[test]
fn agents_do_not_find_the_old_size_in_a_compacted_copy() {
    // They would compact again at once.
    for name in COPIED.into_iter().filter(|name| *name != CODEX) {
        let mut log = read(name);
        let mut chat = treated(&mut log, true);
        // A text behind the last answer, which the agents add to the size that it notes.
        let turn = chat.new_turn();
        let text = json!({"type": "text", "text": "Go on, lamp by lamp. ".repeat(40)});
        chat.units.push(Unit::inserted(Role::User, turn, text));
        let copy = copied(&log, &chat, Some(1_234));
        let tokens = read_back(&copy).used_tokens().unwrap();
        assert!((1_100..=1_234).contains(&tokens), "{name}: {tokens}");
        if name == "claude-code.jsonl" {
            let lines = copy.text.lines();
            let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
            for answer in lines.filter(|line| line["type"] == "assistant") {
                let usage = &answer["message"]["usage"];
                assert!(usage["input_tokens"].as_u64().unwrap() < 1_100, "{usage}");
                assert_eq!(usage["cache_read_input_tokens"], 0);
            }
        }
    }
    let mut log = read(CODEX);
    let chat = treated(&mut log, true);
    let copy = copied(&log, &chat, Some(1_234));
    assert!(!copy.text.contains("token_count"));
    for (at, line) in copy.text.lines().enumerate() {
        let line: Value = serde_json::from_str(line).unwrap();
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
        let mut log = read(name);
        let chat = log.take_chat();
        let error = copy(&log, &chat.units, None, Ids::new(b"")).unwrap_err();
        assert!(matches!(error, LogError::NoCopy { .. }));
        assert!(error.to_string().contains("sessions import"));
    }
}

/// A repair gives another id to the second of two calls with one id.
#[test]
fn a_changed_id_of_a_call_is_in_the_copy() {
    for name in COPIED {
        let mut log = read(name);
        let mut chat = treated(&mut log, false);
        let keys = ["id", "tool_use_id", "call_id"];
        let named = |unit: &Unit<'_>| {
            let value = unit.value();
            let is_call = value["type"] == "tool_use" || value["type"] == "function_call";
            let id = keys[1..]
                .iter()
                .chain(&keys)
                .find_map(|key| value[key].as_str());
            id.filter(|_| is_call).map(str::to_owned)
        };
        let id = chat.units.iter().find_map(named).unwrap();
        for unit in &mut chat.units {
            for key in keys {
                if unit.value()[key] == id {
                    unit.edit()[key] = "renamed".into();
                }
            }
        }
        let after = messages_of(read_back(&copied(&log, &chat, None)));
        assert_answered(&after);
        assert_eq!(shape(&after), shape(&messages(&chat)), "{name}");
        let mut calls = after.iter().flat_map(Message::calls);
        assert!(calls.any(|call| call.id.0 == "renamed"), "{name}");
    }
}

/// One entry answers the calls of two answers: it stands behind the second one, and no result is lost.
#[test]
fn an_entry_that_answers_two_answers_follows_the_second() {
    let entry = |at: usize, kind: &str, id: Option<&str>, content: Value| {
        let parent = (at > 0).then(|| format!("e{}", at - 1));
        json!({"parentUuid": parent, "isSidechain": false, "uuid": format!("e{at}"), "type": kind,
            "sessionId": "s", "message": {"role": kind, "id": id, "content": content}})
        .to_string()
    };
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "f", "input": {}}]);
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
    let lines = [
        entry(0, "user", None, json!("The task.")),
        entry(1, "assistant", Some("m1"), call("c1")),
        entry(2, "assistant", Some("m2"), call("c2")),
        entry(3, "user", None, json!([result("c1"), result("c2")])),
        entry(
            4,
            "assistant",
            Some("m3"),
            json!([{"type": "text", "text": "Done."}]),
        ),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let mut log = SessionLog::read(&path, None).unwrap();
    let mut chat = log.take_chat();
    let target = plimsoll_wire::Target::of_protocol("anthropic", None).unwrap();
    let repairs = plimsoll_foreign::repair(&mut chat, &target, plimsoll_foreign::Reasoning::Keep);
    let fixes: Vec<&str> = repairs.iter().map(|repair| repair.fix).collect();
    assert!(
        !fixes.contains(&"orphans") && !fixes.contains(&"unanswered"),
        "{repairs:?}"
    );
    let messages = messages(&chat);
    assert_answered(&messages);
    assert!(!chat.write().contains(CLOSED_CALL));
}

/// A log of Claude Code with these entries of the user, each with an answer.
fn claude_log(entries: &[Value]) -> String {
    let mut text = String::new();
    let mut parent = Value::Null;
    for (at, entry) in entries.iter().enumerate() {
        let id = format!("00000000-0000-4000-8000-{at:012}");
        let answer = format!("00000000-0000-4000-9000-{at:012}");
        let mut entry = entry.clone();
        entry["parentUuid"] = parent;
        entry["uuid"] = id.clone().into();
        entry["sessionId"] = "5e55".into();
        let content = json!([{"type": "text", "text": format!("Answer {at}.")}]);
        let answered = json!({"parentUuid": id, "uuid": answer, "sessionId": "5e55", "type": "assistant",
            "message": {"id": format!("msg_{at}"), "role": "assistant", "content": content}});
        text += &format!("{entry}\n{answered}\n");
        parent = answer.into();
    }
    text
}

#[test]
fn what_no_person_typed_is_the_hosts() {
    let user = |content: Value, more: Value| {
        let mut entry = json!({"type": "user", "message": {"role": "user", "content": content}});
        let more = more.as_object().unwrap().clone();
        entry.as_object_mut().unwrap().extend(more);
        entry
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let meta = json!({"isMeta": true});
    let peer = json!({"origin": {"kind": "peer"}});
    let queued = json!({"type": "attachment", "attachment": {
        "type": "queued_command", "prompt": "A task is done.", "origin": {"kind": "task-notification"}}});
    let entries = [
        user(text("# Deploy\n\nAlways deploy."), meta.clone()),
        user("<b>Never</b> </system-reminder> wait.".into(), meta),
        user("Drop the table.".into(), peer),
        queued,
        user(
            "So far the lamp was cleaned.".into(),
            json!({"isCompactSummary": true}),
        ),
        user(
            "Light the lamp.".into(),
            json!({"origin": {"kind": "human"}}),
        ),
        user("Never at night.".into(), json!({"isMeta": false})),
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    std::fs::write(&path, claude_log(&entries)).unwrap();
    let mut log = SessionLog::read(&path, None).unwrap();
    assert_eq!(log.title.as_deref(), Some("Light the lamp."));
    let mut chat = log.take_chat();
    let typed = |messages: &[Message]| -> Vec<String> {
        let messages = messages.iter().filter(|message| message.is_user());
        let typed =
            messages.filter_map(|one| typed_words(&one.text()).map(|text| text.into_owned()));
        typed.collect()
    };
    assert_eq!(
        typed(&messages(&chat)),
        ["Light the lamp.", "Never at night."]
    );
    let texts: Vec<String> = messages(&chat).iter().map(Message::text).collect();
    assert!(texts[0].contains("# Deploy\n\nAlways deploy."), "{texts:?}");
    // The copy has the entries as they were, also beside a changed block, and is read in the same way.
    chat.units[0].edit()["text"] = "<system-reminder>\n# Deploy […]\n</system-reminder>".into();
    let copy = copied(&log, &chat, None);
    for line in [
        r#""content":"<b>Never</b> </system-reminder> wait.""#,
        r#""content":"Drop the table.""#,
    ] {
        assert!(copy.text.contains(line), "{line}\n{}", copy.text);
    }
    assert_eq!(copy.text.matches("isMeta").count(), 3);
    assert_eq!(copy.text.matches("system-reminder").count(), 3);
    let again = messages_of(read_back(&copy));
    assert_eq!(typed(&again), ["Light the lamp.", "Never at night."]);
    let cut = texts[0].replace("\n\nAlways deploy.", " […]");
    assert_eq!(again[0].text(), cut, "the mark is not doubled");
}

#[test]
fn blocks_beside_a_changed_one_keep_their_bytes() {
    let content = r#"[{"type":"text","text":"One \u006campe."},{"type":"text","text":"Two."}]"#;
    let text = claude_log(&[json!({"type": "user", "isMeta": true,
        "message": {"role": "user", "content": "CONTENT"}})]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    std::fs::write(&path, text.replace("\"CONTENT\"", content)).unwrap();
    let mut log = SessionLog::read(&path, None).unwrap();
    let mut chat = log.take_chat();
    chat.units[1].edit()["text"] = "2".into();
    let copy = copied(&log, &chat, None);
    let expected = content.replace("Two.", "2");
    assert!(copy.text.contains(&expected), "{}", copy.text);
}

#[test]
fn the_title_is_what_a_person_typed_first() {
    let user =
        |content: &str| json!({"type": "user", "message": {"role": "user", "content": content}});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    let entries = [
        user(
            "<local-command-caveat>Caveat: The messages below were generated.</local-command-caveat>",
        ),
        user("# AGENTS.md instructions for /home/me\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>"),
        user("Light the lamp."),
    ];
    std::fs::write(&path, claude_log(&entries)).unwrap();
    let log = SessionLog::read(&path, None).unwrap();
    assert_eq!(log.title.as_deref(), Some("Light the lamp."));
}

/// The user may send an image while the model works.
#[test]
fn an_image_in_a_queued_message_stays() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let prompt = json!([{"type": "text", "text": "Like this lamp."}, image]);
    let first = json!({"type": "user", "message": {"role": "user", "content": "Draw a lamp."}});
    let queued =
        json!({"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt}});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log.jsonl");
    std::fs::write(&path, claude_log(&[first, queued])).unwrap();
    let mut log = SessionLog::read(&path, None).unwrap();
    let chat = log.take_chat();
    let values: Vec<&Value> = chat.units.iter().map(Unit::value).collect();
    assert_eq!(values[2..4], [&prompt[0], &prompt[1]]);
    let again = read_back(&copied(&log, &chat, None)).take_chat();
    assert_eq!(again.write(), chat.write());
}

/// opencode would compact the copy again at once.
#[test]
fn a_compaction_in_which_opencode_died_is_not_in_the_copy() {
    let mut export: Value =
        serde_json::from_slice(&std::fs::read(data("opencode.json")).unwrap()).unwrap();
    let before = messages_of(read("opencode.json"));
    let messages = export["messages"].as_array_mut().unwrap();
    messages.push(json!({"info": {"id": "msg_9", "role": "user"}, "parts": [{"type": "compaction", "auto": true}]}));
    messages.push(json!({"info": {"id": "msg_a", "role": "assistant", "parentID": "msg_9", "summary": true,
        "error": {"name": "UnknownError", "data": {"message": "prompt is too long"}}}, "parts": [{"type": "text", "text": "So"}]}));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.json");
    std::fs::write(&path, export.to_string()).unwrap();
    let mut log = SessionLog::read(&path, None).unwrap();
    assert_eq!(log.last_error.as_deref(), Some("prompt is too long"));
    // So a copy is written, whatever the error was.
    let repairs = log.repairs.iter().map(ToString::to_string);
    let left_out = "left out its request for a summary, in which it failed (lines)";
    assert_eq!(
        repairs.collect::<Vec<_>>(),
        [format!("message 6: {left_out}")]
    );
    let chat = log.take_chat();
    assert_eq!(self::messages(&chat), before);
    let copy = copied(&log, &chat, None);
    assert!(!copy.text.contains("compaction"), "{}", copy.text);
}

/// opencode sends reasoning back to the provider that signed or encrypted it, which may refuse it.
#[test]
fn signed_reasoning_of_opencode_is_copied_or_left_out() {
    let mut export: Value =
        serde_json::from_slice(&std::fs::read(data("opencode.json")).unwrap()).unwrap();
    let parts = export["messages"][1]["parts"].as_array_mut().unwrap();
    let one = |text: &str, metadata: Value| json!({"type": "reasoning", "text": text, "metadata": metadata});
    let own = [
        one("Hm.", json!({"anthropic": {"signature": "EqQB"}})),
        one(
            "",
            json!({"openai": {"itemId": "rs_1", "reasoningEncryptedContent": "gAAA"}}),
        ),
        one(
            "Seen.",
            json!({"openai": {"reasoningEncryptedContent": "gBBB"}}),
        ),
        one("Thought.", json!({"google": {"thoughtSignature": "CiQB"}})),
        one("Unsigned.", json!({"openrouter": {}})),
    ];
    parts.splice(0..0, own);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("export.json");
    std::fs::write(&path, export.to_string()).unwrap();
    // Only Anthropic knows its signature.
    let mut log = SessionLog::read(&path, None).unwrap();
    let chat = log.take_chat();
    let is_thinking = |unit: &&Unit<'_>| {
        let kind = unit.value()["type"].as_str();
        kind.is_some_and(|kind| kind.ends_with("thinking"))
    };
    let thinking: Vec<&Value> = { chat.units.iter() }
        .filter(is_thinking)
        .map(Unit::value)
        .collect();
    let signed = json!({"type": "thinking", "thinking": "Hm.", "signature": "EqQB"});
    assert_eq!(thinking, [&signed]);
    let copy_of = |reasoning| {
        let mut log = SessionLog::read(&path, None).unwrap();
        if reasoning == Reasoning::Drop {
            let tokens = log.used_tokens();
            log = log.before_encrypted();
            assert_eq!(log.used_tokens(), tokens);
        }
        let mut chat = log.take_chat();
        repair(
            &mut chat,
            &Target::of_protocol("anthropic", None).unwrap(),
            reasoning,
        );
        copied(&log, &chat, None).text
    };
    let (kept, dropped) = (copy_of(Reasoning::Keep), copy_of(Reasoning::Drop));
    for signed in ["EqQB", "gAAA", "gBBB", "CiQB"] {
        assert!(
            kept.contains(signed) && !dropped.contains(signed),
            "{dropped}"
        );
    }
    for unsigned in ["Unsigned.", "I look."] {
        assert!(
            kept.contains(unsigned) && dropped.contains(unsigned),
            "{dropped}"
        );
    }
}

/// Only the account that a compaction of Codex was encrypted for can read it. The messages that it replaced are in the
/// log.
#[test]
fn messages_before_an_encrypted_compaction_of_codex_come_back() {
    let message = |role: &str, text: &str| {
        let kind = if role == "user" {
            "input_text"
        } else {
            "output_text"
        };
        json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]})
    };
    let compaction = json!({"type": "compaction", "encrypted_content": "gAAA"});
    let usage = json!({"input_tokens": 9, "total_tokens": 900});
    let lines = [
        ("session_meta", json!({"id": "1", "cwd": "/tmp"})),
        ("response_item", message("user", "Port it.")),
        ("response_item", message("assistant", "It is ported.")),
        (
            "compacted",
            json!({"message": "", "replacement_history": [message("user", "Port it."), compaction]}),
        ),
        ("response_item", message("user", "Test it.")),
        (
            "event_msg",
            json!({"type": "token_count", "info": {"last_token_usage": usage}}),
        ),
    ];
    let lines = lines.map(|(kind, payload)| json!({"type": kind, "payload": payload}).to_string());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let log = SessionLog::read(&path, None).unwrap();
    assert_eq!((log.used_tokens(), log.units.len()), (Some(900), 3));
    let mut log = log.before_encrypted();
    assert_eq!(log.used_tokens(), None, "the whole history is larger");
    let repairs = log.repairs.iter().map(ToString::to_string);
    let done =
        "line 4: left out its encrypted compaction; the messages before it come back (thinking)";
    assert_eq!(repairs.collect::<Vec<_>>(), [done]);
    let chat = log.take_chat();
    let expected = ["u Port it.", "a It is ported.", "u Test it."];
    assert_eq!(shape(&messages(&chat)), expected);
    let again = messages_of(read_back(&copied(&log, &chat, None)));
    assert_eq!(shape(&again), expected);
}

/// A compaction of Codex keeps messages whose own lines are damaged or missing.
#[test]
fn messages_that_only_an_encrypted_compaction_of_codex_has_are_kept() {
    let item = |role: &str, text: &str| {
        let kind = match role {
            "user" => "input_text",
            _ => "output_text",
        };
        let content = json!([{"type": kind, "text": text}]);
        let payload = json!({"type": "message", "role": role, "content": content});
        json!({"type": "response_item", "payload": payload}).to_string()
    };
    let compacted = |texts: &[&str]| {
        let user = |text: &&str| {
            json!({"type": "message", "role": "user", "id": "msg_1",
                "content": [{"type": "input_text", "text": text}]})
        };
        let mut items: Vec<Value> = texts.iter().map(user).collect();
        items.push(json!({"type": "compaction", "encrypted_content": "gAAA"}));
        let payload = json!({"message": "", "replacement_history": items});
        json!({"type": "compacted", "payload": payload}).to_string()
    };
    let event = |kind: &str, keys: Value| {
        let mut payload = json!({"type": kind});
        payload
            .as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        json!({"type": "event_msg", "payload": payload}).to_string()
    };
    let meta = json!({"type": "session_meta", "payload": {"id": "1", "cwd": "/tmp"}}).to_string();
    let (port, ported) = (item("user", "Port it."), item("assistant", "Ported."));
    let (tabs, tabbed) = (item("user", "Use tabs."), item("assistant", "Tabs used."));
    let said = event("user_message", json!({"message": "Use tabs."}));
    let back = event("thread_rolled_back", json!({"num_turns": 2}));
    let (first, go) = (
        compacted(&["Port it.", "Use tabs."]),
        item("user", "Go on."),
    );
    let again = compacted(&["Port it.", "Use tabs.", "Go on.", "Go on.", "Mind it."]);
    let left_out = "left out its encrypted compaction";
    let all = format!("{left_out}; the messages before it come back");
    let only = |count| format!("{all}, and messages that only it had: {count}");
    let none =
        |count| format!("{left_out}; of the messages before it, those in it are left: {count}");
    let empty = compacted(&[]);
    let nothing = format!("{left_out}; no message before it is left");
    let cases: [(Vec<&String>, &[&str], String); 6] = [
        (vec![&empty, &go], &["u Go on."], nothing),
        (
            vec![&first, &go],
            &["u Port it.", "u Use tabs.", "u Go on."],
            none(2),
        ),
        (
            vec![&ported, &said, &tabs, &tabbed, &first, &go],
            &[
                "u Port it.",
                "a Ported.",
                "u Use tabs.",
                "a Tabs used.",
                "u Go on.",
            ],
            only(1),
        ),
        (
            vec![&port, &ported, &tabs, &tabbed, &first, &go],
            &[
                "u Port it.",
                "a Ported.",
                "u Use tabs.",
                "a Tabs used.",
                "u Go on.",
            ],
            all.clone(),
        ),
        (
            vec![&ported, &first, &go, &again],
            &[
                "u Port it.",
                "u Use tabs.",
                "a Ported.",
                "u Go on.",
                "u Go on.",
                "u Mind it.",
            ],
            only(2),
        ),
        (
            vec![&ported, &tabs, &tabbed, &first, &go, &back],
            &["u Port it.", "a Ported."],
            only(1),
        ),
    ];
    for (lines, expected, done) in cases {
        let lines = std::iter::once(&meta).chain(lines).map(String::as_str);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout.jsonl");
        std::fs::write(&path, lines.collect::<Vec<_>>().join("\n")).unwrap();
        let mut log = SessionLog::read(&path, None).unwrap().before_encrypted();
        assert_eq!(log.repairs.last().unwrap().done, done);
        let chat = log.take_chat();
        assert_eq!(shape(&messages(&chat)), expected);
        let copy = copied(&log, &chat, None);
        assert!(!copy.text.contains("gAAA"), "{}", copy.text);
        assert_eq!(shape(&messages_of(read_back(&copy))), expected);
    }
}
