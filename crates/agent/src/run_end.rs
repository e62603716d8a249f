//! The end of a run: its deadlines, and everything that is closed, recorded and reported when it ends.
//!
//! The machine has no clock: the driver reports the elapsed time, and the machine returns its next
//! deadline. Model calls and tools that hang are aborted here.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{CannotFit, Item, Message, Part, Seq, StopReason, Tokens, Trigger};

use crate::entry::Entry;
use crate::event::Event;
use crate::hook_input::{HookInput, HookPoint, Messages};
use crate::ledger::LimitKind;
use crate::limits::AtLimit;
use crate::notice;
use crate::outcome::{EndReason, Outcome};
use crate::phase::{Phase, TurnAnswer};
use crate::run::Run;
use crate::run_start::CHECK_ANSWER;
use crate::step::Step;

impl Run {
    /// Returns the time since the start of the run at which [`Input::Tick`](crate::Input::Tick) is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        // A compaction between two runs has no time limit.
        if !self.is_running() || self.phase.is_compaction() {
            return None;
        }
        let (last_answer, end) = self.tracker().deadlines()?;
        // If the time passes while the host decides, nothing can be done before its answer.
        let cuts = self.now.elapsed < last_answer || self.phase.is_cuttable();
        Some(if self.may_finalize() && cuts {
            last_answer
        } else {
            end
        })
    }

    /// Takes note of the time when no input has arrived, for example when a hook was cut off. Deadlines and
    /// limits then count it. The machine reacts to it at the next [`Input::Tick`](crate::Input::Tick).
    pub fn pass_time(&mut self, elapsed: Duration) {
        self.now.elapsed = self.now.elapsed.max(elapsed);
    }

    /// Handles the passing of time.
    pub(crate) fn tick(&mut self) {
        let Some((last_answer, end)) = self.tracker().deadlines() else {
            return;
        };
        if !self.is_running() || self.phase.is_compaction() {
            return;
        }
        let reason = self.tracker().reason(LimitKind::Duration);
        if self.now.elapsed >= end {
            self.queue.push_back(Step::Abort);
            return self.finish(reason);
        }
        if self.now.elapsed < last_answer || !self.may_finalize() {
            return;
        }
        // Otherwise the host is deciding; the last answer follows its decision.
        if self.phase.is_cuttable() {
            let next = if self.phase.is_in_turn() {
                Phase::PREPARING
            } else {
                Phase::TurnDue
            };
            self.queue.push_back(Step::Abort);
            self.book_partial_answers(true);
            self.drop_digest();
            self.current.skips_summary = true;
            self.close_calls(notice::OUT_OF_TIME);
            self.say_pins();
            self.ask_to_finish(reason);
            self.phase = next;
        }
    }

    /// Checks whether the model may be asked to finish.
    pub(crate) fn may_finalize(&self) -> bool {
        self.current.finalizing.is_none() && self.setup.limits.at_limit() == AtLimit::Finalize
    }

    /// Ends the run. Open calls receive a result, so that providers still accept the view.
    pub(crate) fn finish(&mut self, reason: EndReason) {
        self.book_partial_answers(true);
        self.close_calls(match reason {
            EndReason::Interrupted => "not run: the run was interrupted",
            _ => "not run: the run ended",
        });
        if self.phase.is_in_turn() {
            // The model call of this turn has no answer.
            self.current.turn_end = Some(TurnAnswer {
                turn: self.tracker().turns.saturating_add(1),
                stop: StopReason::Other,
                usage: None,
            });
        }
        self.end_turn();
        let reason = self.up_to_date(reason);
        let undelivered = self.give_up_waiting();
        self.drop_digest();
        self.say_pins();
        let mut text = closing_text(self.state.transcript.items(), self.current.cut_off, &reason);
        let rolls_back = self.setup.limits.at_limit() == AtLimit::Rollback && reason.is_limit();
        let run = self.state.facts.runs;
        let rolled_back = rolls_back && self.record(Entry::RolledBack { run });
        if rolled_back {
            text.push('\n');
            text.push_str(notice::TAKEN_BACK);
        }
        let ledger = self.tracker();
        let outcome = Outcome {
            text,
            reason,
            turns: ledger.turns,
            tool_calls: ledger.tool_calls,
            plans: ledger.plans,
            freed: ledger.freed,
            usage: ledger.usage,
            summary_usage: ledger.summary_usage,
            estimated: ledger.estimated,
            cache: self.state.facts.cache.tally(),
            cost: ledger.cost_accumulated,
            undelivered,
            rolled_back,
        };
        self.record(Entry::RunEnded {
            outcome: outcome.clone(),
        });
        self.notify(Event::AgentEnd {
            outcome: outcome.clone(),
            peak_memory: self.state.peak_memory(),
        });
        let ended = || Box::new(outcome.clone());
        if self.current.opened {
            self.after(HookPoint::AfterLoop, |run| HookInput::AfterLoop {
                messages: run.messages_since(run.current.began),
                outcome: ended(),
            });
        }
        self.after(HookPoint::AfterTask, |_| HookInput::AfterTask {
            outcome: ended(),
        });
        self.queue.push_back(Step::Finish(outcome));
        self.phase = Phase::Idle;
    }

    /// Updates the usage in the reason, which includes the last call now.
    fn up_to_date(&self, reason: EndReason) -> EndReason {
        match reason {
            EndReason::MaxTokens { .. } => self.tracker().reason(LimitKind::Tokens),
            EndReason::MaxCost { .. } => self.tracker().reason(LimitKind::Cost),
            other => other,
        }
    }

    /// Informs the host if it has a hook at this point.
    pub(crate) fn after(&mut self, point: HookPoint, input: impl FnOnce(&Self) -> HookInput) {
        if self.setup.hooks.contains(&point) {
            self.queue.push_back(Step::After(input(self)));
        }
    }

    /// Returns the messages of the view from this number on.
    fn messages_since(&self, from: Seq) -> Messages {
        let items = self.state.transcript.items().iter();
        let items = items.filter(|item| item.seq >= from);
        items.map(|item| Arc::clone(&item.message)).collect()
    }

    /// Returns all messages of the view.
    pub(crate) fn view_messages(&self) -> Messages {
        self.messages_since(Seq::default())
    }

    /// Ends a turn: the model call is answered, and all tool calls have results.
    pub(crate) fn end_turn(&mut self) {
        let Some(TurnAnswer { turn, stop, usage }) = self.current.turn_end.take() else {
            return;
        };
        let ledger = self.tracker();
        let (total, cost) = (ledger.usage, ledger.cost_accumulated.whole());
        let estimated = ledger.estimated;
        self.notify(Event::TurnEnd {
            turn,
            stop,
            usage,
            total,
            estimated,
            cost,
            memory: self.state.memory(),
        });
        self.after(HookPoint::AfterTurn, |run| HookInput::AfterTurn {
            messages: run.view_messages(),
            turn,
            usage,
        });
    }

    /// Ends the run because the view does not fit. `cannot_fit` is in our tokens.
    pub(crate) fn cannot_fit(&mut self, cannot_fit: CannotFit) {
        let least = self.least().max(cannot_fit.minimum);
        let cannot_fit = self.reported(CannotFit {
            minimum: least,
            ..cannot_fit
        });
        self.finish(EndReason::CannotFit { cannot_fit });
    }

    /// Returns the smallest size of the request that the policy can reach, in our tokens.
    fn least(&self) -> Tokens {
        let view = &self.state.transcript;
        let nothing = self.budget_at(Tokens::ZERO);
        let policy = &self.setup.policy;
        match policy.propose(view, &nothing, Trigger::Request, &self.plan_context()) {
            Ok(_) => self.tokens(),
            Err(cannot_fit) => cannot_fit.minimum,
        }
    }

    /// Converts the sizes to the provider's tokens, in which windows and limits are configured.
    pub(crate) fn reported(&self, cannot_fit: CannotFit) -> CannotFit {
        cannot_fit.reported(self.calibration())
    }
}

