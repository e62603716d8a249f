//! [`Protocol`]: the three protocols in which chats of other programs are written.

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
        match self {
            Self::Chat | Self::Messages => "messages",
            Self::Responses => "input",
        }
    }

    /// Returns the key of the system prompt beside the list, if the protocol has one.
    #[must_use]
    pub fn beside(self) -> Option<&'static str> {
        match self {
            Self::Chat => None,
            Self::Responses => Some("instructions"),
            Self::Messages => Some("system"),
        }
    }
}
