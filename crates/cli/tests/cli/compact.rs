//! `plimsoll compact` as a filter: the kept messages, the options, and the repairs.

use serde_json::{Value, json};

use super::chats::{QUESTION, TASK, asked, faults, messages, raw, tools, weight};
use super::command::Home;

#[test]
fn a_chat_within_its_budget_comes_back_as_it_was() {
    let home = Home::new();
    let object = "{ \"x\" : 1,\n \"messages\": [ {\"role\":\"user\",\"content\":\"h\\u00e9\"} ,\n  \
                  {\"content\":\"ok\", \"role\":\"assistant\",\"zz\":[1, 2]} ] , \"y\":{\"b\":1.0,\"a\":2e3}}";
    let pretty = serde_json::to_string_pretty(&messages(3)).unwrap();
    for chat in [object, &pretty, "[]", "[ ]", "{\"messages\":[]}"] {
        for policy in ["extract", "evict", "sliding_window", "sliding-window"] {
            let args = [
                "compact",
                "--budget",
                "50000",
                "--counter",
                "chars4",
                "--policy",
                policy,
            ];
            let said = home.pipe(args, chat).done();
            assert_eq!(said.out, chat, "{policy}");
            assert_eq!(said.err, "", "{policy}");
        }
    }
    // A file, and a mark before UTF-8 that some editors make.
    home.file("chat.json", object);
    let said = home.run(["compact", "--budget", "500", "chat.json"]).done();
    assert_eq!(said.out, object);
    let marked = format!("\u{feff}{object}");
    let said = home
        .pipe(["compact", "--budget", "500", "-"], marked)
        .done();
    assert_eq!(said.out, object);
}

#[test]
fn an_open_task_has_room_before_an_old_result() {
    let home = Home::new();
    let call = |id: &str, name: &str, arguments: Value| {
        let function = json!({ "name": name, "arguments": arguments.to_string() });
        json!({ "role": "assistant", "content": null,
            "tool_calls": [{ "id": id, "type": "function", "function": function }] })
    };
    let result =
        |id: &str, text: &str| json!({ "role": "tool", "tool_call_id": id, "content": text });
    let user = |text: &str| json!({ "role": "user", "content": text });
    let filler: String = (0..2_000)
        .map(|n| format!("line {n} of the log\n"))
        .collect();
    let chat = json!([
        user("Help me with the harbour."),
        call("1", "TaskCreate", json!({ "subject": "Port crane" })),
        result("1", "Task #7 created successfully: Port crane"),
        user("Read the log."),
        call("2", "Read", json!({ "file_path": "log.txt" })),
        result("2", &filler),
        { "role": "assistant", "content": "It is calm." },
        user("What is next?"),
    ]);
    for budget in ["600", "2500", "8000"] {
        let said = home.pipe(["compact", "--budget", budget], chat.to_string());
        let out = said.done().out;
        assert!(
            out.contains("Todo: #7 Port crane") || out.contains("\"TaskCreate\""),
            "{out}"
        );
    }
}

#[test]
fn the_budget_is_honoured_and_the_rest_is_not_touched() {
    let home = Home::new();
    let chat = json!({"model": "m", "messages": messages(30), "tools": tools(), "seed": 7, "a": {"z": 1, "b": 2}});
    let chat = chat.to_string();
    let before = weight(&chat);
    let originals = raw(&chat);
    for policy in ["extract", "evict", "sliding_window"] {
        for budget in [400_u64, 3_000, before.0 - 1] {
            let budget_text = budget.to_string();
            let args = ["compact", "--budget", &budget_text, "--policy", policy];
            let said = home.pipe(args, &chat).done();
            let out = said.out.trim_end();
            assert!(weight(out).0 <= budget, "{policy} {budget}");
            assert_eq!(faults(out), [""; 0], "{policy} {budget}");
            assert_eq!(asked(out).first().map(String::as_str), Some(TASK));
            assert_eq!(asked(out).last().map(String::as_str), Some(QUESTION));
            for message in raw(out) {
                // Only results give way; all else stays byte for byte or leaves.
                let is_result = message.contains("\"role\":\"tool\"");
                let is_summary = policy == "extract" && message.contains("[handover ");
                let is_marker = message.contains("removed here]");
                assert!(
                    is_result || is_summary || is_marker || originals.contains(&message),
                    "{message}"
                );
            }
            let (keys, were): (Value, Value) = (
                serde_json::from_str(out).unwrap(),
                serde_json::from_str(&chat).unwrap(),
            );
            let names = |value: &Value| -> Vec<String> {
                value.as_object().unwrap().keys().cloned().collect()
            };
            assert_eq!(names(&keys), names(&were));
            assert_eq!(names(&keys["a"]), ["z", "b"]);
            // What was done is said, with figures.
            assert!(
                said.err.contains(&format!("{before} tokens became")),
                "{}",
                said.err
            );
            assert_eq!(said.err.lines().count(), 1, "{}", said.err);
            // The same again, and nothing more to do with what came out.
            assert_eq!(home.pipe(args, &chat).done().out, said.out);
            let again = home.pipe(args, &said.out).done();
            assert_eq!((again.out, again.err), (said.out, String::new()));
        }
    }
}

