//! What the fuzz targets share: how an input is read, how it is changed, and what has to hold of
//! whatever was read. Not a test by itself.

#[path = "../../crates/mock/tests/rules/damage.rs"]
#[allow(dead_code)]
mod damage;
mod input;
mod mutate;
#[path = "../../crates/providers/src/sse.rs"]
#[allow(dead_code, unreachable_pub)]
mod sse;
mod sse_events;
mod stream;
mod view;

pub use input::Input;
pub use mutate::mutate;
pub use sse_events::{Seen, events};
pub use stream::{Wire, stream};
pub use view::{
    MODELS, Opaques, chat_dialects, mended, ours, repaired, request, responses_profiles, shown,
};
