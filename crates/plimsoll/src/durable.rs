//! Runs that outlive their process: another worker finishes a run from a journal of its steps. With
//! the feature `restate` the journal is kept by a server of [Restate](https://restate.dev). See
//! `docs/durable.md` in the repository.

pub use plimsoll_core::{
    JOURNAL_FORMAT, Journal, JournalFault, JournaledRun, LocalJournal, LogHead, RunStart, StepEnd,
    refuse_journaled,
};
#[cfg(feature = "restate")]
pub use plimsoll_restate::*;
