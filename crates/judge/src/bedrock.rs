//! The validator of Bedrock's `Converse`.

mod pairing;
mod validate;

pub use validate::{ERROR_TYPE, refusal, validate};
