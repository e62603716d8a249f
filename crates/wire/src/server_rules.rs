//! [`ServerRules`]: a server's requirements for the messages of a request, as data. Created by a
//! dialect or a profile, and followed by [`normalize`](crate::normalize).

use crate::call_ids::CallIdForm;

/// A server's requirements for the messages of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerRules {
    /// The accepted ids of calls.
    pub(crate) ids: CallIdForm,
    pub(crate) arguments: Arguments,
    pub(crate) system: SystemMessages,
    pub(crate) neighbors: Neighbors,
    pub(crate) results: Results,
    pub(crate) result_content: ResultContent,
    pub(crate) breakpoints: Breakpoints,
    /// Whether images and files are read. If not, a note replaces them.
    pub(crate) images: bool,
    /// Whether a text may be empty or only white space.
    pub(crate) blank_texts: bool,
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
    /// Whether each call and each block of the provider is an item beside the messages.
    pub(crate) items: bool,
    /// Whether the calls of a message are separate from its content.
    pub(crate) calls_apart: bool,
    /// Reasoning in plain text that assistant messages must repeat.
    pub(crate) reasoning: Option<ReasoningRule>,
}

impl ServerRules {
    /// The common rules of protocols whose messages are lists of blocks.
    pub(crate) const BLOCKS: Self = Self {
        ids: CallIdForm::Word,
        arguments: Arguments::Object,
        system: SystemMessages::Apart,
        neighbors: Neighbors::JoinBlocks,
        results: Results::InUserTurn,
        result_content: ResultContent::Texts,
        breakpoints: Breakpoints::Blocks,
        images: true,
        blank_texts: false,
        user_first: true,
        user_required: false,
        user_after_result: true,
        assistant_last: false,
        parallel_calls: true,
        items: false,
        calls_apart: false,
        reasoning: None,
    };
}

/// The arguments of calls that a server accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arguments {
    /// Any text.
    AnyText,
    /// A text that is a JSON object.
    ObjectText,
    /// A JSON object.
    Object,
}

/// The place of system messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SystemMessages {
    /// Anywhere.
    Anywhere,
    /// One, at the beginning; later ones are sent in the user's role.
    First,
    /// Beside the messages, texts only; later ones are sent in the user's role.
    Apart,
}

/// The treatment of consecutive messages of the same role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Neighbors {
    /// They stay separate.
    Keep,
    /// They become one, and so do their adjacent texts.
    JoinTexts,
    /// They become one with the blocks of both.
    JoinBlocks,
}

/// The place of tool results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Results {
    /// Each result is a separate turn.
    OwnTurn,
    /// They are the first blocks of the user turn after their calls.
    InUserTurn,
    /// They are a separate user turn after their calls. The user's other blocks are the next turn.
    ApartFromUser,
}

/// The content that a tool result may have. Other content follows the batch in a user turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultContent {
    Texts,
    /// Texts if the tool failed, otherwise any content.
    TextsIfFailed,
    Any,
}

/// The blocks that may have a cache breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breakpoints {
    /// The last text of a turn that ends with one.
    Texts,
    /// Any but thinking.
    Blocks,
}

/// The messages in which reasoning is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReasoningRule {
    /// Only in messages with calls.
    pub(crate) only_with_calls: bool,
    /// The text in place of missing reasoning.
    pub(crate) placeholder: Option<&'static str>,
}
