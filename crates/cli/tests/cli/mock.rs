//! `plimsoll mock`, and a run against it, as two processes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use plimsoll_testkit::ChildGuard;
use rustix::process::{Pid, Signal, kill_process};

use super::command::{CommandOutput, Home};

/// A mock server under way; it ends with its owner.
pub(crate) struct MockServer {
    child: ChildGuard,
    address: String,
}

impl MockServer {
    pub(crate) fn start(home: &Home, args: &[&str]) -> Self {
        let mut child = home
            .command(["mock"].iter().chain(args))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut address).unwrap();
        child.stdout = Some(out.into_inner());
        Self {
            child: ChildGuard::new(child),
            address: address.trim().to_owned(),
        }
    }

    /// The base URL for the client.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// What it says once it is interrupted.
    fn end(self) -> CommandOutput {
        let child = self.child.release();
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        CommandOutput::of(child.wait_with_output().unwrap())
    }
}

#[test]
fn an_agent_runs_against_it_and_it_says_what_it_was_asked() {
    let home = Home::new();
    home.file("a.txt", "hello");
    home.file(
        "turns.jsonl",
        "{\"call\": [{\"name\": \"read\", \"arguments\": {\"path\": \"a.txt\"}}]}\n{\"say\": \"It says hello.\"}\n",
    );
    let mock = MockServer::start(
        &home,
        &["--script", "turns.jsonl", "--window", "32000", "--json"],
    );
    let run = [
        "run",
        "--model",
        "openai-compatible/m",
        "--base-url",
        &mock.address,
        "What does a.txt say?",
    ];
    let said = home.run(run).done();
    assert_eq!(said.out.trim(), "It says hello.");
    assert!(said.err.contains("window 32000"), "{}", said.err);
    let ended = mock.end().done();
    assert!(
        ended.err.ends_with("0 of them refused, 0 turns left\n"),
        "{}",
        ended.err
    );
    let last = ended.out.lines().last().unwrap();
    let asked: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(asked["status"], 200);
    assert!(asked["body"]["messages"].to_string().contains("hello"));
}

/// Thinks, calls two tools at once, thinks again and answers.
const TURNS: &str = r#"{"think": "Both \"at once\".", "redacted": true, "say": "I look.", "call": [{"name": "read", "arguments": {"path": "a.txt"}}, {"name": "list", "arguments": {}}]}
{"think": "So.", "say": "It says hello."}
{"say": "Still.", "repeat": true}
"#;

#[test]
fn every_wire_that_a_model_is_named_by_can_be_run_against() {
    for (protocol, model, key) in [
        ("anthropic", "claude-sonnet-4-5", "ANTHROPIC_API_KEY"),
        ("anthropic", "claude-opus-5-5", "ANTHROPIC_API_KEY"),
        ("openai-responses", "gpt-5", "OPENAI_API_KEY"),
        ("openai", "gpt-4.1", "OPENAI_API_KEY"),
    ] {
        let home = Home::new();
        home.file("a.txt", "hello");
        home.file("turns.jsonl", TURNS);
        let mock = MockServer::start(
            &home,
            &["--protocol", protocol, "--script", "turns.jsonl", "--json"],
        );
        let name = format!("{protocol}/{model}");
        let run = |task: &str| {
            let mut command = home.command(["run", "--model", &name, "--thinking-level", "high"]);
            let rest = ["--base-url", &mock.address, "--session", "s", task];
            command.args(rest).env(key, "any");
            CommandOutput::of(command.output().unwrap()).done()
        };
        assert_eq!(
            run("What does a.txt say?").out.trim(),
            "It says hello.",
            "{name}"
        );
        assert_eq!(run("Sure?").out.trim(), "Still.", "{name}");
        let ended = mock.end().done();
        assert!(
            ended
                .err
                .ends_with("│ Ctrl-C stops it\n3 requests, 0 of them refused, 1 turn left\n"),
            "{}",
            ended.err
        );
        let last = ended.out.lines().last().unwrap();
        let asked: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(asked["fault"], serde_json::Value::Null);
        let sent = asked["body"].to_string();
        let thought = match protocol {
            "anthropic" => "\"signature\":\"simulated-",
            "openai-responses" => "\"encrypted_content\":\"gAAAAsimulated-",
            _ => "hello",
        };
        assert!(sent.contains(thought), "{name}: thinking went back: {sent}");
    }
}

#[test]
fn bad_settings_are_refused_with_a_reason() {
    let home = Home::new();
    home.file("bad.jsonl", "{\"say\": \"a\"}\n{\"sya\": \"b\"}\n");
    home.run(["mock", "--script", "bad.jsonl"])
        .refused(2, &["line 2 of the script", "unknown field `sya`"]);
    home.run(["mock", "--dialect", "opanai"]).refused(
        2,
        &["there is no dialect `opanai`", "did you mean `openai`?"],
    );
    home.run(["mock", "--protocol", "anthropic", "--dialect", "vllm"])
        .refused(2, &["`--dialect vllm` is for `--protocol openai`"]);
    for (args, words) in [
        (
            ["mock", "--protocol", "converse"].as_slice(),
            "[possible values: openai, openai-responses, anthropic, gemini]",
        ),
        (&["mock", "--in-stream"], "--window <TOKENS>"),
    ] {
        let said = home.run(args);
        assert_eq!(said.code, Some(2));
        assert!(said.err.contains(words), "{}", said.err);
    }
    home.run(["mock", "--script", "nothing.jsonl"])
        .refused(2, &["nothing.jsonl"]);
}
