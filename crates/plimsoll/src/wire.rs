//! Renders a view as the body of a provider's request, and interprets refusals: [`overflow`]
//! distinguishes a request that is too long from other errors.
//!
//! The requirements of servers are data: a [`Dialect`](openai_chat::Dialect) of OpenAI's Chat
//! Completions, a `Profile` of each other protocol.
//!
//! ```
//! use plimsoll::wire::overflow::{Verdict, classify};
//!
//! let body = r#"{"error": {"code": "context_length_exceeded", "message": "too long"}}"#;
//! assert!(matches!(classify(Some(400), body), Verdict::Overflow(_)));
//! ```

pub use plimsoll_wire::{
    CallIdForm, CallIdMap, Effort, EncodedRequest, LeftOut, Note, RenderInput, ToolChoice,
    WireError, overflow,
};

/// OpenAI's Chat Completions, and compatible servers.
pub mod openai_chat {
    pub use plimsoll_wire::openai_chat::{
        CacheMarks, Dialect, EchoReasoning, EmptyReasoning, ErrorStyle, NoContent, Template,
        ToolStyle, render,
    };
}

/// OpenAI's Responses.
pub mod openai_responses {
    pub use plimsoll_wire::openai_responses::{ReasoningItems, ResponsesProfile, render};
}

/// Anthropic's Messages.
pub mod anthropic {
    pub use plimsoll_wire::anthropic::{
        EffortSupport, MessagesProfile, NoThinking, Prefix, ThinkingStyle, render,
    };
}
