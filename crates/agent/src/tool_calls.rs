//! The tool calls of a turn: reads them as a batch, runs them in order, and gives results to calls that
//! do not run.
//!
//! `decode.rs` decides which calls may run, `tool_queue.rs` which of them is next.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_context::{Bytes, CallId, Message, Part, ToolCall, ToolResult};

use crate::batch::CallKey;
use crate::decode::{NotRun, check_rewritten, read_batch};
use crate::doom_loop::{LoopConsequence, LoopVerdict};
use crate::entry::{Entry, Waiting};
use crate::event::{Event, ToolPhase};
use crate::hook_input::{HookInput, HookPoint};
use crate::limits::LimitKind;
use crate::notice;
use crate::outcome::EndReason;
use crate::phase::Phase;
use crate::run::Run;
use crate::setup::TurnTrigger;
use crate::spend::Spend;
use crate::step::{Answer, Question, Step};
use crate::tool_queue::ToolQueue;

/// Maximum length of a result in an event, in characters.
const EVENT_TEXT: usize = 2_000;

impl Run {
    /// Reads a whole batch before any of its calls runs. Calls that cannot run receive their result
    /// now.
    pub(crate) fn decode_batch(&mut self) {
        let is_finalizing = self.state.facts.finalizing.is_some();
        // A run that is about to end ends for that reason, even if its last answer is a repetition.
        let looping = self
            .looping()
            .filter(|looping| !is_finalizing && looping.consequence != LoopConsequence::Told);
        if let Some(LoopVerdict {
            kind,
            consequence,
            times,
        }) = looping
        {
            self.notify(Event::LoopDetected { kind, consequence });
            if consequence == LoopConsequence::Stopped {
                return self.finish(EndReason::DoomLoop { times, kind });
            }
        }
        let is_last = is_finalizing || self.setup.limits.max_turns() <= self.tracker().turns;
        let mut ready = VecDeque::new();
        for (call, decision) in read_batch(&self.setup, &self.state, looping.is_some(), is_last) {
            let tool = self.state.facts.names.resolve(&call.name);
            if let Some(to) = tool.filter(|tool| *tool != call.name).map(str::to_owned) {
                let (id, from) = (call.id.clone(), call.name.clone());
                self.notify(Event::ToolCallRepaired { call: id, from, to });
            }
            match decision {
                Ok(question) => ready.push_back(question),
                Err(instead) => self.settle(&call, instead),
            }
        }
        self.phase = Phase::Working(ToolQueue {
            ready,
            ..ToolQueue::default()
        });
    }

    /// Returns the model's current repetition, if loop detection is on.
    fn looping(&self) -> Option<LoopVerdict> {
        let most = self.setup.limits.identical_tool_calls()?;
        self.state.doom_loop.looping(most)
    }

    /// Starts the calls that may start. Once all calls have results, the next request is made.
    pub(crate) fn work(&mut self) {
        if self.waits(Waiting::Steer) {
            self.skip_unstarted();
        }
        if self.state.batch.is_none() {
            return self.worked();
        }
        let slots = self.setup.max_parallel_tools.max(1);
        let Phase::Working(queue) = &mut self.phase else {
            return;
        };
        if queue.is_empty() {
            // A bug in the machine, which has already been reported. The run must not stall.
            self.close_calls(notice::NO_TOOLS_NOW);
            return;
        }
        loop {
            let kind = LimitKind::ToolLimit;
            let left = self.tracker().left(kind).unwrap_or(u64::MAX);
            let Phase::Working(queue) = &mut self.phase else {
                return;
            };
            let Some(question) = queue.next(slots, left) else {
                return;
            };
            let call = question.call.clone();
            if left == 0 {
                let reason = self.tracker().reason(kind, self.now.elapsed);
                let why = format!("skipped: {}", notice::used(&reason));
                self.settle(&call, NotRun::skipped(why));
            } else if question.asks_hook || question.asks_gate {
                let key = CallKey::of(&self.setup.session, &self.state, &call.id);
                let key = key.unwrap_or_default();
                let question = Question { key, ..question };
                queue.asking.insert(call.id, question.clone());
                self.queue.push_back(Step::Ask(question));
            } else {
                queue.running.insert(call.id.clone(), question.call);
                self.record(Entry::ToolStarted {
                    call: call.id.clone(),
                });
                self.tool_event(ToolPhase::Start, &call, &call.arguments);
                self.queue.push_back(Step::Execute(call));
            }
        }
    }

