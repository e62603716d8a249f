//! What the servers of Chat Completions refuse, each as its dialect says.

mod echo;
mod pairing;
mod settings;
mod validate;

pub(crate) use validate::{is_prefix, unknown_kind};
pub use validate::{refusal, validate};
