//! Runs against a strict mock server that plays a script, as the program `plimsoll-mock` does.

use plimsoll::providers::responses_profile;
use plimsoll_mock::{Mock, RecordedRequest, RequestTotals, Script, Server};
use tokio::runtime::Runtime;

use super::command::{CommandOutput, Home};

/// A mock server under way; it ends with its owner.
pub(crate) struct MockServer {
    server: Server,
    /// Runs the server.
    _runtime: Runtime,
}

impl MockServer {
    pub(crate) fn start(mock: Mock, script: &str) -> Self {
        let mock = mock.script(Script::parse(script).unwrap());
        let runtime = Runtime::new().unwrap();
        let server = runtime.block_on(Server::start(mock)).unwrap();
        Self {
            server,
            _runtime: runtime,
        }
    }

    /// The base URL for the client.
    pub(crate) fn address(&self) -> String {
        self.server.base_url()
    }

    /// The last of this many requests, none of them refused.
    fn last_of(&self, asked: u64) -> RecordedRequest {
        assert_eq!(self.server.tally(), RequestTotals { asked, refused: 0 });
        self.server.requests().pop().unwrap()
    }
}

#[test]
fn an_agent_runs_against_a_window() {
    let home = Home::new();
    home.file("a.txt", "hello");
    let turns = "{\"call\": [{\"name\": \"read\", \"arguments\": {\"path\": \"a.txt\"}}]}\n{\"say\": \"It says hello.\"}\n";
    let mock = MockServer::start(Mock::chat("openai").unwrap().window(32_000), turns);
    let run = [
        "run",
        "--model",
        "openai-compatible/m",
        "--base-url",
        &mock.address(),
        "What does a.txt say?",
    ];
    let said = home.run(run).done();
    assert_eq!(said.out.trim(), "It says hello.");
    assert!(said.err.contains("window 32000"), "{}", said.err);
    let last = mock.last_of(2);
    assert_eq!(last.status, 200);
    assert!(last.body["messages"].to_string().contains("hello"));
}

/// Thinks, calls two tools at once, thinks again and answers.
const TURNS: &str = r#"{"think": "Both \"at once\".", "redacted": true, "say": "I look.", "call": [{"name": "read", "arguments": {"path": "a.txt"}}, {"name": "list", "arguments": {}}]}
{"think": "So.", "say": "It says hello."}
{"say": "Still.", "repeat": true}
"#;

#[test]
fn every_protocol_of_a_model_name_can_be_run_against() {
    let responses = || Mock::responses_by(responses_profile);
    for (mock, protocol, model, key) in [
        (
            Mock::messages(),
            "anthropic",
            "claude-sonnet-4-5",
            "ANTHROPIC_API_KEY",
        ),
        (
            Mock::messages(),
            "anthropic",
            "claude-opus-5-5",
            "ANTHROPIC_API_KEY",
        ),
        (responses(), "openai-responses", "gpt-5", "OPENAI_API_KEY"),
        (
            Mock::chat("openai").unwrap(),
            "openai",
            "gpt-4.1",
            "OPENAI_API_KEY",
        ),
    ] {
        let home = Home::new();
        home.file("a.txt", "hello");
        let mock = MockServer::start(mock, TURNS);
        let url = mock.address();
        let name = format!("{protocol}/{model}");
        let run = |task: &str| {
            let mut command = home.command(["run", "--model", &name, "--thinking-level", "high"]);
            let rest = ["--base-url", &url, "--session", "s", task];
            command.args(rest).env(key, "any");
            CommandOutput::of(command.output().unwrap()).done()
        };
        assert_eq!(
            run("What does a.txt say?").out.trim(),
            "It says hello.",
            "{name}"
        );
        assert_eq!(run("Sure?").out.trim(), "Still.", "{name}");
        let sent = mock.last_of(3).body.to_string();
        let thought = match protocol {
            "anthropic" => "\"signature\":\"simulated-",
            "openai-responses" => "\"encrypted_content\":\"gAAAAsimulated-",
            _ => "hello",
        };
        assert!(sent.contains(thought), "{name}: thinking went back: {sent}");
    }
}
