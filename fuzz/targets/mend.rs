//! `repair_request` on any request: what it repairs stays repaired, what was whole keeps its bytes, and
//! nothing of the messages is wrong afterwards.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use plimsoll_foreign::{Reasoning, repair_request};
use plimsoll_fuzz::{Input, MODELS, chat_dialects, mutate, responses_profiles, shown};
use plimsoll_mock::rules::Validate as _;
use plimsoll_wire::Target;
use plimsoll_wire::anthropic::MessagesProfile;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else {
        return;
    };
    // Numbers that no machine holds cannot be judged.
    if serde_json::from_str::<Value>(input.text).is_err() {
        return;
    }
    let target = match input.second % 3 {
        0 => Target::Chat(input.choose(&chat_dialects()).clone()),
        1 => Target::Responses(input.choose(&responses_profiles()).clone()),
        _ => Target::Messages(MessagesProfile::of_model(*input.choose(&MODELS))),
    };
    let reasoning = match input.second / 3 % 4 {
        0 => Reasoning::Drop,
        _ => Reasoning::Keep,
    };
    let Ok(repaired) = repair_request(input.text, &target, reasoning) else {
        return;
    };
    if repaired.repairs.is_empty() {
        assert_eq!(repaired.request, input.text);
    }
    if let Ok(request) = serde_json::from_str::<Value>(&repaired.request)
        && request.get("model").is_some()
    {
        let left = target.validate(&request).into_iter();
        // Breakpoints of the cache are settings, which are not repaired.
        let left = left.filter(|fault| fault.rule != "AM11");
        // The server may have stored the call that a result answers.
        let stored = ["previous_response_id", "conversation", "item_reference"];
        let has_stored = stored.iter().any(|word| repaired.request.contains(word));
        let left = left.filter(|fault| fault.rule != "OR2" || !has_stored);
        let left = left.filter(|fault| {
            fault.place.starts_with("messages[")
                || fault.place.starts_with("messages.")
                || fault.place.starts_with("input[")
        });
        let left: Vec<_> = left.collect();
        assert!(left.is_empty(), "{}\n{}", shown(&left), repaired.request);
    }
    let again = repair_request(&repaired.request, &target, Reasoning::Keep).unwrap();
    assert!(
        again.repairs.is_empty(),
        "{:?}\n{}",
        again.repairs,
        repaired.request
    );
    assert_eq!(again.request, repaired.request);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
