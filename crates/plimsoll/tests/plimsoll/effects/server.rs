//! Keys for reaching a model, checked by a server on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll::config::Config;
use serde_json::Value;

/// Keys whose effect is tested here.
pub(crate) const KEYS: &[&str] = &[
    "model",
    "base_url",
    "tool_style",
    "connect_timeout",
    "idle_timeout",
    "summary.model",
    "mcp",
    "sandbox",
];

const ANSWER: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Aye.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// What a server does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Answers,
    Hangs,
}

/// Answers one chat, and says what it was asked: the head, and the body.
fn serve(manner: Manner) -> (String, JoinHandle<(String, Value, TcpStream)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        loop {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some(bytes) = line.to_lowercase().strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
                if line.trim().is_empty() {
                    break;
                }
                head += &line;
            }
            let mut stream = stream;
            if !head.starts_with("POST") {
                // It tells nothing of its models.
                let _ = stream.write_all(
                    b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
                continue;
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let body = serde_json::from_slice(&body).unwrap();
            match manner {
                Manner::Answers => {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
                        ANSWER.len()
                    );
                    let _ = stream.write_all(head.as_bytes());
                    let _ = stream.write_all(ANSWER.as_bytes());
                }
                // The connection stays open with what is given back.
                Manner::Hangs => {}
            }
            return (head, body, stream);
        }
    });
    (url, thread)
}

async fn run(text: &str) -> plimsoll::AgentOutput {
    let config = Config::parse(text).unwrap();
    let agent = config
        .defaults()
        .unwrap()
        .builder()
        .unwrap()
        .build()
        .unwrap();
    let output = agent.run("Hello.").await;
    output.or_else(plimsoll::Error::into_output).unwrap()
}

#[tokio::test]
async fn the_model_and_its_server_are_those_of_the_configuration() {
    for (style, has_tools) in [("native", true), ("json", false)] {
        let (url, thread) = serve(Manner::Answers);
        let text = format!(
            "model = \"mine/llama\"\nwindow = 9000\ntool_style = \"{style}\"\n[providers.mine]\nbase_url = \"{url}\"\napi_key = \"sk-0123456789\"\nheaders = {{ x-ship = \"Argo\" }}\n"
        );
        let output = run(&text).await;
        let (head, body, _) = thread.join().unwrap();
        assert_eq!(
            output.text,
            if has_tools {
                "Aye."
            } else {
                output.text.as_str()
            }
        );
        assert_eq!(body["model"], "llama");
        assert_eq!(body.get("tools").is_some(), has_tools, "{style}: {body}");
        let head = head.to_lowercase();
        assert!(
            head.contains("authorization: bearer sk-0123456789"),
            "{head}"
        );
        assert!(head.contains("x-ship: argo"), "{head}");
    }
    let (url, thread) = serve(Manner::Answers);
    let text = format!("model = \"vllm/m\"\nwindow = 9000\nbase_url = \"{url}\"\n");
    assert_eq!(run(&text).await.text, "Aye.");
    assert_eq!(thread.join().unwrap().1["model"], "m");
}

#[tokio::test]
async fn silence_is_given_up_when_the_configuration_says() {
    let (url, thread) = serve(Manner::Hangs);
    let began = Instant::now();
    let text = format!(
        "model = \"vllm/m\"\nwindow = 9000\nbase_url = \"{url}\"\nidle_timeout = 0.2\nretry.max_attempts = 1\nconnect_timeout = 9\n"
    );
    let output = run(&text).await;
    assert!(!output.reason.is_answer(), "{:?}", output.reason);
    assert!(
        began.elapsed() < Duration::from_secs(100),
        "300 s is the default"
    );
    thread.join().unwrap();
    let agent = Config::parse(&text).unwrap().defaults().unwrap();
    // What is handed to the HTTP client: no address on loopback is slow to connect to.
    assert_eq!(agent.settings().timeouts.connect, Duration::from_secs(9));
}

#[tokio::test]
async fn another_model_writes_summaries() {
    let (url, thread) = serve(Manner::Answers);
    let text = format!(
        "tools = \"none\"\ncontext_strategy = \"summarize\"\ntrigger = 8_000\nsummary.model = \"mine/small\"\n[providers.mine]\nbase_url = \"{url}\"\n"
    );
    let seen = super::scene::play(&text, super::Scene::Work(10)).await;
    assert_eq!(seen.error, "");
    let (_, body, _) = thread.join().unwrap();
    assert_eq!(body["model"], "small");
    assert!(
        seen.summaries().is_empty(),
        "the run's own model writes none"
    );
}

#[test]
fn an_agent_has_the_servers_that_it_names() {
    let servers =
        "[[mcp]]\nname = \"x\"\ncommand = \"cx\"\n[[mcp]]\nname = \"y\"\ncommand = \"cy\"\n";
    let of = |set: &str| {
        let text = format!("[[agents]]\nname = \"a\"\n{set}\n{servers}");
        let agent = Config::parse(&text).unwrap().agent("a").unwrap();
        let names = agent.mcp().into_iter().map(|server| server.name.clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(of(""), ["x", "y"]);
    assert_eq!(of("mcp = [\"y\"]"), ["y"]);
}

#[test]
fn a_sandbox_is_entered_by_a_launcher_or_refused() {
    let agent = |text: &str| Config::parse(text).unwrap().defaults().unwrap();
    assert_eq!(agent("tools = \"bash\"").tools().unwrap().len(), 1);
    let mut agent = agent("tools = \"bash\"\nsandbox = \"read-only\"");
    let error = agent.tools().err().unwrap().to_string();
    assert!(error.contains("needs a launcher"), "{error}");
    agent.sandbox_launcher(["launcher"]);
    match agent.tools() {
        Ok(tools) => {
            let told = &tools[0].spec().description;
            assert!(
                told.ends_with("It cannot write files or use the network."),
                "{told}"
            );
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.contains("offers no sandbox for commands"), "{error}");
        }
    }
}
