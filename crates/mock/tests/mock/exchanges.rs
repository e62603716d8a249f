//! Exchanges of a client with a mock server: the case files in `tests/cases/exchanges`.
//!
//! `server` has the options of the server ([`Options`]), and each `turn` is a line of its script. The other keys
//! are requests, in their order:
//!
//! - `post {…}` sends a body to the path of the protocol, `post /path {…}` to another path.
//! - `again {"/pointer": value}` sends the last such body with other values. `"-"` removes a value.
//! - `get /path` asks about the server.
//! - `headers {…}` sets the headers of the requests after it.
//!
//! In a body, `{"times": 9, "text": "word "}` is a text that repeats another one, and `{"answer": 2, "at":
//! "/content"}` a value of the second answer.
//!
//! The outcome of a request is its status, its size, the broken rule if there is one, and the body: JSON, or one
//! line for each event of a stream. `reads` is the reading of Plimsoll's own client: the stop reason, the usage and
//! the parts of a reply, or the meaning of a refusal. The last line is the number of turns that are left.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_context::{Reply, Tokens};
use plimsoll_mock::{Mock, Server};
use plimsoll_testkit::cases::{self, Case};
use plimsoll_wire::StreamDecoder;
use plimsoll_wire::anthropic::MessagesStreamState;
use plimsoll_wire::gemini::GeminiStreamState;
use plimsoll_wire::openai_chat::{ChatStreamState, Dialect};
use plimsoll_wire::openai_responses::{ResponsesProfile, ResponsesStreamState};
use plimsoll_wire::overflow::{Verdict, classify};
use serde::Deserialize;
use serde_json::{Value, json};

/// The ends of the paths that only count tokens.
const COUNTS: [&str; 3] = ["countTokens", "count_tokens", "input_tokens"];

/// The options of a server.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Options {
    /// The dialect of Chat Completions.
    dialect: Option<String>,
    /// The profile of all models of Responses: `plain` or `compatible`.
    profile: Option<String>,
    /// A server of Messages that needs no key.
    keyless: bool,
    models: Vec<String>,
    window: Option<u64>,
    silent: bool,
    in_stream: bool,
    tokens_per_minute: Option<u64>,
    busy_every: Option<u64>,
    /// The size of every request.
    weighs: Option<u64>,
    /// Fixed answers by path.
    pages: BTreeMap<String, (u16, Value)>,
}

fn mock(protocol: &str, options: &Options) -> Mock {
    let profile = match options.profile.as_deref() {
        Some("plain") => ResponsesProfile::plain(),
        Some("compatible") => ResponsesProfile::compatible(),
        _ => ResponsesProfile::openai(),
    };
    let mut mock = match protocol {
        "chat" => Mock::chat(options.dialect.as_deref().unwrap_or("openai")).unwrap(),
        "responses" => Mock::responses_by(move |_| profile.clone()),
        "messages" if options.keyless => Mock::messages_without_keys(),
        "messages" => Mock::messages(),
        _ => Mock::gemini(),
    };
    if !options.models.is_empty() {
        mock = mock.models(options.models.clone());
    }
    if let Some(window) = options.window {
        mock = mock.window(window);
    }
    if options.silent {
        mock = mock.cuts_silently();
    }
    if options.in_stream {
        mock = mock.overflows_in_stream();
    }
    if let Some(tokens) = options.tokens_per_minute {
        mock = mock.tokens_per_minute(tokens);
    }
    if let Some(every) = options.busy_every {
        mock = mock.busy_every(every);
    }
    if let Some(tokens) = options.weighs {
        mock = mock.weighing(move |_| tokens);
    }
    for (path, (status, body)) in &options.pages {
        mock = mock.page(path, *status, body.clone());
    }
    mock
}

#[test]
fn each_exchange_has_its_outcome() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exchanges");
    for protocol in ["chat", "responses", "messages", "gemini"] {
        cases::check(&folder.join(format!("{protocol}.txt")), |case| {
            runtime.block_on(exchange(protocol, case))
        });
    }
}

async fn exchange(protocol: &str, case: &Case) -> Vec<String> {
    let options = case.get("server").unwrap_or("{}");
    let options: Options = serde_json::from_str(options).unwrap();
    let script: Vec<&str> = case.all("turn").collect();
    let server = super::server(mock(protocol, &options), &script.join("\n")).await;
    let mut headers = match protocol {
        "messages" => json!({"x-api-key": "k", "anthropic-version": "2023-06-01"}),
        _ => json!({}),
    };
    let mut sent = (String::new(), Value::Null);
    let mut answers = Vec::new();
    let mut outcome = Vec::new();
    for (key, value) in case.input() {
        let (status, text) = match key {
            "server" | "turn" => continue,
            "headers" => {
                headers = cases::json(value);
                continue;
            }
            "get" => super::fetch(&server, value, &pairs(&headers)).await,
            "post" => {
                let begin = value.find('{').unwrap();
                let path = match value[..begin].trim() {
                    "" => default_path(protocol),
                    path => path,
                };
                let body = filled(&cases::json(&value[begin..]), &answers);
                sent = (path.to_owned(), body);
                super::post(&server, path, &pairs(&headers), &sent.1).await
            }
            "again" => {
                let mut body = sent.1.clone();
                for (pointer, value) in cases::json(value).as_object().unwrap() {
                    change(&mut body, pointer, filled(value, &answers));
                }
                super::post(&server, &sent.0, &pairs(&headers), &body).await
            }
            other => panic!("no request {other}"),
        };
        told(&mut outcome, &server, status, &text);
        let is_count = COUNTS.iter().any(|end| sent.0.ends_with(end));
        if key != "get" && !is_count {
            outcome.extend(reads(protocol, status, &text));
        }
        answers.push(serde_json::from_str(&text).unwrap_or(Value::Null));
    }
    outcome.push(format!("left {}", server.turns_left()));
    outcome
}

