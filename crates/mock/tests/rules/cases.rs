//! The case files in `tests/cases`: requests with the verdict of their server (`rules`), and transcripts with
//! the request that is rendered from them (`rendered`).
//!
//! `for` names the server (see [`Server::new`]). Further keys of a case are those of the request, or of
//! [`RenderInput`]; `-` adds a message to its list. `body` is a whole request, `betas` the header of Messages.
//! A verdict is `accepted`, or one line for each fault: the status and the code of its refusal, the rule, the
//! place, the message and, unless it is an invalid request, what a client takes the refusal for. `refusal` adds
//! the body of the first refusal. A rendered body may be broken into lines anywhere outside a text. `reads` reads it
//! back.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plimsoll_context::{CachePlan, Message, Opaque, ToolSpec};
use plimsoll_mock::rules::Fault;
use plimsoll_testkit::cases::{self, Case};
use plimsoll_wire::openai_chat::Dialect;
use plimsoll_wire::overflow::{Verdict, classify};
use plimsoll_wire::{Effort, RenderInput, ToolChoice};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::server::Server;

const PROTOCOLS: [&str; 5] = ["chat", "responses", "messages", "gemini", "converse"];

fn file(name: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.join("tests/cases").join(name)
}

fn server(protocol: &str, case: &Case) -> Server {
    Server::new(protocol, case.get("for").expect("a server"))
}

/// Returns the request of a case.
fn request(server: &Server, case: &Case) -> Value {
    if let Some(body) = case.get("body") {
        return cases::json(body);
    }
    let mut request = Map::new();
    for (key, value) in case.input() {
        if !["for", "betas", "refusal", "-"].contains(&key) {
            request.insert(key.to_owned(), cases::json(value));
        }
    }
    let messages = case.json("-");
    if !messages.is_empty() {
        request.insert(server.list().to_owned(), messages.into());
    }
    Value::Object(request)
}

fn told(server: &Server, fault: &Fault) -> String {
    let (status, body) = server.refusal(fault);
    let code = body.pointer("/error/code").or_else(|| body.get("code"));
    let code = code
        .and_then(Value::as_str)
        .map_or_else(String::new, |code| format!(" {code}"));
    let words = fault.words.replace('\n', "\\n");
    let verdict = match classify(Some(status), &body.to_string()) {
        Verdict::Invalid => String::new(),
        other => format!(" (for a client: {other:?})"),
    };
    format!(
        "{status}{code} {} {}: {words}{verdict}",
        fault.rule, fault.place
    )
}

#[test]
fn each_request_gets_the_verdict_of_its_server() {
    for protocol in PROTOCOLS {
        cases::check(&file(&format!("rules/{protocol}.txt")), |case| {
            let server = server(protocol, case);
            let betas = case.get("betas").unwrap_or_default();
            let faults = server.faults(&request(&server, case), betas);
            if faults.is_empty() {
                return vec!["accepted".to_owned()];
            }
            let told = faults.iter().map(|fault| told(&server, fault));
            let first = faults.first().filter(|_| case.get("refusal").is_some());
            let body = first.map(|fault| format!("body {}", server.refusal(fault).1));
            told.chain(body).collect()
        });
    }
}

#[test]
fn servers_that_copy_openai_ignore_unknown_settings() {
    let refused = |case: &Case| {
        let settings = case.name.starts_with("settings that OpenAI refuses");
        settings && case.expected != ["accepted"]
    };
    let cases = cases::read(&file("rules/chat.txt"));
    let cases: Vec<&Case> = cases.iter().filter(|case| refused(case)).collect();
    assert!(cases.len() > 20, "{}", cases.len());
    for name in Dialect::names().filter(|name| *name != "openai") {
        let server = Server::new("chat", name);
        for case in &cases {
            let faults = server.faults(&request(&server, case), "");
            assert_eq!(faults, [], "{name}: {}", case.name);
        }
    }
}

#[test]
fn every_dialect_has_its_request() {
    let cases = cases::read(&file("rendered/dialects.txt"));
    for name in Dialect::names() {
        let has_case = cases.iter().any(|case| case.get("for") == Some(name));
        assert!(has_case, "{name}");
    }
}

/// OpenAI's limit, in a request that is too long for a case.
#[test]
fn openai_refuses_more_than_128_tools() {
    let tool = json!({"type": "function", "function": {"name": "a"}});
    let tools = |count: usize| {
        json!({"model": "gpt-4.1", "tools": vec![tool.clone(); count],
        "messages": [{"role": "user", "content": "hi"}]})
    };
    let server = Server::new("chat", "openai");
    assert_eq!(server.faults(&tools(128), ""), []);
    let faults = server.faults(&tools(129), "");
    let words = "400 array_above_max_length shape tools: Invalid 'tools': array too long. Expected an \
                 array with maximum length 128, but got an array with length 129 instead.";
    assert_eq!(told(&server, &faults[0]), words);
}

