//! Floor 2 of Plimsoll: the wire formats of language models as types. A view is rendered into
//! each and read back, and refusals are classified. No I/O, no clock, no async: bytes in, values out.
//! What servers refuse, and how damaged requests are repaired, is in `plimsoll_judge`.
//!
//! One module a protocol ([`openai_chat`], [`openai_responses`], [`anthropic`], [`gemini`],
//! [`bedrock`]), each of the same build: types, a dialect or profile as data, `render`, a stream
//! reader and, but for the last two, `read`. What all share is here: [`WireError`], the fixed texts
//! of [`frames`], and [`overflow::classify`], one table for all providers.
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
//! # What Chat Completions cannot hold
//!
//! `read(render(view)) == view` for everything but this, in the dialect `openai`:
//!
//! - **Whether a tool failed** (`is_error`). The text of a result is sent as it is; a tool's
//!   error text has to say that it is one.
//! - **A notice** of the host is sent in the user's role and comes back as a user message. A
//!   summary comes back as a summary, by its frame.
//! - **Images, files and foreign blocks in tool results.** A tool message is text: they follow the
//!   whole batch in a user message, and come back as one.
//! - **The order of an assistant's parts.** Thinking comes first, then text, then calls; several
//!   thinking parts become one; an empty text is left out.
//! - **Thinking**, unless the dialect gives reasoning back, and then only unsigned: what another
//!   provider signed or encrypted stays away.
//! - **An assistant message that says nothing** (no text, no calls) is left out; no server
//!   accepts one.
//! - **A message without parts** of another role comes back with one empty text.
//! - **The size of an image**; the wire has no place for it. The bytes are kept exactly.
//! - **Ids of calls with more than 40 characters, or used before,** are mapped; the name of a tool
//!   gets `_` for characters that no name may have.
//! - **A file by address** is taken as an id of the provider; for one of the web a note stands.
//! - **Blocks of another wire** ([`Opaque`](plimsoll_context::Opaque)) are left out; blocks of
//!   this one (audio, refusals) keep their content and the order of their keys, not their spaces.
//! - **The order of tools**; they are sent sorted by name.
//!
//! Other dialects hold less, as their fields say: they join several texts into one, merge
//! neighbours of one role, move later system messages into the user's role, put a word between
//! neighbours that may not touch, map ids of tool calls, split batches, and wrap arguments that
//! are not a JSON object. A [`Note`] tells what of a view was left out or changed.
//!
//! A request that is only read and written back loses nothing, on any wire: messages
//! that were not edited keep their bytes, edited ones all their other keys, blocks and items.
//!
//! What a reply can say and [`Reply`](plimsoll_context::Reply) does not keep: alternatives after
//! the first (`n` > 1), log probabilities, generated audio, the response's id, and the order of thinking, text and calls
//! in the stream.
//!
//! # What Responses cannot hold
//!
//! `read(render(view)) == view` for everything but this, where reasoning is sent as it is
//! ([`openai_responses::ReasoningItems::Plain`]):
//!
//! - **Whether a tool failed**, **a notice**, **the size of an image** and **the order of tools**:
//!   as in Chat Completions. A result may hold images and files here.
//! - **Thinking that is not this wire's own**, and all that may not be sent: such as nothing came
//!   of, and such without its encrypted content where nothing is stored. What is sent keeps its
//!   item byte for byte.
//! - **Two messages of the model's in a row** come back as one, unless both only say something.
//! - **An assistant message that says nothing**, an empty text in one, and images in one. A message
//!   or a result without parts comes back with one empty text.
//! - **Ids of calls with more than 64 characters, or used before,** are mapped; a tool's name gets `_`
//!   for characters that no name may have. **Ids of items** are sent where they may be.
//! - **Blocks of another wire** are left out. An item of the provider's own in a user message comes
//!   back as a message of its own.
//! - **A tool's schema that is no object** gets what it lacks. **The detail `auto`** of an image is
//!   sent where none is asked for, and comes back as none.
//!
//! What a request may hold that [`openai_responses::read`] does not keep: ids and statuses of
//! messages and results, annotations and further keys of texts, images and files, and whether a
//! tool is `strict`, which the profile decides. [`Document::write`] gives all of it
//! back where a message was not edited. Besides these, what a reply can say and is not kept: log probabilities, item ids of tool
//! calls (nothing is stored that they could name), and the response's id.
//!
//! # What Messages cannot hold
//!
//! `read(render(view)) == view` for everything but this, for a model that signs only its thinking
//! (not [`binds_prefix`](anthropic::Profile::binds_prefix)):
//!
//! - **A notice**, **the size and detail of an image** and **the order of tools**: as in Chat
//!   Completions. A system message between others comes back as a user message.
//! - **Two messages of one role in a row** come back as one; a summary stays one by its frame. What
//!   was said between a call and its result stands after the results.
//! - **An empty text, or one of white space**, is left out, and an assistant message that says
//!   nothing else. White space at the end of a prefill is cut.
//! - **Media of other types** than JPEG, PNG, GIF, WebP and PDF, and media in the assistant's place:
//!   a note stands there. Those of a failed result follow the batch.
//! - **Thinking that this provider did not sign**, that is another model's, or that is bound to what
//!   is no longer there; it goes for a whole tool loop. So does thinking at the end of a message,
//!   and all of it where a model that thinks by a budget is not asked to think.
//! - **Arguments that are no JSON object** are sent inside one. **Names of tools** get `_` for
//!   characters that no name has. **Ids of calls** with other characters than letters, digits, `_`
//!   and `-`, with more than 64, or used before are mapped.
//! - **Blocks of another wire** are left out; blocks of this one keep their bytes, but not a
//!   breakpoint. **Citations** stand behind the text that they are of, and go when it is changed.
//!
//! What a reply can say and
//! `Reply` does not keep: its id, the text that ended it, and how long what was cached lives. A turn
//! that was only paused ([`StopReason::Paused`](plimsoll_context::StopReason)) goes back as it stands,
//! and a call of the provider's own tool that stayed without a result is left out.
//!
//! # What Gemini and Converse cannot hold
//!
//! These requests are only written, and their replies read:
//!
//! - **A notice**, **the size and detail of an image** and **the order of tools**: as in Chat
//!   Completions. Two messages of one role in a row become one, but results stay apart if the server
//!   wants that. An assistant message at the end is followed by a short user message.
//! - **Media in a tool result** follow the batch. Media that the API does not read become a note.
//! - **Thinking**: Gemini gets its signatures back, each in its part, and no text of thoughts. Converse
//!   gets what the same model signed, from Claude only while it thinks.
//! - **Blocks of another provider** are left out; Gemini gets its executed code back.

