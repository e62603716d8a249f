//! `plimsoll count`: the tokens of each message, for people and for scripts.

use plimsoll::tokens::{Bpe, Chars4, TokenCounter};
use serde_json::{Value, json};

use super::chats::{messages, tools, weight};
use super::command::Home;

#[test]
fn each_message_is_weighed_by_the_counter_that_was_named() {
    let home = Home::new();
    let chat = json!({"messages": messages(3), "tools": tools()}).to_string();
    let read = plimsoll_wire::openai_chat::read(&chat).unwrap();
    let counters: [(&str, &dyn TokenCounter); 3] = [
        ("o200k", &Bpe::o200k()),
        ("cl100k", &Bpe::cl100k()),
        ("chars4", &Chars4),
    ];
    for (name, counter) in counters {
        let said = home
            .pipe(["count", "--json", "--counter", name], &chat)
            .done();
        let report: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(report["counter"], counter.name());
        let listed = report["messages"].as_array().unwrap();
        assert_eq!(listed.len(), read.messages.len());
        for (one, message) in listed.iter().zip(&read.messages) {
            assert_eq!(one["tokens"], counter.message(message).0);
        }
        let sum: u64 = listed
            .iter()
            .map(|one| one["tokens"].as_u64().unwrap())
            .sum();
        assert_eq!(report["total"], sum + report["tools"].as_u64().unwrap());
    }
    let said = home.pipe(["count", "--json"], &chat).done();
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        report["total"],
        weight(&chat).0,
        "o200k unless told otherwise"
    );
    assert_eq!(report["messages"][0]["role"], "system");
}

#[test]
fn people_get_a_table_and_nothing_is_repaired_in_it() {
    let home = Home::new();
    let chat = json!([
        {"role": "user", "content": "one\n two"},
        {"role": "tool", "tool_call_id": "nobody", "content": "lost"},
    ]);
    let said = home.pipe(["count"], chat.to_string()).done();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 4, "{}", said.out);
    assert!(lines[0].contains("tokens"));
    assert!(lines[1].contains("user") && lines[1].ends_with("one two"));
    assert!(lines[2].contains("tool") && lines[2].ends_with("lost"));
    assert!(lines[3].contains("total") && lines[3].contains("o200k"));
    assert_eq!(said.err, "");
}

#[test]
fn bad_input_is_told_as_compact_tells_it() {
    let home = Home::new();
    home.pipe(["count"], "").refused(1, &["the input is empty"]);
    home.pipe(["count"], "nope").refused(1, &["not valid JSON"]);
    home.pipe(["count"], b"\xfe").refused(1, &["not UTF-8"]);
    home.pipe(["count"], "[{\"role\":\"user\",\"content\":7}]")
        .refused(1, &["[0].content"]);
    home.pipe(["count", "--counter", "x"], "[]")
        .misspelled(&["'x'", "chars4"]);
    home.run(["count", "none.json"]).refused(2, &["none.json"]);
}

#[test]
fn a_chat_that_needs_a_repair_names_the_command() {
    let home = Home::new();
    let chat = json!([{"role": "function", "name": "f", "content": "r"}]);
    home.pipe(["count"], chat.to_string())
        .refused(1, &["messages[0].role", "plimsoll repair"]);
}
