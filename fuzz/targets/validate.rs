//! The validator of each wire on any JSON: it never breaks, stays within its bound, and each fault
//! can be told as a refusal that is understood as one.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use plimsoll_fuzz::{Input, MODELS, chat_dialects, mutate, responses_profiles};
use plimsoll_mock::rules as judge;
use plimsoll_mock::rules::Fault;
use plimsoll_wire::anthropic;
use plimsoll_wire::overflow::{Verdict, classify};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else {
        return;
    };
    let Ok(request) = serde_json::from_str::<Value>(input.text) else {
        return;
    };
    // A refusal quotes values of the request, and cannot be told from a refusal of the key if they read
    // like one.
    let quoted = input.text.replace(['{', '[', '"'], " ");
    if classify(Some(400), &quoted) == Verdict::Auth {
        return;
    }
    match input.second % 3 {
        0 => {
            let dialects = chat_dialects();
            let dialect = input.choose(&dialects);
            for fault in &judge::openai_chat::validate(&request, dialect) {
                told(fault, judge::openai_chat::refusal(fault, dialect));
            }
        }
        1 => {
            let profiles = responses_profiles();
            for fault in &judge::openai_responses::validate(&request, input.choose(&profiles)) {
                told(fault, judge::openai_responses::refusal(fault));
            }
        }
        _ => {
            let profile = anthropic::MessagesProfile::of_model(*input.choose(&MODELS));
            for fault in &judge::anthropic::validate(&request, &profile) {
                told(fault, judge::anthropic::refusal(fault));
            }
        }
    }
});

fn told(fault: &Fault, (status, body): (u16, Value)) {
    assert!(!fault.words.is_empty() && (400..600).contains(&status));
    let verdict = classify(Some(status), &body.to_string());
    assert!(verdict != Verdict::Auth, "{fault:?} {body}");
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
