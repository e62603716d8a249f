//! Gemini's `generateContent`, as Google's two hosts serve it: which requests it refuses, and in
//! which words. A judge for fakes and tests; requests are not written here. Not the Chat
//! Completions that Google serves too.

mod pairing;
mod profile;
mod validate;

pub use crate::fault::MAX_FAULTS;
pub use profile::{Profile, Signatures};
pub use validate::{refusal, validate, validate_cache};
