//! The validator of Gemini's `generateContent`.

mod pairing;
mod validate;

pub(crate) use validate::TABLE;
pub use validate::{refusal, validate};
