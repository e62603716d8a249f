//! Makes any imported or damaged transcript valid, and says what it did: [`mend`] a request in a
//! wire's own words, [`canonical`] messages, [`import`] what another client has left. Deterministic, and content with its own work: mending
//! twice changes nothing more. What is valid keeps its bytes.
//!
//! The order is that of the field's own repairs, generalised: duplicate results are dropped, open
//! calls closed, orphaned results dropped, what was said in between held until after the batch
//! (`plimsoll_context::repair`); blocks of the provider's own that it would refuse are taken out;
//! then, only where the validator of the wire refuses what is there, a message is written as the
//! wire renders it: neighbours merged, blank text left out, foreign reasoning dropped for whole
//! tool loops, ids mapped, the first and the last word given to the user. At last come breakpoints
//! of the cache and settings that the history does not allow.
//!
//! Not for sessions of our own, which are never damaged and rendered anew for each request.

mod chat;
mod difference;
mod form;
mod judged;
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
mod target;

use plimsoll_context::{Message, repair as close};
use plimsoll_wire::WireError;
use serde_json::Value;

pub(crate) use judged::Judged;
pub use repair::Repair;
pub use request::{Mended, Reasoning, mend};
pub(crate) use request::{loops, thinking};
pub use target::Target;

use lenient::LenientParse;
use parsed_request::ParsedRequest;
use repair::Finding;

/// A whole transcript, and what was done to make it so.
#[derive(Debug, Clone, PartialEq)]
pub struct Canonical {
    /// The messages, each with its place in the input; `None` where it was added.
    pub messages: Vec<(Option<usize>, Message)>,
    /// What was done, in input order; empty where nothing was wrong.
    pub repairs: Vec<Repair>,
}

/// A request or a history as JSON, to see what it is written in.
///
/// # Errors
///
/// [`WireError::NotJson`], with the place; so also for what is nested too deep to be judged.
pub fn parse(text: &str) -> Result<Value, WireError> {
    plimsoll_wire::__internals::parse(text)
}

/// Reads the messages of a request or a history, from whatever client it comes, and mends them:
/// what stands beside them as its system prompt comes first. For those who go on with it elsewhere.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] where there is no list of messages.
pub fn import(text: &str, target: &Target) -> Result<Canonical, WireError> {
    let lenient = LenientParse::of(text, target);
    let mut request = ParsedRequest::read(&lenient, target)?;
    let mut messages = std::mem::take(&mut request.document.messages);
    let instructions = target.form().instructions_key();
    let instructions = instructions.and_then(|key| request.key(key));
    let instructions: Option<String> = instructions.and_then(|raw| serde_json::from_str(raw).ok());
    let instructions = instructions.filter(|text| !text.trim().is_empty());
    let before = usize::from(instructions.is_some());
    messages.splice(0..0, instructions.map(Message::system));
    let place = |at: usize| match at.checked_sub(before) {
        Some(at) => request.place(at),
        None => "system".to_owned(),
    };
    let mut whole = mended(messages, target, place);
    let mut repairs = request.unreadable.clone();
    repairs.append(&mut whole.repairs);
    Ok(Canonical { repairs, ..whole })
}

/// Mends messages, so that what the wire of `target` renders of them is valid. What only has another
/// form there (ids, roles, reasoning of another provider) stays as it is: rendering does that, and
/// notes it.
#[must_use]
pub fn canonical(messages: Vec<Message>, target: &Target) -> Canonical {
    mended(messages, target, |at| format!("messages[{at}]"))
}

fn mended(
    mut messages: Vec<Message>,
    target: &Target,
    place: impl Fn(usize) -> String,
) -> Canonical {
    // Rendered requests ask servers to keep nothing.
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
