//! A chat from a file or standard input: parsed, and with its tokens counted, on any of the three
//! protocols.

use std::sync::Arc;

use plimsoll::Tokens;
use plimsoll::config::{COUNTERS, token_counter};
use plimsoll::context::Transcript;
use plimsoll::foreign::{Body, Chat, ParsedRequest, Protocol, Target};
use plimsoll::tokens::TokenCounter;
use plimsoll::wire::WireError;

use crate::error::CliError;

/// The error for an empty input.
pub(crate) const EMPTY: &str = "the input is empty; give a chat as JSON: {\"messages\": [...]}, {\"input\": [...]} or a bare array";

/// A chat as it was read, and as a transcript.
pub(crate) struct ChatFile<'a> {
    pub(crate) body: Body<'a>,
    /// Message `i` of the body has the number `i`.
    pub(crate) view: Transcript,
    /// The tokens of the tools.
    pub(crate) overhead: Tokens,
}

/// Returns the counter with this name.
pub(crate) fn counter(name: &str) -> Result<Arc<dyn TokenCounter>, CliError> {
    token_counter(name).ok_or_else(|| {
        CliError::usage(format!(
            "there is no counter `{name}`; choose one of: {}",
            COUNTERS.join(", ")
        ))
    })
}

/// Parses a chat, whose protocol is not known yet.
pub(crate) fn parse(text: &str) -> Result<ParsedRequest<'_>, CliError> {
    if text.trim().is_empty() {
        return Err(CliError::failed(EMPTY));
    }
    ParsedRequest::parse(text).map_err(unread)
}

/// Returns a chat in the protocol of a target, without repairing it.
pub(crate) fn chat<'a>(request: ParsedRequest<'a>, target: &Target) -> Result<Chat<'a>, CliError> {
    request.into_chat(Protocol::of(target)).map_err(unread)
}

/// Converts an error to the message that a chat cannot be read.
pub(crate) fn unread(error: WireError) -> CliError {
    match error {
        WireError::NotJson { reason } => CliError::failed(format!(
            "the input is not valid JSON ({reason}); give a chat as {{\"messages\": [...]}}, {{\"input\": [...]}} or a bare array of messages"
        )),
        error => CliError::failed(error),
    }
}

/// Counts the tokens of a chat.
pub(crate) fn weighed<'a>(body: Body<'a>, counter: &Arc<dyn TokenCounter>) -> ChatFile<'a> {
    let view = body.transcript(counter);
    let overhead = body.overhead(counter.as_ref());
    ChatFile {
        body,
        view,
        overhead,
    }
}
