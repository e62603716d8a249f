//! The telemetry of a run at a collector, and the log. Neither contains any message unless
//! requested, nor any key.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::command::{CommandOutput, Home, feed, with};
use super::fake::{Fake, FakeAnswer};

/// Stands in the task, in an argument and in a file.
const SAID: &str = "sentinel-4711";
/// The provider's key, and a header of the collector's.
const KEYS: [&str; 2] = ["key-of-the-provider", "key-of-the-collector"];

/// What was sent: heads and bodies.
type ReceivedRequests = Mutex<Vec<(String, Vec<u8>)>>;

/// Keeps every body that it is sent, with its path and headers.
struct Collector {
    address: String,
    kept: Arc<ReceivedRequests>,
    ended: Arc<AtomicBool>,
    accepting: Option<JoinHandle<()>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (kept, ended) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(AtomicBool::new(false)),
        );
        let (keeps, ends) = (Arc::clone(&kept), Arc::clone(&ended));
        let accepting = std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept()
                && !ends.load(Ordering::SeqCst)
            {
                let keeps = Arc::clone(&keeps);
                std::thread::spawn(move || while take(&stream, &keeps).is_some() {});
            }
        });
        Self {
            address,
            kept,
            ended,
            accepting: Some(accepting),
        }
    }

    fn reads(&self, text: &str) -> bool {
        let kept = self.kept.lock().unwrap();
        let has = |body: &[u8]| {
            body.windows(text.len())
                .any(|piece| piece == text.as_bytes())
        };
        kept.iter().any(|(_, body)| has(body))
    }

    fn heads(&self) -> Vec<String> {
        self.kept
            .lock()
            .unwrap()
            .iter()
            .map(|(head, _)| head.clone())
            .collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes it up.
        let _ = TcpStream::connect(&self.address);
        self.accepting.take().unwrap().join().unwrap();
    }
}

/// Takes one request; `None` where there is no more.
fn take(stream: &TcpStream, kept: &ReceivedRequests) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut size) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(length) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            size = length.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line);
    }
    let mut body = vec![0; size];
    reader.read_exact(&mut body).ok()?;
    kept.lock().unwrap().push((head, body));
    let mut stream = stream;
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        .ok()?;
    stream.shutdown(Shutdown::Both).ok()?;
    None
}

/// A run that reads a file, with these variables.
fn run(home: &Home, variables: &[(&str, &str)]) -> CommandOutput {
    home.file("secret.txt", format!("here it says {SAID}"));
    let arguments = format!("{{\"path\":\"secret.txt\",\"why\":\"{SAID}\"}}");
    let fake = Fake::new([
        FakeAnswer::call(&[("read", &arguments)]),
        FakeAnswer::say("It says so."),
    ]);
    let mut command = home.command(with(&fake, &[&format!("What is {SAID}?")]));
    command.env("OPENAI_COMPATIBLE_API_KEY", KEYS[0]);
    set(&mut command, variables);
    feed(command, b"").done()
}

fn set(command: &mut Command, variables: &[(&str, &str)]) {
    command.envs(variables.iter().copied());
}

#[test]
fn a_collector_is_sent_spans_and_nothing_that_was_said() {
    let (home, collector) = (Home::new(), Collector::start());
    let endpoint = format!("http://{}", collector.address);
    let headers = format!("x-key={}", KEYS[1]);
    let said = run(
        &home,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("OTEL_EXPORTER_OTLP_HEADERS", &headers),
            ("OTEL_SERVICE_NAME", "night-watch"),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "deployment.environment.name=harbour",
            ),
            ("PLIMSOLL_LOG", "trace"),
        ],
    );
    assert_eq!(said.out, "It says so.\n");
    let heads = collector.heads();
    assert!(!heads.is_empty());
    for head in &heads {
        assert!(head.contains("/v1/traces"), "{head}");
        assert!(
            head.contains("application/x-protobuf") && head.contains(KEYS[1]),
            "{head}"
        );
    }
    for there in [
        "invoke_agent",
        "execute_tool read",
        "chat ",
        "gen_ai.usage.input_tokens",
        "plimsoll.run",
        "server.port",
        "night-watch",
        "deployment.environment.name",
    ] {
        assert!(collector.reads(there), "{there}");
    }
    for never in [SAID, KEYS[0], KEYS[1], "It says so", "here it says"] {
        assert!(!collector.reads(never), "{never}");
    }
    let doubt = "there is no setting PLIMSOLL_LOG";
    assert!(!said.err.contains(doubt), "{}", said.err);
    // The log is what begins with a time.
    let logged: Vec<&str> = said
        .err
        .lines()
        .filter(|line| line.starts_with("20"))
        .collect();
    assert!(
        logged.iter().any(|line| line.contains("execute_tool")),
        "{}",
        said.err
    );
    for never in [SAID, KEYS[0], KEYS[1], "It says so"] {
        assert!(
            logged.iter().all(|line| !line.contains(never)),
            "{never}: {logged:?}"
        );
    }
}