#[test]
fn a_bare_array_stays_one_and_bytes_stay() {
    let home = Home::new();
    let mut text: Vec<String> = messages(20).iter().map(Value::to_string).collect();
    // No JSON writer of ours would print these so.
    text[1] = format!(
        "{{ \"x_note\" : 1.50 , \"content\":\"{TASK}\" ,\"role\":\"user\", \"u\":\"\\u00e9\\/\" }}"
    );
    let last = text.len() - 2;
    text[last] =
        "{\"content\" : \"done \\ud83d\\ude00\", \"role\":\"assistant\",\"name\":\"a\"}".to_owned();
    let chat = format!("[{}]", text.join(" ,\n "));
    let said = home.pipe(["compact", "--budget", "900"], &chat).done();
    assert!(said.out.starts_with('['));
    let out = raw(&said.out);
    assert!(
        out.contains(&text[1]) && out.contains(&text[last]),
        "{}",
        said.out
    );
    assert!(weight(&said.out).0 <= 900);
}

#[test]
fn a_budget_beside_the_messages_goes_first() {
    let home = Home::new();
    let chat = json!({"budget_tokens": 700, "messages": messages(20)}).to_string();
    for args in [
        &["compact"][..],
        &["compact", "--budget", "100000"],
        &["compact", "--budget", "9"],
    ] {
        let out = home.pipe(args, &chat).done().out;
        assert!(weight(&out).0 <= 700);
        let value: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(value["budget_tokens"], 700);
    }
}

#[test]
fn tools_count() {
    let home = Home::new();
    let bare = json!({"messages": messages(4)}).to_string();
    let exactly = weight(&bare).0.to_string();
    let args = ["compact", "--budget", &exactly];
    assert_eq!(home.pipe(args, &bare).done().out.trim_end(), bare);
    let with = json!({"messages": messages(4), "tools": tools()}).to_string();
    let out = home.pipe(args, &with).done().out;
    assert!(out.len() < with.len());
    assert!(weight(&out) <= weight(&bare));
}

#[test]
fn lines_go_on_after_one_that_fails() {
    let home = Home::new();
    let good = json!({"messages": messages(12), "id": 1}).to_string();
    let own = json!({"messages": messages(12), "budget_tokens": 600}).to_string();
    let tight = json!({"messages": messages(2), "budget_tokens": 5}).to_string();
    let lines = [&good, "nope", &own, "", &tight, "{\"role\":7}", "[]", &good];
    let input = lines.join("\n");
    let args = ["compact", "--lines", "--budget", "1500"];
    let said = home.pipe(args, &input);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let out: Vec<&str> = said.out.lines().collect();
    assert_eq!(
        out.len(),
        lines.len(),
        "an answer for each line: {}",
        said.out
    );
    for (at, limit) in [(0, 1_500), (2, 600), (7, 1_500)] {
        assert!(weight(out[at]).0 <= limit, "line {at}");
    }
    assert_eq!(out[6], "[]");
    assert_eq!(out[0], out[7]);
    for (at, words) in [
        (1, "not valid JSON"),
        (3, "the input is empty"),
        (4, "cannot be made smaller than"),
        (5, "messages: expected an array of messages"),
    ] {
        let error: Value = serde_json::from_str(out[at]).unwrap();
        assert_eq!(error.as_object().unwrap().len(), 1);
        assert!(error["error"].as_str().unwrap().contains(words), "{error}");
    }
    let notes = said.err.lines();
    let notes = notes.filter_map(|note| note.strip_prefix("plimsoll: line ")?.split(':').next());
    let mut notes: Vec<&str> = notes.collect();
    notes.dedup();
    assert_eq!(notes, ["1", "3", "8"], "{}", said.err);
    // Short lines are compacted beside a long one, and wait for its answer.
    let long = json!({"messages": messages(2_000)}).to_string();
    let said = home
        .pipe(args, format!("{long}\n{}", "[]\n".repeat(20)))
        .done();
    let (first, rest) = said.out.split_once('\n').unwrap();
    assert!(weight(first).0 <= 1_500, "{first}");
    assert_eq!(rest, "[]\n".repeat(20));
    // A file with a last line end and CRLF is not longer for it.
    let said = home.pipe(args, format!("{good}\r\n[]\r\n")).done();
    assert_eq!(said.out.lines().collect::<Vec<_>>(), [out[0], "[]"]);
    assert_eq!(home.pipe(args, "").done().out, "", "no line, no answer");
}

