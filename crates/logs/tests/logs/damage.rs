//! Logs that are cut, compressed, too large, or no logs at all.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_logs::{Agent, Ids, LogError, MAX_DAMAGE, SessionLog, copy, find};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::TempDir;

use super::{CODEX, Copied, GEMINI, copied, data, messages_of, read, shape};

fn written(folder: &TempDir, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

fn error(path: &std::path::Path) -> String {
    SessionLog::read(path, None).unwrap_err().to_string()
}

#[test]
fn packed_logs_are_read_by_their_content() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", CODEX] {
        let plain = fs::read(data(name)).unwrap();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(&plain).unwrap();
        let expected = messages_of(read(name));
        for packed in [
            gzip.finish().unwrap(),
            compress_to_vec(plain.as_slice(), CompressionLevel::Fastest),
        ] {
            let path = written(&folder, name, packed);
            let (mut log, mut plain) = (SessionLog::read(&path, None).unwrap(), read(name));
            let (chat, plain_chat) = (log.take_chat(), plain.take_chat());
            assert_eq!(super::messages(&chat), expected);
            let expected = copied(&plain, &plain_chat, None).text;
            assert_eq!(copied(&log, &chat, None).text, expected);
        }
    }
}

#[test]
fn a_packed_log_that_is_cut_off_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let plain = fs::read(data("pi.jsonl")).unwrap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(&plain).unwrap();
    let zstd = compress_to_vec(plain.as_slice(), CompressionLevel::Fastest);
    for packed in [gzip.finish().unwrap(), zstd] {
        for end in (5..packed.len()).step_by(101) {
            let error = error(&written(&folder, "cut.gz", &packed[..end]));
            assert!(error.contains("cut off or damaged"), "{end}: {error}");
            assert!(error.contains("download it again"), "{end}: {error}");
        }
    }
}

#[test]
fn a_log_that_is_changed_while_it_is_read_is_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", CODEX, "pi.jsonl"] {
        let plain = fs::read(data(name)).unwrap();
        let path = written(&folder, name, &plain);
        let mut log = SessionLog::read(&path, None).unwrap();
        let chat = log.take_chat();
        let mut text = Vec::new();
        let copied = |text: &mut Vec<u8>| {
            let ids = Ids::new(b"seed");
            copy(&log, &chat.units, None, ids).unwrap().write(text)
        };
        // Its agent may go on.
        fs::write(&path, [&plain[..], b"{\"type\":\"x\"}\n"].concat()).unwrap();
        copied(&mut text).unwrap();
        for changed in [
            [b"{\"type\":\"x\"}\n", &plain[..]].concat(),
            plain[..99].to_vec(),
        ] {
            fs::write(&path, changed).unwrap();
            let error = copied(&mut text).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{name}");
            assert!(error.to_string().contains("try again"), "{error}");
        }
    }
}

#[test]
fn half_a_character_costs_no_message() {
    // JavaScript cuts texts inside an emoji, and writes the half that is left as an escape.
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "claude-code.jsonl",
        CODEX,
        "pi.jsonl",
        GEMINI,
        "opencode.json",
        "mini-swe-agent.traj.json",
        "swe-agent.traj",
    ] {
        let text = fs::read_to_string(data(name)).unwrap();
        let cut = text.replace("folder prod.", "folder prod. \\ud83d");
        let path = written(&folder, name, &cut);
        let log = SessionLog::read(&path, None).unwrap();
        let expected = read(name);
        assert_eq!(log.damage, expected.damage, "{name}");
        let said: Vec<&str> = log
            .repairs
            .iter()
            .map(|repair| repair.done.as_str())
            .collect();
        assert!(said[0].contains("with U+FFFD"), "{name}: {said:?}");
        let mut log = log;
        let chat = log.take_chat();
        let found: Vec<String> = super::messages(&chat)
            .iter()
            .map(|one| one.text().replace(" \u{fffd}", ""))
            .collect();
        let expected: Vec<String> = messages_of(expected).iter().map(|one| one.text()).collect();
        assert_eq!(found, expected, "{name}");
        if let Ok(copy) = copy(&log, &chat.units, None, Ids::new(b"test")) {
            let copy = Copied::of(copy);
            assert!(!copy.text.contains("\\ud83d"), "{name}");
            assert!(
                copy.text.contains("\\ufffd") || copy.text.contains('\u{fffd}'),
                "{name}"
            );
        }
    }
}

/// A crash may leave zeros in a file. The agent then appends its next entry to them.
#[test]
fn zeros_around_an_entry_cost_no_message() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", CODEX, "pi.jsonl", GEMINI] {
        let text = fs::read_to_string(data(name)).unwrap();
        let zeros = "\0".repeat(64);
        let lines: Vec<String> = { text.lines() }
            .map(|line| format!("{line}{zeros}\n{zeros}"))
            .collect();
        is_read_like_the_original(&written(&folder, name, lines.concat()), name);
    }
}

