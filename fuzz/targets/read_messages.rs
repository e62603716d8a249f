//! `anthropic::read`: what was read and repaired is a request that each model accepts, and what we
//! write we read as the same.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use plimsoll_context::{Breakpoint, CachePlan, Message};
use plimsoll_fuzz::{Input, MODELS, mended, mutate, ours, request, shown};
use plimsoll_mock::rules::anthropic::validate;
use plimsoll_wire::Target;
use plimsoll_wire::anthropic::{MessagesProfile, read, render};
use plimsoll_wire::{Effort, RenderInput, ToolChoice};
use serde_json::Value;

const EFFORTS: [Option<Effort>; 5] = [
    Some(Effort::None),
    Some(Effort::Minimal),
    Some(Effort::Low),
    Some(Effort::Medium),
    Some(Effort::High),
];

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else {
        return;
    };
    let (Ok(chat), Some(original)) = (read(input.text), request(input.text, "messages")) else {
        return;
    };
    assert_eq!(chat.messages.len(), chat.spans.len());
    let model = *input.choose(&MODELS);
    let profile = MessagesProfile::of_model(model);
    let target = Target::Messages(profile.clone());
    let Some(mut chat) = mended(input.text, &target, read) else {
        return;
    };
    chat.messages.push(Message::user("Go on."));
    let cache = CachePlan {
        breakpoints: vec![
            Breakpoint::Tools,
            Breakpoint::System,
            Breakpoint::Message(input.second % 7),
            Breakpoint::Message(chat.messages.len() - 1),
        ],
        key: None,
        ..CachePlan::default()
    };
    let before = validate(&original, &profile);
    let settings = RenderInput {
        model,
        tools: &chat.tools,
        effort: EFFORTS[input.second % EFFORTS.len()],
        tool_choice: match input.second % 4 {
            1 => ToolChoice::None,
            _ => ToolChoice::Auto,
        },
        cache: (input.second % 2 == 1).then_some(&cache),
        ..RenderInput::default()
    };
    let body = render(&settings, &chat.messages, &profile).unwrap().body;
    let text = String::from_utf8(body).unwrap();
    let rendered: Value = serde_json::from_str(&text).unwrap();
    let faults = ours(validate(&rendered, &profile), &before);
    assert!(faults.is_empty(), "{model} {}\n{text}", shown(&faults));
    // What we write we read.
    let back = read(&text).unwrap();
    let settings = RenderInput {
        tools: &back.tools,
        ..settings
    };
    let body = render(&settings, &back.messages, &profile).unwrap().body;
    let once = String::from_utf8(body).unwrap();
    let faults = ours(
        validate(&serde_json::from_str(&once).unwrap(), &profile),
        &before,
    );
    assert!(faults.is_empty(), "{model} {}\n{once}", shown(&faults));
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
