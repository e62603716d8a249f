//! The validator of Gemini's `generateContent`.

mod pairing;
mod validate;

pub(crate) use validate::{TABLE, snake_case};
pub use validate::{refusal, validate};