/// A crash may lose the end of a line. The agent then appends its next entry to that line.
#[test]
fn entries_on_one_line_are_read_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", CODEX, "pi.jsonl", GEMINI] {
        let text = fs::read_to_string(data(name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let joined: Vec<String> = lines.chunks(2).map(<[&str]>::concat).collect();
        let path = written(&folder, name, joined.join("\n"));
        let (mut log, mut expected) = (SessionLog::read(&path, None).unwrap(), read(name));
        assert_eq!(log.damaged, expected.damaged, "{name}: {:?}", log.damage);
        let (chat, expected_chat) = (log.take_chat(), expected.take_chat());
        assert_eq!(chat.write(), expected_chat.write(), "{name}");
        let written = copied(&log, &chat, None).text;
        let written = written.replace(path.to_str().unwrap(), data(name).to_str().unwrap());
        assert_eq!(
            written,
            copied(&expected, &expected_chat, None).text,
            "{name}"
        );
    }
}

/// A crash may cut a line off. The agent then appends its next entry to the rest.
#[test]
fn the_entry_behind_a_line_that_was_cut_off_is_read_and_copied() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", CODEX, "pi.jsonl", GEMINI] {
        let text = fs::read_to_string(data(name)).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let newest = { lines.iter() }.position(|line| line.contains(super::NEWEST));
        let newest = newest.unwrap();
        // The torn entry is a repetition of the newest one.
        let line = lines[newest];
        let torn = format!("{}{line}", &line[..line.len() - 20]);
        let mut joined: Vec<&str> = lines.clone();
        joined[newest] = &torn;
        let path = written(&folder, name, joined.join("\n"));
        let (mut log, mut expected) = (SessionLog::read(&path, None).unwrap(), read(name));
        assert_eq!(
            log.damaged,
            expected.damaged + 1,
            "{name}: {:?}",
            log.damage
        );
        assert!(
            log.damage.iter().any(|one| one.line == newest + 1),
            "{name}"
        );
        let (chat, expected_chat) = (log.take_chat(), expected.take_chat());
        assert_eq!(chat.write(), expected_chat.write(), "{name}");
        let written = copied(&log, &chat, None).text;
        let written = written.replace(path.to_str().unwrap(), data(name).to_str().unwrap());
        let expected = copied(&expected, &expected_chat, None).text;
        assert_eq!(written, expected, "{name}");
    }
}

fn is_read_like_the_original(path: &Path, name: &str) {
    let (log, expected) = (SessionLog::read(path, None).unwrap(), read(name));
    assert_eq!(log.damage, expected.damage, "{name}");
    assert_eq!(messages_of(log), messages_of(expected), "{name}");
}

#[test]
fn a_byte_order_mark_costs_no_message() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", CODEX, "pi.jsonl"] {
        let text = fs::read_to_string(data(name)).unwrap();
        let path = written(&folder, name, format!("\u{feff}{text}"));
        is_read_like_the_original(&path, name);
    }
}

#[test]
fn what_opencode_adds_to_a_message_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data("opencode.json")).unwrap();
    let added = r#"{"info":{"role":"user"},"parts":[{"type":"text","text":"Mind the tide."},
        {"type":"text","text":"Push to main.","synthetic":true}]}"#;
    let end = text.rfind(']').unwrap();
    let text = format!("{},{added}{}", &text[..end], &text[end..]);
    let log = SessionLog::read(&written(&folder, "export.json", text), None).unwrap();
    let messages = messages_of(log);
    let last = messages.last().unwrap().to_string();
    let marked = "Mind the tide. <system-reminder> Push to main. </system-reminder>";
    assert!(last.ends_with(marked), "{last}");
}

#[test]
fn files_that_gemini_puts_behind_a_message_are_marked() {
    let folder = tempfile::tempdir().unwrap();
    let texts = [
        "Explain @a.rs",
        "\n--- Content from referenced files ---",
        "\nContent from @a.rs:\n",
        "// Push to main.",
        "\n--- End of content ---",
    ];
    let parts: Vec<_> = texts
        .iter()
        .map(|text| serde_json::json!({ "text": text }))
        .collect();
    let message = serde_json::json!({ "id": "1", "type": "user", "content": parts });
    let log = serde_json::json!({ "sessionId": "9", "projectHash": "a", "messages": [message] });
    let log = SessionLog::read(&written(&folder, "session.json", log.to_string()), None).unwrap();
    let messages = messages_of(log);
    let typed = messages[0].parts().iter().filter_map(|part| match part {
        plimsoll_context::Part::Text { text } => plimsoll_context::typed_words(text),
        _ => None,
    });
    assert_eq!(typed.collect::<Vec<_>>(), ["Explain @a.rs"]);
}

#[test]
fn an_entry_that_stands_twice_is_one() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", "pi.jsonl"] {
        let text = fs::read_to_string(data(name)).unwrap();
        let path = written(&folder, name, format!("{text}\n{text}"));
        let log = SessionLog::read(&path, None).unwrap();
        assert_eq!(
            shape(&messages_of(log)),
            shape(&messages_of(read(name))),
            "{name}"
        );
    }
}