mod aligned;
pub mod anthropic;
mod arguments;
pub mod bedrock;
mod block_list;
mod call_ids;
mod chunks;
mod compose;
mod decoder;
mod document;
mod error;
pub mod frames;
pub mod gemini;
pub mod hosted;
mod normalize;
mod object;
mod open_reply;
mod open_turns;
pub mod openai_chat;
pub mod openai_responses;
pub mod overflow;
mod raw;
mod renderer;
mod request;
mod server_rules;
mod sources;
mod tools;
mod turns;

pub use call_ids::{CallIdForm, CallIdMap};
pub use chunks::BodyChunks;
pub use compose::WrittenMessages;
pub use decoder::StreamDecoder;
pub use document::{Document, DocumentFormat, MessageSpan, Slot};
pub use error::WireError;
pub use renderer::{RequestRenderer, render_next};
pub use request::{Delivery, Effort, LeftOut, Note, RenderInput, Rendered, ToolChoice};

/// What `plimsoll-judge` shares with this crate. Not for other users: it may change at any time.
#[doc(hidden)]
pub mod __internals {
    pub use crate::arguments::is_json_object;
    pub use crate::call_ids::{MAX_CHAT_ID, MAX_ID, is_word};
    pub use crate::error::{CHAT, kind as json_kind};
    pub use crate::raw::{Raw, RawObject, parse, quoted};

    /// Of Messages.
    pub mod anthropic {
        pub use crate::anthropic::MARK;
        pub use crate::anthropic::hosted::{FAMILIES, MCP_TOOLSET, beta_of, family_of};
        pub use crate::anthropic::pause::{
            At, Waiting, calls_server, goes_on_from, named_caller, parted,
        };
        pub use crate::anthropic::render::{CONTEXT_MANAGEMENT, FILES};
    }

    /// Of Chat Completions.
    pub mod openai_chat {
        pub use crate::openai_chat::details::{AUDIO, keys as message_keys};
        pub use crate::openai_chat::parts::CUSTOM;
        pub use crate::openai_chat::reach::reasons;
        pub use crate::openai_chat::render::render_list;
    }

    /// Of Responses.
    pub mod openai_responses {
        pub use crate::openai_responses::hosted::TOOLS;
        pub use crate::openai_responses::ids::{fits, is_name};
        pub use crate::openai_responses::render::ENCRYPTED;
        pub use crate::openai_responses::schema::{unfit_for_strict, unfit_for_tool};

        /// Kinds of items.
        pub mod items {
            pub use crate::openai_responses::items::*;
        }
    }
}