#[test]
fn a_damaged_chat_is_repaired_and_it_is_said() {
    let home = Home::new();
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let chat = json!({"messages": [
        {"role": "user", "content": "Go."},
        {"role": "assistant", "content": null, "tool_calls": [call("open"), call("late")]},
        {"role": "user", "content": "Well?"},
        {"role": "tool", "tool_call_id": "late", "content": "here"},
        {"role": "tool", "tool_call_id": "nobody", "content": "lost"},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": "So?"},
    ]});
    assert_ne!(faults(&chat.to_string()), [""; 0]);
    for policy in ["extract", "evict", "sliding_window"] {
        let args = [
            "compact",
            "--budget",
            "1000",
            "--counter",
            "chars4",
            "--policy",
            policy,
        ];
        let said = home.pipe(args, chat.to_string()).done();
        assert_eq!(faults(&said.out), [""; 0], "{}", said.out);
        assert_eq!(asked(&said.out), ["Go.", "Well?", "So?"]);
        assert!(said.out.contains("here") && !said.out.contains("lost"));
        assert_eq!(said.err.lines().count(), 4, "{}", said.err);
        for words in ["`open`", "`late`", "`nobody`", "messages[5]"] {
            assert!(said.err.contains(words), "no {words}: {}", said.err);
        }
        assert!(
            said.err
                .lines()
                .all(|line| line.starts_with("plimsoll: repaired: "))
        );
        let quiet = home
            .pipe([&args[..], &["--quiet"]].concat(), chat.to_string())
            .done();
        assert_eq!(
            (quiet.out.as_str(), quiet.err.as_str()),
            (said.out.as_str(), "")
        );
        let again = home.pipe(args, &said.out).done();
        assert_eq!((again.out, again.err), (said.out, String::new()));
    }
    let said = home
        .pipe(["compact", "--budget", "1000", "--lines"], chat.to_string())
        .done();
    assert!(
        said.err
            .lines()
            .all(|line| line.starts_with("plimsoll: line 1: repaired: "))
    );
}

/// A chat without messages gets an opening one. The API accepts an empty message of the user, so it stays.
#[test]
fn an_empty_word_does_not_become_an_empty_list() {
    let home = Home::new();
    let args = ["compact", "--budget", "1000"];
    let empty = json!({"model": "m", "messages": [{"role": "user", "content": ""}]}).to_string();
    let said = home.pipe(args, &empty).done();
    assert_eq!(faults(&empty), [""; 0]);
    assert_eq!((said.out.trim(), said.err.as_str()), (empty.as_str(), ""));
    let silent = json!({"model": "m", "messages": [{"role": "assistant", "content": ""}]});
    let said = home.pipe(args, silent.to_string()).done();
    assert_eq!(faults(&said.out), [""; 0], "{}", said.out);
    assert_eq!(asked(&said.out), ["Begin."]);
    assert!(said.err.contains("repaired: messages[0]"), "{}", said.err);
    // Settings are none of its business.
    let odd =
        json!({"model": "m", "temperature": 7, "messages": [{"role": "user", "content": "q"}]});
    let said = home.pipe(args, odd.to_string()).done();
    let odd = odd.to_string();
    assert_eq!((said.out.trim(), said.err.as_str()), (odd.as_str(), ""));
}

