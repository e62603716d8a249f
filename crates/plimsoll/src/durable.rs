//! Runs that outlive their process: another worker finishes a run from a journal of its steps. With
//! the feature `restate` the journal is kept by a server of [Restate](https://restate.dev). See
//! `docs/durable.md` in the repository.
//!
//! ```
//! use plimsoll::Agent;
//! use plimsoll::durable::{JournaledRun, LocalJournal};
//! use plimsoll::session::{AgentLoopConfig, new_session_id};
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! # let model = ScriptedProvider::new([Turn::say("Three.")]);
//!
//! let agent = Agent::builder(model).build()?;
//! let mut session = agent.session(new_session_id()).await?;
//! let request = JournaledRun {
//!     key: "order-17".to_owned(),
//!     message: "How many ships are in?".into(),
//!     config: AgentLoopConfig::default(),
//! };
//! let output = session.run_journaled(&request, &LocalJournal).await?;
//! assert_eq!(output.text, "Three.");
//! # Ok(())
//! # }
//! ```

pub use plimsoll_core::{
    JOURNAL_FORMAT, Journal, JournalFault, JournaledRun, LocalJournal, LogHead, RunStart, StepEnd,
    refuse_journaled,
};
#[cfg(feature = "restate")]
pub use plimsoll_restate::*;
