//! [`repair`]: a list of named fix-ups that make a damaged chat one that its provider accepts.
//!
//! Each fix-up changes only the units that need it. The order is the order of [`FIX_UPS`].

mod breakpoints;
mod calls;
mod images;
mod pairs;
mod piece;
mod roles;
mod shapes;
mod shapes_chat;
mod shapes_messages;
mod shapes_responses;
mod thinking;

use std::fmt;

use plimsoll_context::Message;
use plimsoll_wire::{Protocol, Target, WireError};
use serde::Serialize;
use serde_json::Value;

use crate::chat::Chat;
use crate::surrogates::without_half_characters;
use crate::unit::{Role, Unit};
pub use piece::CLOSED_CALL;
pub(crate) use shapes_messages::blocks;

/// One repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The place in the input: `messages[3]`, `input[7]`, `system`.
    pub place: String,
    /// The name of the fix-up, as docs/repair.md lists them.
    pub fix: &'static str,
    /// The action, in words.
    pub done: String,
}

impl Repair {
    /// Returns the rule of providers that the repair restores.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self.fix {
            "shapes" => "values must have the type and the place that the API defines",
            "lines" => "an agent reads one entry on each line, and sends each part once",
            "images" => "images must not exceed the provider's limit for bytes",
            "ids" => "each tool call must have an id of its own, in the provider's form",
            "orphans" => "each result must answer one earlier tool call",
            "unanswered" => "each tool call must have one result",
            "order" => "results must stand directly behind their calls",
            "hosted" => "a call of the provider's own tool must have its result",
            "empty" => "messages and texts must not be empty",
            "thinking" => "thinking must be signed, complete and unchanged since it was signed",
            "roles" => "messages must have the order of roles that the server requires",
            "last" => "the last message must be one that the model answers",
            "reasoning" => "the server requires reasoning back with tool calls",
            "breakpoints" => "a request must not have more than four breakpoints of the cache",
            _ => "settings must fit the messages",
        }
    }
}

/// A repaired request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairedRequest {
    /// The request. If nothing had to be repaired, it is the input byte for byte.
    pub request: String,
    /// The repairs, in the order of the fix-ups.
    pub repairs: Vec<Repair>,
}

/// The treatment of reasoning without a known fault.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reasoning {
    /// Reasoning stays.
    #[default]
    Keep,
    /// Reasoning is removed. For a request with a signature that the provider has refused.
    Drop,
}

/// A chat under repair.
pub(crate) struct Patient<'c, 'a> {
    pub(crate) chat: &'c mut Chat<'a>,
    pub(crate) target: &'c Target,
    pub(crate) reasoning: Reasoning,
    /// Whether it is a request. A history, which names no model, may end with the model's message.
    pub(crate) is_request: bool,
    /// The name of the current fix-up.
    fix: &'static str,
    repairs: Vec<Repair>,
}

type FixUp = fn(&mut Patient<'_, '_>);

/// The fix-ups, in their order. `ids` also does `orphans`, `unanswered`, `order` and `hosted`.
const FIX_UPS: [(&str, FixUp); 12] = [
    ("shapes", shapes::fix),
    ("images", images::fix),
    ("ids", calls::fix),
    ("empty", shapes::empty),
    ("thinking", thinking::fix),
    ("shapes", shapes_messages::systems),
    ("empty", shapes::open),
    ("roles", roles::fix),
    ("last", roles::last),
    ("reasoning", thinking::echo),
    ("settings", thinking::setting),
    ("breakpoints", breakpoints::fix),
];

/// Repairs a request, or a bare list of its messages or items.
///
/// # Errors
///
/// [`WireError::NotJson`], or [`WireError::Expected`] if there is no list of messages.
pub fn repair_request(
    text: &str,
    target: &Target,
    reasoning: Reasoning,
) -> Result<RepairedRequest, WireError> {
    let (text, halves) = without_half_characters(text.to_owned());
    let mut chat = Chat::read(&text, target.protocol())?;
    let mut repairs: Vec<Repair> = halves.into_iter().collect();
    repairs.extend(repair(&mut chat, target, reasoning));
    Ok(RepairedRequest {
        request: chat.write().into_owned(),
        repairs,
    })
}

