//! Whole requests of each protocol, damaged anywhere: no validator panics or reports too much, and
//! the readable parts are sent in a form that every server accepts.

use plimsoll_context::{Breakpoint, CachePlan, CacheRetention, Message, ToolSpec};
use plimsoll_foreign::Reasoning;
use plimsoll_mock::rules as judge;
use plimsoll_mock::rules::Fault;
use plimsoll_mock::rules::Validate as _;
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::{Dialect, ToolStyle};
use plimsoll_wire::overflow::{Verdict, classify};
use plimsoll_wire::{Effort, RenderInput, ToolChoice};
use plimsoll_wire::{anthropic, openai_chat, openai_responses};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::{damage, every_dialect, sample_chats};

/// Models of every family, with and without thinking, budgets, prefills and bound signatures.
const MODELS: [&str; 16] = [
    "claude-3-haiku-20240307",
    "claude-3-5-haiku-latest",
    "claude-3-7-sonnet-latest",
    "claude-opus-4-1",
    "claude-sonnet-4-5",
    "claude-haiku-4-5",
    "claude-opus-4-6",
    "claude-sonnet-4-6",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-opus-5",
    "claude-opus-5-5",
    "claude-fable-5-1",
    "claude-mythos-5",
    "claude-of-tomorrow-9",
    "gopher",
];

fn chat_request() -> Value {
    let mut request = sample_chats::chat();
    let audio = json!({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}});
    let content = request["messages"][1]["content"].as_array_mut();
    content.unwrap().push(audio);
    request["messages"][2]["tool_calls"][1]["extra_content"] =
        json!({"google": {"thought_signature": "x"}});
    request["messages"][6]["refusal"] = Value::Null;
    request["tools"] = json!([{"type": "function", "function": {"name": "read", "description": "d",
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}}]);
    request["stream"] = true.into();
    request
}

fn responses_request() -> Value {
    let mut request = sample_chats::responses();
    let content = request["input"][0]["content"].as_array_mut();
    let file = json!({"type": "input_file", "file_id": "file-1"});
    content.unwrap().push(file);
    request["tools"] = json!([{"type": "function", "name": "read", "description": "d", "strict": false,
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}}}}]);
    request["include"] = json!(["reasoning.encrypted_content"]);
    request["stream"] = true.into();
    request
}

fn messages_request() -> Value {
    let mut request = sample_chats::messages();
    request["tools"] = json!([
        {"name": "read", "description": "d",
            "input_schema": {"type": "object", "properties": {"a": {"type": "number"}}}},
        {"name": "list", "input_schema": {"type": "object"}},
        {"type": "web_search_20250305", "name": "web_search"}]);
    request
}

fn requests() -> [Value; 3] {
    [chat_request(), responses_request(), messages_request()]
}

fn dialects() -> Vec<Dialect> {
    let mut dialects = every_dialect::dialects();
    dialects.push(Dialect {
        tools: ToolStyle::JsonSchema,
        ..Dialect::compatible()
    });
    dialects
}

fn profiles() -> Vec<openai_responses::ResponsesProfile> {
    vec![
        openai_responses::ResponsesProfile::openai(),
        openai_responses::ResponsesProfile::plain(),
        openai_responses::ResponsesProfile::compatible(),
    ]
}

/// One of many by a number.
fn one<T: Clone>(of: &[T], number: usize) -> T {
    of[number % of.len()].clone()
}

/// The request with so many places damaged, as the numbers say.
fn damaged(mut request: Value, numbers: &[usize]) -> Value {
    let mut numbers = numbers.iter().copied();
    while let Some(first) = numbers.next() {
        let mut first = Some(first);
        damage::damage(&mut request, &mut |below| {
            first.take().or_else(|| numbers.next()).unwrap_or(0) % below.max(1)
        });
    }
    request
}

/// Each damage takes some three to eight numbers.
fn numbers() -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(0_usize..10_000, 3..40)
}

/// Each fault can be told, and is not taken for what it is not.
fn told(faults: &[Fault], refusal: impl Fn(&Fault) -> (u16, Value)) -> Result<(), TestCaseError> {
    prop_assert!(faults.len() <= 100);
    for fault in faults {
        let (status, body) = refusal(fault);
        prop_assert!(!fault.words.is_empty() && (400..600).contains(&status));
        let verdict = classify(Some(status), &body.to_string());
        let other = [Verdict::Auth, Verdict::RateLimited, Verdict::QuotaExceeded];
        prop_assert!(!other.contains(&verdict), "{verdict:?} {body}");
    }
    Ok(())
}

#[test]
fn the_samples_are_valid_before_their_damage() {
    let [chat, responses, messages] = requests();
    assert_eq!(judge::openai_chat::validate(&chat, &Dialect::openai()), []);
    let openai = openai_responses::ResponsesProfile::openai();
    assert_eq!(judge::openai_responses::validate(&responses, &openai), []);
    let claude = anthropic::MessagesProfile::of_model("claude-sonnet-4-5");
    assert_eq!(judge::anthropic::validate(&messages, &claude), []);
}

