//! Layer 2 of Plimsoll: the protocols of language models as types.
//!
//! A view is rendered into each protocol and read back, and refusals are classified. No I/O, no clock,
//! no async: bytes in, values out. Repairing the requests of other programs is the
//! job of `plimsoll_foreign`.
//!
//! Each protocol is a module ([`openai_chat`], [`openai_responses`], [`anthropic`], [`gemini`],
//! [`bedrock`]) with the same structure: types, a dialect or profile as data, `render`, a stream reader
//! and, except for the last two, `read`. Shared by all are [`WireError`], the fixed texts of
//! [`prompt_texts`], and [`overflow::classify`], one table for all providers.
//!
//! ```
//! use plimsoll_context::Message;
//! use plimsoll_wire::RenderInput;
//! use plimsoll_wire::openai_chat::{Dialect, read, render};
//!
//! let history = [Message::user("What is in README.md?")];
//! let input = RenderInput { model: "gpt-5", system: Some("Be brief."), ..RenderInput::default() };
//! let dialect = Dialect::named("openai").unwrap_or_default();
//!
//! let body = render(&input, &history, &dialect)?.body;
//! let body = String::from_utf8_lossy(&body);
//!
//! let chat = read(&body)?;
//! assert_eq!(chat.messages, [Message::system("Be brief."), history[0].clone()]);
//! # Ok::<(), plimsoll_wire::WireError>(())
//! ```
//!
//! # Limits of Chat Completions
//!
//! In the dialect `openai`, `read(render(view)) == view` with these exceptions:
//!
//! - **The failure of a tool** (`is_error`) is lost. The text of a result is sent unchanged, so an
//!   error text must be recognizable as one.
//! - **A notice** of the host is sent in the user's role and comes back as a user message. A summary
//!   comes back as a summary, because of its frame.
//! - **Images, files and foreign blocks in tool results** follow the whole batch in a user message, and
//!   come back as one, because a tool message is text.
//! - **The order of an assistant's parts** is fixed: thinking comes first, then text, then calls.
//!   Several thinking parts become one. An empty text is left out.
//! - **Thinking** is left out, unless the dialect sends reasoning back. Even then, thinking that
//!   another provider signed or encrypted is left out.
//! - **An assistant message without text and calls** is left out, because no server accepts it.
//! - **A message without parts** of another role comes back with one empty text.
//! - **The size of an image** is lost, because the protocol has no place for it. The bytes are kept
//!   exactly.
//! - **Ids of calls with more than 40 characters, or used before,** are mapped. In the name of a tool,
//!   `_` replaces characters that no name may have.
//! - **A file by address** is sent as an id of the provider. A note replaces a file with a web address.
//! - **Blocks of another protocol** ([`Opaque`](plimsoll_context::Opaque)) are left out. Blocks of this
//!   one (audio, refusals) keep their content and the order of their keys, not their spaces.
//! - **The order of tools** is lost; they are sent sorted by name.
//!
//! Other dialects lose more, as their fields document: they join several texts into one, merge
//! neighbours of one role, move later system messages into the user's role, insert short messages
//! between neighbours, map ids of tool calls, split batches, and wrap arguments that are not a JSON
//! object. A [`Note`] reports each part of a view that was left out or changed.
//!
//! A request that is only read and written back loses nothing in any protocol: unedited messages keep
//! their bytes, edited ones keep all their other keys, blocks and items.
//!
//! [`Reply`](plimsoll_context::Reply) does not keep these contents of a reply: alternatives after the
//! first (`n` > 1), log probabilities, generated audio, the response's id, and the order of thinking,
//! text and calls in the stream.
//!
//! # Limits of Responses
//!
//! If reasoning is sent unencrypted ([`openai_responses::ReasoningItems::Plain`]),
//! `read(render(view)) == view` with these exceptions:
//!
//! - **The failure of a tool**, **a notice**, **the size of an image** and **the order of tools**: as
//!   in Chat Completions. A result may contain images and files here.
//! - **Thinking of another protocol** is left out, and so is reasoning that must not be sent: without
//!   an item after it, or without encrypted content if nothing is stored. Other reasoning keeps its
//!   item byte for byte.
//! - **Two assistant messages in a row** come back as one, unless both are only text.
//! - **An assistant message without content**, and an empty text or an image in one, are left out. A
//!   message or a result without parts comes back with one empty text.
//! - **Ids of calls with more than 64 characters, or used before,** are mapped. In a tool's name, `_`
//!   replaces characters that no name may have. **Ids of items** are sent if they may be.
//! - **Blocks of another protocol** are left out. An item of the provider's own in a user message comes
//!   back as a separate message.
//! - **A tool's schema that is not an object** is completed. **The detail `auto`** is sent for an image
//!   without a detail, and comes back as none.
//!
//! [`openai_responses::read`] does not keep these contents of a request: ids and statuses of messages
//! and results, annotations and additional keys of texts, images and files, and whether a tool is
//! `strict`. The crate `plimsoll-foreign` keeps all of them in unedited
//! messages. Of a reply, log probabilities, item ids of tool calls (the server has not stored the
//! items), and the response's id are not kept either.
//!
//! # Limits of Messages
//!
//! For a model that signs only its thinking (not
//! [`binds_prefix`](anthropic::MessagesProfile::binds_prefix)),
//! `read(render(view)) == view` with these exceptions:
//!
//! - **A notice**, **the size and detail of an image** and **the order of tools**: as in Chat
//!   Completions. A system message between others comes back as a user message.
//! - **Two messages of one role in a row** come back as one. A summary stays separate because of its
//!   frame. A message between a call and its result comes after the results.
//! - **An empty text, or one of white space**, is left out, and so is an assistant message without
//!   other content. White space at the end of a prefill is cut.
//! - **Media of other types** than JPEG, PNG, GIF, WebP and PDF, and media in assistant messages, are
//!   replaced by a note. Those of a failed result follow the batch.
//! - **Thinking that this provider did not sign**, of another model, or bound to messages that have
//!   changed, is left out for a whole tool loop. So is thinking at the end of a message, and all
//!   thinking if a model with a budget is not asked to think.
//! - **Arguments that are not a JSON object** are sent inside one. In **names of tools**, `_` replaces
//!   characters that no name has. **Ids of calls** are mapped if they have other characters than
//!   letters, digits, `_` and `-`, have more than 64, or were used before.
//! - **Blocks of another protocol** are left out, and so are **citations** of a text. Blocks of this
//!   protocol keep their bytes, but not a breakpoint.
//!
//! `Reply` does not keep these contents of a reply: its id, the text that ended it, and the lifetime of
//! cache entries. A paused turn ([`StopReason::Paused`](plimsoll_context::StopReason)) is sent back
//! unchanged, and a call of the provider's own tool is left out if it never got a result.
//!
//! # Limits of Gemini and Converse
//!
//! These requests are only written, and their replies read:
//!
//! - **A notice**, **the size and detail of an image** and **the order of tools**: as in Chat
//!   Completions. Two messages of one role in a row become one, but results stay separate if the server
//!   requires that. An assistant message at the end is followed by a short user message.
//! - **Media in a tool result** follow the batch. Media that the API does not read become a note.
//! - **Thinking**: Gemini receives the signatures of its calls, and no text of thoughts. Converse
//!   receives reasoning signed by the same model, from Claude only while it thinks.
//! - **Blocks of another provider** are left out. Gemini receives its executed code.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod anthropic;
pub mod bedrock;
mod block_list;
mod call_ids;
mod compose;
mod decoder;
mod document;
mod error;
pub mod gemini;
pub mod hosted;
mod normalize;
mod object;
mod open_reply;
mod open_turns;
pub mod openai_chat;
pub mod openai_responses;
pub mod overflow;
pub mod prompt_texts;
mod raw;
mod read;
mod request;
mod server_rules;
mod target;
mod tools;
mod turns;
mod value;

