//! The validator of Gemini's `generateContent`.

mod pairing;
mod validate;

pub(crate) use validate::{TABLE, field};
pub use validate::{refusal, validate};