/// The library that speaks to them logs what is said.
#[test]
fn nothing_that_a_server_of_tools_says_is_sent_or_logged() {
    use super::mcp::{CONFIG, NAMED, home};
    let (home, collector) = (home(CONFIG), Collector::start());
    let fake = Fake::new([
        FakeAnswer::call(&[("ship_look", "{}")]),
        FakeAnswer::say("Aye."),
    ]);
    let mut command = home.command(with(&fake, &[&NAMED[..], &["Look."]].concat()));
    let endpoint = format!("http://{}", collector.address);
    set(
        &mut command,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("PLIMSOLL_LOG", "trace"),
        ],
    );
    let said = feed(command, b"").done();
    assert!(collector.reads("execute_tool ship_look"));
    assert!(!collector.reads("starboard-hush"));
    let mut logged = said.err.lines().filter(|line| line.starts_with("20"));
    assert!(
        logged.all(|line| !line.contains("starboard-hush")),
        "{}",
        said.err
    );
}

#[test]
fn contents_are_sent_where_the_variable_asks_for_them() {
    let (home, collector) = (Home::new(), Collector::start());
    let endpoint = format!("http://{}/v1/traces", collector.address);
    run(
        &home,
        &[
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &endpoint),
            (
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
                "span_only",
            ),
        ],
    );
    for there in [
        SAID,
        "It says so.",
        "here it says",
        "gen_ai.tool.call.result",
    ] {
        assert!(collector.reads(there), "{there}");
    }
    assert!(!collector.reads(KEYS[0]));
}

#[test]
fn what_cannot_be_sent_is_said_once_and_changes_nothing() {
    let home = Home::new();
    let quiet = run(&home, &[]);
    assert!(!quiet.err.contains("spans"), "{}", quiet.err);
    let dead = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let dead = format!("http://{dead}");
    let told = |variables: &[(&str, &str)]| {
        let said = run(&home, variables);
        assert_eq!((said.code, &*said.out), (Some(0), "It says so.\n"));
        let told = said
            .err
            .lines()
            .filter(|line| line.contains("spans") || line.contains("OTEL"));
        told.map(str::to_owned).collect::<Vec<_>>()
    };
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", &*dead);
    let refused = told(&[endpoint]);
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(
        refused[0].contains("not all spans were sent"),
        "{refused:?}"
    );
    assert_eq!(told(&[endpoint, ("OTEL_SDK_DISABLED", "true")]), [""; 0]);
    let grpc = told(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert_eq!(grpc.len(), 1, "{grpc:?}");
    let wrong = told(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")]);
    assert!(wrong[0].contains("http://host:4318"), "{wrong:?}");
}

/// What is full, on Linux.
#[cfg(target_os = "linux")]
#[test]
fn why_a_command_failed_is_said_before_a_collector_is_waited_for() {
    let home = Home::new();
    // It takes connections and never answers.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", dead.local_addr().unwrap());
    let fake = Fake::new([FakeAnswer::say("It says so.")]);
    let mut command = home.command(with(&fake, &["--json", "What is it?"]));
    set(&mut command, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)]);
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command.stdin(Stdio::null()).stdout(full).output().unwrap();
    let said = CommandOutput::of(output);
    assert_eq!(said.code, Some(1), "{}", said.err);
    let place = |text: &str| {
        said.err
            .find(text)
            .unwrap_or_else(|| panic!("{}", said.err))
    };
    assert!(
        place("No space left on device") < place("no answer within 3 s"),
        "{}",
        said.err
    );
}
