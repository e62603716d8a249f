//! [`Protocol`]: the three protocols in which chats of other programs are written.

use plimsoll_wire::{DocumentFormat, Target, anthropic, openai_chat, openai_responses};

/// The protocol of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// OpenAI Chat Completions.
    Chat,
    /// OpenAI Responses.
    Responses,
    /// Anthropic Messages.
    Messages,
}

impl Protocol {
    /// Returns the protocol of a target.
    #[must_use]
    pub fn of(target: &Target) -> Self {
        match target {
            Target::Chat(_) => Self::Chat,
            Target::Responses(_) => Self::Responses,
            Target::Messages(_) => Self::Messages,
        }
    }

    /// Returns the name, as in `--protocol`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "openai",
            Self::Responses => "openai-responses",
            Self::Messages => "anthropic",
        }
    }

    /// Returns the key of the list of messages or items in a request.
    #[must_use]
    pub fn list(self) -> &'static str {
        self.format().key
    }

    /// Returns the key of the system prompt beside the list, if the protocol has one.
    #[must_use]
    pub fn beside(self) -> Option<&'static str> {
        self.format().system
    }

    /// Returns how `wire` reads the protocol.
    pub(crate) fn format(self) -> &'static DocumentFormat {
        match self {
            Self::Chat => &openai_chat::FORMAT,
            Self::Responses => &openai_responses::FORMAT,
            Self::Messages => &anthropic::FORMAT,
        }
    }
}