proptest! {
    #[test]
    fn no_damage_breaks_a_validator(numbers in numbers(), wire in 0_usize..3, which in 0_usize..200) {
        // A request of one wire is judged by all.
        let request = damaged(one(&requests(), wire), &numbers);
        let dialect = one(&dialects(), which);
        told(&judge::openai_chat::validate(&request, &dialect), |fault| judge::openai_chat::refusal(fault, &dialect))?;
        let profile = one(&profiles(), which);
        told(&judge::openai_responses::validate(&request, &profile), judge::openai_responses::refusal)?;
        let profile = anthropic::MessagesProfile::of_model(one(&MODELS, which));
        told(&judge::anthropic::validate(&request, &profile), judge::anthropic::refusal)?;
    }

    /// Whatever was read, and whatever else is asked for besides.
    #[test]
    fn a_damaged_transcript_is_sent_as_a_valid_request(
        numbers in numbers(),
        wire in 0_usize..3,
        which in 0_usize..2_000,
        (choice, marks, effort) in (0_usize..4, proptest::collection::btree_set(0_usize..9, 0..6), 0_usize..7),
        (system, context) in (any::<bool>(), any::<bool>()),
        max_output in proptest::option::of(1_u64..200_000),
        temperature in proptest::option::of(0.0..2.0),
    ) {
        let text = damaged(one(&requests(), wire), &numbers).to_string();
        let Some((messages, tools)) = read(wire, &text) else {
            return Ok(());
        };
        let tools = some_tools(tools);
        // Somebody waits for an answer.
        let messages: Vec<Message> = messages.into_iter().chain([Message::user("Go on.")]).collect();
        let mut breakpoints = vec![Breakpoint::Tools, Breakpoint::System];
        breakpoints.extend(marks.into_iter().map(Breakpoint::Message));
        let cache = CachePlan { breakpoints, key: Some("k".into()), ..CachePlan::default() };
        let tool_choice = one(&[ToolChoice::Auto, ToolChoice::None], choice);
        let (system, context) = (system.then_some("s"), context.then_some("now"));
        for target in [
            Target::Chat(one(&dialects(), which)),
            Target::Responses(one(&profiles(), which)),
            Target::Messages(anthropic::MessagesProfile::of_model(one(&MODELS, which))),
        ] {
            let whole = plimsoll_testkit::repair(messages.clone()).messages;
            let whole: Vec<Message> = whole.into_iter().map(|(_, message)| message).collect();
            let body = match &target {
                Target::Chat(dialect) => openai_chat::render(&RenderInput {
                    model: "m", system, context, tools: &tools, tool_choice, max_output,
                    temperature, cache: Some(&cache), ..Default::default()
                }, &whole, dialect).unwrap().body,
                Target::Responses(profile) => openai_responses::render(&RenderInput {
                    model: "m", system, context, tools: &tools, tool_choice, max_output,
                    temperature, cache: Some(&cache), effort: Some(Effort::ALL[effort]), ..Default::default()
                }, &whole, profile).unwrap().body,
                Target::Messages(profile) => anthropic::render(&RenderInput {
                    model: one(&MODELS, which), system, context, tools: &tools, tool_choice, max_output,
                    temperature, cache: Some(&CachePlan { retention: one(&RETENTIONS, effort), ..cache.clone() }),
                    effort: one(&EFFORTS, effort), ..Default::default()
                }, &whole, profile).unwrap().body,
            };
            let body: Value = serde_json::from_slice(&body).unwrap();
            let faults = target.validate(&body);
            prop_assert!(faults.is_empty(), "{target:?}\n{faults:?}\n{text}\n{body}");
        }
    }
}

const RETENTIONS: [CacheRetention; 3] = [
    CacheRetention::Usual,
    CacheRetention::Head,
    CacheRetention::Long,
];

const EFFORTS: [Option<Effort>; 5] = [
    None,
    Some(Effort::Minimal),
    Some(Effort::Low),
    Some(Effort::Medium),
    Some(Effort::High),
];

/// What a request says; `None` where it cannot be read any more.
fn read(wire: usize, text: &str) -> Option<(Vec<Message>, Vec<ToolSpec>)> {
    let (_, tools) = unrepaired(wire, text)?;
    let source: Target = match wire {
        0 => Dialect::openai().into(),
        1 => openai_responses::ResponsesProfile::openai().into(),
        _ => anthropic::MessagesProfile::of_model("claude-sonnet-4-5").into(),
    };
    let chat = plimsoll_foreign::Chat::read(text, source.protocol()).ok()?;
    let (messages, _) = plimsoll_foreign::import(chat, &source, Reasoning::Keep).ok()?;
    Some((messages, tools))
}

fn unrepaired(wire: usize, text: &str) -> Option<(Vec<Message>, Vec<ToolSpec>)> {
    Some(match wire {
        0 => {
            let chat = openai_chat::read(text).ok()?;
            (chat.messages, chat.tools)
        }
        1 => {
            let chat = openai_responses::read(text).ok()?;
            (chat.messages, chat.tools)
        }
        _ => {
            let chat = anthropic::read(text).ok()?;
            (chat.messages, chat.tools)
        }
    })
}

/// The tools that a host would offer: with good names, each once.
fn some_tools(mut tools: Vec<ToolSpec>) -> Vec<ToolSpec> {
    tools.retain(|tool| ["read", "list"].contains(&tool.name.as_str()));
    tools.dedup_by(|one, other| one.name == other.name);
    if tools.is_empty() {
        tools.push(ToolSpec {
            name: "read".into(),
            description: String::new(),
            schema: Value::Null,
        });
    }
    tools
}
