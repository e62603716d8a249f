//! The validator of Anthropic's Messages API.

mod conditions;
mod marks;
mod pairing;
mod signatures;
mod thinking;
mod validate;

pub(crate) use signatures::unmarked;
pub use signatures::{sign, undeclared, unsigned};
pub(crate) use validate::{TABLE, error_body};
pub use validate::{refusal, validate, validate_announced};
