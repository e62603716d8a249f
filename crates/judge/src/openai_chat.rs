//! The validator of Chat Completions, for each server's dialect.

mod echo;
mod pairing;
mod settings;
mod validate;

#[cfg(test)]
pub(crate) use validate::TABLE;
pub(crate) use validate::{is_prefix, unfit};
pub use validate::{refusal, validate};
