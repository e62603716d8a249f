//! Strict mock servers of language models' APIs, for tests of anything that talks to one. A server
//! judges every request by the rules of its API and refuses in its words, enforces a window, plays a
//! script and streams it, reports what a prompt cache would have held, and can be slow, cut off,
//! overloaded or silently forgetful. Not a model: it says what the script says.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use plimsoll_mock::{Mock, Script, Server};
//!
//! let script = Script::parse(r#"{"call": [{"name": "read", "arguments": {"path": "a.rs"}}]}
//! {"say": "It is empty."}"#)?;
//! let server = Server::start(Mock::chat("openai")?.script(script).window(8_192)).await?;
//! println!("a client's base URL: {}/v1", server.address());
//! assert!(server.requests().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod api;
mod cache;
mod chat;
mod desk;
mod error;
mod gate;
mod messages;
mod mock;
mod pieces;
mod record;
mod responses;
mod script;
mod server;
mod turn;

pub use cache::{CACHE_STEP, LEAST_CACHED, MAX_CACHED_PREFIXES, MAX_CACHED_REQUESTS};
pub use error::MockError;
pub use gate::{Gate, Opener};
pub use mock::Mock;
pub use record::{MAX_RECORDED, MAX_RECORDED_BYTES, Recorded, Tally};
pub use responses::MAX_STORED;
pub use script::{MAX_SCRIPT, Script};
pub use server::{MAX_BODY, Server};
pub use turn::{Call, Turn};
