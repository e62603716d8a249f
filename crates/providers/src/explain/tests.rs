//! The explanation of every vendor agrees with its requests, and the validator accepts the example.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::*;
use crate::model_ref::ModelRef;
use crate::models::{ModelBook, Origin};
use crate::vendor::{VENDORS, Wire};
use plimsoll_context::{Message, Part};
use plimsoll_core::Secret;
use plimsoll_mock::rules::Fault;
use plimsoll_mock::rules::Validate as _;
use plimsoll_wire::Target;
use plimsoll_wire::openai_responses::ReasoningItems;

const HUSH: &str = "sk-0123456789-hush";

/// The thinking level of examples.
const EXAMPLE: ThinkingLevel = ThinkingLevel::Medium;
const LEVELS: [ThinkingLevel; 5] = [
    ThinkingLevel::Off,
    ThinkingLevel::Minimal,
    ThinkingLevel::Low,
    ThinkingLevel::Medium,
    ThinkingLevel::High,
];

/// Returns the builder of a client at the vendor's own address.
fn usual(model: &str) -> ModelClientBuilder {
    let model = ModelRef::parse(model).unwrap();
    ModelClient::builder(model).key(Secret::new(HUSH))
}

fn proxied(model: &str) -> ModelClientBuilder {
    usual(model).base_url("http://127.0.0.1:1/v1")
}

fn explained(builder: ModelClientBuilder) -> RequestExplanation {
    builder.explain(&|_| None, Some(EXAMPLE)).unwrap()
}

/// Returns the request for each thinking level.
fn levels(builder: &ModelClientBuilder) -> [Value; 5] {
    LEVELS.map(|level| {
        let explained = builder.clone().explain(&|_| None, Some(level));
        explained.unwrap().sample.request
    })
}

/// Replies in the formats of servers.
static REPLIES: LazyLock<BTreeMap<String, String>> =
    LazyLock::new(|| toml::from_str(include_str!("replies.toml")).unwrap());

/// Returns the request after a reply that thinks and calls two tools, whose results follow.
fn second_request(model: &str) -> Value {
    let builder = ModelClient::builder(ModelRef::parse(model).unwrap());
    let builder = builder
        .base_url("http://127.0.0.1:1/v1")
        .key(Secret::new(HUSH));
    let client = builder.build_with(&|_| None).unwrap();
    let name = match (client.wire, client.profile()) {
        (Wire::Messages, "claude-3-5-haiku") => "messages",
        (Wire::Messages, _) => "messages-thinking",
        (Wire::Responses, "openai") => "responses-encrypted",
        (Wire::Responses, "compatible") => "responses-plain",
        (Wire::Responses, _) => "responses",
        _ => "chat",
    };
    let question = sample::question(Some(EXAMPLE));
    let reply = client
        .protocol
        .decoder(&question)
        .read_whole(&REPLIES[name])
        .unwrap();
    // The signature of thinking is only valid after the same question.
    let reply = client.rendered(&question).prefix.bind(reply);
    let mut messages: Vec<Message> = question.messages.iter().map(|m| (**m).clone()).collect();
    let calls = reply.parts.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(call.id.clone()),
        _ => None,
    });
    let results = calls.zip(["The sea is calm.", "Land!"]);
    let results: Vec<Message> = results
        .map(|(id, text)| Message::result(id, text))
        .collect();
    assert_eq!(results.len(), 2, "{name}");
    messages.push(Message::Assistant {
        parts: reply.parts.clone(),
    });
    messages.extend(results);
    client.json(&sample::request(Some(EXAMPLE), messages))
}

/// Returns the rules of the model's server that a request breaks.
fn faults(model: &str, request: &Value) -> Vec<Fault> {
    let mut target = crate::target(&ModelRef::parse(model).unwrap()).unwrap();
    // A server that is not asked for encrypted reasoning reads it as it is.
    if let Target::Responses(profile) = &mut target
        && request.get("include").is_none()
    {
        profile.reasoning = ReasoningItems::Plain;
    }
    target.validate(request)
}

fn sent(model: &str) -> [String; 5] {
    levels(&proxied(model)).map(|request| cell(&request))
}

#[test]
fn requests_are_accepted_by_every_vendor_and_family() {
    let names = |vendor: &str| match vendor {
        "anthropic" => vec![
            "claude-3-5-haiku",
            "claude-sonnet-4-5",
            "claude-opus-4-6",
            "claude-opus-4-8",
            "claude-opus-5-5",
            "claude-tomorrow-9",
            "kimi-k3",
        ],
        "openai" => vec![
            "gpt-4o",
            "gpt-5",
            "gpt-5.4",
            "gpt-5.5",
            "gpt-5.6-sol",
            "gpt-99",
        ],
        "openai-responses" => vec!["gpt-4o", "gpt-5", "gpt-5.1-codex", "gpt-6-astra", "gpt-99"],
        "ollama" | "vllm" | "llama.cpp" => vec!["gemma3", "devstral", "qwen3", "llama3.1", "m"],
        _ => vec!["m"],
    };
    for vendor in VENDORS.iter() {
        if !matches!(vendor.wire, Wire::Chat | Wire::Responses | Wire::Messages) {
            continue;
        }
        for name in names(vendor.name) {
            let model = format!("{}/{name}", vendor.name);
            let explained = explained(proxied(&model));
            for request in [&explained.sample.request, &second_request(&model)] {
                assert_eq!(faults(&model, request), [], "{model}: {request}");
            }
            let all = serde_json::to_string(&explained).unwrap();
            assert!(!all.contains("hush"), "{all}");
        }
    }
}

