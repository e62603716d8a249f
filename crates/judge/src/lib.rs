//! Layer 3 of Plimsoll: validates requests as servers do, and repairs invalid ones. The formats are in
//! `plimsoll_wire`; a program that only sends requests does not need this crate. No I/O, no clock, no
//! async.
//!
//! - One module per protocol ([`openai_chat`], [`openai_responses`], [`anthropic`], [`gemini`],
//!   [`bedrock`]): `validate` returns each [`Fault`] of a request, in the words of the server.
//! - [`canonical`] repairs damaged requests and histories.
//! - [`body`] changes a request in place.
//!
//! ```
//! use plimsoll_judge::openai_chat::validate;
//! use plimsoll_wire::openai_chat::Dialect;
//!
//! let request = serde_json::json!({"model": "gpt-5", "messages": []});
//! let faults = validate(&request, &Dialect::openai());
//! assert_eq!(faults[0].place, "messages");
//! ```

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

pub mod anthropic;
pub mod bedrock;
pub mod body;
pub mod canonical;
mod fault;
pub mod gemini;
mod json_path;
pub mod openai_chat;
pub mod openai_responses;
mod table;

pub use fault::{Fault, MAX_FAULTS, Rule};