pub use call_ids::{CallIdForm, CallIdMap};
pub use compose::RequestRenderer;
pub use decoder::StreamDecoder;
pub use document::{Document, DocumentFormat, MessageSpan, NewEntries};
pub use error::WireError;
pub use request::{Effort, EncodedRequest, LeftOut, Note, RenderInput, ToolChoice};
pub use target::{Protocol, Target};

/// Items that other crates of Plimsoll share with this one. Not for other users: it may change at any time.
#[doc(hidden)]
pub mod __internals {
    pub use crate::call_ids::is_word;
    pub use crate::raw::{RawObject, parse, quoted, with_list};
    pub use crate::tools::{is_json_object, is_legal_name, legal_name, object_text};
    pub use crate::value::{kind as json_kind, list, set, text, unset};

    /// Items of Messages.
    pub mod anthropic {
        pub use crate::anthropic::MARK;
        pub use crate::anthropic::hosted::{beta_of, family_of};
        pub use crate::anthropic::pause::{
            OpenCalls, calls_server, goes_on_from, is_passed_through, named_caller,
        };
        pub use crate::anthropic::render::{CONTEXT_MANAGEMENT, FILES};
    }

    /// Items of Chat Completions.
    pub mod openai_chat {
        pub use crate::openai_chat::details::AUDIO;
        pub use crate::openai_chat::model_support::reasons;
        pub use crate::openai_chat::parts::CUSTOM;
    }

    /// Items of Responses.
    pub mod openai_responses {
        pub use crate::openai_responses::settings::ENCRYPTED;

        /// Kinds of items.
        pub mod items {
            pub use crate::openai_responses::items::*;
        }
    }
}
