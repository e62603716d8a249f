//! Makes any imported or damaged transcript valid, and reports the repairs.
//!
//! [`repair_request`] repairs a request in its protocol, [`canonical`] repairs messages, and [`import`] reads the
//! request of another client. Deterministic and idempotent. Valid parts keep their bytes.
//!
//! The order is a generalisation of the usual repairs:
//!
//! 1. `plimsoll_context::repair` drops duplicate results, closes open calls, drops orphaned results,
//!    and moves messages inside a batch behind it.
//! 2. Blocks of the provider's own that it would refuse are removed.
//! 3. A message is rendered anew if the protocol's validator refuses it: neighbours are merged, blank
//!    text is left out, foreign reasoning is dropped for whole tool loops, ids are mapped, and the
//!    first and the last message are given to the user.
//! 4. Cache breakpoints and settings that do not fit the history are removed.
//!
//! Sessions of our own are never damaged and are rendered anew for each request, so they do not need
//! this.

mod chat;
mod difference;
mod form;
mod lenient;
mod messages;
mod opaque;
mod order;
mod parsed_request;
mod patch;
mod rendered_request;
mod repair;
mod repair_attempt;
mod report;
mod request;
mod responses;
mod verdict;

use plimsoll_context::{Message, repair as close};
use plimsoll_wire::WireError;
use serde_json::Value;

pub use form::Rules;
pub(crate) use form::Form;
pub use repair::Repair;
pub use request::{Reasoning, RepairedRequest, repair_request};
pub(crate) use request::{loops, thinking};
pub use plimsoll_wire::Target;
pub(crate) use verdict::RequestVerdict;

use lenient::LenientParse;
use parsed_request::ParsedRequest;
use repair::Finding;

/// A valid transcript, and the repairs that were made.
#[derive(Debug, Clone, PartialEq)]
pub struct Canonical {
    /// The messages, each with its index in the input. `None` for an added message.
    pub messages: Vec<(Option<usize>, Message)>,
    /// The repairs, in input order. Empty if the input was valid.
    pub repairs: Vec<Repair>,
}

/// Parses a request or a history as JSON, to detect its protocol.
///
/// # Errors
///
/// [`WireError::NotJson`] with the place, also if the text is nested too deeply to be judged.
pub fn parse(text: &str) -> Result<Value, WireError> {
    plimsoll_wire::__internals::parse(text)
}

/// Reads the messages of another client's request or history, and repairs them, to continue the session
/// elsewhere. A system prompt beside the list becomes the first message.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] if there is no list of messages.
pub fn import(text: &str, target: &Target) -> Result<Canonical, WireError> {
    let lenient = LenientParse::of(text, target);
    let mut request = ParsedRequest::read(&lenient, target)?;
    let mut messages = std::mem::take(&mut request.document.messages);
    let instructions = target.form().facts().instructions_key;
    let instructions = instructions.and_then(|key| request.key(key));
    let instructions: Option<String> = instructions.and_then(|raw| serde_json::from_str(raw).ok());
    let instructions = instructions.filter(|text| !text.trim().is_empty());
    let before = usize::from(instructions.is_some());
    messages.splice(0..0, instructions.map(Message::system));
    let place = |at: usize| match at.checked_sub(before) {
        Some(at) => request.place(at),
        None => "system".to_owned(),
    };
    let mut whole = repaired(messages, target, place);
    let mut repairs = request.unreadable.clone();
    repairs.append(&mut whole.repairs);
    Ok(Canonical { repairs, ..whole })
}

/// Repairs messages so that rendering them for `target` produces a valid request.
///
/// Ids, roles and the reasoning of other providers stay as they are: rendering converts them and adds a
/// note.
#[must_use]
pub fn canonical(messages: Vec<Message>, target: &Target) -> Canonical {
    repaired(messages, target, |at| format!("messages[{at}]"))
}

fn repaired(
    mut messages: Vec<Message>,
    target: &Target,
    place: impl Fn(usize) -> String,
) -> Canonical {
    // Rendered requests ask servers not to store them.
    let mut findings = opaque::clean(&mut messages, target, false);
    let whole = close(messages);
    findings.extend(whole.repairs.iter().map(|one| Finding::of(one, target)));
    findings.sort_by_key(|one| one.at);
    let repair = |one: Finding| Repair {
        place: place(one.at),
        rule: one.rule,
        done: one.done,
        words: one.words,
    };
    Canonical {
        messages: whole.messages,
        repairs: findings.into_iter().map(repair).collect(),
    }
}
