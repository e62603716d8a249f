//! The body of a turn of a growing chat beside one that is rendered whole. Rows for the table of
//! `cargo xtask bench`.
#![allow(clippy::expect_used)]

#[path = "../../context/benches/figure/mod.rs"]
mod figure;

use plimsoll_context::{CallId, Message, Part, ToolCall, ToolResult};
use plimsoll_wire::RenderInput;
use plimsoll_wire::openai_chat::{Dialect, GrowingChat, render};

use figure::{Amount, Required, Unit, median, row, sections, time};

const LENGTHS: [usize; 3] = [100, 1_000, 10_000];
const ROUNDS: usize = 51;
/// Bytes of a result.
const RESULT: usize = 400;

fn main() {
    sections(&[("growing_chat", growing_chat)]);
}

fn growing_chat() {
    let (dialect, input) = (Dialect::openai(), RenderInput::default());
    for length in LENGTHS {
        let mut messages: Vec<Message> = (0..length).map(message).collect();
        let mut chat = GrowingChat::new(None, &dialect);
        messages.iter().for_each(|message| chat.push(message));
        let (mut grown, mut whole) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let turn = [message(messages.len()), message(messages.len() + 1)];
            let spent = time(|| {
                turn.iter().for_each(|message| chat.push(message));
                chat.request(&input)
            });
            grown.push(spent.as_secs_f64() * 1e6);
            messages.extend(turn);
            let spent = time(|| render(&input, &messages, &dialect).expect("it is rendered"));
            whole.push(spent.as_secs_f64() * 1e6);
        }
        let what = format!("body of a turn of a Chat of {length} messages, grown");
        row(
            &what,
            Amount(median(grown), Unit::Micros),
            Required::Nothing,
        );
        let what = "the same, rendered whole";
        row(what, Amount(median(whole), Unit::Micros), Required::Nothing);
    }
}

/// A call or its result.
fn message(index: usize) -> Message {
    let id = CallId(format!("call_{}", index / 2));
    if index.is_multiple_of(2) {
        let call = ToolCall {
            id,
            name: "read".to_owned(),
            arguments: format!(r#"{{"path":"books/{index}.txt"}}"#),
            opaque: None,
        };
        return Message::Assistant {
            parts: vec![Part::ToolCall(call)],
        };
    }
    let line = format!("{index}: a ship took on oil\n");
    Message::ToolResult(ToolResult {
        call: id,
        parts: vec![Part::text(line.repeat(RESULT / line.len()))],
        is_error: false,
    })
}
