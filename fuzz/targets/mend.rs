//! `canonical::mend` on any request: what it mends stays mended, what was whole keeps its bytes, and
//! nothing of the messages is wrong afterwards.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use plimsoll_fuzz::{Input, MODELS, chat_dialects, mutate, responses_profiles, shown};
use plimsoll_judge::canonical::{Reasoning, Target, mend};
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
    let Ok(mended) = mend(input.text, &target, reasoning) else {
        return;
    };
    if mended.repairs.is_empty() {
        assert_eq!(mended.request, input.text);
    }
    let left = mended.faults.iter();
    let left = left.filter(|fault| {
        fault.place.starts_with("messages[")
            || fault.place.starts_with("messages.")
            || fault.place.starts_with("input[")
    });
    let left: Vec<_> = left.cloned().collect();
    assert!(left.is_empty(), "{}\n{}", shown(&left), mended.request);
    let again = mend(&mended.request, &target, Reasoning::Keep).unwrap();
    assert!(
        again.repairs.is_empty(),
        "{:?}\n{}",
        again.repairs,
        mended.request
    );
    assert_eq!(again.request, mended.request);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
