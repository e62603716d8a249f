//! `openai_chat::read`: messages that were read and repaired are a request that the server of each dialect accepts.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use plimsoll_fuzz::{
    Input, Opaques, chat_dialects, mended, mutate, ours, repaired, request, shown,
};
use plimsoll_mock::rules::openai_chat::validate;
use plimsoll_wire::RenderInput;
use plimsoll_wire::Target;
use plimsoll_wire::openai_chat::{read, render};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some(input) = Input::of(data) else {
        return;
    };
    let (Ok(_), Some(original)) = (read(input.text), request(input.text, "messages")) else {
        return;
    };
    let dialects = chat_dialects();
    let dialect = input.choose(&dialects);
    let target = Target::Chat(dialect.clone());
    let Some(chat) = mended(input.text, &target, read) else {
        return;
    };
    // Functions and their results, which precede tools, may stand alone.
    let messages = repaired(chat.messages, Opaques::Kept);
    let before = validate(&original, dialect);
    let settings = RenderInput {
        model: "m",
        system: (input.second % 2 == 1).then_some("s"),
        tools: &chat.tools,
        ..RenderInput::default()
    };
    let body = render(&settings, &messages, dialect).unwrap().body;
    let text = String::from_utf8(body).unwrap();
    let rendered: Value = serde_json::from_str(&text).unwrap();
    let faults = ours(validate(&rendered, dialect), &before);
    assert!(
        faults.is_empty(),
        "{} {}\n{text}",
        dialect.name,
        shown(&faults)
    );
    // What we write we read.
    let back = read(&text).unwrap();
    let body = render(
        &RenderInput {
            system: None,
            tools: &back.tools,
            ..settings
        },
        &back.messages,
        dialect,
    );
    let once = String::from_utf8(body.unwrap().body).unwrap();
    let faults = ours(
        validate(&serde_json::from_str(&once).unwrap(), dialect),
        &before,
    );
    assert!(
        faults.is_empty(),
        "{} {}\n{once}",
        dialect.name,
        shown(&faults)
    );
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(data, size, max_size, seed)
});
