//! The validator of Bedrock's `Converse`.

mod pairing;
mod validate;

#[cfg(test)]
pub(crate) use validate::TABLE;
pub use validate::{ERROR_TYPE, refusal, validate};
