//! [`ServerRules`]: a server's requirements for the messages of a request, as data. Created by a
//! dialect or a profile, and followed by [`normalize`](crate::normalize).

use crate::call_ids::CallIdForm;

/// A server's requirements for the messages of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerRules {
    pub(crate) form: MessageForm,
    /// The accepted ids of calls.
    pub(crate) ids: CallIdForm,
    /// Whether the arguments of calls must be JSON objects.
    pub(crate) object_arguments: bool,
    /// Whether there is only one system message, at the beginning. Later ones are sent in the user's role.
    pub(crate) system_first: bool,
    /// Whether consecutive messages of the same role become one.
    pub(crate) merges_roles: bool,
    /// Whether the results of a batch are a separate user turn if results are blocks.
    pub(crate) results_apart: bool,
    /// Whether a result may have other content than texts, which follows the batch otherwise. If messages
    /// are blocks, a failed result never may.
    pub(crate) media_in_results: bool,
    /// Whether images and files are read. If not, a note replaces them.
    pub(crate) images: bool,
    /// Whether the first message must be the user's.
    pub(crate) user_first: bool,
    /// Whether a user message must exist.
    pub(crate) user_required: bool,
    /// Whether a user message may follow a tool result.
    pub(crate) user_after_result: bool,
    /// Whether the last message may be the assistant's.
    pub(crate) assistant_last: bool,
    /// Whether one assistant message may contain several calls.
    pub(crate) parallel_calls: bool,
    /// Reasoning in plain text that assistant messages must repeat.
    pub(crate) reasoning: Option<ReasoningRule>,
}

/// The form of the messages of a protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessageForm {
    /// A content with calls beside it. Each result is a message.
    Chat,
    /// Each call, each result and each block of the provider is an item beside the messages.
    Items,
    /// Lists of blocks: results are the first blocks of a user message, system messages stand beside the
    /// messages, and no text may be empty or only white space.
    Blocks,
}

impl ServerRules {
    /// The common rules of protocols whose messages are lists of blocks.
    pub(crate) const BLOCKS: Self = Self {
        form: MessageForm::Blocks,
        ids: CallIdForm::Word,
        object_arguments: true,
        system_first: false,
        merges_roles: true,
        results_apart: false,
        media_in_results: false,
        images: true,
        user_first: true,
        user_required: false,
        user_after_result: true,
        assistant_last: false,
        parallel_calls: true,
        reasoning: None,
    };

    /// Returns `true` if messages are lists of blocks.
    pub(crate) fn has_blocks(&self) -> bool {
        self.form == MessageForm::Blocks
    }

    /// Returns `true` if a text may be sent, although it may be empty or only white space.
    pub(crate) fn accepts(&self, text: &str) -> bool {
        !self.has_blocks() || !text.trim().is_empty()
    }
}

/// The messages in which reasoning is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReasoningRule {
    /// Only in messages with calls.
    pub(crate) only_with_calls: bool,
    /// The text in place of missing reasoning.
    pub(crate) placeholder: Option<&'static str>,
}
