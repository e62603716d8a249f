//! The program as its user starts it: an address on standard output, Ctrl-C at the end, a summary.
#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use plimsoll_testkit::ChildGuard;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn program(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll-mock"));
    command.current_dir(folder).args(args).stdin(Stdio::null());
    command
}

/// Serves one request and returns its answer and what the program printed.
async fn served(folder: &Path, args: &[&str], path: &str, body: &Value) -> (u16, Output) {
    let mut child = program(folder, args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let child = ChildGuard::new(child);
    let mut address = String::new();
    out.read_line(&mut address).unwrap();
    let url = format!("{}{path}", address.trim());
    let _ = rustls::crypto::ring::default_provider().install_default();
    let answer = reqwest::Client::new().post(url).body(body.to_string());
    let status = answer.send().await.unwrap().status().as_u16();
    let mut child = child.release();
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    child.stdout = Some(out.into_inner());
    (status, child.wait_with_output().unwrap())
}

#[tokio::test]
async fn the_requests_are_printed_and_recorded_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("turns.jsonl"), "{\"say\": \"Hi.\"}\n").unwrap();
    let args = [
        "--script",
        "turns.jsonl",
        "--window",
        "32000",
        "--json",
        "--record",
        "requests",
    ];
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "Hello?"}]});
    let (status, printed) = served(folder.path(), &args, "/chat/completions", &body).await;
    let (out, err) = (text(&printed.stdout), text(&printed.stderr));
    assert_eq!((status, printed.status.code()), (200, Some(0)), "{err}");
    let request: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(request["status"], 200);
    assert_eq!(request["fault"], Value::Null);
    assert_eq!(request["body"], body);
    assert_eq!(
        err,
        "openai (openai) │ window 32000 │ 1 turn │ Ctrl-C stops it\n\
         1 request, 0 of them refused, 0 turns left\n"
    );
    let recorded = folder.path().join("requests/0001-v1-chat-completions.json");
    assert_eq!(std::fs::read_to_string(recorded).unwrap(), body.to_string());
}

#[tokio::test]
async fn responses_are_refused_by_the_rules_of_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["--protocol", "openai-responses"];
    let body = json!({"model": "gpt-5-pro", "input": "Hi.", "reasoning": {"effort": "low"}});
    let (status, printed) = served(folder.path(), &args, "/responses", &body).await;
    assert_eq!(status, 400);
    let err = text(&printed.stderr);
    assert!(err.contains("1 request, 1 of them refused"), "{err}");
}

#[test]
fn bad_arguments_are_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let bad = "{\"say\": \"a\"}\n{\"sya\": \"b\"}\n";
    std::fs::write(folder.path().join("bad.jsonl"), bad).unwrap();
    let rows: [(&[&str], &[&str]); 9] = [
        (
            &["--script", "bad.jsonl"],
            &["line 2 of the script", "unknown field `sya`"],
        ),
        (
            &["--dialect", "opanai"],
            &["invalid value 'opanai'", "a similar value exists: 'openai'"],
        ),
        (
            &["--protocol", "anthropic", "--dialect", "vllm"],
            &["`--dialect vllm` is for `--protocol openai`"],
        ),
        (
            &["--protocol", "converse"],
            &["[possible values: openai, openai-responses, anthropic, gemini]"],
        ),
        (&["--in-stream"], &["--window <TOKENS>"]),
        (&["--script", "nothing.jsonl"], &["nothing.jsonl"]),
        (&["--window", "abc"], &["invalid value 'abc'"]),
        (&["--window=-5"], &["invalid value '-5'"]),
        (&["--tokens-per-minute", "0"], &["0 is not in 1.."]),
    ];
    for (args, words) in rows {
        let output = program(folder.path(), args).output().unwrap();
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
        for word in words {
            assert!(err.contains(word), "{args:?}: no `{word}` in {err}");
        }
        assert!(!err.contains("panicked"), "{err}");
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
