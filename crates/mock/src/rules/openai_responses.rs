//! The validator of OpenAI's Responses API.

mod count;
mod pairing;
mod schema;
mod settings;
mod simulate;
mod validate;

pub use count::validate_count;
pub use pairing::{tied, untied};
pub use simulate::{encrypt, unreadable};
pub(crate) use validate::TABLE;
pub use validate::{refusal, validate};
