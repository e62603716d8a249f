//! `plimsoll count`: counts the tokens of each message of a chat. The chat is not repaired, so
//! indexes are those of the input.

use plimsoll::foreign::Body;
use plimsoll::{Message, Tokens};
use serde_json::{Value, json};

use crate::args::CountArgs;
use crate::chat_file;
use crate::error::{CliError, DONE};
use crate::input;
use crate::listing;
use crate::terminal::text::one_line;

/// Runs the command.
pub(crate) fn run(args: &CountArgs) -> Result<u8, CliError> {
    let counter = chat_file::counter(&args.counter)?;
    let mut given = input::chat(args.file.as_deref())?;
    for repair in &given.repairs {
        say!("repaired: {repair}");
    }
    let (chat, target) = chat_file::read(&mut given, None, None)?;
    let chat = Body::of(chat, &target)
        .map_err(|error| CliError::failed(format!("{error}; `plimsoll repair` corrects it")))?;
    let weights: Vec<Tokens> = chat
        .messages
        .iter()
        .map(|message| counter.message(message))
        .collect();
    let tools = chat.overhead(counter.as_ref());
    let total = weights.iter().copied().sum::<Tokens>() + tools;
    if args.json {
        let messages: Vec<Value> = chat
            .messages
            .iter()
            .zip(&weights)
            .map(|(message, tokens)| json!({ "role": role(message), "tokens": tokens }))
            .collect();
        let report = json!({ "counter": counter.name(), "messages": messages, "tools": tools, "total": total });
        out!("{report}");
        return Ok(DONE);
    }
    let row = |number: &str, role: &str, tokens: Tokens, text: String| {
        [number.to_owned(), role.to_owned(), tokens.to_string(), text]
    };
    let messages = chat.messages.iter().zip(weights).enumerate();
    let messages = messages.map(|(number, (message, tokens))| {
        row(&number.to_string(), role(message), tokens, preview(message))
    });
    let tools = (tools > Tokens::ZERO).then(|| row("", "tools", tools, String::new()));
    let total = row("", "total", total, format!("counted by {}", counter.name()));
    let rows = messages.chain(tools).chain([total]);
    listing::print_columns([">#", "role", ">tokens", "text"], rows)?;
    Ok(DONE)
}

fn role(message: &Message) -> &'static str {
    match message.role() {
        "notice" | "summary" => "user",
        role => role,
    }
}

/// Returns the first words of a message on one line.
pub(crate) fn preview(message: &Message) -> String {
    let mut text = message.text();
    for call in message.calls() {
        text.push_str(&format!(" {}({})", call.name, call.arguments));
    }
    one_line(&text)
}
