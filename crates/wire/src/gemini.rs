//! Gemini's `generateContent`, as Google's two hosts serve it: which requests it refuses, and in
//! which words. A judge for fakes and tests; requests are not written here. Not the Chat
//! Completions that Google serves too.

mod pairing;
mod profile;
mod validate;

pub use profile::{Profile, Signatures};
pub use validate::{MAX_FAULTS, refusal, validate, validate_cache};
