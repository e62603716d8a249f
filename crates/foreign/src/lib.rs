//! Layer 4 of Plimsoll: chats of other programs, as [`Unit`]s that know where they came from.
//!
//! A [`Chat`] is read from a request body of one of three [`Protocol`]s, or made from the units of a log. Units
//! are changed, removed and inserted; the writer copies the bytes of the others. No I/O, no clock, no async.
//!
//! ```
//! use plimsoll_foreign::{Chat, Protocol};
//!
//! let body = r#"{"model": "m", "messages": [{"role":"user", "content":"One."},
//!   {"role":"user","content":"Two." }]}"#;
//! let mut chat = Chat::read(body, Protocol::Chat)?;
//! assert_eq!(chat.write(), body);
//!
//! chat.units[0].remove();
//! let two = r#"{"model":"m","messages":[{"role":"user","content":"Two." }]}"#;
//! assert_eq!(chat.write(), two);
//! # Ok::<(), plimsoll_wire::WireError>(())
//! ```

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod chat;
mod compact;
mod repair;
mod surrogates;
mod unit;

pub use chat::Chat;
pub use compact::{Body, BodyCut, CutError};
pub use plimsoll_wire::__internals::parse;
pub use plimsoll_wire::{Protocol, Target};
pub use repair::{CLOSED_CALL, Reasoning, Repair, RepairedRequest, import, repair, repair_request};
pub use surrogates::{half_characters_repair, replace_half_characters, without_half_characters};
pub use unit::{Change, Place, Role, Unit};
