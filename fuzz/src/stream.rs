//! [`stream`]: what has to hold of a streamed reply on each wire, however its bytes are cut.

use plimsoll_context::{Message, Reply};
use plimsoll_mock::rules as judge;
use plimsoll_wire::RenderInput;
use plimsoll_wire::{StreamDecoder, WireError, anthropic, openai_chat, openai_responses};

use serde_json::Value;
use serde_json::value::RawValue;

use crate::input::Input;
use crate::sse_events::events;
use crate::view;

/// A stream reader of one wire, and what is done with what it read.
pub trait Wire: StreamDecoder + Default {
    /// Sends back what was said and says what is wrong with it.
    fn send_back(messages: &[Message], choice: &Input<'_>) -> Result<(), String>;
}

/// Reads a stream whole and in pieces, and sends back what was said.
pub fn stream<W: Wire>(input: &Input<'_>) {
    let bytes = input.text.as_bytes();
    let whole = read::<W>(bytes, std::iter::empty());
    // Pieces of a size that the second letter says, and single bytes.
    let size = input.second % 61 + 1;
    let pieces = read::<W>(bytes, std::iter::repeat_n(size, bytes.len() / size));
    assert_eq!(whole, pieces, "cut every {size} bytes");
    let parts = match whole {
        Ok(reply) => reply.parts,
        Err(WireError::Cut { partial }) => partial.parts,
        Err(_) => return,
    };
    let mut messages = vec![Message::user("q"), Message::Assistant { parts }];
    let calls: Vec<_> = messages[1].calls().map(|call| call.id.clone()).collect();
    for call in &calls {
        assert!(!call.0.is_empty(), "a call without an id");
    }
    let mut unique = calls.clone();
    unique.sort();
    unique.dedup();
    if unique.len() == calls.len() {
        messages.extend(calls.into_iter().map(|call| Message::result(call, "r")));
    }
    let messages = view::repaired(messages, input.opaques());
    if let Err(why) = W::send_back(&messages, input) {
        panic!("{why}\n{messages:#?}");
    }
}

fn read<W: Wire>(bytes: &[u8], cuts: impl Iterator<Item = usize>) -> Result<Reply, WireError> {
    let mut state = W::default();
    for (_, data) in events(bytes, cuts).events {
        state.push(&data)?;
        let _ = state.partial();
    }
    state.finish()
}

impl Wire for openai_chat::ChatStreamState {
    fn send_back(messages: &[Message], choice: &Input<'_>) -> Result<(), String> {
        let dialects = view::chat_dialects();
        let dialect = choice.choose(&dialects);
        let body = openai_chat::render(&Default::default(), messages, dialect);
        let body = body.map_err(|error| error.to_string())?.body;
        let Some(request) = judged(&body)? else {
            return Ok(());
        };
        let faults = judge::openai_chat::validate(&request, dialect);
        if faults.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "{} {}\n{request}",
                dialect.name,
                view::shown(&faults)
            ))
        }
    }
}

impl Wire for openai_responses::ResponsesStreamState {
    fn send_back(messages: &[Message], choice: &Input<'_>) -> Result<(), String> {
        let profiles = view::responses_profiles();
        let profile = choice.choose(&profiles);
        let body = openai_responses::render(
            &RenderInput {
                model: "m",
                ..Default::default()
            },
            messages,
            profile,
        );
        let body = body.map_err(|error| error.to_string())?.body;
        let Some(request) = judged(&body)? else {
            return Ok(());
        };
        let faults = judge::openai_responses::validate(&request, profile);
        if faults.is_empty() {
            Ok(())
        } else {
            Err(format!(
                "{} {}\n{request}",
                profile.name,
                view::shown(&faults)
            ))
        }
    }
}

impl Wire for anthropic::MessagesStreamState {
    fn send_back(messages: &[Message], choice: &Input<'_>) -> Result<(), String> {
        let model = *choice.choose(&view::MODELS);
        let profile = anthropic::MessagesProfile::of_model(model);
        let input = RenderInput {
            model,
            ..Default::default()
        };
        let body = anthropic::render(&input, messages, &profile);
        let body = body.map_err(|error| error.to_string())?.body;
        let Some(request) = judged(&body)? else {
            return Ok(());
        };
        let faults = judge::anthropic::validate(&request, &profile);
        if faults.is_empty() {
            Ok(())
        } else {
            Err(format!("{model} {}\n{request}", view::shown(&faults)))
        }
    }
}

/// A body to be judged; `None` for one with numbers that no machine holds, passed through as they came.
fn judged(body: &[u8]) -> Result<Option<Value>, String> {
    match serde_json::from_slice(body) {
        Ok(request) => Ok(Some(request)),
        Err(error) => match serde_json::from_slice::<&RawValue>(body) {
            Ok(_) => Ok(None),
            Err(_) => Err(error.to_string()),
        },
    }
}
