//! Undo: the view as it was before a run. A mark a run, cheap while the view only grows; the first
//! edit after it keeps what it needs. Not a rewriting of the log, which keeps what is undone.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_context::{Item, Message, Transcript};

use crate::batch::Batch;
use crate::entry::Entry;
use crate::run::Run;
use crate::state::State;

/// Runs that can be undone, at most: each may keep in memory what has left the view since.
pub const MAX_UNDO: usize = 8;

/// Why a run cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    /// A run is under way.
    #[error("a run is under way; interrupt it first")]
    Running,
    /// There is none, or it is too long ago.
    #[error(
        "there is no run to undo: the last {MAX_UNDO} can be undone, and what is undone stays so; fork the session at an earlier entry instead"
    )]
    Nothing,
}

/// The view before each of the last runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks(VecDeque<Mark>);

#[derive(Debug, Clone)]
struct Mark {
    run: u64,
    /// How many items the view had.
    len: usize,
    /// The view that these are of, where it is not today's.
    of: Option<Arc<[Item]>>,
    /// Whether a plan had been applied to it.
    planned: bool,
}

impl Marks {
    /// A run begins. Calls that it finds open are the run's: without them what asked for them is not
    /// whole, so it is undone too.
    pub(crate) fn begin(
        &mut self,
        run: u64,
        view: &Transcript,
        batch: Option<&Batch>,
        planned: bool,
    ) {
        let items = view.items();
        let asked = |item: &Item| matches!(*item.message, Message::Assistant { .. });
        let open = batch.and_then(|_| items.iter().rposition(asked));
        if self.0.len() == MAX_UNDO {
            self.0.pop_front();
        }
        self.0.push_back(Mark {
            run,
            len: open.unwrap_or(items.len()),
            of: None,
            planned,
        });
    }

    /// The view is about to change elsewhere than at its end.
    pub(crate) fn keep(&mut self, view: &Transcript) {
        let open = self.0.iter_mut().filter(|mark| mark.of.is_none());
        let open: Vec<&mut Mark> = open.collect();
        let Some(longest) = open.iter().map(|mark| mark.len).max() else {
            return;
        };
        let items: Arc<[Item]> = view.items().iter().take(longest).cloned().collect();
        for mark in open {
            mark.of = Some(Arc::clone(&items));
        }
    }

    /// The newest run that is not undone.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.0.back().map(|mark| mark.run)
    }

    /// The view before a run and whether a plan had been applied to it, with its mark and all later
    /// ones taken off.
    pub(crate) fn take(&mut self, run: u64, view: &Transcript) -> Option<(Vec<Item>, bool)> {
        let at = self.0.iter().position(|mark| mark.run == run)?;
        let mark = self.0.split_off(at).pop_front()?;
        let items = match &mark.of {
            Some(items) => items,
            None => view.items(),
        };
        let items = items.iter().take(mark.len).cloned().collect();
        Some((items, mark.planned))
    }
}

impl State {
    /// Puts the view back to what it was before a run. False where nobody knows any more.
    pub(crate) fn roll_back(&mut self, run: u64) -> bool {
        let Some((items, planned)) = self.marks.take(run, &self.transcript) else {
            return false;
        };
        self.planned = planned;
        self.transcript.rewind(items);
        self.trail = Default::default();
        self.cache.rewound();
        self.batch = None;
        self.paused = false;
        self.to_pin.clear();
        self.heard = None;
        self.memory.rewound();
        true
    }
}

impl Run {
    /// Undoes the newest run that is not undone: the view is, byte for byte, what it was before. What
    /// it did elsewhere, it has done. Gives its number.
    ///
    /// # Errors
    /// While a run is under way, and where there is none to undo.
    pub fn undo(&mut self) -> Result<u64, UndoError> {
        if self.is_running() {
            return Err(UndoError::Running);
        }
        let run = self.state.marks.newest().ok_or(UndoError::Nothing)?;
        self.open();
        // What waits was said in what is undone.
        self.give_up_waiting();
        self.record(Entry::RolledBack { run });
        self.set_tools();
        Ok(run)
    }
}
