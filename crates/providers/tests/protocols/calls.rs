//! Calls of each protocol's client against a strict server: the case files in `tests/cases`.
//!
//! The lines of a case are carried out in their order:
//!
//! - `model` and `client` describe the client ([`Options`]).
//! - `request` changes the settings of the request, and `-` adds a message. Without messages, the request has the
//!   standard history.
//! - `answer` is the server's answer to the next call ([`Answer`]), and makes the call.
//! - `grow` adds the last reply, results of its calls and, behind it, a message of the user to the request. Before
//!   that, the request goes through JSON, as a session keeps it.
//!
//! The outcome of a call is its request, unless it is the same as before: the path, the headers that a protocol
//! decides, and the body; then the pieces and the reply, or the failure.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_agent::{Failure, Request, ToolChoice};
use plimsoll_context::{Delta, Message, Reply, Tokens};
use plimsoll_providers::{ModelBook, ModelClient, ModelRef, Origin, Secret, Timeouts, Wire};
use plimsoll_testkit::cases::{self, Case};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::eventstream;
use super::fake::{Fake, FakeAnswer, Judge};
use super::{KEY, answered, call, judge, request, request_of};

/// The options of a client.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    /// The end of the base URL, behind the address of the server.
    base: String,
    headers: Map<String, Value>,
    extra: Map<String, Value>,
    /// A row of the user's table of models.
    facts: Option<String>,
    /// Gives up on silence at once.
    hasty: bool,
    keyless: bool,
    /// The model by whose rules the server judges, if it is not the client's.
    server: Option<String>,
}

/// An answer of the server.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Answer {
    status: Option<u16>,
    headers: Map<String, Value>,
    /// A body: a text, or JSON.
    body: Option<Value>,
    /// Server-sent events: texts, or JSON.
    events: Vec<Value>,
    /// Whether the events have their types as names.
    named: bool,
    /// The blocks of a reply of Converse, its reason and its usage.
    blocks: Vec<Value>,
    reason: Option<String>,
    usage: Option<Value>,
    /// The number of frames of this reply that are sent.
    frames: Option<usize>,
    /// An exception of Converse after the frames: its type and its message.
    exception: Option<(String, String)>,
    bytewise: bool,
    cut: bool,
    hang: bool,
}

#[test]
fn each_call_has_its_outcome() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    for protocol in ["chat", "responses", "messages", "gemini", "converse"] {
        cases::check(&folder.join(format!("{protocol}.txt")), |case| {
            runtime.block_on(calls(case))
        });
    }
}

/// The calls of a case.
struct Calls {
    fake: Fake,
    client: ModelClient,
    request: Request,
    last: Option<Reply>,
    /// The lines of the last request.
    sent: Vec<String>,
    outcome: Vec<String>,
}

async fn calls(case: &Case) -> Vec<String> {
    let model = case.get("model").unwrap();
    let options = case.get("client").unwrap_or("{}");
    let options: Options = serde_json::from_str(options).unwrap();
    let script: Vec<FakeAnswer> = case.json("answer").into_iter().map(answer).collect();
    let judge = judge(options.server.as_deref().unwrap_or(model));
    let over = |_: &Value| FakeAnswer::new(500, "the script has ended");
    let fake = Fake::answering(judge, script, Box::new(over)).await;
    let messages: Vec<Message> = case.json("-").into_iter().map(read).collect();
    let mut calls = Calls {
        client: client(model, &options, &fake),
        fake,
        request: if messages.is_empty() {
            request()
        } else {
            request_of(messages)
        },
        last: None,
        sent: Vec::new(),
        outcome: Vec::new(),
    };
    for (key, value) in case.input() {
        match key {
            "request" => change(&mut calls.request, &cases::json(value)),
            "grow" => calls.grow(value),
            "answer" if options.hasty => calls.hasty_call().await,
            "answer" => calls.call().await,
            _ => {}
        }
    }
    for line in &mut calls.outcome {
        *line = line
            .replace(&calls.fake.address, "ADDRESS")
            .replace('\n', "\\n");
        // The library for HTTP says why, in words of its own.
        if let Some((before, _)) = line.split_once(" was cut in the middle: ") {
            *line = format!("{before} was cut in the middle");
        }
        assert!(!line.starts_with("says ") || !line.contains(KEY), "{line}");
    }
    calls.outcome
}

impl Calls {
    fn grow(&mut self, question: &str) {
        let mut grown = answered(&self.request, self.last.as_ref().unwrap());
        let kept = grown.messages.iter();
        let kept: Vec<Message> = kept.map(|message| read(json!(**message))).collect();
        grown.messages = Arc::new(kept.into_iter().map(Arc::new).collect());
        if !question.is_empty() {
            Arc::make_mut(&mut grown.messages).push(Message::user(question).into());
        }
        self.request = grown;
    }

    async fn call(&mut self) {
        let before = self.fake.asked().len();
        let (result, deltas) = call(&self.client, &self.request).await;
        let asked = self.fake.asked();
        assert_eq!(asked.len(), before + 1, "nothing is retried here");
        let lines = told(&asked[before]);
        if lines != self.sent {
            self.outcome.extend(lines.iter().cloned());
            self.sent = lines;
        }
        self.outcome.extend(deltas.iter().map(piece));
        match &result {
            Ok(reply) => self.outcome.extend(reply_lines(reply)),
            Err(failure) => {
                let line = format!("{}: {failure:?}", again(failure));
                self.outcome.extend([line, format!("says {failure}")]);
            }
        }
        self.last = result.ok();
    }

