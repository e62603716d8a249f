//! [`Unit`]: the smallest piece of a chat of another program that is copied, changed or removed by itself,
//! with the place in the input that it came from.

use std::borrow::Cow;
use std::sync::OnceLock;

use plimsoll_wire::__internals::parse;
use serde_json::Value;

/// The turn of the system prompt beside the list.
const BESIDE: usize = usize::MAX;

/// The place of a unit in its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The number of the entry, from 0: in the list of messages or items of a request body, or on the active branch of
    /// a log.
    pub entry: usize,
    /// The number of the unit within its entry, from 0.
    pub block: usize,
}

/// The role in which a unit is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions.
    System,
    /// The user. Results of tools have this role in Messages.
    User,
    /// The model.
    Assistant,
    /// The unit states its role itself, as messages of Chat Completions and items of Responses do, or has
    /// none.
    Own,
}

impl Role {
    /// Returns the role with this name in a message.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut roles = [Self::System, Self::User, Self::Assistant].into_iter();
        roles.find(|role| role.name() == name)
    }

    /// Returns the name in a message. A unit that states its role itself has none.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Own => "",
        }
    }
}

/// The history of a unit since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The unit is as it was in the input. Writers copy its bytes.
    Unchanged,
    /// The unit has another content, or was added. It is written anew.
    Changed,
    /// The unit is not written. It stays in the list, so that a report can name it.
    Removed,
}

/// A content block of Messages, an item of Responses, or a message of Chat Completions.
///
/// Chats in Messages consist of blocks because a log may have a line for each of them. An entry of a Messages
/// body that is no message with a content is one unit, with [`Role::Own`].
#[derive(Debug, Clone)]
pub struct Unit<'a> {
    /// Its place in the list of the input. `None` for an inserted unit, and for the system prompt beside the list. It
    /// does not change if the unit is moved.
    pub place: Option<Place>,
    /// The role in which it is sent.
    pub role: Role,
    /// The number of its message. Neighbors with the same number are written as one message of Messages; the
    /// other protocols do not use it. Numbers need not ascend.
    pub turn: usize,
    /// The JSON text: that of the input, if the unit is unchanged.
    raw: Option<Cow<'a, str>>,
    /// The content of that text, as long as it is needed.
    parsed: OnceLock<Value>,
    /// The content, if there is no text.
    own: Option<Value>,
    change: Change,
}

impl<'a> Unit<'a> {
    /// Creates a unit of the input. `raw` is the text that `value` was parsed from, which is copied as long as the unit
    /// is unchanged.
    fn read(role: Role, turn: usize, raw: Option<&'a str>, value: Value) -> Self {
        let (parsed, own) = match raw {
            Some(_) => (OnceLock::from(value), None),
            None => (OnceLock::new(), Some(value)),
        };
        Self {
            place: None,
            role,
            turn,
            raw: raw.map(Cow::Borrowed),
            parsed,
            own,
            change: Change::Unchanged,
        }
    }

    /// Creates a unit of an entry of a body, which is also the number of its message.
    pub(crate) fn of_body(place: Place, role: Role, raw: Option<&'a str>, value: Value) -> Self {
        Self {
            place: Some(place),
            ..Self::read(role, place.entry, raw, value)
        }
    }

    /// Creates a unit of a log. `entry` is the number of its entry, `block` its number within that, and `value` its
    /// content in the form of the chat's protocol. [`Chat::of_log`](crate::Chat::of_log) sets its turn.
    #[must_use]
    pub fn of_log(entry: usize, block: usize, role: Role, value: Value) -> Self {
        Self::of_body(Place { entry, block }, role, None, value)
    }

    /// Creates the system prompt beside the list.
    pub(crate) fn beside(raw: Option<&'a str>, value: Value) -> Self {
        Self::read(Role::System, BESIDE, raw, value)
    }

    /// Creates a unit that was not in the input.
    #[must_use]
    pub fn inserted(role: Role, turn: usize, value: Value) -> Self {
        Self {
            change: Change::Changed,
            ..Self::read(role, turn, None, value)
        }
    }

    /// Returns the unit as removed, without its content.
    pub(crate) fn without_content(&self) -> Self {
        Self {
            place: self.place,
            change: Change::Removed,
            ..Self::inserted(self.role, self.turn, Value::Null)
        }
    }

    /// Returns the content in the form of the chat's protocol.
    #[must_use]
    pub fn value(&self) -> &Value {
        let own = self.own.as_ref();
        own.unwrap_or_else(|| self.parsed.get_or_init(|| parsed(self.raw.as_deref())))
    }

    /// Keeps only the JSON text, which takes less memory than the content. That is parsed again if it is needed.
    pub(crate) fn forget_value(&mut self) {
        self.parsed.take();
        if let Some(own) = self.own.take() {
            let mut text = own.to_string();
            text.shrink_to_fit();
            self.raw = Some(text.into());
        }
    }

    /// Returns the content to be changed. The unit is no longer unchanged.
    pub fn edit(&mut self) -> &mut Value {
        let raw = self.raw.take();
        if self.change == Change::Unchanged {
            self.change = Change::Changed;
        }
        let value = self.parsed.take();
        self.own
            .get_or_insert_with(|| value.unwrap_or_else(|| parsed(raw.as_deref())))
    }

    /// Removes the unit. It stays in the list of its chat, without being written.
    pub fn remove(&mut self) {
        self.change = Change::Removed;
    }

    /// Returns what happened to the unit.
    #[must_use]
    pub fn change(&self) -> Change {
        self.change
    }

    /// Checks whether the unit is the system prompt beside the list.
    #[must_use]
    pub fn is_beside(&self) -> bool {
        self.turn == BESIDE
    }

    /// Checks whether the unit is written.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.change != Change::Removed
    }

    /// Returns the JSON text: the bytes of the input, if there are any and the unit is unchanged.
    #[must_use]
    pub fn json(&self) -> Cow<'_, str> {
        match &self.raw {
            Some(raw) => Cow::Borrowed(raw),
            None => Cow::Owned(self.value().to_string()),
        }
    }
}

/// Parses a text that was parsed before.
fn parsed(raw: Option<&str>) -> Value {
    raw.and_then(|raw| parse(raw).ok()).unwrap_or_default()
}
