//! Recall of evicted messages.
//!
//! The log of a session contains every message whole, so whatever was removed from the view or
//! shortened in it can be read again: by the model with the tools `recall` and `recall_search`, and by
//! the host with [`SessionStore::recall`](crate::SessionStore::recall) and [`LogMessages`].
//!
//! ```
//! use plimsoll::store::MemoryStore;
//! use plimsoll::{Agent, SessionStore};
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//!
//! let store = std::sync::Arc::new(MemoryStore::default());
//! let agent = Agent::builder(model).store(store.clone()).build()?;
//! let mut session = agent.session(plimsoll::session::new_session_id()).await?;
//! session.run("What do you see?").await?;
//! let question = store.recall(session.id(), "m0").await?;
//! assert_eq!(question.text(), "What do you see?");
//! # Ok(())
//! # }
//! ```

pub use plimsoll_core::recall::*;
pub use plimsoll_core::{RECALL_LEAST_WINDOW, RECALL_PAGE, RECALL_PAGE_MAX, RecallTools};
