//! Operations on sessions: starting a run as a stream of its events, forking, compacting, undoing and steering, the state that a host
//! attaches to a session, and the records of its runs.
//!
//! ```
//! use plimsoll::session::new_session_id;
//! use plimsoll::Agent;
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), plimsoll::Error> {
//! # let model = ScriptedProvider::new([Turn::say("Land!"), Turn::say("An island.")]);
//!
//! let agent = Agent::builder(model).build()?;
//! let mut session = agent.session(new_session_id()).await?;
//! session.run("What do you see?").await?;
//! let fork = new_session_id();
//! let mut fork = agent.fork(session.id(), None, fork).await?; // shares all that was said
//! assert_eq!(fork.run("Tell me more.").await?.text, "An island.");
//! # Ok(())
//! # }
//! ```

pub use plimsoll_agent::{
    AppliedPlan, CompactError, DEFAULT_CONFIG, MAX_FOCUS, MAX_UNDO, MAX_WAITING, RunConfigSnapshot,
    RunReader, RunRecord, UndoError, run_id, run_records,
};
pub use plimsoll_core::{
    AgentLoopConfig, AgentState, BadSessionId, BuilderSettings, DriverSettings, Extensions, INBOX,
    MAX_STEP_RESULT, MAX_STEPS, MAX_STEPS_SIZE, MAX_WAITING_EVENTS, RunStream, UserMessage,
    agent_loop, agent_loop_continue, fork_session, new_session_id,
};
