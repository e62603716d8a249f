//! `openai_responses::read`: messages that were read and repaired are a request that the server of each profile
//! accepts.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use plimsoll_context::Message;
use plimsoll_fuzz::{Input, mended, mutate, ours, request, responses_profiles, shown};
use plimsoll_mock::rules::openai_responses::validate;
use plimsoll_wire::Target;
use plimsoll_wire::openai_responses::{read, render};
use plimsoll_wire::{Document, RenderInput};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else {
        return;
    };
    let (Ok(_), Some(original)) = (read(input.text), request(input.text, "input")) else {
        return;
    };
    let profiles = responses_profiles();
    let profile = input.choose(&profiles);
    let target = Target::Responses(profile.clone());
    let Some(chat) = mended(input.text, &target, read) else {
        return;
    };
    let (system, mut messages) = without_system(&chat);
    messages.push(Message::user("Go on."));
    let before = validate(&original, profile);
    let settings = RenderInput {
        model: "m",
        system: system.as_deref(),
        tools: &chat.tools,
        hosted_tools: &chat.hosted_tools,
        ..RenderInput::default()
    };
    let body = render(&settings, &messages, profile).unwrap().body;
    let text = String::from_utf8(body).unwrap();
    let rendered: Value = serde_json::from_str(&text).unwrap();
    let faults = ours(validate(&rendered, profile), &before);
    assert!(
        faults.is_empty(),
        "{} {}\n{text}",
        profile.name,
        shown(&faults)
    );
    // What we write we read.
    let back = read(&text).unwrap();
    let (system, said) = without_system(&back);
    let settings = RenderInput {
        system: system.as_deref(),
        tools: &back.tools,
        hosted_tools: &back.hosted_tools,
        ..settings
    };
    let body = render(&settings, &said, profile).unwrap().body;
    let once = String::from_utf8(body).unwrap();
    let faults = ours(
        validate(&serde_json::from_str(&once).unwrap(), profile),
        &before,
    );
    assert!(
        faults.is_empty(),
        "{} {}\n{once}",
        profile.name,
        shown(&faults)
    );
});

/// Returns the instructions and the messages.
fn without_system(read: &Document) -> (Option<String>, Vec<Message>) {
    let first = read.spans.first();
    let has_system = first.is_some_and(|span| span.entries.is_empty());
    let (beside, said) = read.messages.split_at(usize::from(has_system));
    (beside.first().map(Message::text), said.to_vec())
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
