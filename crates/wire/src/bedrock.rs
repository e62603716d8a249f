//! Bedrock's `Converse`, one shape for the models of many makers: which requests it refuses, and in
//! which words. A judge for fakes and tests; requests are not written here. Not `InvokeModel`,
//! which takes each maker's own shape.

mod pairing;
mod profile;
mod validate;

pub use crate::fault::MAX_FAULTS;
pub use profile::{MixedTurn, Profile};
pub use validate::{ERROR_TYPE, refusal, validate};
