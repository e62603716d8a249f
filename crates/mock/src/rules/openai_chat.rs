//! The validator of Chat Completions, for each server's dialect.

mod conditions;
mod pairing;
mod validate;

pub(crate) use validate::{TABLE, error_body};
pub use validate::{refusal, validate};
