//! What Bedrock's `Converse` refuses.

mod pairing;
mod validate;

pub use validate::{ERROR_TYPE, refusal, validate};