#[test]
fn every_counter_and_policy_has_its_name() {
    let home = Home::new();
    let chat = json!(messages(10)).to_string();
    let outs = ["o200k", "cl100k", "estimate", "chars4"].map(|counter| {
        let args = ["compact", "--budget", "900", "--counter", counter];
        let out = home.pipe(args, &chat).done().out;
        assert_eq!(faults(&out), [""; 0]);
        out
    });
    assert_eq!(
        home.pipe(["compact", "--budget", "900"], &chat).done().out,
        outs[0]
    );
    let args = ["compact", "--budget", "900", "--policy", "never"];
    home.pipe(args, &chat)
        .misspelled(&["invalid value 'never'", "extract, evict, sliding_window"]);
    let args = ["compact", "--budget", "900", "--counter", "gpt"];
    home.pipe(args, &chat)
        .misspelled(&["'gpt'", "o200k, cl100k, estimate, chars4"]);
}

#[test]
fn a_chat_with_half_a_character_is_read() {
    // As JSON.stringify writes a text that was cut inside an emoji.
    let home = Home::new();
    let chat =
        "{\"messages\":[\n {\"role\":\"user\",\"content\":\"Never touch db.sql \\ud83d\"}]}\n";
    let whole = chat.replace("\\ud83d", "\\ufffd");
    let repair = "repaired: the text: replaced half a character with U+FFFD (shapes)";
    for args in [&["repair"][..], &["compact", "--budget", "500"]] {
        let said = home.pipe(args, chat).done();
        assert_eq!(said.out, whole, "{args:?}");
        assert_eq!(said.err, format!("plimsoll: {repair}\n"), "{args:?}");
    }
    let said = home.pipe(["count"], chat).done();
    assert!(said.out.contains("Never touch db.sql"), "{}", said.out);
    assert!(said.err.contains(repair), "{}", said.err);
    let line = chat.replace('\n', "");
    let said = home.pipe(
        ["compact", "--lines", "--budget", "500"],
        format!("{line}\n{line}\n"),
    );
    assert_eq!(said.done().out.matches("\\ufffd").count(), 2);
    let said = home
        .pipe(["sessions", "import", "-", "--to", "half"], chat)
        .done();
    assert!(said.err.contains(repair), "{}", said.err);
}

#[test]
fn a_packed_chat_is_unpacked() {
    let home = Home::new();
    let chat = json!({"messages": messages(3)}).to_string();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, chat.as_bytes()).unwrap();
    let packed = gzip.finish().unwrap();
    home.file("chat.json.gz", &packed);
    for said in [
        home.run(["compact", "--budget", "50000", "chat.json.gz"]),
        home.run(["repair", "chat.json.gz"]),
        home.pipe(["repair"], &packed),
    ] {
        assert_eq!(said.done().out, chat);
    }
    home.file("cut.json.gz", &packed[..packed.len() / 2]);
    let said = home.run(["repair", "cut.json.gz"]);
    said.refused(1, &["the compressed file is cut off or damaged"]);
}

#[test]
fn what_was_changed_ends_with_a_newline() {
    let home = Home::new();
    let chat = json!({"messages": [
        {"role": "user", "content": "Hello."}, {"role": "assistant", "content": ""},
        {"role": "user", "content": "Are you there?"}]});
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let log = root.join("../logs/tests/data/claude-code-compacted.jsonl");
    let log = log.to_str().unwrap();
    for said in [
        home.pipe(["compact", "--budget", "500"], chat.to_string()),
        home.run(["compact", "--budget", "50000", log]),
        home.run(["repair", log]),
    ] {
        let said = said.done();
        assert!(said.out.ends_with("}\n"), "{:?}", said.out);
        assert!(!said.out.ends_with("\n\n"), "{:?}", said.out);
    }
}

#[test]
fn a_policy_that_removes_nothing_is_refused() {
    let home = Home::new();
    let args = ["compact", "--budget", "500", "--policy", "unlimited"];
    home.pipe(args, "[]")
        .misspelled(&["invalid value 'unlimited'"]);
}