/// Repairs the request or the history of another program, and returns its messages, to continue it
/// elsewhere. A system prompt beside the list becomes the first message.
///
/// # Errors
///
/// [`WireError::Expected`] with the place of a value that no message can have. None is known: the repair
/// gives every message its form.
pub fn import(
    mut chat: Chat<'_>,
    target: &Target,
    reasoning: Reasoning,
) -> Result<(Vec<Message>, Vec<Repair>), WireError> {
    // The messages are not sent as they are, so they may end with the model's.
    chat.remove_key("model");
    // Without a message there is nothing to repair.
    let repairs = match chat.units.iter().all(Unit::is_beside) {
        true => Vec::new(),
        false => repair(&mut chat, target, reasoning),
    };
    let (document, _) = chat.document()?;
    Ok((document.messages, repairs))
}

/// Repairs a chat, and returns the repairs. Deterministic and idempotent.
pub fn repair(chat: &mut Chat<'_>, target: &Target, reasoning: Reasoning) -> Vec<Repair> {
    let mut patient = Patient {
        is_request: chat.key("model").is_some(),
        chat,
        target,
        reasoning,
        fix: "",
        repairs: Vec::new(),
    };
    for (name, fix) in FIX_UPS {
        patient.fix = name;
        fix(&mut patient);
    }
    patient.repairs
}

impl<'a> Patient<'_, 'a> {
    pub(crate) fn protocol(&self) -> Protocol {
        self.chat.protocol
    }

    /// Returns a unit that is written.
    fn left(&self, at: usize) -> Option<&Unit<'a>> {
        self.chat.units.get(at).filter(|unit| unit.is_left())
    }

    /// Changes each unit that is written, and reports the actions that `change` returns.
    fn each<D: Into<String>>(&mut self, mut change: impl FnMut(&mut Unit<'_>) -> Option<D>) {
        for at in 0..self.chat.units.len() {
            let unit = self.chat.units.get_mut(at);
            if let Some(done) = unit.filter(|unit| unit.is_left()).and_then(&mut change) {
                self.note(at, done);
            }
        }
    }

    /// Changes the content of a unit, and reports the change.
    fn edit(&mut self, at: usize, done: impl Into<String>, change: impl FnOnce(&mut Value)) {
        self.note(at, done);
        if let Some(unit) = self.chat.units.get_mut(at) {
            change(unit.edit());
        }
    }

    /// Returns the parts of the units that are written, each with its unit and its JSON pointer there.
    fn parts(&self) -> impl Iterator<Item = (usize, String, &Value)> {
        let units = self.chat.units.iter().enumerate();
        let units = units.filter(|(_, unit)| unit.is_left());
        units.flat_map(|(at, unit)| {
            let parts = piece::parts(unit.value());
            parts.map(move |(place, part)| (at, place, part))
        })
    }

    /// Changes a part of a unit, and reports the change.
    fn edit_part(&mut self, at: usize, place: &str, done: &str, change: impl FnOnce(&mut Value)) {
        self.edit(at, done, |unit| {
            if let Some(part) = unit.pointer_mut(place) {
                change(part);
            }
        });
    }

    /// Removes a unit, and reports why.
    fn remove(&mut self, at: usize, why: impl Into<String>) {
        self.note(at, why);
        if let Some(unit) = self.chat.units.get_mut(at) {
            unit.remove();
        }
    }

    /// Inserts a message of this role before a unit, and reports that.
    fn insert(&mut self, at: usize, role: Role, value: Value, done: &'static str) {
        let at = at.min(self.chat.units.len());
        self.note(at, done);
        let role = match self.protocol() {
            Protocol::Messages => role,
            Protocol::Chat | Protocol::Responses => Role::Own,
        };
        let unit = Unit::inserted(role, self.chat.new_turn(), value);
        self.chat.units.insert(at, unit);
    }

    /// Reports a repair at a unit.
    fn note(&mut self, unit: usize, done: impl Into<String>) {
        let place = self.chat.place(unit);
        self.note_at(place, done);
    }

    fn note_at(&mut self, place: String, done: impl Into<String>) {
        let repair = Repair {
            place,
            fix: self.fix,
            done: done.into(),
        };
        if self.repairs.last() != Some(&repair) {
            self.repairs.push(repair);
        }
    }

    /// Returns the index of the first unit of the list that is written.
    fn first_of_list(&self) -> Option<usize> {
        let mut units = self.chat.units.iter();
        units.position(|unit| !unit.is_beside() && unit.is_left())
    }
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.place, self.done, self.fix)
    }
}