    /// Makes the next request after all calls have results.
    fn worked(&mut self) {
        self.phase = Phase::TurnDue;
        self.current.cause = TurnTrigger::ToolResults;
        self.end_turn();
        self.say_pins();
        let consequence = LoopConsequence::Told;
        if self.state.facts.finalizing.is_none()
            && let Some(looping) = self.looping()
            && looping.consequence == consequence
        {
            let kind = looping.kind;
            self.notify(Event::LoopDetected { kind, consequence });
            self.notice(notice::REPEATED.to_owned());
        }
        if let Some(reason) = self.state.facts.finalizing.clone() {
            self.finish(reason);
        } else {
            self.start_turn();
        }
    }

    /// Handles the end of a tool call.
    pub(crate) fn tool_done(&mut self, result: ToolResult, spent: Spend) {
        let Phase::Working(queue) = &mut self.phase else {
            return;
        };
        let Some(call) = queue.running.remove(&result.call) else {
            return;
        };
        let phase = if result.is_error {
            ToolPhase::Error
        } else {
            ToolPhase::Success
        };
        let is_error = result.is_error;
        let result = self.with_tool_name(&call, result);
        self.now.tool_usage.remove(&call.id);
        self.give(&call, phase, result, spent);
        self.after(HookPoint::AfterToolExecution, |_| {
            HookInput::AfterToolExecution {
                call: call.id.clone(),
                tool: call.name.clone(),
                is_error,
            }
        });
    }

    /// Adds the name of the tool to the result if the model called it by another name.
    fn with_tool_name(&self, call: &ToolCall, mut result: ToolResult) -> ToolResult {
        let written = self.state.batch.as_ref();
        let written = written.and_then(|batch| batch.written_name(&call.id));
        if let Some(written) = written.filter(|written| *written != call.name) {
            let note = Part::text(notice::other_tool(written, &call.name));
            result.parts.insert(0, note);
        }
        result
    }

    /// Handles the decision whether a call may run.
    pub(crate) fn answered(&mut self, id: &CallId, answer: Answer) {
        let Phase::Working(queue) = &mut self.phase else {
            return;
        };
        let Some(question) = queue.asking.remove(id) else {
            return;
        };
        match answer {
            Answer::Allow => queue.ready.push_front(Question {
                asks_hook: false,
                asks_gate: false,
                ..question
            }),
            Answer::Rewrite { arguments } => {
                let call = ToolCall {
                    arguments,
                    ..question.call
                };
                match check_rewritten(&self.setup, &self.state.facts.names, &call) {
                    Ok(question) => queue.ready.push_front(question),
                    Err(instead) => self.settle(&call, instead),
                }
            }
            Answer::Deny { why } => self.settle(&question.call, NotRun::refused(why)),
            Answer::Skip { why } => self.settle(&question.call, NotRun::skipped(why)),
        }
    }

    /// Gives a result to every call without one, so that the view is complete.
    pub(crate) fn close_calls(&mut self, why: &str) {
        let Some(batch) = &self.state.batch else {
            return;
        };
        let open: Vec<(Arc<ToolCall>, bool)> = batch
            .open()
            .map(|call| (Arc::clone(&call.call), call.began))
            .collect();
        for (call, began) in open {
            let text = if began { notice::CUT } else { why };
            self.settle(&call, NotRun::skipped(text));
        }
    }

    fn skip_unstarted(&mut self) {
        let Phase::Working(queue) = &mut self.phase else {
            return;
        };
        for question in std::mem::take(&mut queue.ready) {
            self.settle(&question.call, NotRun::skipped(notice::OVERTAKEN));
        }
    }

    /// Gives an explanatory result to a call that does not run.
    pub(crate) fn settle(&mut self, call: &ToolCall, instead: NotRun) {
        // An aborted call is counted with its usage so far.
        let spent = self.now.tool_usage.remove(&call.id).unwrap_or_default();
        let result = ToolResult {
            call: call.id.clone(),
            parts: vec![Part::text(instead.why)],
            is_error: true,
        };
        self.give(call, instead.phase, result, spent);
    }

    fn give(&mut self, call: &ToolCall, phase: ToolPhase, result: ToolResult, spent: Spend) {
        let message = Message::ToolResult(result);
        self.tool_event(phase, call, &message.text());
        self.record(Entry::ToolResult {
            message: Arc::new(message),
            spent,
        });
    }

    fn tool_event(&mut self, phase: ToolPhase, call: &ToolCall, text: &str) {
        self.notify(Event::ToolCall {
            phase,
            call: call.id.clone(),
            name: call.name.clone(),
            text: notice::shortened(text, EVENT_TEXT),
            size: Bytes(text.len() as u64),
            whole: text.into(),
        });
    }
}
