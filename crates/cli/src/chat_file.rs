//! A chat on standard input: read, repaired and weighed. Both filters, `compact` and `count`,
//! begin here. No plan is made here.

use std::sync::Arc;

use plimsoll::wire::WireError;
use plimsoll::wire::openai_chat::{self, Chat};
use plimsoll::{Bpe, Chars4, Estimate, Memo, Message, Repair, TokenCounter, Tokens, Transcript};

use crate::exit::Stop;

/// The counters by name; the first is the default.
pub(crate) const COUNTERS: [&str; 4] = ["o200k", "cl100k", "estimate", "chars4"];

/// A chat as it was read, and as a transcript.
pub(crate) struct ChatFile<'a> {
    pub(crate) chat: Chat<'a>,
    pub(crate) transcript: Transcript,
    /// For each item of the transcript, by its sequence number: its place in the input.
    pub(crate) origins: Vec<Option<usize>>,
    pub(crate) repairs: Vec<Repair>,
    /// What the tools weigh.
    pub(crate) overhead: Tokens,
}

/// The counter of this name.
pub(crate) fn counter(name: &str) -> Result<Arc<dyn TokenCounter>, Stop> {
    match name {
        "o200k" => Ok(Arc::new(Memo::new(Bpe::o200k()))),
        "cl100k" => Ok(Arc::new(Memo::new(Bpe::cl100k()))),
        "estimate" => Ok(Arc::new(Estimate)),
        "chars4" => Ok(Arc::new(Chars4)),
        _ => Err(Stop::usage(format!(
            "there is no counter `{name}`; there is: {}",
            COUNTERS.join(", ")
        ))),
    }
}

/// Reads a chat as it is.
pub(crate) fn parse(text: &str) -> Result<Chat<'_>, Stop> {
    if text.trim().is_empty() {
        return Err(Stop::failed(
            "the input is empty; give a chat as JSON: {\"messages\": [...]} or a bare array of messages",
        ));
    }
    openai_chat::read(text).map_err(|error| match error {
        WireError::NotJson { reason } => Stop::failed(format!(
            "the input is not valid JSON ({reason}); give a chat as {{\"messages\": [...]}} or a bare array of messages"
        )),
        error => Stop::failed(error),
    })
}

/// Reads and repairs a chat.
pub(crate) fn read<'a>(
    text: &'a str,
    counter: &Arc<dyn TokenCounter>,
) -> Result<ChatFile<'a>, Stop> {
    let mut chat = parse(text)?;
    let messages: Vec<Message> = std::mem::take(&mut chat.messages);
    let repaired = plimsoll::repair(messages);
    let mut transcript = Transcript::new(Arc::clone(counter));
    let mut origins = Vec::with_capacity(repaired.messages.len());
    for (origin, message) in repaired.messages {
        transcript.push(message);
        origins.push(origin);
    }
    transcript.mark_sent();
    let overhead = chat.tools.iter().map(|tool| counter.tool(tool)).sum();
    Ok(ChatFile {
        chat,
        transcript,
        origins,
        repairs: repaired.repairs,
        overhead,
    })
}
