//! Digests that must not change: rendered requests, verdicts, repairs, cut requests, replies
//! assembled from streams, and the same for recorded sessions and requests of real clients.
//!
//! If a digest differs, the test prints the current text; run it on the previous commit to compare.
//! `PLIMSOLL_BLESS=1 cargo nextest run -p plimsoll-foreign frozen::` updates the files. A commit
//! that does so explains the change.

use plimsoll_mock::rules::Validate as _;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use plimsoll_context::{Estimate, Message, TokenCounter, ToolSpec};
use plimsoll_foreign::{Chat, Reasoning, Repair, import, repair_request};
use plimsoll_wire::Target;
use plimsoll_wire::{
    Effort, RenderInput, StreamDecoder, anthropic, bedrock, gemini, openai_chat, openai_responses,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::client_requests;
use crate::cutting::{cut, fixed, policies, weighs};
use crate::damage::damage;
use crate::frozen_files::{self, Frozen};
use crate::random_chats::{Step, chat, claude, history, step};
use crate::targets;
use plimsoll_testkit::recorded_sessions;

/// Random sessions.
const SESSIONS: usize = 24;
/// Damaged copies of each request.
const DAMAGED: usize = 6;
/// Budgets between the smallest request and the whole one, in percent of the difference.
const SHARES: [u64; 4] = [0, 20, 50, 80];
/// Recorded sessions of each source, and the longest, in bytes: the test is to take seconds.
const RECORDED: usize = 8;
const RECORDED_MAX: usize = 200_000;

/// A model of each kind on the protocols that are only written.
const GEMINI_AND_CONVERSE: [&str; 7] = [
    "gemini-2.5-pro",
    "gemini-3-pro-preview",
    "gemini-3.6-flash",
    "anthropic.claude-sonnet-4-5-20250929-v1:0",
    "amazon.nova-2-lite-v1:0",
    "mistral.mistral-large-2407-v1:0",
    "openai.gpt-oss-120b-1:0",
];

/// Numbers that look random and are the same each time.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, end: usize) -> usize {
        let step = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = step.wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end.max(1)
    }
}

fn sessions() -> Vec<Vec<Step>> {
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), random);
    let steps = proptest::collection::vec(step(), 0..12);
    (0..SESSIONS)
        .map(|_| steps.new_tree(&mut runner).unwrap().current())
        .collect()
}

/// Each session as a request of each protocol, with a target that it is for.
fn requests() -> Vec<(String, Target, Value)> {
    let chat_target = || Target::of_protocol("openai", None).unwrap();
    let responses = || Target::of_protocol("openai-responses", None).unwrap();
    let claude_target = || Target::of_protocol("anthropic", None).unwrap();
    let mut requests = Vec::new();
    for (n, steps) in sessions().iter().enumerate() {
        requests.push((format!("chat {n}"), chat_target(), chat(steps)));
        requests.push((
            format!("responses {n}"),
            responses(),
            history(steps, n % 2 == 0),
        ));
        requests.push((
            format!("messages {n}"),
            claude_target(),
            claude(steps, n % 2 == 0),
        ));
    }
    requests
}

fn every_target() -> Vec<(String, Target)> {
    let kinds = [targets::chats(), targets::responses(), targets::claudes()];
    let mut all = Vec::new();
    for kind in kinds {
        for (n, target) in kind.into_iter().enumerate() {
            all.push((format!("{} {n}", target.protocol().name()), target));
        }
    }
    all
}

fn tools() -> Vec<ToolSpec> {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "Does it.".into(),
        schema: json!({"type": "object", "properties": {"a": {"type": "string"}}}),
    };
    vec![tool("g"), tool("f")]
}

fn imported(request: &Value, source: &Target) -> (Vec<Message>, Vec<Repair>) {
    let text = request.to_string();
    let chat = Chat::read(&text, source.protocol()).unwrap();
    import(chat, source, Reasoning::Keep).unwrap()
}

