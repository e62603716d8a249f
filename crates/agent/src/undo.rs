//! Undo: restores the view to its state before a run.
//!
//! Each run sets a mark. A mark is cheap while the view only grows; the first edit after it stores the
//! old items. The log keeps the undone entries.

use std::collections::VecDeque;
use std::sync::Arc;

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

/// The views before each of the last runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Marks(pub(crate) VecDeque<Mark>);

#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) run: u64,
    /// Number of items in the view.
    pub(crate) len: usize,
    /// The items of the old view, if they differ from the current ones.
    pub(crate) of: Option<Arc<[Item]>>,
}

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
        self.0.push_back(Mark {
            run,
            len: open.unwrap_or(items.len()),
            of: None,
        });
    }

    /// Stores the old items before the view changes at another place than its end.
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

    /// Returns the newest run that is not undone.
    pub(crate) fn newest(&self) -> Option<u64> {
        self.0.back().map(|mark| mark.run)
    }

    /// Returns the view before a run. Removes the mark of the run and all later ones.
    pub(crate) fn take(&mut self, run: u64, view: &Transcript) -> Option<Vec<Item>> {
        let at = self.0.iter().position(|mark| mark.run == run)?;
        let mark = self.0.split_off(at).pop_front()?;
        let items = match &mark.of {
            Some(items) => items,
            None => view.items(),
        };
        Some(items.iter().take(mark.len).cloned().collect())
    }
}

impl State {
    /// Restores the view to its state before a run. Returns `false` if the run has no mark.
    pub(crate) fn roll_back(&mut self, run: u64) -> bool {
        let Some(items) = self.marks.take(run, &self.transcript) else {
            return false;
        };
        self.transcript.rewind(items);
        self.facts.sent = None;
        self.batch = None;
        self.facts.paused = false;
        self.facts.heard = None;
        self.facts.cached = Tokens::ZERO;
        self.memory.rewound();
        true
    }
}