#[test]
fn a_log_may_end_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", CODEX, "pi.jsonl"] {
        let text = fs::read(data(name)).unwrap();
        for end in (0..text.len()).step_by(97) {
            let path = written(&folder, "cut.jsonl", &text[..end]);
            if let Ok(log) = SessionLog::read(&path, None) {
                assert!(log.damaged <= 2, "{name} {end}: {:?}", log.damage);
                let _ = messages_of(log);
            }
        }
    }
}

#[test]
fn junk_between_lines_is_reported_and_skipped() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "claude-code-compacted.jsonl",
        "codex-compacted.jsonl",
        "pi-v1.jsonl",
    ] {
        let text = fs::read_to_string(data(name)).unwrap();
        let mut damaged = Vec::new();
        for line in text.lines() {
            damaged.extend_from_slice(line.as_bytes());
            damaged.extend_from_slice(b"\n\x00\xff\xfe junk\n[]\n\n");
        }
        let path = written(&folder, "junk.jsonl", damaged);
        let log = SessionLog::read(&path, None).unwrap();
        assert_eq!(log.damaged, text.lines().count() * 2, "{name}");
        assert_eq!(log.damage[0].line, 2, "{name}");
        assert_eq!(messages_of(log), messages_of(read(name)), "{name}");
    }
    let many = "{\"type\":\"session_meta\",\"payload\":{\"id\":\"1\"}}\n".to_owned()
        + &"junk\n".repeat(1_000)
        + "{\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hi\"}]}}\n";
    let path = written(&folder, "many.jsonl", many);
    let log = SessionLog::read(&path, None).unwrap();
    assert_eq!((log.damaged, log.damage.len()), (1_000, MAX_DAMAGE));
}

#[test]
fn token_counts_beyond_all_bounds_are_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, key) in [
        ("claude-code.jsonl", "\"output_tokens\":50"),
        ("pi.jsonl", "\"output\":50"),
    ] {
        let text = fs::read_to_string(data(name)).unwrap();
        assert!(text.contains(key), "{name}");
        let text = text.replace(key, &key.replace("50", "18446744073709551550"));
        let path = written(&folder, name, text);
        let log = SessionLog::read(&path, None).unwrap();
        assert_eq!(log.reported.unwrap().tokens, u64::MAX, "{name}");
    }
}

#[test]
fn a_missing_entry_does_not_lose_what_came_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data("claude-code.jsonl")).unwrap();
    // The answer that wrote the file.
    let kept: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("\"toolu_3\",\"name\""))
        .collect();
    let path = written(&folder, "missing.jsonl", kept.join("\n"));
    let log = SessionLog::read(&path, None).unwrap();
    assert!(log.damage.iter().any(|one| one.what.contains("missing")));
    let shape = shape(&messages_of(log));
    assert_eq!(shape[0], "u Port the lamp controller");
    assert!(shape.contains(&"r toolu_3 error".to_owned()), "an orphan");
}

#[test]
fn parents_in_a_circle_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for (name, key, first, last) in [
        (
            "claude-code.jsonl",
            "parentUuid",
            "00000000-0000-4000-8000-000000000001",
            "00000000-0000-4000-8000-000000000009",
        ),
        ("pi.jsonl", "parentId", "00000003", "00000008"),
    ] {
        let text = fs::read_to_string(data(name)).unwrap();
        // The entry behind the task has an entry behind it as its parent.
        let text = text.replacen(
            &format!("\"{key}\":\"{first}\""),
            &format!("\"{key}\":\"{last}\""),
            1,
        );
        let path = written(&folder, name, text);
        let log = SessionLog::read(&path, None).unwrap();
        let circles = log.damage.iter().filter(|one| one.what.contains("circle"));
        assert_eq!(circles.count(), 1, "{name}: {:?}", log.damage);
        assert_eq!(messages_of(log), messages_of(read(name)), "{name}");
    }
}

#[test]
fn a_line_that_is_nested_too_deep_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for name in ["claude-code.jsonl", CODEX, "pi.jsonl"] {
        let text = fs::read_to_string(data(name)).unwrap();
        let task = text
            .lines()
            .position(|line| line.contains("Never touch"))
            .unwrap();
        // Beside the message it does no harm.
        let beside = text.replacen("{\"", &format!("{{\"x\":{nested},\""), 1);
        let path = written(&folder, name, beside);
        let expected = messages_of(read(name));
        assert_eq!(
            messages_of(SessionLog::read(&path, None).unwrap()),
            expected,
            "{name}"
        );
        let damaged: Vec<String> = text
            .lines()
            .enumerate()
            .map(|(at, line)| match at {
                at if at == task => {
                    line.replace("\"role\":\"user\"", &format!("\"role\":{nested}"))
                }
                _ => line.to_owned(),
            })
            .collect();
        let path = written(&folder, name, damaged.join("\n"));
        let log = SessionLog::read(&path, None).unwrap();
        let named = log.damage.iter().find(|one| one.line == task + 1);
        assert!(
            named.is_some_and(|one| one.what.contains("recursion")),
            "{name}: {:?}",
            log.damage
        );
    }
}

