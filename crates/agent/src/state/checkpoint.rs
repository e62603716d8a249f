//! [`Checkpoint`]: the state of a session in serialized form, so that a long log need not be folded
//! again. It is derived from the log and never replaces it.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use plimsoll_context::{
    Bytes, CacheMonitor, Form, GrowthRate, Item, Message, Part, Pin, Recall, Seq, TokenCounter,
    Tokens, ToolCall, Transcript,
};
use serde::{Deserialize, Serialize};

use super::{Facts, RunTotals, State};
use crate::entry::LOG_FORMAT;
use crate::setup::Setup;
use crate::undo::{Mark, Marks};

/// The version of the serialized state. A checkpoint of another version is ignored.
///
/// Raise it whenever the same log folds to another state, or the state is written differently.
pub const CHECKPOINT_FORMAT: u32 = 2;

/// Maximum size of a checkpoint. Reading a larger one would save little time.
pub const MAX_CHECKPOINT: Bytes = Bytes(8 << 20);

/// A text that counters count differently: prose, code, JSON and other scripts.
const PROBE: &str = "Plimsoll's load line: {\"draft_mm\": 10250}; fn f(x: &str) -> u8 { 汉字 } Ⅷ🦀";

/// The state of a session after the first entries of its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Number of entries that led to the state.
    pub entries: u64,
    /// The state as JSON. Its content is only meaningful to this crate.
    pub state: String,
}

/// A state between two runs. Everything that only matters during a run is left out.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SavedState {
    version: u32,
    counter: CounterMark,
    /// The messages of all views, each of them once.
    messages: Vec<Arc<Message>>,
    view: Vec<SavedItem>,
    next: Seq,
    sent: Seq,
    /// The old views of the marks. Several marks may share one.
    old_views: Vec<Vec<SavedItem>>,
    marks: Vec<SavedMark>,
    facts: Facts,
}

/// Identifies the counter by its name and its count of a probe. Some sums of the state depend on it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CounterMark {
    name: String,
    probe: Tokens,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedItem {
    seq: Seq,
    /// Index of the message.
    message: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pin: Option<Pin>,
    /// Set if a plan has replaced the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    edited: Option<Recall>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SavedMark {
    run: u64,
    len: usize,
    /// Index of the old view; `None` for the current one.
    of: Option<usize>,
    planned: bool,
}

impl State {
    /// Returns a checkpoint of the state after this many entries. Returns `None` during a run, while
    /// tool calls have no results, and if it would be larger than [`MAX_CHECKPOINT`].
    #[must_use]
    pub fn checkpoint(&self, entries: u64) -> Option<Checkpoint> {
        let mut state = BoundedText::default();
        serde_json::to_writer(&mut state, &self.saved()?).ok()?;
        let state = String::from_utf8(state.0).ok()?;
        Some(Checkpoint { entries, state })
    }

    /// Restores the state of a checkpoint for runs with this setup. It is equal to the state that
    /// results from the entries. Returns `None` if the checkpoint is unreadable, of another version, or
    /// made with another counter: the log must be folded then.
    #[must_use]
    pub fn restore(checkpoint: &Checkpoint, setup: &Setup) -> Option<Self> {
        let saved: SavedState = serde_json::from_str(&checkpoint.state).ok()?;
        let counter = &setup.counter;
        if saved.version != CHECKPOINT_FORMAT
            || saved.facts.format > LOG_FORMAT
            || saved.counter != CounterMark::of(&**counter)
        {
            return None;
        }
        let messages = saved.messages.into_iter();
        let messages: Vec<(Arc<Message>, Tokens)> = messages
            .map(|message| {
                let tokens = counter.message(&message);
                (message, tokens)
            })
            .collect();
        let view = items(saved.view, &messages)?;
        let old_views = saved.old_views.into_iter();
        let old_views = old_views.map(|view| items(view, &messages).map(Arc::from));
        let old_views: Vec<Arc<[Item]>> = old_views.collect::<Option<_>>()?;
        let marks = saved.marks.into_iter().map(|mark| {
            Some(Mark {
                run: mark.run,
                len: mark.len,
                of: match mark.of {
                    Some(at) => Some(Arc::clone(old_views.get(at)?)),
                    None => None,
                },
                planned: mark.planned,
            })
        });
        let marks: VecDeque<Mark> = marks.collect::<Option<_>>()?;
        let transcript = Transcript::restore(Arc::clone(counter), view, saved.next, saved.sent)?;
        Some(Self {
            transcript,
            marks: Marks(marks),
            facts: saved.facts,
            ..Self::for_setup(setup)
        })
    }