fn default_path(protocol: &str) -> &'static str {
    match protocol {
        "chat" => "/v1/chat/completions",
        "responses" => "/v1/responses",
        "messages" => "/v1/messages",
        _ => "/v1beta/models/gemini-3-pro-preview:generateContent",
    }
}

fn pairs(headers: &Value) -> Vec<(&str, &str)> {
    let headers = headers.as_object().unwrap().iter();
    headers
        .map(|(name, value)| (name.as_str(), value.as_str().unwrap()))
        .collect()
}

/// Writes out the repeated texts and the values of earlier answers in a body.
fn filled(value: &Value, answers: &[Value]) -> Value {
    match value {
        Value::Object(keys) => match (keys.get("times"), keys.get("answer")) {
            (Some(times), _) => {
                let times = times.as_u64().unwrap() as usize;
                keys["text"].as_str().unwrap().repeat(times).into()
            }
            (_, Some(number)) => {
                let answer = &answers[number.as_u64().unwrap() as usize - 1];
                let found = answer.pointer(keys["at"].as_str().unwrap());
                found
                    .unwrap_or_else(|| panic!("{value} in {answer}"))
                    .clone()
            }
            _ => {
                let keys = keys.iter();
                keys.map(|(key, value)| (key.clone(), filled(value, answers)))
                    .collect()
            }
        },
        Value::Array(list) => list.iter().map(|one| filled(one, answers)).collect(),
        other => other.clone(),
    }
}

/// Replaces, adds or removes the value at a place.
fn change(body: &mut Value, pointer: &str, value: Value) {
    let (place, key) = pointer.rsplit_once('/').unwrap();
    match body.pointer_mut(place).unwrap() {
        Value::Array(list) => {
            let at: usize = key.parse().unwrap();
            if value == "-" {
                list.remove(at);
            } else if at == list.len() {
                list.push(value);
            } else {
                list[at] = value;
            }
        }
        place if value == "-" => drop(place.as_object_mut().unwrap().shift_remove(key)),
        place => place[key] = value,
    }
}

/// Adds the lines for an answer.
fn told(outcome: &mut Vec<String>, server: &Server, status: u16, text: &str) {
    let asked = server.requests().pop().unwrap();
    let mut head = status.to_string();
    if asked.tokens > Tokens::ZERO {
        head = format!("{head} {} tokens", asked.tokens);
    }
    if let Some(fault) = asked.fault {
        head = format!("{head} {}", fault.rule);
    }
    let text = text.replace("\r\n", "\n");
    if serde_json::from_str::<Value>(&text).is_ok() {
        outcome.push(format!("{head} {text}"));
        return;
    }
    if !["event: ", "data: "]
        .iter()
        .any(|begin| text.starts_with(begin))
    {
        outcome.push(format!("{head} {text:?}"));
        return;
    }
    outcome.push(format!("{head} events"));
    for event in text.split("\n\n").filter(|event| !event.is_empty()) {
        outcome.push(format!("| {}", event.replace('\n', " ")));
    }
}

/// Returns the reading of an answer by a client.
fn reads(protocol: &str, status: u16, text: &str) -> Option<String> {
    if status != 200 {
        return match classify(Some(status), text) {
            Verdict::Invalid => None,
            verdict => Some(format!("reads {verdict:?}")),
        };
    }
    let mut state: Box<dyn StreamDecoder> = match protocol {
        "chat" => Box::new(ChatStreamState::new()),
        "responses" => Box::new(ResponsesStreamState::new()),
        "messages" => Box::new(MessagesStreamState::new()),
        _ => Box::new(GeminiStreamState::new(0)),
    };
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let reply = if text.starts_with('{') {
        state.read_whole(text)
    } else {
        let pushed = data.try_for_each(|data| match data {
            "[DONE]" => Ok(()),
            data => state.push(data).map(drop),
        });
        pushed.and_then(|()| state.finish())
    };
    Some(match reply {
        Err(error) => format!("reads {error}"),
        Ok(Reply {
            parts, stop, usage, ..
        }) => {
            let (parts, usage) = (json!(parts), json!(usage));
            format!("reads {stop:?} {usage} {parts}")
        }
    })
}

#[test]
fn each_dialect_has_its_own_words_for_a_full_window() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/exchanges/chat.txt");
    let cases = cases::read(&file);
    for name in Dialect::names() {
        let begin = format!("the window in the words of each server: {name}, ");
        let of = cases.iter().filter(|case| case.name.starts_with(&begin));
        assert_eq!(of.count(), 2, "{name}");
    }
}
