//! Invalid input to `plimsoll acp`: each gives one error of the protocol, and nothing else is
//! written to standard output.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use super::command::{Home, with};
use super::fake::{Fake, FakeAnswer};

fn initialize() -> String {
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    request(0, "initialize", params)
}

fn request(id: u64, method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
}

/// What is answered to the first line, and then to the others.
fn answers(home: &Home, fake: &Fake, lines: &[String]) -> Vec<Value> {
    let mut args = with(fake, &["--max-context", "20000"]);
    args[0] = "acp".to_owned();
    let mut child = home
        .command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    let (first, others) = lines.split_first().unwrap();
    writeln!(stdin, "{first}").unwrap();
    let first = answers.next().unwrap();
    let others = others.iter().map(|line| line.clone() + "\n");
    stdin
        .write_all(others.collect::<String>().as_bytes())
        .unwrap();
    drop(stdin);
    let answers: Vec<Value> = std::iter::once(first)
        .chain(answers)
        .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
        .collect();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    answers
}

#[test]
fn what_is_wrong_is_answered_by_one_error_that_says_what_helps() {
    let (home, fake) = (Home::new(), Fake::new([FakeAnswer::say("x")]));
    let work = home.work();
    let sse = json!({"type": "sse", "name": "x", "url": "http://127.0.0.1:1", "headers": []});
    for (method, params, code, words) in [
        (
            "session/new",
            json!({"cwd": "src", "mcpServers": []}),
            -32602,
            "src is not a folder; give the absolute path",
        ),
        (
            "session/new",
            json!({"cwd": work.join("none"), "mcpServers": []}),
            -32602,
            "none is not a folder",
        ),
        (
            "session/new",
            json!({"cwd": work, "mcpServers": [sse]}),
            -32602,
            "a transport that is not supported",
        ),
        (
            "session/load",
            json!({"sessionId": "none", "cwd": work, "mcpServers": []}),
            -32002,
            "there is no session none",
        ),
        (
            "session/load",
            json!({"sessionId": "../x", "cwd": work, "mcpServers": []}),
            -32602,
            "../x",
        ),
        (
            "session/prompt",
            json!({"sessionId": "none", "prompt": [{"type": "text", "text": "Hello."}]}),
            -32002,
            "no session none is open",
        ),
        (
            "session/set_mode",
            json!({"sessionId": "none", "modeId": "yes"}),
            -32002,
            "no session none is open",
        ),
        (
            "session/new",
            json!({"mcpServers": []}),
            -32602,
            "Invalid params",
        ),
        ("session/what", json!({}), -32601, "Method not found"),
    ] {
        let lines = [initialize(), request(1, method, params)];
        let answers = answers(&home, &fake, &lines);
        let errors: Vec<&Value> = answers.iter().filter(|line| line["id"] == 1).collect();
        assert_eq!(errors.len(), 1, "{method}: {answers:?}");
        let error = &errors[0]["error"];
        assert_eq!(error["code"], code, "{method}: {error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(words), "{method}: {message}");
    }
    assert!(fake.asked().is_empty());
}

#[test]
fn a_line_that_is_no_message_is_answered_and_the_next_one_read() {
    let (home, fake) = (Home::new(), Fake::new([]));
    let lines = [
        "hello".to_owned(),
        String::new(),
        "[]".to_owned(),
        "{\"jsonrpc\": \"2.0\", \"id\": 7".to_owned(),
        initialize(),
    ];
    let answers = answers(&home, &fake, &lines);
    let codes: Vec<i64> = answers
        .iter()
        .filter_map(|line| line["error"]["code"].as_i64())
        .collect();
    assert_eq!(codes.iter().filter(|code| **code == -32700).count(), 2);
    assert_eq!(codes.iter().filter(|code| **code == -32600).count(), 1);
    assert!(
        answers
            .iter()
            .any(|line| line["result"]["protocolVersion"] == 1)
    );
}

#[test]
fn the_editor_names_the_folder() {
    let home = Home::new();
    let said = home.run(["acp", "--root", "."]);
    said.refused(2, &["an editor names a folder", "--root"]);
}

#[test]
fn nothing_is_done_before_the_connection_is_initialized() {
    let (home, fake) = (Home::new(), Fake::new([]));
    let new = json!({"cwd": home.work(), "mcpServers": []});
    let lines = [
        request(1, "session/new", new.clone()),
        request(2, "session/list", json!({})),
        initialize(),
        request(3, "session/new", new),
    ];
    let answers = answers(&home, &fake, &lines);
    for refused in &answers[..2] {
        let error = &refused["error"];
        assert_eq!(error["code"], -32600, "{refused}");
        assert!(
            error["message"]
                .as_str()
                .unwrap()
                .contains("send initialize first")
        );
    }
    let opened = answers.iter().find(|line| line["id"] == 3).unwrap();
    assert!(opened["result"]["sessionId"].is_string(), "{opened}");
}

#[test]
fn a_burst_to_a_session_is_answered_in_its_order() {
    let (home, fake) = (Home::new(), Fake::new([FakeAnswer::say("Hello.")]));
    home.agent(&fake, &["--session", "one", "Hello."]).done();
    let load = json!({"sessionId": "one", "cwd": home.work(), "mcpServers": []});
    let mode = json!({"sessionId": "one", "modeId": "yes"});
    let requests = [
        ("session/set_mode", mode.clone()),
        ("session/load", load.clone()),
        ("session/set_mode", mode.clone()),
        ("session/close", json!({"sessionId": "one"})),
        ("session/set_mode", mode),
        ("session/load", load),
    ];
    let requests = (1..).zip(requests);
    let requests = requests.map(|(id, (method, params))| request(id, method, params));
    let lines: Vec<String> = [initialize()].into_iter().chain(requests).collect();
    let answers = answers(&home, &fake, &lines);
    let ids = answers.iter().filter_map(|line| line["id"].as_u64());
    assert_eq!(ids.collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
}