/// Returns the body of a request and how many notes there are, or the error.
fn rendered(messages: &[Message], target: &Target) -> String {
    let tools = tools();
    let mut input = RenderInput {
        model: "m",
        system: Some("You mend."),
        tools: &tools,
        ..RenderInput::default()
    };
    let rendered = match target {
        Target::Chat(dialect) => {
            (input.max_output, input.temperature) = (Some(1_000), Some(0.5));
            openai_chat::render(&input, messages, dialect)
        }
        Target::Responses(profile) => {
            input.max_output = Some(1_000);
            openai_responses::render(&input, messages, profile)
        }
        Target::Messages(profile) => {
            input.effort = Some(Effort::Medium);
            anthropic::render(&input, messages, profile)
        }
    };
    match rendered {
        Ok(one) => {
            let body = String::from_utf8(one.body).unwrap();
            format!("{body}\n{} notes", one.notes.len())
        }
        Err(error) => error.to_string(),
    }
}

/// Returns what the server says of a request, and the request as it is repaired.
fn judged(request: &Value, text: &str, target: &Target) -> String {
    let mut told = String::new();
    for fault in target.validate(request) {
        writeln!(told, "{fault}").unwrap();
    }
    match repair_request(text, target, Reasoning::Keep) {
        Ok(repaired) => {
            writeln!(told, "{}", repaired.request).unwrap();
            for repair in repaired.repairs {
                writeln!(told, "{repair}").unwrap();
            }
        }
        Err(error) => writeln!(told, "{error}").unwrap(),
    }
    told
}

/// Returns a request cut by every policy to some budgets.
fn cuts(text: &str, target: &Target, counter: &Arc<dyn TokenCounter>) -> String {
    let (least, whole) = (fixed(text, target, counter), weighs(text, target, counter));
    let mut told = String::new();
    for policy in policies() {
        for share in SHARES {
            let budget = least + ((whole - least) * share).div_ceil(100);
            let cut = match cut(text, target, budget, &policy, counter) {
                Ok(Some(cut)) => cut.chat.write().into_owned(),
                Ok(None) => "as it was".to_owned(),
                Err(error) => error.to_string(),
            };
            writeln!(told, "{budget}: {cut}").unwrap();
        }
    }
    told
}

#[test]
fn rendered_requests_are_what_they_were() {
    let mut frozen = Frozen::open("requests");
    let targets = every_target();
    for (name, source, request) in requests() {
        let (messages, _) = imported(&request, &source);
        for (of, target) in &targets {
            let whole = plimsoll_testkit::repair(messages.clone()).messages;
            let whole: Vec<Message> = whole.into_iter().map(|(_, one)| one).collect();
            frozen.check(of, &name, &rendered(&whole, target));
        }
    }
    frozen.close();
}

/// Returns the body of a request to a model of Gemini's or behind Bedrock, and how many notes there are.
fn rendered_elsewhere(messages: &[Message], model: &str, effort: Option<Effort>) -> String {
    let tools = tools();
    let input = RenderInput {
        model,
        system: Some("You mend."),
        tools: &tools,
        max_output: Some(5_000),
        temperature: Some(0.5),
        effort,
        ..RenderInput::default()
    };
    let rendered = if model.starts_with("gemini") {
        gemini::render(&input, messages, &gemini::GeminiProfile::of_model(model))
    } else {
        bedrock::render(&input, messages, &bedrock::ConverseProfile::of_model(model))
    };
    let rendered = rendered.unwrap();
    let body = String::from_utf8(rendered.body).unwrap();
    format!("{body}\n{} notes", rendered.notes.len())
}

#[test]
fn requests_to_gemini_and_converse_are_what_they_were() {
    let mut frozen = Frozen::open("gemini_converse");
    for (name, source, request) in requests() {
        let (messages, _) = imported(&request, &source);
        for model in GEMINI_AND_CONVERSE {
            let text = rendered_elsewhere(&messages, model, None);
            frozen.check(model, &name, &text);
            let text = rendered_elsewhere(&messages, model, Some(Effort::Medium));
            frozen.check(model, &format!("{name}, thinking"), &text);
        }
    }
    frozen.close();
}

