//! What Gemini's `generateContent` refuses.

mod pairing;
mod validate;

pub use validate::{refusal, validate, validate_cache};
