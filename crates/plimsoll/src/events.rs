//! The parts of an [`Event`](crate::Event), and the version and the schema of events as JSON.
//!
//! ```
//! use plimsoll::events::ToolPhase;
//! use plimsoll::{Agent, Event, SessionEvent};
//! # use plimsoll::testing::{ScriptedProvider, Turn};
//! # let model = ScriptedProvider::new([Turn::say("Land!")]);
//!
//! let agent = Agent::builder(model)
//!     .observer(|seen: &SessionEvent| {
//!         if let Event::ToolCall { phase: ToolPhase::Start, call, .. } = &seen.event {
//!             println!("{} begins", call.0);
//!         }
//!     })
//!     .build()?;
//! # Ok::<(), plimsoll::Error>(())
//! ```

pub use plimsoll_agent::{
    EVENT_VERSION, LoopConsequence, MessagePhase, RunStep, ToolPhase, TurnTrigger, event_schema,
};
