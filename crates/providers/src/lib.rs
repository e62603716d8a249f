//! Layer 4 of Plimsoll: models behind HTTP APIs. Sends the requests that `wire` renders and returns
//! the replies that `wire` decodes. The driver retries failed requests, not this crate. The content
//! of requests and replies is never written to a log.
//!
//! ```no_run
//! use plimsoll_core::Provider;
//! use plimsoll_providers::{ModelClient, ModelRef};
//!
//! # async fn example() -> Result<(), plimsoll_providers::ProviderError> {
//! let model = ModelRef::parse("ollama/qwen3:8b")?;
//! let client = ModelClient::builder(model).build()?;
//! let window = client.window().await;
//! # Ok(())
//! # }
//! ```

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

mod api_key;
mod base_url;
mod builder;
mod cache_lifetime;
mod client;
mod detect;
mod discovery;
mod error;
mod event_stream;
mod explain;
mod failure;
mod http;
#[cfg(feature = "local")]
pub mod local;
mod model_ref;
mod models;
mod protocol;
mod receive;
mod rejected_reasoning;
mod retry_after;
mod sse;
mod target;
mod thinking;
#[doc(hidden)]
pub mod tls;
mod vendor;

pub use api_key::{ApiKey, Variables, environment, find_base_url, find_key, need_key};
pub use base_url::BaseUrl;
pub use builder::ModelClientBuilder;
pub use client::ModelClient;
pub use detect::{
    DETECT_TIMEOUT, Detection, KeyFound, ServerFound, ServerState, detect, detect_keys,
    detect_servers,
};
pub use error::ProviderError;
pub use explain::{RequestExplanation, Sample};
pub use http::{
    CONNECT_TIMEOUT, DRAIN_TIMEOUT, IDLE_TIMEOUT, LOAD_TIMEOUT, MAX_ERROR_BODY, MAX_PROBE_BODY,
    PROBE_TIMEOUT, Timeouts, USAGE_GRACE,
};
pub use model_ref::ModelRef;
pub use models::{
    Fact, MAX_PRICE, MAX_WINDOW, MIN_PRICE, MIN_WINDOW, MODEL_KEYS, ModelBook, ModelError,
    ModelFacts, Origin, Prices,
};
pub use plimsoll_core::Secret;
pub use protocol::responses_profile;
pub use receive::{MAX_STREAM, SILENCES_AN_EVENT};
pub use target::{NoTarget, target, target_of};
pub use vendor::{ServerLocation, UrlPlaceholder, VENDORS, Vendor, WindowReport, Wire};
