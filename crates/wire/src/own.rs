//! Blocks of a provider in a transcript, which are sent back only to the protocol that they came from.

use plimsoll_context::Opaque;
use serde::Deserialize;

/// Creates a block of a protocol.
pub(crate) fn opaque(origin: &str, data: impl Into<String>) -> Opaque {
    Opaque {
        origin: origin.to_owned(),
        data: data.into(),
    }
}

/// Returns the content of a block of this protocol. `None` for other blocks.
pub(crate) fn own<'a, T: Deserialize<'a>>(opaque: &'a Opaque, origin: &str) -> Option<T> {
    let is_own = opaque.origin == origin;
    is_own
        .then(|| serde_json::from_str(&opaque.data).ok())
        .flatten()
}
