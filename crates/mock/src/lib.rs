//! Strict mock servers of language models' APIs, for tests of clients.
//!
//! A server validates every request by the rules of its API and refuses it with the API's errors,
//! enforces a window, plays a script and streams it, and reports the hits of a simulated prompt
//! cache. It can be slow, cut off, overloaded, or silently drop the beginning of a history. There
//! is no model: all answers come from the script.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use plimsoll_mock::{Mock, Script, Server};
//!
//! let script = Script::parse(r#"{"call": [{"name": "read", "arguments": {"path": "a.rs"}}]}
//! {"say": "It is empty."}"#)?;
//! let server = Server::start(Mock::chat("openai")?.script(script).window(8_192)).await?;
//! println!("a client's base URL: {}", server.base_url());
//! assert!(server.requests().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod answer;
mod api;
mod bounded;
mod cache;
mod chat;
mod encode;
mod error;
mod frames;
mod gate;
mod gemini;
mod messages;
mod mock;
mod pieces;
mod record;
mod request_handler;
mod responses;
pub mod rules;
mod script;
mod server;
mod turn;

pub use cache::{CACHE_STEP, LEAST_CACHED, MAX_CACHED_CHUNKS, MAX_CACHED_PREFIXES};
pub use error::MockError;
pub use gate::{Gate, Opener};
pub use mock::Mock;
pub use record::{MAX_RECORDED, MAX_RECORDED_BYTES, RecordedRequest, RequestTotals};
pub use responses::MAX_STORED;
pub use script::Script;
pub use server::{MAX_BODY, Server};
pub use turn::{Call, Turn};