    /// Makes a call that gives up on silence. How much comes before that may differ from run to run.
    async fn hasty_call(&mut self) {
        match call(&self.client, &self.request).await.0 {
            Ok(reply) => self.outcome.extend(reply_lines(&reply)),
            Err(failure) => {
                assert!(failure.to_string().contains("0.03 s"), "{failure}");
                self.outcome.push(format!("{}: silence", again(&failure)));
            }
        }
    }
}

fn again(failure: &Failure) -> &'static str {
    if failure.is_retryable() {
        "may pass"
    } else {
        "is final"
    }
}

fn client(model: &str, options: &Options, fake: &Fake) -> ModelClient {
    let key = if options.keyless { "" } else { KEY };
    let mut builder = ModelClient::builder(model)
        .base_url(format!("{}{}", fake.address, options.base))
        .key(Secret::new(key))
        .extra(options.extra.clone());
    for (name, value) in &options.headers {
        builder = builder.header(name, Secret::new(value.as_str().unwrap()));
    }
    if let Some(row) = &options.facts {
        let (vendor, name) = model.split_once('/').unwrap();
        let row = format!("[{vendor}.\"{name}\"]\n{row}");
        let book = ModelBook::parse(&row, Origin::Configuration).unwrap();
        builder = builder.facts(book.facts(&model.parse::<ModelRef>().unwrap()));
    }
    if options.hasty {
        builder = builder.timeouts(Timeouts {
            idle: Duration::from_millis(30),
            ..Timeouts::default()
        });
    }
    if matches!(judge(model), Judge::Chat(_)) {
        builder = builder.wire(Wire::Chat);
    }
    builder.build_with(&|_| None).unwrap()
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// Changes the settings of a request.
fn change(request: &mut Request, settings: &Value) {
    for (key, value) in settings.as_object().unwrap() {
        let value = value.clone();
        match key.as_str() {
            "context" => request.dynamic_context = read(value),
            "max_output" => request.max_output = read::<Option<u64>>(value).map(Tokens),
            "tools" if value == json!([]) => request.tools = [].into(),
            "choice" => request.tool_choice = read::<ToolChoice>(value),
            "cache" => request.cache = read(value),
            "thinking" => request.sampling.thinking = read(value),
            other => panic!("no setting {other}"),
        }
    }
}

fn answer(value: Value) -> FakeAnswer {
    let answer: Answer = read(value);
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let mut reply = if let Some(reason) = &answer.reason {
        let usage = answer
            .usage
            .unwrap_or(json!({"inputTokens": 20, "outputTokens": 50,
            "cacheReadInputTokens": 950, "cacheWriteInputTokens": 30, "totalTokens": 1050}));
        let mut frames = eventstream::reply(&answer.blocks, reason, &usage);
        frames.truncate(answer.frames.unwrap_or(frames.len()));
        if let Some((kind, message)) = &answer.exception {
            frames.push(eventstream::exception(kind, message));
        }
        eventstream::stream(frames)
    } else if let Some(body) = &answer.body {
        FakeAnswer::new(answer.status.unwrap_or(200), text(body))
    } else if answer.named {
        let event = |event: &Value| {
            let name = event["type"].as_str().unwrap_or_default();
            format!("event: {name}\ndata: {event}\n\n").into_bytes()
        };
        let events = answer.events.iter().map(event).collect();
        FakeAnswer::bytes(events).header("content-type", "text/event-stream")
    } else {
        let events: Vec<String> = answer.events.iter().map(text).collect();
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        FakeAnswer::events(&events)
    };
    for (name, value) in answer.headers {
        reply = reply.header(name, value.as_str().unwrap());
    }
    if answer.bytewise {
        reply = reply.bytewise();
    }
    if answer.cut {
        reply = reply.then_cut();
    }
    if answer.hang {
        reply = reply.then_hang();
    }
    reply
}

/// Returns the lines of a request: the headers that the protocol or the client decides, and the body.
fn told(asked: &super::fake::ReceivedRequest) -> Vec<String> {
    const GENERAL: [&str; 5] = [
        "host",
        "accept",
        "content-length",
        "user-agent",
        "connection",
    ];
    let query = if asked.query.is_empty() { "" } else { "?" };
    let mut lines = vec![format!("sent {}{query}{}", asked.path, asked.query)];
    for (name, value) in &asked.headers {
        if !GENERAL.contains(&name.as_str()) {
            lines.push(format!("header {name}: {}", value.to_str().unwrap()));
        }
    }
    lines.extend(
        asked
            .body
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("| {key} {value}")),
    );
    lines
}

fn piece(delta: &Delta) -> String {
    format!("piece {}", json!(delta))
}

fn reply_lines(reply: &Reply) -> Vec<String> {
    let model = reply.model.as_deref().unwrap_or("-");
    let usage = json!(reply.usage);
    let mut lines = vec![format!("reply {:?} of {model} {usage}", reply.stop)];
    lines.extend(
        reply
            .parts
            .iter()
            .map(|part| format!("part {}", json!(part))),
    );
    lines
}
