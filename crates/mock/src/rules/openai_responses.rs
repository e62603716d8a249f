//! The validator of OpenAI's Responses API.

mod pairs;
mod schema;
mod simulate;
mod validate;

pub use pairs::{tied, untied};
pub use simulate::{encrypt, unreadable};
pub(crate) use validate::TABLE;
pub use validate::{refusal, validate, validate_count};