    /// Checks whether the view contains a call of a tool with a matching name. Views that an undo
    /// would restore count as well.
    pub fn has_called(&self, matches: impl Fn(&ToolCall) -> bool) -> bool {
        let old = self.marks.0.iter().filter_map(|mark| mark.of.as_deref());
        let items = old.flatten().chain(self.transcript.items());
        let mut calls = items.flat_map(|item| item.message.calls());
        calls.any(matches)
    }

    /// Returns `None` if the state is not between two runs.
    fn saved(&self) -> Option<SavedState> {
        let Self {
            transcript,
            batch,
            running,
            waiting,
            marks,
            facts,
            // The next run clears it.
            doom_loop: _,
            // Counts from the beginning of the next run.
            memory: _,
        } = self;
        if *running || batch.is_some() || !waiting.is_empty() {
            return None;
        }
        let mut messages = MessageTable::default();
        let view = messages.items(transcript.items());
        let mut old_views: Vec<(&Arc<[Item]>, Vec<SavedItem>)> = Vec::new();
        let marks = marks.0.iter().map(|mark| SavedMark {
            run: mark.run,
            len: mark.len,
            of: mark.of.as_ref().map(|of| {
                let known = old_views
                    .iter()
                    .position(|(known, _)| Arc::ptr_eq(known, of));
                known.unwrap_or_else(|| {
                    old_views.push((of, messages.items(of)));
                    old_views.len() - 1
                })
            }),
            planned: mark.planned,
        });
        let marks = marks.collect();
        Some(SavedState {
            version: CHECKPOINT_FORMAT,
            counter: CounterMark::of(&**transcript.counter()),
            view,
            next: transcript.next_seq(),
            sent: transcript.sent(),
            old_views: old_views.into_iter().map(|(_, view)| view).collect(),
            marks,
            messages: messages.all,
            facts: facts.clone(),
        })
    }
}

impl Checkpoint {
    /// Checks whether a state is the one of this checkpoint, except for sums that depend on the
    /// counter. A checkpoint that this version does not use agrees with every state.
    #[must_use]
    pub fn agrees_with(&self, state: &State) -> bool {
        let Ok(mut saved) = serde_json::from_str::<SavedState>(&self.state) else {
            return true;
        };
        if saved.version != CHECKPOINT_FORMAT {
            return true;
        }
        let Some(mut folded) = state.saved() else {
            return false;
        };
        saved.forget_counts();
        folded.forget_counts();
        saved == folded
    }
}

impl SavedState {
    /// Removes the sums that depend on the counter.
    fn forget_counts(&mut self) {
        self.counter.name.clear();
        self.counter.probe = Tokens::ZERO;
        self.facts.pace = GrowthRate::default();
        self.facts.cache = CacheMonitor::default();
        self.facts.totals = RunTotals::default();
    }
}

impl CounterMark {
    fn of(counter: &dyn TokenCounter) -> Self {
        let probe = Message::User {
            parts: vec![Part::text(PROBE)],
        };
        Self {
            name: counter.name().to_owned(),
            probe: counter.message(&probe),
        }
    }
}

/// A text of at most [`MAX_CHECKPOINT`]. Writing more fails, so that a larger state is never held.
#[derive(Default)]
struct BoundedText(Vec<u8>);

impl io::Write for BoundedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = self.0.len().saturating_add(bytes.len());
        if size as u64 > MAX_CHECKPOINT.0 {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The messages of a state, each of them once.
#[derive(Default)]
struct MessageTable {
    all: Vec<Arc<Message>>,
    indices: HashMap<*const Message, usize>,
}

impl MessageTable {
    fn items(&mut self, items: &[Item]) -> Vec<SavedItem> {
        let saved = items.iter().map(|item| SavedItem {
            seq: item.seq,
            message: self.index(&item.message),
            pin: item.pin.clone(),
            edited: match item.form {
                Form::Original => None,
                Form::Edited(recall) => Some(recall),
            },
        });
        saved.collect()
    }

    fn index(&mut self, message: &Arc<Message>) -> usize {
        *self.indices.entry(Arc::as_ptr(message)).or_insert_with(|| {
            self.all.push(Arc::clone(message));
            self.all.len() - 1
        })
    }
}

/// Restores the items of a view. Returns `None` if a message is missing.
fn items(saved: Vec<SavedItem>, messages: &[(Arc<Message>, Tokens)]) -> Option<Vec<Item>> {
    let items = saved.into_iter().map(|item| {
        let (message, tokens) = messages.get(item.message)?;
        Some(Item {
            seq: item.seq,
            message: Arc::clone(message),
            tokens: *tokens,
            pin: item.pin,
            form: item.edited.map_or(Form::Original, Form::Edited),
        })
    });
    items.collect()
}
