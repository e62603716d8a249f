//! The data exchanged with a model: parts of messages, requests, replies and failures.
//!
//! Use this module to read messages, or to implement a model of your own: a
//! [`Provider`](crate::Provider) gets a [`Request`] and returns a [`Reply`] or a [`Failure`].
//!
//! ```
//! use async_trait::async_trait;
//! use plimsoll::model::{Failure, Reply, Request, StopReason};
//! use plimsoll::{Agent, Delta, Part, Provider};
//!
//! struct Parrot;
//!
//! #[async_trait]
//! impl Provider for Parrot {
//!     fn model(&self) -> &str {
//!         "zoo/parrot"
//!     }
//!
//!     async fn call(
//!         &self,
//!         request: &Request,
//!         _deltas: &(dyn Fn(Delta) + Send + Sync),
//!     ) -> Result<Reply, Failure> {
//!         let last = request.messages.iter().last();
//!         let text = last.map(|message| message.text()).unwrap_or_default();
//!         Ok(Reply {
//!             parts: vec![Part::text(text.as_str())],
//!             stop: StopReason::Stop,
//!             usage: None,
//!             model: None,
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! let agent = Agent::builder(Parrot).build()?;
//! assert_eq!(agent.run("Ahoy!").await?.text, "Ahoy!");
//! # Ok(())
//! # }
//! ```

pub use plimsoll_agent::{CountTokens, Expects, Failure, Request, Sampling, ToolChoice};
pub use plimsoll_context::{
    CallId, File, HostedTool, Image, MessageList, Opaque, Reply, Source, StopReason, Thinking,
    ToolSpec,
};
pub use plimsoll_core::Secret;
