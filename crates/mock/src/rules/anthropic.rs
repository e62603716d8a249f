//! The validator of Anthropic's Messages API.

mod pairing;
mod rules;
mod simulate;
mod validate;
mod validate_marks;
mod validate_settings;

pub(crate) use rules::TABLE;
pub(crate) use simulate::unmarked;
pub use simulate::{sign, undeclared, unsigned};
pub(crate) use validate::error_body;
pub use validate::{refusal, validate, validate_announced};
