//! The host's access to a session between two runs: its setup, pins, undo, compaction, branches and the
//! use of the window.

use std::sync::Arc;

use plimsoll_context::{Form, Item, Message, Pin, Seq, Tokens};

use crate::entry::Entry;
use crate::event::AppliedPlan;
use crate::phase::{CurrentRun, Phase};
use crate::pins::{MAX_PINS, PinError, REFUSAL, held, rule, rule_text};
use crate::run::Run;
use crate::setup::{DeclaredTools, REQUEST_OVERHEAD, Setup};
use crate::state::FoldError;
use crate::step::{Now, Step};
use crate::undo::UndoError;
use crate::window_use::{Contents, WindowUse};

/// Maximum size of the focus of a summary, in bytes. The focus is part of every request to the summary
/// model.
pub const MAX_FOCUS: usize = 2_000;

/// The reason why nothing can be compacted now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CompactError {
    /// A run is in progress.
    #[error("a run is in progress and compacts by itself; interrupt it first")]
    Running,
    /// The focus is too long.
    #[error("the focus has {bytes} bytes; the limit is {MAX_FOCUS}")]
    Focus {
        /// The length of the focus in bytes.
        bytes: usize,
    },
}

impl Run {
    /// Replaces the setup between two runs and returns the old one. The token counter is kept.
    pub fn set_setup(&mut self, setup: Setup) -> Setup {
        let setup = Setup {
            counter: Arc::clone(&self.setup.counter),
            ..setup
        };
        self.current = CurrentRun::new(&setup, Seq::default());
        self.refuses_tool_choice = false;
        self.state.set_limits(&setup.limits);
        self.tools = DeclaredTools::new(&setup);
        std::mem::replace(&mut self.setup, setup)
    }

    /// Sets the text that is appended to the history of each request from now on.
    pub fn set_dynamic_context(&mut self, context: Option<Arc<str>>) {
        self.setup.dynamic_context = context;
        self.tools.overhead = self.setup.overhead_beside(self.tools.tokens);
    }

    /// Adds a notice of the host for the model, between runs.
    ///
    /// Returns `false` and adds nothing while a run is in progress or tool calls have no results, since
    /// no message may be inserted between a call and its result.
    pub fn inform(&mut self, text: String) -> bool {
        if self.is_running() || self.state.batch.is_some() {
            return false;
        }
        self.notice(text);
        true
    }

    /// Pins an item of the view.
    ///
    /// # Errors
    /// If the item is not in the view in its original form, if the pins would be too large, or if a run
    /// is in progress.
    pub fn pin(&mut self, seq: Seq) -> Result<(), PinError> {
        if self.is_running() {
            return Err(PinError::Pending);
        }
        self.set_pin(seq)
    }

    /// Adds a rule of the host to the view and pins it. A rule that is already in the view is not added
    /// again.
    ///
    /// # Errors
    /// If the text is empty, if the pins would be too large, if a run is in progress, or if tool calls
    /// have no results: no message may be inserted between a call and its result.
    pub fn pin_text(&mut self, text: &str) -> Result<Seq, PinError> {
        if self.is_running() || self.state.batch.is_some() {
            return Err(PinError::Pending);
        }
        self.say_rule(text)
    }

    /// Adds and pins a rule like [`Run::pin_text`]. While tool calls are open, the rule waits for their
    /// results, and a notice says if it cannot be pinned then.
    ///
    /// # Errors
    /// If the text is empty, if the pins would be too large, or if a run is in progress.
    pub fn pin_rule(&mut self, text: &str) -> Result<(), PinError> {
        if self.state.batch.is_none() || self.is_running() {
            return self.pin_text(text).map(|_| ());
        }
        self.rules.push(text.to_owned());
        Ok(())
    }

    /// Adds and pins the waiting rules of the host. No tool call may be open.
    pub(crate) fn say_pins(&mut self) {
        for text in std::mem::take(&mut self.rules) {
            if let Err(error) = self.say_rule(&text) {
                self.notice(format!("{REFUSAL} {error}]"));
            }
        }
    }

    fn say_rule(&mut self, text: &str) -> Result<Seq, PinError> {
        if text.trim().is_empty() {
            return Err(PinError::Empty);
        }
        let message = rule(text);
        // The message may have been added but not pinned before a crash.
        let items = self.state.transcript.items().iter();
        let mut present =
            items.filter(|item| *item.message == message && item.form == Form::Original);
        if let Some(item) = present.next() {
            let seq = item.seq;
            return self.set_pin(seq).map(|()| seq);
        }
        let (count, weight) = held(self.state.transcript.items(), None);
        let more = self.setup.counter.message(&message);
        self.check_pins(count + 1, weight + more)?;
        let seq = self.state.transcript.next_seq();
        self.record(Entry::Message {
            message: Arc::new(message),
            queued: None,
        });
        self.set_pin(seq)?;
        Ok(seq)
    }

    fn set_pin(&mut self, seq: Seq) -> Result<(), PinError> {
        let view = &self.state.transcript;
        let item = view.get(seq);
        let item = item.filter(|item| item.form == Form::Original);
        let item = item.ok_or(PinError::NotInView(seq))?;
        if item.pin.is_none() {
            let pin = Pin::on(&item.message);
            let (count, weight) = held(view.items(), Some(seq));
            self.check_pins(count, weight)?;
            self.record(Entry::Pinned { seq, pin });
        }
        Ok(())
    }

