//! [`WireForm`]: how a protocol writes the parts of a request that repairs read and change.
//! `chat.rs`, `responses.rs` and `messages.rs` implement it for the profile of one server or model.

use std::collections::BTreeSet;
use std::fmt::Debug;

use plimsoll_context::{Message, Opaque};
use plimsoll_wire::__internals::RawObject;
use plimsoll_wire::__internals::anthropic::At;
use plimsoll_wire::{DocumentFormat, EncodedRequest, WireError};
use serde_json::Value;

use super::lenient::{IdOwner, IdPlace, Notes};
use super::opaque::kind;
use super::parsed_request::Unit;
use super::repair::Finding;
use super::Target;
use crate::fault::{Fault, Rule};

/// The properties of a protocol, whatever the server or the model.
pub(crate) struct FormFacts {
    /// The origin of the provider's own blocks.
    pub(crate) origin: &'static str,
    /// How the protocol reads a list of messages, and writes it back.
    pub(crate) document: &'static DocumentFormat,
    /// The key of a system prompt beside the list that is one of the messages.
    pub(super) system_key: Option<&'static str>,
    /// The key of a system prompt beside the list that is a setting.
    pub(super) instructions_key: Option<&'static str>,
    /// Whether a tool loop has to begin with thinking while the model thinks with a budget.
    pub(crate) opens_with_thinking: bool,
    /// The rule for a call without a result.
    pub(super) open: Rule,
    /// The rule for a result without a call.
    pub(super) orphan: Rule,
    /// The rule for a result that does not follow its call.
    pub(super) moved: Rule,
    /// The rule for a message without content.
    pub(super) empty: Rule,
}

/// A turn that is written anew.
pub(crate) struct Rewritten<'r> {
    /// The units that it was read from.
    pub(super) units: &'r [&'r Unit<'r>],
    /// The entries that it is rendered as.
    pub(super) raws: &'r [String],
    /// Whether it is the whole content of its unit.
    pub(super) is_only: bool,
    /// Whether it is only written because a part of it was removed, not because of a fault.
    pub(super) is_unblamed: bool,
}

/// A block of the provider's own.
pub(crate) struct OwnBlock<'b> {
    pub(super) opaque: &'b Opaque,
    pub(super) json: Value,
    pub(super) message: &'b Message,
}

impl OwnBlock<'_> {
    pub(super) fn kind(&self) -> &str {
        kind(&self.json)
    }

    /// Returns the role of its message.
    pub(super) fn role(&self) -> &'static str {
        match self.message {
            Message::Assistant { .. } => "assistant",
            Message::ToolResult(_) => "tool",
            Message::System { .. } => "system",
            _ => "user",
        }
    }
}

/// How a protocol writes a history.
pub(crate) trait WireForm: Debug {
    /// Returns the properties of the protocol.
    fn facts(&self) -> &'static FormFacts;

    /// Returns the faults of a request.
    fn validate(&self, request: &Value) -> Vec<Fault>;

    /// Returns the key of the messages or items.
    fn list(&self) -> &'static str {
        self.facts().document.key
    }

    /// Returns `true` if a turn consists of several entries of the list.
    fn has_items(&self) -> bool {
        self.facts().document.has_items
    }

    /// Returns `true` if thinking is bound to all that the model had read.
    fn binds_thinking(&self) -> bool {
        false
    }

    /// Returns the messages of persons that must stay, because others speak in the user's role, too.
    fn persons(&self, _: &[Message]) -> Vec<usize> {
        Vec::new()
    }

    /// Turns a list of messages into a request if the validator does not judge a list alone.
    fn wrap(&self, _: &mut Value) {}

    /// Returns a setting that the API requires, with its usual value.
    fn required_setting(&self) -> Option<(&'static str, Value)> {
        None
    }

    /// Returns the form for a request or a history, if it differs. A request names its model.
    fn adapted(&self, _: &Value) -> Option<Target> {
        None
    }

    /// Returns `true` if a message has no ids, as in the protocol's first version.
    fn is_legacy(&self, _: &Value) -> bool {
        false
    }

    /// Renders messages: a body with the list under [`WireForm::list`], or the list alone.
    fn render(&self, messages: &[Message], model: &str) -> Result<EncodedRequest, WireError>;

    /// Returns the entries that replace a turn.
    fn stands_for(&self, turn: &Rewritten<'_>) -> Vec<String>;

    /// Returns the reason why a block would be refused at any place of its message. `stored` is `true`
    /// if the server stores requests.
    fn unfit(&self, block: &OwnBlock<'_>, stored: bool) -> Option<(Rule, String)>;

    /// Returns the calls of the provider's own tools that have lost their results, and results that have
    /// lost their calls.
    fn parted(&self, _: &[Message], _gone: &BTreeSet<At>) -> Vec<(At, Finding)> {
        Vec::new()
    }

    /// Returns a message or an item as readers expect it, if it differs.
    fn converted(&self, raw: &str, place: &str, notes: &mut Notes) -> Option<String>;

    /// Returns the system prompt as readers expect it, if it differs.
    fn converted_system(&self, _: &RawObject<'_>, _: &mut Notes) -> Option<String> {
        None
    }

    /// Returns the calls and results in an entry, and their ids.
    fn pairs(&self, entry: &RawObject<'_>) -> Vec<(IdOwner, Option<String>)>;

    /// Returns the place of the ids in an entry that begins with a call or with a result.
    fn id_place(&self, first: IdOwner) -> IdPlace;
}

/// The form of a target.
pub(crate) trait Form {
    /// Returns how the protocol writes a history.
    fn form(&self) -> &dyn WireForm;
}

impl Form for Target {
    fn form(&self) -> &dyn WireForm {
        match self {
            Self::Chat(dialect) => dialect,
            Self::Responses(profile) => profile,
            Self::Messages(profile) => profile,
        }
    }
}

/// The rules of a target.
pub trait Rules {
    /// Returns the rules that a request breaks, according to the protocol's validator.
    fn validate(&self, request: &Value) -> Vec<Fault>;
}

impl Rules for Target {
    fn validate(&self, request: &Value) -> Vec<Fault> {
        self.form().validate(request)
    }
}