#[test]
fn verdicts_and_repairs_are_what_they_were() {
    let mut frozen = Frozen::open("verdicts");
    let mut numbers = RandomNumbers(1);
    for (name, target, request) in requests() {
        frozen.check(
            &name,
            "whole",
            &judged(&request, &request.to_string(), &target),
        );
        for n in 0..DAMAGED {
            let mut broken = request.clone();
            for _ in 0..=n % 3 {
                damage(&mut broken, &mut |end| numbers.below(end));
            }
            let text = broken.to_string();
            frozen.check(
                &name,
                &format!("damaged {n}"),
                &judged(&broken, &text, &target),
            );
        }
    }
    frozen.close();
}

#[test]
fn cut_requests_are_what_they_were() {
    let mut frozen = Frozen::open("cuts");
    let counter: Arc<dyn TokenCounter> = Arc::new(Estimate);
    for (name, target, request) in requests() {
        let repaired = repair_request(&request.to_string(), &target, Reasoning::Keep).unwrap();
        frozen.check(
            "request",
            &name,
            &cuts(&repaired.request, &target, &counter),
        );
    }
    frozen.close();
}

/// The events of a reply that thinks, speaks and calls two tools, as each server streams it.
fn streams() -> [(&'static str, Vec<Value>); 3] {
    let piece = |delta: Value| json!({"id": "r1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    let chat = vec![
        piece(json!({"role": "assistant", "content": ""})),
        piece(json!({"reasoning_content": "I thi"})),
        piece(json!({"reasoning_content": "nk."})),
        piece(json!({"content": "Hel"})),
        piece(json!({"content": "lo 🦀"})),
        piece(
            json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":"}}]}),
        ),
        piece(json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]})),
        piece(
            json!({"tool_calls": [{"index": 1, "id": "c2", "type": "function", "function": {"name": "g", "arguments": "{}"}}]}),
        ),
        json!({"id": "r1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}),
        json!({"id": "r1", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}),
    ];
    let add = |index: u64, item: Value| json!({"type": "response.output_item.added", "output_index": index, "item": item});
    let done = |index: u64, item: Value| json!({"type": "response.output_item.done", "output_index": index, "item": item});
    let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I think."}], "encrypted_content": "g".repeat(60)});
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hello", "annotations": []}]});
    let called = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"});
    let responses = vec![
        json!({"type": "response.created", "response": {"id": "resp_1", "model": "m", "status": "in_progress", "output": []}}),
        add(0, json!({"type": "reasoning", "id": "rs_1", "summary": []})),
        json!({"type": "response.reasoning_summary_text.delta", "output_index": 0, "item_id": "rs_1", "summary_index": 0, "delta": "I think."}),
        done(0, thought.clone()),
        add(
            1,
            json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []}),
        ),
        json!({"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "content_index": 0, "delta": "Hel"}),
        json!({"type": "response.output_text.delta", "output_index": 1, "item_id": "msg_1", "content_index": 0, "delta": "lo"}),
        done(1, said.clone()),
        add(
            2,
            json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": ""}),
        ),
        json!({"type": "response.function_call_arguments.delta", "output_index": 2, "item_id": "fc_1", "delta": "{\"a\":1}"}),
        done(2, called.clone()),
        json!({"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": [thought, said, called], "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}}}),
    ];
    let start = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let more = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let stop = |index: u64| json!({"type": "content_block_stop", "index": index});
    let messages = vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}}),
        start(
            0,
            json!({"type": "thinking", "thinking": "", "signature": ""}),
        ),
        more(0, json!({"type": "thinking_delta", "thinking": "I think."})),
        more(
            0,
            json!({"type": "signature_delta", "signature": "EmwKAhgBEgy3va3pzix="}),
        ),
        stop(0),
        start(1, json!({"type": "text", "text": ""})),
        more(1, json!({"type": "text_delta", "text": "Hel"})),
        more(1, json!({"type": "text_delta", "text": "lo"})),
        stop(1),
        start(
            2,
            json!({"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}),
        ),
        more(
            2,
            json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"}),
        ),
        stop(2),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    [
        ("chat", chat),
        ("responses", responses),
        ("messages", messages),
    ]
}

/// Returns what comes out of a stream, delta by delta.
macro_rules! streamed {
    ($state:expr, $events:expr) => {{
        let mut state = $state;
        let mut told = String::new();
        let mut is_refused = false;
        for event in $events {
            match state.push(&event.to_string()) {
                Ok(deltas) => writeln!(told, "{deltas:?}").unwrap(),
                Err(error) => {
                    writeln!(told, "{error}").unwrap();
                    is_refused = true;
                    break;
                }
            }
        }
        if !is_refused {
            match state.finish() {
                Ok(reply) => writeln!(told, "{reply:?}").unwrap(),
                Err(error) => writeln!(told, "{error}").unwrap(),
            }
        }
        told
    }};
}

#[test]
fn streams_are_put_together_as_they_were() {
    let mut frozen = Frozen::open("streams");
    let mut numbers = RandomNumbers(2);
    for (name, events) in streams() {
        for n in 0..100 {
            let mut events = events.clone();
            if n > 0 {
                let at = numbers.below(events.len());
                match n % 3 {
                    // Cut, an event lost, an event damaged.
                    0 => events.truncate(at),
                    1 => {
                        events.remove(at);
                    }
                    _ => damage(&mut events[at], &mut |end| numbers.below(end)),
                }
            }
            let told = match name {
                "chat" => streamed!(openai_chat::ChatStreamState::new(), &events),
                "responses" => streamed!(openai_responses::ResponsesStreamState::new(), &events),
                _ => streamed!(anthropic::MessagesStreamState::new(), &events),
            };
            frozen.check(name, &format!("stream {n}"), &told);
        }
    }
    frozen.close();
}

#[test]
fn recorded_sessions_are_repaired_and_cut_as_they_were() {
    let counter: Arc<dyn TokenCounter> = Arc::new(Estimate);
    let Some(recorded) = recorded_sessions::sessions() else {
        return;
    };
    let mut frozen = Frozen::open("sessions").outside();
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for (source, line) in recorded.filter(|(_, line)| line.len() <= RECORDED_MAX) {
        let taken = taken.entry(source.clone()).or_default();
        *taken += 1;
        if *taken > RECORDED {
            continue;
        }
        let of = frozen_files::digest(&line);
        let target = Target::of_protocol("openai", None).unwrap();
        let request: Value = serde_json::from_str(&line).unwrap();
        frozen.check(
            &source,
            &format!("judged {of}"),
            &judged(&request, &line, &target),
        );
        let repaired = repair_request(&line, &target, Reasoning::Keep).unwrap();
        frozen.check(
            &source,
            &format!("cut {of}"),
            &cuts(&repaired.request, &target, &counter),
        );
    }
    frozen.close();
}

#[test]
fn requests_of_real_clients_are_repaired_and_cut_as_they_were() {
    let counter: Arc<dyn TokenCounter> = Arc::new(Estimate);
    let Some(recorded) = client_requests::clients() else {
        return;
    };
    // Each recording is another: its digests stand beside it.
    let path = client_requests::folder().with_file_name("frozen.json");
    if !path.is_file() && !frozen_files::is_blessed() {
        println!("skipped: no {}; PLIMSOLL_BLESS=1 writes it", path.display());
        return;
    }
    let mut frozen = Frozen::at(path).outside();
    for client in recorded {
        for (_, text) in &client.requests {
            let request: Value = serde_json::from_str(text).unwrap();
            let target = client.target(&request);
            let (digest, judged) = (frozen_files::digest(text), judged(&request, text, &target));
            frozen.check(&client.name, &format!("judged {digest}"), &judged);
            let cuts = cuts(text, &target, &counter);
            frozen.check(&client.name, &format!("cut {digest}"), &cuts);
        }
    }
    frozen.close();
}