/// A proxy may lose the status.
#[test]
fn a_refusal_of_pairs_is_understood_without_its_status() {
    let server = Server::new("responses", "openai");
    for case in cases::read(&file("rules/responses.txt")) {
        for fault in server.faults(&request(&server, &case), "") {
            let body = server.refusal(&fault).1;
            if matches!(fault.rule, "OR1" | "OR3" | "OR4") {
                assert_eq!(
                    classify(None, &body.to_string()),
                    Verdict::Invalid,
                    "{body}"
                );
            }
        }
    }
}

#[test]
fn every_rule_of_the_validators_has_a_case_that_breaks_it() {
    let files = PROTOCOLS.map(|protocol| cases::read(&file(&format!("rules/{protocol}.txt"))));
    let lines = files.iter().flatten().flat_map(|case| &case.expected);
    let words: BTreeSet<&str> = lines.flat_map(|line| line.split(' ').take(3)).collect();
    let rules = crate::rules::of_validators();
    let without: Vec<&&str> = rules
        .iter()
        .filter(|rule| !words.contains(**rule))
        .collect();
    assert_eq!(without, crate::rules::HELD_BY_TESTS_ALONE.each_ref());
}

#[test]
fn each_transcript_is_rendered_as_a_valid_request() {
    for (name, protocol) in [
        ("chat", "chat"),
        ("dialects", "chat"),
        ("responses", "responses"),
        ("messages", "messages"),
    ] {
        cases::check(&file(&format!("rendered/{name}.txt")), |case| {
            rendered(protocol, case)
        });
    }
}

/// Returns the request of a case, what was left out of it, and the rules that it breaks.
fn rendered(protocol: &str, case: &Case) -> Vec<String> {
    let server = server(protocol, case);
    let tools: Vec<ToolSpec> = setting(case, "tools").unwrap_or_default();
    let hosted: Vec<Opaque> = setting(case, "hosted_tools").unwrap_or_default();
    let cache: Option<CachePlan> = setting(case, "cache");
    let extra: Option<Value> = setting(case, "extra");
    let text = |key: &str| setting::<String>(case, key);
    let (model, system, context) = (text("model"), text("system"), text("context"));
    let input = RenderInput {
        model: model.as_deref().unwrap_or_default(),
        system: system.as_deref(),
        tools: &tools,
        hosted_tools: &hosted,
        tool_choice: case
            .get("tool_choice")
            .map_or(ToolChoice::Auto, |_| ToolChoice::None),
        max_output: setting(case, "max_output"),
        room: setting(case, "room"),
        effort: setting::<Effort>(case, "effort"),
        temperature: setting(case, "temperature"),
        seed: setting(case, "seed"),
        context: context.as_deref(),
        cache: cache.as_ref(),
        extra: extra.as_ref().and_then(Value::as_object),
    };
    let messages: Vec<Message> = match setting(case, "messages") {
        Some(messages) => messages,
        None => case.json("-").into_iter().map(read).collect(),
    };
    let request = server.render(&input, &messages);
    let body = String::from_utf8(request.body).unwrap();
    let mut lines = broken_into_lines(&body);
    // An expected body may have its line breaks elsewhere.
    let is_body = |line: &&String| line.starts_with("| ");
    let expected: Vec<String> = case.expected.iter().filter(is_body).cloned().collect();
    if joined(&expected) == body {
        lines = expected;
    }
    for note in &request.notes {
        let message = note
            .message
            .map_or_else(|| "-".to_owned(), |index| index.to_string());
        lines.push(format!("note {message} {:?}", note.what));
    }
    lines.extend(request.betas.iter().map(|beta| format!("beta {beta}")));
    let faults = server.faults(&cases::json(&body), &request.betas.join(","));
    lines.extend(
        faults
            .iter()
            .map(|fault| format!("breaks {}", told(&server, fault))),
    );
    if case.get("reads").is_some() {
        let back = server.read(&body).into_iter();
        lines.extend(
            back.map(|message| format!("reads {}", serde_json::to_string(&message).unwrap())),
        );
    }
    lines
}

fn setting<T: DeserializeOwned>(case: &Case, key: &str) -> Option<T> {
    case.get(key).map(|value| read(cases::json(value)))
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

fn joined(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| line.trim_start_matches("| "))
        .collect()
}

/// Breaks a JSON object before its keys and the entries of its lists.
fn broken_into_lines(body: &str) -> Vec<String> {
    let mut lines = vec!["| ".to_owned()];
    let (mut in_text, mut escaped) = (false, false);
    let mut open = Vec::new();
    for letter in body.chars() {
        lines.last_mut().unwrap().push(letter);
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            _ if in_text => {}
            '{' | '[' => open.push(letter),
            '}' | ']' => drop(open.pop()),
            _ => {}
        }
        let breaks = matches!(
            (letter, open.as_slice()),
            (',', ['{'] | ['{', '[']) | ('[', ['{', '['])
        );
        if breaks && !in_text {
            lines.push("| ".to_owned());
        }
    }
    lines
}