#[test]
fn a_copy_of_a_rollout_without_its_first_line_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data(CODEX)).unwrap();
    let rest = text.split_once('\n').unwrap().1;
    let mut log = SessionLog::read(&written(&folder, "cut.jsonl", rest), None).unwrap();
    let chat = log.take_chat();
    let copy = copied(&log, &chat, None);
    let path = written(&folder, "copy.jsonl", &copy.text);
    let again = SessionLog::read(&path, None).unwrap();
    assert_eq!((again.id, again.damage), (copy.id, Vec::new()));
}

#[test]
fn a_copy_leaves_out_a_message_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(data("claude-code.jsonl")).unwrap();
    let damaged = text.replacen("\"content\":", "\"contents\":", 1);
    let mut log = SessionLog::read(&written(&folder, "log.jsonl", damaged), None).unwrap();
    assert!(log.damaged > 0);
    let chat = log.take_chat();
    let copy = copied(&log, &chat, None);
    let path = written(&folder, "copy.jsonl", &copy.text);
    assert_eq!(SessionLog::read(&path, None).unwrap().damage, []);
}

#[test]
fn a_message_within_a_summary_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let log = r#"{"type":"session","id":"1","timestamp":"2026-11-01T10:00:00.000Z","cwd":"/"}
{"type":"compaction","summary":"One.","message":{"role":"user","content":[{"type":"Text","text":"Two."}]}}
"#;
    let mut log = SessionLog::read(&written(&folder, "log.jsonl", log), None).unwrap();
    let chat = log.take_chat();
    let copy = copied(&log, &chat, None);
    let again = SessionLog::read(&written(&folder, "copy.jsonl", &copy.text), None).unwrap();
    assert_eq!((again.units.len(), again.damage), (1, Vec::new()));
}

#[test]
fn a_line_of_50_megabytes_is_read_and_a_longer_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let line = |bytes: usize| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{}"}}]}}}}"#,
            "x".repeat(bytes)
        )
    };
    let start = r#"{"type":"session_meta","payload":{"id":"1"}}"#;
    let text = [
        start.to_owned(),
        line(50_000_000),
        line(70_000_000),
        line(2),
    ]
    .join("\n");
    let path = written(&folder, "long.jsonl", text);
    let mut log = SessionLog::read(&path, None).unwrap();
    assert_eq!((log.damaged, log.damage[0].line), (1, 3));
    assert!(
        log.damage[0].what.contains("longer than"),
        "{:?}",
        log.damage
    );
    let chat = log.take_chat();
    assert_eq!(chat.units.len(), 2);
    assert!(
        chat.units[0].value()["content"][0]["text"]
            .as_str()
            .unwrap()
            .len()
            == 50_000_000
    );
}

