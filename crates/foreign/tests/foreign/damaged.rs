//! Messages of each protocol, damaged anywhere: after the repair their server has no objection.

use plimsoll_testkit::recorded_sessions;
use plimsoll_wire::openai_chat::{Dialect, Template};
use plimsoll_wire::{Target, anthropic, openai_responses};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::judged::{faults, repaired};
use crate::{damage, sample_chats};

const MODELS: [&str; 6] = [
    "claude-3-5-haiku-latest",
    "claude-sonnet-4-5",
    "claude-opus-4-6",
    "claude-opus-5",
    "claude-opus-5-5",
    "gopher",
];

fn target(protocol: usize, which: usize) -> (Value, &'static str, Target) {
    match protocol {
        0 => {
            let mut dialects: Vec<Dialect> = Dialect::names().filter_map(Dialect::named).collect();
            let local = || Dialect::named("vllm").unwrap();
            for template in [
                Template::Gemma,
                Template::Mistral,
                Template::Qwen,
                Template::Llama31,
            ] {
                dialects.push(local().with_template(template));
            }
            let dialect = dialects.swap_remove(which % dialects.len());
            (sample_chats::chat(), "messages", dialect.into())
        }
        1 => {
            let profile = match which % 3 {
                0 => openai_responses::ResponsesProfile::openai(),
                1 => openai_responses::ResponsesProfile::plain(),
                _ => openai_responses::ResponsesProfile::compatible(),
            };
            (sample_chats::responses(), "input", profile.into())
        }
        _ => {
            let profile = anthropic::MessagesProfile::of_model(MODELS[which % MODELS.len()]);
            (sample_chats::messages(), "messages", profile.into())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]
    #[test]
    fn after_the_repair_a_server_has_no_objection(
        protocol in 0_usize..3,
        which in 0_usize..1_000,
        is_history in any::<bool>(),
        numbers in proptest::collection::vec(0_usize..10_000, 3..40),
    ) {
        let (mut request, list, target) = target(protocol, which);
        if is_history {
            request.as_object_mut().unwrap().remove("model");
        }
        let mut numbers = numbers.into_iter();
        while let Some(first) = numbers.next() {
            let mut first = Some(first);
            let before = request[list].clone();
            damage::damage(&mut request[list], &mut |below| {
                first.take().or_else(|| numbers.next()).unwrap_or(0) % below.max(1)
            });
            if !request[list].is_array() {
                request[list] = before;
            }
        }
        repaired(&request.to_string(), &target);
    }
}

#[test]
fn a_valid_request_stays_as_it_is() {
    for (protocol, which) in [(0, 1), (1, 0), (2, 1)] {
        let (request, _, target) = target(protocol, which);
        let text = request.to_string();
        assert_eq!(faults(&text, &target), [""; 0]);
        let repaired = repaired(&text, &target);
        assert_eq!((repaired.request, repaired.repairs), (text, vec![]));
    }
}

/// Sessions cut off somewhere, often between a call and its result, in each dialect after the other.
#[test]
fn recorded_sessions_can_be_continued() {
    let Some(recorded) = recorded_sessions::sessions() else {
        return;
    };
    for (number, (_, line)) in recorded.enumerate() {
        let session: Value = serde_json::from_str(&line).unwrap();
        let messages = session["messages"].as_array().unwrap();
        let end = (number * 7 + 3) % messages.len().max(1);
        let cut = json!({"messages": &messages[..=end.min(messages.len() - 1)]});
        let (_, _, target) = target(0, number);
        repaired(&cut.to_string(), &target);
    }
}
