//! The requests that each server refuses, in its words.
//!
//! One module per protocol: `validate` returns each [`Fault`] of a request. The rules, their order, and the
//! words of all refusals are lines of text in `crates/mock/rules`; only rules that compare several places are
//! code. No I/O, no clock, no async.
//!
//! ```
//! use plimsoll_mock::rules::openai_chat::validate;
//! use plimsoll_wire::openai_chat::Dialect;
//!
//! let request = serde_json::json!({"model": "gpt-5", "messages": []});
//! let faults = validate(&request, &Dialect::openai());
//! assert_eq!(faults[0].place, "messages");
//! ```

pub mod anthropic;
pub mod bedrock;
mod fault;
pub mod gemini;
mod json_path;
pub mod openai_chat;
pub mod openai_responses;
pub(crate) mod table;

use plimsoll_wire::Target;
use serde_json::Value;

pub use fault::{Fault, MAX_FAULTS, SHAPE};

/// The rules of a target.
pub trait Validate {
    /// Returns the rules that a request breaks.
    fn validate(&self, request: &Value) -> Vec<Fault>;
}

impl Validate for Target {
    fn validate(&self, request: &Value) -> Vec<Fault> {
        match self {
            Self::Chat(dialect) => openai_chat::validate(request, dialect),
            Self::Responses(profile) => openai_responses::validate(request, profile),
            Self::Messages(profile) => anthropic::validate(request, profile),
        }
    }
}