#[test]
fn each_wrong_file_is_refused_with_its_cure() {
    let folder = tempfile::tempdir().unwrap();
    let sparse = folder.path().join("sparse.jsonl");
    File::create(&sparse)
        .unwrap()
        .set_len(5_000_000_000)
        .unwrap();
    assert!(error(&sparse).contains("`tail -c"), "{}", error(&sparse));
    let packed = written(&folder, "large.gz", [0x1f, 0x8b]);
    let file = File::options().append(true).open(&packed).unwrap();
    file.set_len(5_000_000_000).unwrap();
    let cure = "`gzip -dc FILE | tail -c";
    assert!(error(&packed).contains(cure), "{}", error(&packed));
    let table: [(&str, &[u8], &str); 7] = [
        ("cut.json", b"{\n \"info\": {\"id\": \"ses_1\"},\n \"messages\": [", "opencode export"),
        ("junk", &[0, 159, 146, 150, 10, 0], "no session log"),
        ("empty", b"", "no session log"),
        ("request.json", br#"{"messages":[]}"#, "no session log"),
        ("future.jsonl", br#"{"type":"session_meta","payload":{"v":9}}"#, "no message"),
        ("side.jsonl", br#"{"parentUuid":null,"isSidechain":true,"uuid":"1","type":"user","message":{"role":"user","content":"hi"}}"#, "sub-agent"),
        ("db", b"SQLite format 3\0junk", "opencode export"),
    ];
    for (name, content, expected) in table {
        let path = written(&folder, name, content);
        assert!(error(&path).contains(expected), "{name}: {}", error(&path));
    }
    assert!(error(folder.path()).contains("cannot be read"));
    let missing = folder.path().join("missing");
    assert!(matches!(
        SessionLog::read(&missing, None),
        Err(LogError::Read { .. })
    ));
}

#[test]
fn sessions_are_found_where_the_environment_says_the_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().to_owned();
    let put = |path: &str, name: &str| {
        let path = home.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(data(name), &path).unwrap();
        path
    };
    let claude = put(
        ".claude/projects/-home-me/5e551011.jsonl",
        "claude-code.jsonl",
    );
    put(
        ".claude/projects/-home-me/agent-1.jsonl",
        "claude-code.jsonl",
    );
    let codex = put(&format!("elsewhere/sessions/2026/11/01/{CODEX}"), CODEX);
    let pi = put(".pi/agent/sessions/--home--/x_1.jsonl", "pi.jsonl");
    let gemini = put(".gemini/tmp/abc/chats/session-1.jsonl", "gemini-old.json");
    let ages = [(&claude, 3), (&codex, 1), (&pi, 4), (&gemini, 2)];
    for (path, age) in ages {
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(100 - age);
        File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let variable = |name: &str| match name {
        "HOME" => Some(home.clone()),
        "CODEX_HOME" => Some(home.join("elsewhere")),
        _ => None,
    };
    let found: Vec<PathBuf> = find(&variable, None)
        .into_iter()
        .map(|one| one.path)
        .collect();
    assert_eq!(found, [codex, gemini, claude.clone(), pi]);
    let only = find(&variable, Some(Agent::ClaudeCode));
    assert_eq!(only.len(), 1);
    let log = SessionLog::read(&claude, None).unwrap();
    assert_eq!(log.agent, Agent::ClaudeCode);
    assert!(find(&|_| None, None).is_empty());
}

#[test]
fn one_damaged_message_of_opencode_costs_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let bad = format!(r#"{{"info":{{"role":"user"}},"parts":[{{"type":"text","x":{nested}}}]}}"#);
    let text = fs::read_to_string(data("opencode.json")).unwrap();
    let end = text.rfind(']').unwrap();
    let text = format!("{},{bad}{}", &text[..end], &text[end..]);
    let log = SessionLog::read(&written(&folder, "export.json", text), None).unwrap();
    assert_eq!(log.damaged, 1);
    assert!(
        log.damage[0].what.contains("recursion limit"),
        "{:?}",
        log.damage
    );
    assert_eq!(messages_of(log), messages_of(read("opencode.json")));
}

#[test]
fn a_session_in_the_database_of_opencode_is_read_as_its_export() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("opencode.db");
    let export: serde_json::Value =
        serde_json::from_slice(&fs::read(data("opencode.json")).unwrap()).unwrap();
    let database = rusqlite::Connection::open(&path).unwrap();
    database
        .execute_batch(
            "CREATE TABLE session (id text, project_id text, parent_id text, slug text, directory text,
               title text, version text, revert text, time_created integer, time_updated integer);
             CREATE TABLE message (id text, session_id text, time_created integer, data text);
             CREATE TABLE part (id text, message_id text, session_id text, data text);
             INSERT INTO session VALUES ('ses_000000000001aaaaaaaaaaaaaa', 'global', NULL, 'lamp',
               '/home/me/lamp', 'Lamp', '1', NULL, 1, 5);
             INSERT INTO session VALUES ('ses_child', 'global', 'ses_000000000001aaaaaaaaaaaaaa', 'x', '/', 'x', '1', NULL, 1, 9);",
        )
        .unwrap();
    for message in export["messages"].as_array().unwrap() {
        let id = message["info"]["id"].as_str().unwrap();
        database
            .execute(
                "INSERT INTO message VALUES (?1, 'ses_000000000001aaaaaaaaaaaaaa', 1, ?2)",
                [id, &message["info"].to_string()],
            )
            .unwrap();
        for part in message["parts"].as_array().unwrap() {
            database
                .execute(
                    "INSERT INTO part VALUES (?1, ?2, '', ?3)",
                    [part["id"].as_str().unwrap(), id, &part.to_string()],
                )
                .unwrap();
        }
    }
    drop(database);
    let log = SessionLog::read(&path, None).unwrap();
    assert_eq!(log.directory.as_deref(), Some("/home/me/lamp"));
    let mut log = log;
    let chat = log.take_chat();
    let expected = messages_of(read("opencode.json"));
    assert_eq!(super::messages(&chat), expected);
    let copy = copied(&log, &chat, None);
    assert_eq!(messages_of(super::read_back(&copy)), expected);
    let missing = SessionLog::read(&path, Some("ses_2"))
        .unwrap_err()
        .to_string();
    assert!(missing.contains("no such session"), "{missing}");
    let database = rusqlite::Connection::open(&path).unwrap();
    let cut = "UPDATE part SET data = substr(data, 1, 9) WHERE rowid = 1";
    database.execute_batch(cut).unwrap();
    drop(database);
    let damage = SessionLog::read(&path, None).unwrap().damage;
    assert_eq!(damage.len(), 1);
    assert_eq!(
        (damage[0].line, damage[0].what.as_str()),
        (1, "a row of it is no JSON")
    );
}

/// What was lost is not sent any more, so it counts no longer: one token for four bytes.
#[test]
fn a_reported_size_counts_without_what_was_lost() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", CODEX, "pi.jsonl"] {
        let text = fs::read_to_string(data(name)).unwrap();
        let with = |line: &str| {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.insert(lines.len() / 2, line);
            let path = written(&folder, "log.jsonl", lines.join("\n"));
            SessionLog::read(&path, None).unwrap()
        };
        let whole = SessionLog::read(&data(name), None).unwrap().used_tokens();
        let cut = with("{\"type\":\"progress\",\"");
        let lost = whole.unwrap() - cut.used_tokens().unwrap();
        assert!(cut.damaged > 0 && lost <= 5, "{name}: {lost}");
        let long = with(&"x".repeat(40_000_000));
        let left = long.used_tokens().unwrap();
        assert!(
            0 < left && left < whole.unwrap(),
            "{name}: {left} of {whole:?}"
        );
    }
    let text = fs::read_to_string(data("codex-compacted.jsonl")).unwrap();
    let report = r#"{"type":"event_msg","payload":{"type":"token_count","info":{"last_token_usage":{"input_tokens":9,"total_tokens":900}}}}"#;
    let start = text.lines().next().unwrap();
    let behind = text.replacen(start, &format!("{start}\njunk"), 1) + report;
    let log = SessionLog::read(&written(&folder, "before.jsonl", behind), None).unwrap();
    assert_eq!(
        (log.damaged, log.used_tokens()),
        (1, Some(900)),
        "before the compaction"
    );
}

