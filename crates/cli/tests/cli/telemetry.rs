//! The telemetry of a run at a collector, and the log. Neither contains any message unless
//! requested, nor any key.

use std::fs::File;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use super::collector::{Collector, SentSpan};
use super::command::{CommandOutput, Home, feed, with};
use super::fake::{Fake, FakeAnswer};

/// Stands in the task, in an argument and in a file.
const SAID: &str = "sentinel-4711";
/// The provider's key, and a header of the collector's.
const KEYS: [&str; 2] = ["key-of-the-provider", "key-of-the-collector"];

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
    let endpoint = collector.address.clone();
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
        assert!(collector.has_read(there), "{there}");
    }
    for never in [SAID, KEYS[0], KEYS[1], "It says so", "here it says"] {
        assert!(!collector.has_read(never), "{never}");
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

#[test]
fn spans_are_one_trace_with_their_kinds_states_and_events() {
    let (home, collector) = (Home::with_notes(), Collector::start());
    let fake = Fake::new([
        FakeAnswer::error(429, SAID).header("retry-after", "0"),
        FakeAnswer::call(&[
            ("read", r#"{"path":"notes.txt"}"#),
            ("read", r#"{"path":"none.txt"}"#),
            ("invented", "{}"),
        ]),
        FakeAnswer::say("It is there."),
    ]);
    let mut command = home.command(with(&fake, &["Look."]));
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address);
    feed(command, b"").done();
    let spans = collector.spans();
    let run = spans.iter().find(|span| span.name == "invoke_agent");
    let run = run.unwrap();
    assert!(run.parent.is_empty());
    assert_eq!((run.kind, run.status), (1, 0));
    let [(event, retry)] = &run.events[..] else {
        panic!("{:?}", run.events);
    };
    assert_eq!((&**event, &*retry["error.type"]), ("retry", "rate_limited"));
    for span in spans.iter().filter(|span| span.id != run.id) {
        assert_eq!((&span.trace, &span.parent), (&run.trace, &run.id));
    }
    let chats: Vec<_> = spans.iter().filter(|span| span.kind == 3).collect();
    let [refused, calling, answering] = &chats[..] else {
        panic!("{chats:?}");
    };
    assert_eq!((refused.status, calling.status), (2, 0));
    let reasons = |span: &SentSpan| span.attributes["gen_ai.response.finish_reasons"].clone();
    assert_eq!(reasons(calling), r#"["tool_call"]"#);
    assert_eq!(reasons(answering), r#"["stop"]"#);
    assert_eq!(collector.resource()["service.name"], "plimsoll");
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
    let endpoint = collector.address.clone();
    set(
        &mut command,
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint),
            ("PLIMSOLL_LOG", "trace"),
        ],
    );
    let said = feed(command, b"").done();
    assert!(collector.has_read("execute_tool ship_look"));
    assert!(!collector.has_read("starboard-hush"));
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
    let endpoint = format!("{}/v1/traces", collector.address);
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
        assert!(collector.has_read(there), "{there}");
    }
    assert!(!collector.has_read(KEYS[0]));
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
    for wrong in ["localhost:4318", "ftp://x", "no address at all"] {
        let wrong = told(&[("OTEL_EXPORTER_OTLP_ENDPOINT", wrong)]);
        assert!(wrong[0].contains("http://host:4318"), "{wrong:?}");
    }
    let log = run(&home, &[("PLIMSOLL_LOG", "plimsoll=loud")]);
    assert!(
        log.err.contains("PLIMSOLL_LOG cannot be read"),
        "{}",
        log.err
    );
}

/// What is full, on Linux.
#[cfg(target_os = "linux")]
#[test]
fn why_a_command_failed_is_said_before_a_collector_is_waited_for() {
    let home = Home::new();
    // It takes connections and never answers.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://user:pass-word@{}", dead.local_addr().unwrap());
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
        place("No space left on device") < place("not all spans were sent"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("pass-word"), "{}", said.err);
}