    /// Removes a pin. Returns `false` if the item is not pinned.
    pub fn unpin(&mut self, seq: Seq) -> bool {
        if !self.pinned().any(|(at, _)| at == seq) {
            return false;
        }
        self.record(Entry::Unpinned { seq })
    }

    /// Returns the pinned messages, in view order.
    pub fn pinned(&self) -> impl Iterator<Item = (Seq, &Message)> {
        let items = self.state.transcript.items().iter();
        let pinned = items.filter(|item| item.pin.is_some());
        pinned.map(|item| (item.seq, item.message.as_ref()))
    }

    fn check_pins(&self, count: usize, weight: Tokens) -> Result<(), PinError> {
        if count > MAX_PINS {
            return Err(PinError::TooMany);
        }
        let budget = self.budget().map_err(|why| self.reported(why))?;
        if weight > Tokens(budget.limit.0 / 2) {
            return Err(PinError::TooLarge {
                pinned: weight,
                limit: budget.limit + self.tools.overhead,
            });
        }
        Ok(())
    }

    /// Undoes the newest run that is not undone yet, and returns its number.
    ///
    /// The view is restored byte for byte, except that pins stay: rules that are no longer in it are added at its
    /// end. Effects of tools are not undone.
    ///
    /// # Errors
    /// If a run is in progress, or if there is no run to undo.
    pub fn undo(&mut self) -> Result<u64, UndoError> {
        if self.is_running() {
            return Err(UndoError::Running);
        }
        let run = self.state.marks.newest().ok_or(UndoError::Nothing)?;
        let items = self.state.transcript.items().iter();
        let pinned: Vec<Item> = items.filter(|item| item.pin.is_some()).cloned().collect();
        // Queued messages belong to the undone run.
        self.give_up_waiting();
        self.record(Entry::RolledBack { run });
        for item in &pinned {
            if let Err(why) = self.restore_pin(item) {
                self.warn(format!("a pin is lost: {why}"));
            }
        }
        Ok(run)
    }

    /// Pins an item again that was pinned before a run was undone. An item of that run is gone, unless it is a rule.
    fn restore_pin(&mut self, item: &Item) -> Result<(), PinError> {
        let now = self.state.transcript.get(item.seq);
        match (now, rule_text(&item.message)) {
            (Some(_), _) => self.set_pin(item.seq),
            (None, Some(rule)) => self.say_rule(rule).map(|_| ()),
            (None, None) => Ok(()),
        }
    }

    /// Starts a compaction down to the target. The steps are returned by [`Run::poll`], up to the first
    /// [`Step::Wait`] while no run is in progress.
    ///
    /// If the view is already below its target, or no message may be removed, that step follows at once
    /// and no model is called. `focus` tells the summary model what to keep above all.
    ///
    /// # Errors
    /// If a run is in progress, or if the focus is longer than [`MAX_FOCUS`].
    pub fn compact(&mut self, now: Now, focus: Option<&str>) -> Result<(), CompactError> {
        if self.is_running() {
            return Err(CompactError::Running);
        }
        let focus = focus.map(str::trim).filter(|focus| !focus.is_empty());
        if let Some(bytes) = focus.map(str::len).filter(|bytes| *bytes > MAX_FOCUS) {
            return Err(CompactError::Focus { bytes });
        }
        self.now = self.now.followed_by(now, false);
        self.current = CurrentRun::new(&self.setup, Seq::default());
        self.compaction = None;
        self.phase = Phase::Compacting {
            focus: focus.map(Arc::from),
        };
        Ok(())
    }

    /// Returns the last requested compaction if it was applied. Later calls return `None`.
    pub fn take_compaction(&mut self) -> Option<AppliedPlan> {
        self.compaction.take()
    }

    /// Takes over the entries of the chosen branch, together with the record of all branches. Applies
    /// either everything or nothing.
    ///
    /// # Errors
    /// If the entries do not continue the view; nothing has changed then.
    pub fn adopt(&mut self, branched: Entry, entries: Vec<Entry>) -> Result<(), FoldError> {
        let mut state = self.state.clone();
        state.absorb(&branched)?;
        for entry in &entries {
            state.absorb(entry)?;
        }
        self.state = state;
        self.queue.push_back(Step::Record(branched));
        self.queue.extend(entries.into_iter().map(Step::Record));
        Ok(())
    }

    /// Returns the current content of the window.
    #[must_use]
    pub fn window_use(&self) -> WindowUse {
        let tools = self.tools.tokens;
        let system = self.tools.system + REQUEST_OVERHEAD;
        let (line, calibration) = (self.line(), self.state.facts.calibration);
        let budget = self.budget().ok();
        let sent = |tokens: Tokens| (tokens != Tokens::MAX).then(|| tokens + self.tools.overhead);
        WindowUse {
            system,
            tools,
            tool_count: self.tools.specs.len() + self.setup.hosted_tools.len(),
            dynamic_context: self.tools.overhead.minus(system + tools),
            view: Contents::of(&self.state),
            used: self.tokens(),
            reserve: line.window.map(|_| calibration.counted(line.reserve())),
            window: line.window,
            window_counted: line.window.map(|window| calibration.counted(window)),
            limit: budget.and_then(|budget| sent(budget.limit)),
            trigger: budget.and_then(|budget| sent(budget.trigger)),
            target: budget.and_then(|budget| sent(budget.target)),
        }
    }
}
