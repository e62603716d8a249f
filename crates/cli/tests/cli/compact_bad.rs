//! Input that is not a chat, or cannot be compacted: one sentence, an exit code, nothing on stdout.

use std::io::{Cursor, Read};

use serde_json::json;

use super::chats::messages;
use super::command::{Home, feed_from};

#[test]
fn bad_input_is_told_in_one_sentence() {
    let home = Home::new();
    let cases: &[(&[u8], i32, &[&str])] = &[
        (b"", 1, &["the input is empty", "{\"messages\": [...]}"]),
        (b" \n\t ", 1, &["the input is empty"]),
        (
            b"nope",
            1,
            &["not valid JSON", "line 1 column 2", "a bare array"],
        ),
        (
            b"[{\"role\":\"user\",\"content\":\"hi\"}",
            1,
            &["not valid JSON"],
        ),
        (b"[] []", 1, &["not valid JSON", "trailing"]),
        (
            b"[{\"role\":\"user\",\"content\":\"\xff\"}]",
            1,
            &["not UTF-8", "byte 27", "save it as UTF-8"],
        ),
        (b"42", 1, &["expected an array of messages", "got number"]),
        (
            b"{\"msgs\":[]}",
            1,
            &["messages: expected an array", "got nothing"],
        ),
        (
            b"{\"messages\":\"hi\"}",
            1,
            &["messages: expected", "got string"],
        ),
        (
            b"{\"messages\":[],\"tools\":{}}",
            1,
            &["tools: expected array", "got object"],
        ),
        (
            b"{\"messages\":[],\"budget_tokens\":\"many\"}",
            1,
            &["budget_tokens", "a whole number", "many"],
        ),
        (
            b"{\"messages\":[],\"budget_tokens\":-3}",
            1,
            &["budget_tokens", "-3"],
        ),
        (
            b"{\"messages\":[],\"budget_tokens\":1.5}",
            1,
            &["budget_tokens", "1.5"],
        ),
        (b"{\"messages\":[],\"budget_tokens\":0}", 2, &["0 tokens"]),
    ];
    for (input, code, words) in cases {
        let args = ["compact", "--budget", "100", "--counter", "chars4"];
        let said = home.pipe(args, input);
        said.refused(*code, words);
        assert_eq!(said.out, "");
    }
}

/// A value of a wrong type is no reason to give up: it is written as the API requires, and that is said.
#[test]
fn odd_messages_are_repaired_and_it_is_said() {
    let home = Home::new();
    for (input, place, left) in [
        (
            "[3]",
            "messages[0]: ",
            json!([{"role": "user", "content": "3"}]),
        ),
        (
            r#"[{"role":"user","content":"a"},{"role":"user","content":7}]"#,
            "messages[1]: wrote it in the form",
            json!([{"role": "user", "content": "a"}, {"role": "user", "content": "7"}]),
        ),
        (
            r#"[{"role":"robot","content":"x"}]"#,
            "messages[0]: wrote it in the form",
            json!([{"role": "user", "content": "x"}]),
        ),
        (
            r#"[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":1}]}]"#,
            "messages[1]: it says nothing; dropped it",
            json!([{"role": "user", "content": "a"}]),
        ),
    ] {
        let said = home.pipe(["compact", "--budget", "100"], input).done();
        let out: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(out, left);
        let words = format!("plimsoll: repaired: {place}");
        assert!(said.err.contains(&words), "{}", said.err);
    }
}

#[test]
fn what_cannot_fit_has_a_code_of_its_own_and_says_the_least() {
    let home = Home::new();
    let chat = json!(messages(5)).to_string();
    let said = home.pipe(["compact", "--budget", "20"], &chat);
    said.refused(
        4,
        &[
            "cannot be made smaller than",
            "only 20 are allowed",
            "allow at least",
        ],
    );
    assert_eq!(said.out, "");
    // The least that is named is enough.
    let least = said.err.split("allow at least ").nth(1).unwrap();
    let least = least.split(',').next().unwrap();
    home.pipe(["compact", "--budget", least], &chat).done();
}

#[test]
fn wrong_calls_name_the_right_ones() {
    let home = Home::new();
    let hi = "[{\"role\":\"user\",\"content\":\"hi\"}]";
    home.pipe(["compact"], hi)
        .refused(2, &["--budget TOKENS", "budget_tokens"]);
    home.pipe(["compact", "--budget", "0"], hi)
        .refused(2, &["0 tokens"]);
    home.run(["compact", "--budget", "9", "none.json"])
        .refused(2, &["none.json cannot be read"]);
    home.run(["compact", "--budget", "9", "."])
        .refused(2, &["is a directory", "name a file"]);
    for args in [
        &["compact", "--budget", "many"][..],
        &["compact", "--limit", "3"],
        &["shrink"],
        &[],
    ] {
        let said = home.pipe(args, hi);
        assert_eq!(said.code, Some(2), "{args:?}");
        assert!(
            said.err.contains("--help") || said.err.contains("Usage"),
            "{}",
            said.err
        );
    }
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let home = Home::new();
    let chat = json!(messages(200)).to_string();
    let mut command = home.command(["compact", "--budget", "900000"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), chat.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(141), "{err}");
    assert_eq!(err, "");
}

#[test]
fn a_gigabyte_is_refused_by_its_named_limit() {
    // Made as it is read, and never held by the test; the command stops reading at the limit.
    let home = Home::new();
    let endless = std::io::repeat(b'x').take(1 << 30);
    let said = feed_from(home.command(["compact", "--budget", "100"]), endless);
    said.refused(1, &["larger than the limit of 256 MiB", "split it"]);
    assert_eq!(said.out, "");
}

#[test]
fn an_overlong_line_is_passed_over() {
    let home = Home::new();
    let overlong = std::io::repeat(b'x').take((256 << 20) + 1);
    let input = overlong.chain(Cursor::new("\n[]\n"));
    let said = feed_from(
        home.command(["compact", "--lines", "--budget", "100"]),
        input,
    );
    assert_eq!(said.code, Some(1));
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with("{\"error\":") && lines[0].contains("256 MiB"));
    assert_eq!(lines[1], "[]");
}
