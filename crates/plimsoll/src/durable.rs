//! Runs that outlive their process: a journal of the steps of a run, so that another worker finishes it. With
//! the feature `restate` the journal is that of a server of [Restate](https://restate.dev). See `docs/durable.md`
//! in the repository.

pub use plimsoll_core::{
    JOURNAL_FORMAT, Journal, JournalFault, JournaledRun, LocalJournal, LogHead, RunStart, StepEnd,
    refuse_journaled,
};
#[cfg(feature = "restate")]
pub use plimsoll_restate::*;
