//! The parts of an [`Event`](crate::Event), and the version and the schema of events as JSON.

#[cfg(feature = "schema")]
pub use plimsoll_agent::event_schema;
pub use plimsoll_agent::{
    EVENT_VERSION, LoopConsequence, MessagePhase, RunStep, ToolPhase, TurnTrigger,
};