#[test]
fn levels_are_what_requests_say() {
    assert_eq!(
        sent("openai/gpt-5"),
        ["minimal", "minimal", "low", "medium", "high"]
    );
    assert_eq!(sent("openai/gpt-4o"), ["-"; 5]);
    assert_eq!(sent("anthropic/claude-opus-5")[4], "adaptive, high");
    assert_eq!(sent("anthropic/claude-sonnet-4-5")[1], "budget 1024");
}

#[test]
fn a_model_that_chat_does_not_go_all_the_way_with_goes_over_responses() {
    for model in [
        "openai/gpt-5.4",
        "openai/gpt-5.6-terra",
        "openai/gpt-6-astra",
        "openai/gpt-5-pro",
        "openai/gpt-5.1-codex",
        "openai/o3-pro",
    ] {
        let high = &levels(&usual(model))[4];
        assert_eq!(high["reasoning"]["effort"], "high");
        let usual = explained(usual(model));
        assert_eq!(usual.wire, "OpenAI Responses", "{model}");
        let responses = model.replace("openai/", "openai-responses/");
        assert_eq!(faults(&responses, &usual.sample.request), [], "{model}");
    }
    // A proxy may not support Responses.
    for (model, effort, faults) in [
        ("openai/gpt-5.4", None, 0),
        ("openai/gpt-5.6-terra", Some("none"), 0),
        ("openai/gpt-6-astra", None, 1),
        ("openai/gpt-5-pro", Some("high"), 1),
    ] {
        let high = &levels(&proxied(model))[4];
        let sent = high.get("reasoning_effort");
        let proxied = explained(proxied(model));
        assert_eq!(proxied.wire, "OpenAI Chat Completions", "{model}");
        assert_eq!(sent.and_then(Value::as_str), effort, "{model}");
        let sample = proxied.sample;
        let found = self::faults(model, &sample.request);
        assert_eq!(found.len(), faults, "{model}: {found:?}");
        // A requested setting that is not sent is reported.
        let told = sample.left_out.iter().any(|what| what == "Effort");
        assert_eq!(told, !model.ends_with("-pro"), "{model}");
    }
}

#[test]
fn its_own_thinking_goes_back_where_the_wire_has_a_place_for_it() {
    for (model, goes_back) in [
        ("anthropic/claude-opus-5-5", true),
        ("openai-responses/gpt-5", true),
        ("deepseek/deepseek-reasoner", true),
        ("openai/gpt-5", false),
    ] {
        let text = second_request(model).to_string();
        let is = text.contains("I read both at once") || text.contains("encrypted_content\":\"ZXh");
        assert_eq!(is, goes_back, "{model}: {text}");
    }
}

#[test]
fn what_the_user_says_of_a_model_is_heeded() {
    let mine = "[anthropic.claude-opus-5]\nmax_output = 9000\nthinking = false\n\
                [openai.gpt-5]\nimages = false\nefforts = [\"high\"]";
    let mine = ModelBook::parse(mine, Origin::Configuration).unwrap();
    let book = ModelBook::built_in().clone().overlay(mine);
    let of = |name: &str| {
        let facts = book.facts(&ModelRef::parse(name).unwrap());
        usual(name).facts(facts)
    };
    let claude = explained(of("anthropic/claude-opus-5"));
    let request = &claude.sample.request;
    assert!(request.get("thinking").is_none(), "{request}");
    assert!(request["max_tokens"].as_u64().unwrap() <= 9_000);
    let five = of("openai/gpt-5");
    assert_eq!(levels(&five)[1]["reasoning_effort"], "high");
}

/// The documentation of providers matches the data, row by row.
#[test]
fn the_documentation_says_what_is_so() {
    let docs = include_str!("../../../../docs/providers.md");
    let code = |text: &&str| format!("`{text}`");
    for vendor in VENDORS.iter() {
        let keys: Vec<String> = vendor.key_variables.iter().map(code).collect();
        let keys = if keys.is_empty() {
            "none".to_owned()
        } else {
            keys.join(", ")
        };
        let address = match (vendor.base_url, vendor.place) {
            (Some(url), _) => format!("`{url}`"),
            (None, crate::vendor::ServerLocation::Ours) => "started for the run".to_owned(),
            (None, _) => "where you say".to_owned(),
        };
        let (name, wire) = (vendor.name, vendor.wire.label());
        let window = window_from(vendor.tells);
        let row = format!("| `{name}` | {wire} | {keys} | {address} | {window} |\n");
        assert!(docs.contains(&row), "docs/providers.md has no row\n{row}");
    }
    let head = "| model | off | minimal | low | medium | high |\n|---|---|---|---|---|---|\n";
    let rows = docs.split(head).nth(1).unwrap().lines();
    let mut checked = 0;
    for row in rows.take_while(|row| row.starts_with('|')) {
        let model = row.split('`').nth(1).unwrap();
        let cells = levels(&usual(model)).map(|request| cell(&request));
        assert_eq!(row, format!("| `{model}` | {} |", cells.join(" | ")));
        checked += 1;
    }
    assert!(checked > 10, "{checked}");
}

/// Describes how a request asks for thinking.
fn cell(sent: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    if let Some(effort) = sent.get("reasoning_effort") {
        return word(effort);
    }
    if let Some(reasoning) = sent.get("reasoning") {
        return word(&reasoning["effort"]);
    }
    if let Some(config) = sent.get("output_config") {
        return format!("adaptive, {}", word(&config["effort"]));
    }
    let Some(thinking) = sent.get("thinking") else {
        return "-".to_owned();
    };
    match thinking.get("budget_tokens") {
        Some(budget) => format!("budget {budget}"),
        None => word(&thinking["type"]),
    }
}
