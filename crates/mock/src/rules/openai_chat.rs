//! The validator of Chat Completions, for each server's dialect.

mod echo;
mod pairing;
mod settings;
mod validate;

pub(crate) use validate::{TABLE, error_body};
pub use validate::{refusal, validate};