/// The provider has counted the beginning too, which is not sent any more.
#[test]
fn a_part_of_a_log_has_no_reported_size() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["claude-code.jsonl", "pi.jsonl"] {
        let text = fs::read_to_string(data(name)).unwrap();
        let used = |skipped: usize| {
            let lines: Vec<&str> = text.lines().skip(skipped).collect();
            let path = written(&folder, "part.jsonl", lines.join("\n"));
            SessionLog::read(&path, None).unwrap().used_tokens()
        };
        assert!(used(0).is_some() && used(6).is_none(), "{name}");
    }
}

/// Behind a resumption, Gemini CLI writes calls and results as parts of contents, some of them a second time. It sends
/// both of them, which is refused, so a copy has one.
#[test]
fn calls_of_a_resumed_chat_of_gemini_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"sessionId":"9","projectHash":"a","kind":"main"}"#,
        r#"{"id":"1","timestamp":"t1","type":"user","content":[{"text":"Read both."}]}"#,
        r#"{"id":"2","timestamp":"t2","type":"gemini","content":[{"text":"I look."},{"functionCall":{"id":"c1","name":"read","args":{"path":"a"}}},{"functionCall":{"id":"c2","name":"read","args":{"path":"b"}}}],"toolCalls":[{"id":"c1","name":"read","args":{"path":"a"},"status":"success","result":[{"functionResponse":{"id":"c1","name":"read","response":{"output":"A"}}}]}]}"#,
        r#"{"id":"3","timestamp":"t3","type":"user","content":[{"functionResponse":{"id":"c1","name":"read","response":{"output":"A"}}},{"functionResponse":{"id":"c2","name":"read","response":{"error":"B"}}}]}"#,
        r#"{"id":"4","timestamp":"t4","type":"gemini","content":[{"functionCall":{"id":"c3","name":"run","args":{}}}]}"#,
    ];
    let path = written(&folder, GEMINI, lines.join("\n"));
    let mut log = SessionLog::read(&path, None).unwrap();
    let doubled: Vec<&str> = log.repairs.iter().map(|one| one.place.as_str()).collect();
    assert_eq!(doubled, ["line 3", "line 4"]);
    let mut chat = log.take_chat();
    let expected = [
        "u Read both.",
        "a I look. c2 c1",
        "r c1",
        "r c2 error",
        "a c3",
    ];
    assert_eq!(shape(&super::messages(&chat)), expected);
    // The open call gets its result beside it, and a changed one stays in its place.
    let target = plimsoll_wire::Target::of_protocol("anthropic", None).unwrap();
    plimsoll_foreign::repair(&mut chat, &target, plimsoll_foreign::Reasoning::Keep);
    for changes in [false, true] {
        if changes {
            let is_result =
                |unit: &&mut plimsoll_foreign::Unit<'_>| unit.value()["tool_use_id"] == "c2";
            chat.units.iter_mut().find(is_result).unwrap().edit()["content"] = "short".into();
        }
        let copy = copied(&log, &chat, None);
        for once in [
            r#"{"functionResponse":{"id":"c1","#,
            r#""id":"c1","name":"read","args""#,
        ] {
            assert_eq!(copy.text.matches(once).count(), 1, "{}", copy.text);
        }
        let again = messages_of(super::read_back(&copy));
        super::assert_answered(&again);
        let mut after = expected.map(str::to_owned).to_vec();
        after.push("r c3 error".to_owned());
        if changes {
            after[3] = "r c2".to_owned();
            assert_eq!(again[3].text(), "short");
        }
        assert_eq!(shape(&again), after);
    }
}

