//! Undo: restores the view to its state before a run.
//!
//! Each run keeps the items of the view before it, which share their messages with the view. The log keeps the
//! undone entries.

use std::collections::VecDeque;

use plimsoll_context::{Item, Message, Tokens, Transcript};

use crate::batch::Batch;
use crate::state::State;

/// Maximum number of runs that can be undone. Each may keep removed messages in memory.
pub const MAX_UNDO: usize = 8;

/// The reason why a run cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// A run is in progress.
    #[error("a run is in progress; interrupt it first")]
    Running,
    /// There is no such run, or it is too old.
    #[error(
        "there is no run to undo: only the last {MAX_UNDO} runs can be undone, and each once; \
         fork the session at an earlier entry instead"
    )]
    Nothing,
}

/// The views before each of the last runs, oldest first, with the numbers of these runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks(pub(crate) VecDeque<(u64, Vec<Item>)>);

impl Marks {
    /// Sets a mark at the start of a run. Open tool calls belong to the run, because the message with
    /// these calls is incomplete without them. Undo removes that message as well.
    pub(crate) fn begin(&mut self, run: u64, view: &Transcript, batch: Option<&Batch>) {
        let items = view.items();
        let is_answer = |item: &Item| matches!(*item.message, Message::Assistant { .. });
        let open = batch.and_then(|_| items.iter().rposition(is_answer));
        if self.0.len() == MAX_UNDO {
            self.0.pop_front();
        }
        let items = items.iter().take(open.unwrap_or(items.len()));
        self.0.push_back((run, items.cloned().collect()));
    }

    /// Returns the newest run that is not undone.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.0.back().map(|(run, _)| *run)
    }

    /// Returns the view before a run. Removes the mark of the run and all later ones.
    fn take(&mut self, run: u64) -> Option<Vec<Item>> {
        let at = self.0.iter().position(|(of, _)| *of == run)?;
        self.0.split_off(at).pop_front().map(|(_, items)| items)
    }
}

impl State {
    /// Restores the view to its state before a run. Returns `false` if the run has no mark.
    pub(crate) fn roll_back(&mut self, run: u64) -> bool {
        let Some(items) = self.marks.take(run) else {
            return false;
        };
        self.transcript.rewind(items);
        self.facts.sent = None;
        self.batch = None;
        self.facts.paused = false;
        self.facts.heard = None;
        self.facts.cached = Tokens::ZERO;
        true
    }
}
