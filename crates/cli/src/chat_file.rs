//! A chat on standard input: mended, read and weighed. Both filters, `compact` and `count`,
//! begin here. No plan is made here.

use std::sync::Arc;

use plimsoll::wire::WireError;
use plimsoll::wire::canonical::{Mended, Reasoning, Target, mend};
use plimsoll::wire::openai_chat::{self, Chat, Dialect};
use plimsoll::{Bpe, Chars4, Estimate, Memo, Message, TokenCounter, Tokens, Transcript};

use crate::exit::Stop;

/// The counters by name; the first is the default.
pub(crate) const COUNTERS: [&str; 4] = ["o200k", "cl100k", "estimate", "chars4"];

/// A chat as it was read, and as a transcript.
pub(crate) struct ChatFile<'a> {
    pub(crate) chat: Chat<'a>,
    pub(crate) transcript: Transcript,
    /// Messages that were read: the first items, in their order.
    pub(crate) said: usize,
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
    openai_chat::read(text).map_err(unread)
}

/// Mends a chat of OpenAI's shape; where there is no message yet, there is nothing to mend.
pub(crate) fn mended(text: &str) -> Result<Mended, Stop> {
    if parse(text)?.messages.is_empty() {
        return Ok(Mended {
            request: text.to_owned(),
            repairs: Vec::new(),
            faults: Vec::new(),
        });
    }
    mend(text, &Target::Chat(Dialect::openai()), Reasoning::Keep).map_err(unread)
}

/// Why a chat cannot be read.
pub(crate) fn unread(error: WireError) -> Stop {
    match error {
        WireError::NotJson { reason } => Stop::failed(format!(
            "the input is not valid JSON ({reason}); give a chat as {{\"messages\": [...]}} or a bare array of messages"
        )),
        error => Stop::failed(error),
    }
}

/// Reads a chat that is whole.
pub(crate) fn read<'a>(
    text: &'a str,
    counter: &Arc<dyn TokenCounter>,
) -> Result<ChatFile<'a>, Stop> {
    let mut chat = parse(text)?;
    let messages: Vec<Message> = std::mem::take(&mut chat.messages);
    let mut transcript = Transcript::new(Arc::clone(counter));
    let said = messages.len();
    for message in messages {
        transcript.push(message);
    }
    transcript.mark_sent();
    let overhead = chat.tools.iter().map(|tool| counter.tool(tool)).sum();
    Ok(ChatFile {
        chat,
        transcript,
        said,
        overhead,
    })
}
