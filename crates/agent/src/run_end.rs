//! The end of a run: its deadlines, and everything that is closed, recorded and reported when it ends.
//!
//! The machine has no clock: the driver reports the elapsed time, and the machine returns its next
//! deadline. Model calls and tools that hang are aborted here.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_context::{CannotFit, Message, Part, Seq, StopReason, Tokens, Trigger};

use crate::entry::Entry;
use crate::event::Event;
use crate::hook_input::{HookInput, HookPoint, Messages};
use crate::limits::AtLimit;
use crate::limits::LimitKind;
use crate::notice;
use crate::outcome::{EndReason, Outcome};
use crate::phase::{Phase, TurnAnswer};
use crate::run::Run;
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
        let reason = self
            .tracker()
            .reason(LimitKind::MaxDuration, self.now.elapsed);
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
            self.current.skips_summaries = true;
            self.close_calls(notice::OUT_OF_TIME);
            self.say_pins();
            self.ask_to_finish(reason);
            self.phase = next;
        }
    }

    /// Checks whether the model may be asked to finish.
    pub(crate) fn may_finalize(&self) -> bool {
        self.state.facts.finalizing.is_none() && self.setup.limits.at_limit() == AtLimit::Finalize
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
        // The used amount includes the last call now.
        let reason = match reason {
            EndReason::Limit { kind, .. } => self.tracker().reason(kind, self.now.elapsed),
            other => other,
        };
        let undelivered = self.give_up_waiting();
        self.drop_digest();
        self.say_pins();
        let mut text = self.closing_text(&reason);
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
            tokens_used: ledger.usage,
            summary_usage: ledger.summary_usage,
            estimated: ledger.estimated,
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

    /// Returns the text of an outcome: the model's last text in this run, or a sentence that explains
    /// why there is none.
    fn closing_text(&self, reason: &EndReason) -> String {
        let (stopped, asked_at) = (notice::stopped(reason), self.current.asked_at);
        let newest = self.state.transcript.items().iter().rev();
        let newest = newest.take_while(|item| item.seq >= asked_at && !item.message.is_user());
        let last = newest.enumerate().find_map(|(after_it, item)| {
            let Message::Assistant { parts } = item.message.as_ref() else {
                return None;
            };
            let text = Part::texts(parts).trim().to_owned();
            let is_last = after_it == 0 && item.message.calls().next().is_none();
            (!text.is_empty()).then_some((is_last, text))
        });
        let Some((is_last, text)) = last else {
            return stopped;
        };
        // A text that the model wrote before a failure or a refusal is no answer.
        let asked = reason.is_limit() || *reason == EndReason::Interrupted;
        let is_answer = reason.is_answer() || (is_last && asked);
        let note = match self.current.cut_off {
            _ if !is_answer => &stopped,
            Some(StopReason::ContentFilter) => notice::FILTERED,
            Some(_) => notice::CUT_OFF,
            None => return text,
        };
        format!("{text}\n\n{note}")
    }
}