#[test]
fn a_call_without_a_name_has_the_name_of_its_repair_in_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"sessionId":"9","projectHash":"a","kind":"main"}"#,
        r#"{"id":"1","timestamp":"t1","type":"user","content":[{"text":"Read it."}]}"#,
        r#"{"id":"2","timestamp":"t2","type":"gemini","content":"","toolCalls":[{"id":"c1","args":{"path":"a"},"x":1,"status":"error","result":null}]}"#,
    ];
    let path = written(&folder, GEMINI, lines.join("\n"));
    let mut log = SessionLog::read(&path, None).unwrap();
    let mut chat = log.take_chat();
    let target = plimsoll_wire::Target::of_protocol("anthropic", None).unwrap();
    plimsoll_foreign::repair(&mut chat, &target, plimsoll_foreign::Reasoning::Keep);
    let copy = copied(&log, &chat, None);
    let call = copy.text.lines().last().unwrap();
    let call: serde_json::Value = serde_json::from_str(call).unwrap();
    let call = &call["toolCalls"][0];
    assert_eq!((&call["name"], &call["x"]), (&"unnamed".into(), &1.into()));
    let response = &call["result"][0]["functionResponse"];
    assert_eq!(response["name"], "unnamed");
}

#[test]
fn a_new_line_of_a_rollout_has_no_unknown_keys_of_its_neighbor() {
    let folder = tempfile::tempdir().unwrap();
    let lines = [
        r#"{"timestamp":"t0","ordinal":0,"type":"session_meta","payload":{"id":"1","cwd":"/"}}"#,
        r#"{"timestamp":"t1","ordinal":1,"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"Run it."}]}}"#,
        r#"{"timestamp":"t2","ordinal":2,"trace":"x","type":"response_item","payload":{"type":"function_call","call_id":"c1","name":"","arguments":"{}"}}"#,
    ];
    let path = written(&folder, CODEX, lines.join("\n"));
    let mut log = SessionLog::read(&path, None).unwrap();
    let mut chat = log.take_chat();
    let target = plimsoll_wire::Target::of_protocol("openai-responses", None).unwrap();
    plimsoll_foreign::repair(&mut chat, &target, plimsoll_foreign::Reasoning::Keep);
    let copy = copied(&log, &chat, None);
    let written = copy.text.lines().skip(2);
    let written: Vec<serde_json::Value> = written
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [call, output, title] = written.as_slice() else {
        panic!("{}", copy.text);
    };
    // The changed line keeps its own key.
    assert_eq!(call["trace"], "x");
    assert_eq!(call["payload"]["name"], "_");
    for (number, new) in [(3, output), (4, title)] {
        let new = new.as_object().unwrap();
        let keys: std::collections::BTreeSet<&str> = new.keys().map(String::as_str).collect();
        assert_eq!(keys, ["ordinal", "payload", "timestamp", "type"].into());
        assert_eq!(
            (&new["ordinal"], &new["timestamp"]),
            (&number.into(), &"t2".into())
        );
    }
}

#[cfg(unix)]
#[test]
fn only_files_are_sessions_and_a_pipe_is_read_if_it_is_named() {
    use std::io::Write;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixListener;

    let folder = tempfile::tempdir().unwrap();
    let _socket = UnixListener::bind(folder.path().join("x.jsonl")).unwrap();
    let sessions =
        |name: &str| (name == "PI_CODING_AGENT_SESSION_DIR").then(|| folder.path().to_owned());
    assert_eq!(find(&sessions, None), []);
    std::os::unix::fs::symlink(data("pi.jsonl"), folder.path().join("y.jsonl")).unwrap();
    assert_eq!(find(&sessions, None).len(), 1);

    let (end, mut start) = std::io::pipe().unwrap();
    let text = fs::read(data("pi.jsonl")).unwrap();
    let writer = std::thread::spawn(move || start.write_all(&text).unwrap());
    let path = PathBuf::from(format!("/dev/fd/{}", end.as_raw_fd()));
    let mut log = SessionLog::read(&path, None).unwrap();
    writer.join().unwrap();
    let mut own = super::read("pi.jsonl");
    let (chat, own) = (log.take_chat(), own.take_chat());
    assert_eq!(chat.write(), own.write());
    assert!(!copied(&log, &chat, None).text.is_empty());
}

#[test]
fn a_relative_folder_of_an_agent_is_below_the_current_one() {
    let variable = |name: &str| (name == "PI_CODING_AGENT_DIR").then(|| PathBuf::from("agent"));
    let here = std::env::current_dir().unwrap();
    let folders = plimsoll_logs::folders(Agent::Pi, &variable);
    assert_eq!(folders, [here.join("agent/sessions")]);
}