/// Returns the text of an outcome: the model's last text in this run, or a sentence that explains
/// why there is none.
fn closing_text(items: &[Item], cut_off: Option<StopReason>, reason: &EndReason) -> String {
    let last = items
        .iter()
        .rev()
        .take_while(|item| !item.message.is_user())
        .find_map(|item| {
            let Message::Assistant { parts } = item.message.as_ref() else {
                return None;
            };
            Some((parts, notice::text_of(parts))).filter(|(_, text)| !text.is_empty())
        });
    let stopped = notice::stopped(reason);
    let whole = |text: String| match cut_off {
        Some(StopReason::ContentFilter) => format!("{text}\n\n{}", notice::FILTERED),
        Some(_) => format!("{text}\n\n{}", notice::CUT_OFF),
        None => text,
    };
    match last {
        Some((_, text)) if reason.is_answer() => whole(text),
        Some((_, text)) if is_not_accepted(reason) => format!("{text}\n\n{stopped}"),
        // The model was asked to finish, and did.
        Some((parts, text)) if is_final(parts) && was_last(items, parts) => whole(text),
        Some((_, text)) => format!("{text}\n\n{stopped}"),
        None => stopped,
    }
}

/// Returns `true` if a text that the model wrote at the end is no answer.
fn is_not_accepted(reason: &EndReason) -> bool {
    match reason {
        EndReason::Failed { .. } => true,
        EndReason::Refused { by, .. } => by == CHECK_ANSWER,
        _ => false,
    }
}

fn was_last(items: &[Item], parts: &[Part]) -> bool {
    let last = items.last();
    last.is_some_and(
        |item| matches!(item.message.as_ref(), Message::Assistant { parts: last } if last == parts),
    )
}

fn is_final(parts: &[Part]) -> bool {
    !parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
}
