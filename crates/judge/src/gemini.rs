//! The validator of Gemini's `generateContent`.

mod pairing;
mod validate;

pub use validate::{refusal, validate, validate_cache};