/// An event of a turn that the user took back is not displayed again, also before a compaction.
#[test]
fn a_turn_that_was_taken_back_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let item = |role: &str, text: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
        )
    };
    let event = |kind: &str| {
        format!(r#"{{"type":"event_msg","payload":{{"type":"{kind}","num_turns":1}}}}"#)
    };
    let history = r#"{"type":"compacted","payload":{"message":"", "replacement_history": [{"type":"message","role":"user","content":[]}]}}"#;
    let lines = [
        r#"{"type":"session_meta","payload":{"id":"1"}}"#.to_owned(),
        item("user", "One."),
        event("kept"),
        item("user", "Two."),
        item("assistant", "So."),
        event("gone"),
        event("thread_rolled_back"),
        history.to_owned(),
        item("user", "Three."),
    ];
    let mut log = SessionLog::read(&written(&folder, CODEX, lines.join("\n")), None).unwrap();
    let chat = log.take_chat();
    assert_eq!(chat.units.len(), 2);
    let text = copied(&log, &chat, None).text;
    assert!(text.contains("kept") && !text.contains("gone"), "{text}");
    assert!(!text.contains("Two.") && !text.contains("One."), "{text}");
}

/// The agent does not read such lines, so a session with one needs a copy.
#[test]
fn a_line_that_only_plimsoll_reads_is_reported_and_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (
        br#"{"type":"user","uuid":"1","parentUuid":null,"message":{"role":"user","content":"One."}}"#,
        br#"{"type":"user","uuid":"2","parentUuid":"1","message":{"role":"user","content":"Two X."}}"#,
    );
    let invalid: Vec<u8> = second
        .iter()
        .map(|byte| if *byte == b'X' { 0xff } else { *byte })
        .collect();
    let second: &[u8] = second;
    let cases: [(&[&[u8]], &str, &str); 5] = [
        (&[b"\0\0", second], "left out zeros beside it", "X"),
        (&[second, b"\0"], "left out zeros beside it", "X"),
        (
            &[b" ", second, b" {}"],
            "wrote it on a line of its own",
            "X",
        ),
        (&[&invalid], "replaced bytes that are no UTF-8: 1", "?"),
        (&[b"  ", second, b" "], "", "X"),
    ];
    for (line, done, letter) in cases {
        let log = [&first[..], b"\n", &line.concat(), b"\n"].concat();
        let mut log = SessionLog::read(&written(&folder, "log.jsonl", log), None).unwrap();
        let repairs: Vec<&str> = log.repairs.iter().map(|one| one.done.as_str()).collect();
        assert_eq!(repairs.join(" "), done);
        let chat = log.take_chat();
        let copy = copied(&log, &chat, None);
        assert!(
            copy.text.contains(&format!("Two {letter}.")),
            "{done}: {}",
            copy.text
        );
        assert_eq!(super::read_back(&copy).repairs, [], "{done}");
    }
    let marked = [b"\xef\xbb\xbf", &first[..]].concat();
    let log = SessionLog::read(&written(&folder, "log.jsonl", marked), None).unwrap();
    assert!(
        log.repairs[0].done.contains("byte order mark"),
        "{:?}",
        log.repairs
    );
}

/// A compaction of Gemini CLI puts its context and the user's words into one message, which it does not send again.
#[test]
fn words_behind_the_context_of_gemini_stay() {
    let folder = tempfile::tempdir().unwrap();
    let context = "<session_context>\\nToday is Tuesday.\\n</session_context>";
    let lines = [
        r#"{"sessionId":"9","projectHash":"a","kind":"main"}"#.to_owned(),
        format!(r#"{{"id":"0","type":"user","content":[{{"text":"{context}"}}]}}"#),
        format!(
            r#"{{"id":"1","type":"user","content":[{{"text":"{context}"}},{{"text":"Port it."}}]}}"#
        ),
        r#"{"id":"2","type":"gemini","content":"Yes."}"#.to_owned(),
    ];
    let project = folder.path().join("lamp");
    fs::create_dir_all(project.join("chats")).unwrap();
    fs::write(project.join(".project_root"), "/home/me/lamp\n").unwrap();
    let path = project.join("chats").join(GEMINI);
    fs::write(&path, lines.join("\n")).unwrap();
    let mut log = SessionLog::read(&path, None).unwrap();
    assert_eq!(log.directory.as_deref(), Some("/home/me/lamp"));
    assert_eq!(log.repairs.len(), 1, "{:?}", log.repairs);
    let chat = log.take_chat();
    assert_eq!(shape(&super::messages(&chat)), ["u Port it.", "a Yes."]);
    let copy = copied(&log, &chat, None);
    assert!(
        !copy.text.contains("session_context") && copy.text.contains("Port it."),
        "{}",
        copy.text
    );
}

#[test]
fn a_line_of_nested_objects_that_is_cut_is_given_up_soon() {
    let folder = tempfile::tempdir().unwrap();
    let log = fs::read_to_string(data("claude-code.jsonl")).unwrap() + &"{\"a\":".repeat(100_000);
    let log = SessionLog::read(&written(&folder, "log.jsonl", log), None).unwrap();
    assert!(log.damaged > 0);
}
