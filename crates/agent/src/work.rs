//! The tool calls of a turn: which run, in which order, and what each of the others gets for a
//! result. It starts nothing itself.

use std::sync::Arc;

use plimsoll_context::{CallId, Message, ToolCall, ToolResult};

use crate::entry::{Entry, Waiting};
use crate::event::{Event, ToolPhase, TurnTrigger};
use crate::moment::{HookPoint, Moment};
use crate::notice;
use crate::outcome::EndReason;
use crate::pins::MAX_PINS;
use crate::run::{Phase, Run, Working};
use crate::spend::Spend;
use crate::step::{Answer, Question, Step, Whom};

/// What repeated calls lead to.
#[derive(Debug, PartialEq, Eq)]
enum Looping {
    No,
    Nudge,
    Refuse,
    Stop,
}

/// What an event shows of a result, at most.
const EVENT_TEXT: usize = 2_000;

impl Run {
    /// Reads a whole batch before any of it runs: what cannot run gets its result now.
    pub(crate) fn decode_batch(&mut self) {
        let looping = self.looping();
        if looping == Looping::Stop {
            let times = self.state.repeats.streak();
            return self.finish(EndReason::DoomLoop { times });
        }
        let calls = self.open_calls();
        let unreadable: Vec<Option<String>> = calls.iter().map(|call| fault(call)).collect();
        let any_unreadable = unreadable.iter().any(Option::is_some);
        let limits = Arc::clone(&self.setup.limits);
        let turns_left = limits.max_turns > self.state.tally.turns;
        let mut room = limits
            .max_tool_calls
            .map(|max| max.saturating_sub(self.state.tally.tool_calls));
        for (call, fault) in calls.into_iter().zip(unreadable) {
            if self.finalizing.is_some() || !turns_left {
                self.skip(&call, notice::NO_TOOLS_NOW.to_owned());
            } else if let Some(why) = fault {
                self.refuse(&call, notice::unreadable(&call, &why));
            } else if looping == Looping::Refuse {
                self.refuse(&call, notice::REPEATED_CALL.to_owned());
            } else if any_unreadable {
                self.refuse(&call, notice::BATCH_UNREADABLE.to_owned());
            } else if !self.knows(&call.name) {
                let names: Vec<&str> = self.specs.iter().map(|tool| tool.name.as_str()).collect();
                let text = notice::unknown_tool(&call.name, &names);
                self.refuse(&call, text);
            } else if room == Some(0) {
                let limit = limits.max_tool_calls.unwrap_or_default();
                self.skip(&call, notice::over_limit(limit));
            } else {
                room = room.map(|left| left - 1);
            }
        }
        self.phase = Phase::Working(Working::default());
    }

    /// What the newest batch leads to, after as many of its like in a row.
    fn looping(&self) -> Looping {
        let Some(most) = self.setup.limits.max_identical_tool_calls else {
            return Looping::No;
        };
        let most = most.max(2);
        match self.state.repeats.streak() {
            streak if streak >= most + 2 => Looping::Stop,
            streak if streak >= most => Looping::Refuse,
            // One of a kind is no repetition.
            streak if streak > 1 && streak + 1 == most => Looping::Nudge,
            _ => Looping::No,
        }
    }

    /// Starts what may start; once all have results, the next request is due.
    pub(crate) fn work(&mut self) {
        if self.waits(Waiting::Steer) {
            self.skip_unstarted();
        }
        let calls = self.open_calls();
        if calls.is_empty() {
            self.phase = Phase::Ready;
            self.cause = TurnTrigger::ToolResults;
            self.end_turn();
            self.say_pins();
            if self.looping() == Looping::Nudge && self.finalizing.is_none() {
                self.notice(notice::REPEATED.to_owned());
            }
            if let Some(reason) = self.finalizing.take() {
                self.finish(reason);
            } else {
                self.request();
            }
            return;
        }
        let Phase::Working(working) = &mut self.phase else {
            return;
        };
        let mut start = Vec::new();
        let mut ask = Vec::new();
        let mut slots = self
            .setup
            .max_parallel_tools
            .max(1)
            .saturating_sub(working.running.len() + working.asking.len());
        for call in calls {
            if slots == 0 {
                break;
            }
            if working.running.contains(&call.id) || working.asking.contains(&call.id) {
                continue;
            }
            slots -= 1;
            let asks = self
                .setup
                .tools
                .iter()
                .any(|tool| tool.spec.name == call.name && tool.asks);
            let hook = self.setup.hooks.contains(&HookPoint::BeforeToolExecution);
            let whom = match (asks, hook) {
                (true, true) => Some(Whom::Both),
                (true, false) => Some(Whom::Gate),
                (false, true) => Some(Whom::Hook),
                (false, false) => None,
            };
            if let Some(whom) = whom.filter(|_| !working.allowed.contains(&call.id)) {
                working.asking.insert(call.id.clone());
                ask.push((call, whom));
            } else {
                working.running.insert(call.id.clone());
                start.push(call);
            }
        }
        for call in start {
            self.record(Entry::Began {
                call: call.id.clone(),
            });
            self.tool_event(ToolPhase::Start, &call, call.arguments.clone());
            self.queue.push_back(Step::Execute(ToolCall::clone(&call)));
        }
        self.queue.extend(ask.into_iter().map(|(call, whom)| {
            let call = ToolCall::clone(&call);
            Step::Ask(Question { call, whom })
        }));
    }

    /// A tool call has ended.
    pub(crate) fn tool_done(&mut self, result: ToolResult, pins: Vec<String>, spent: Spend) {
        let Phase::Working(working) = &mut self.phase else {
            return;
        };
        if !working.running.remove(&result.call) {
            return;
        }
        let Some(call) = self
            .state
            .batch
            .as_ref()
            .and_then(|batch| batch.find(&result.call))
            .cloned()
        else {
            return;
        };
        let phase = if result.is_error {
            ToolPhase::Error
        } else {
            ToolPhase::Success
        };
        let is_error = result.is_error;
        self.give(&call, phase, result, pins, spent);
        self.after(HookPoint::AfterToolExecution, || {
            Moment::AfterToolExecution {
                call: call.id.clone(),
                name: call.name.clone(),
                is_error,
            }
        });
    }

    /// A person has answered whether a call may run.
    pub(crate) fn answered(&mut self, id: &CallId, answer: Answer) {
        let Phase::Working(working) = &mut self.phase else {
            return;
        };
        if !working.asking.remove(id) {
            return;
        }
        match &answer {
            Answer::Allow => {
                working.allowed.insert(id.clone());
            }
            Answer::Deny { .. } | Answer::Skip { .. } => {
                let call = self
                    .state
                    .batch
                    .as_ref()
                    .and_then(|batch| batch.find(id))
                    .cloned();
                match (call, answer) {
                    (Some(call), Answer::Deny { why }) => self.refuse(&call, why),
                    (Some(call), Answer::Skip { why }) => self.skip(&call, why),
                    _ => {}
                }
            }
        }
    }

    /// Gives every call without a result one, so that the view is whole.
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
            self.skip(&call, text.to_owned());
        }
    }

    /// After a crash: a call that may have run and must not run twice gets a result that says so.
    pub(crate) fn settle_unknown_calls(&mut self) {
        let Some(batch) = &self.state.batch else {
            return;
        };
        let began: Vec<Arc<ToolCall>> = batch
            .open()
            .filter(|call| call.began)
            .map(|call| Arc::clone(&call.call))
            .collect();
        for call in began {
            let known = self
                .setup
                .tools
                .iter()
                .find(|tool| tool.spec.name == call.name);
            if !known.is_some_and(|tool| tool.idempotent) {
                self.refuse(&call, notice::UNKNOWN.to_owned());
            }
        }
    }

    fn skip_unstarted(&mut self) {
        let Phase::Working(working) = &self.phase else {
            return;
        };
        let (running, asking) = (working.running.clone(), working.asking.clone());
        for call in self.open_calls() {
            if !running.contains(&call.id) && !asking.contains(&call.id) {
                self.skip(&call, notice::OVERTAKEN.to_owned());
            }
        }
    }

    fn knows(&self, name: &str) -> bool {
        self.specs.iter().any(|tool| tool.name == name)
    }

    fn open_calls(&self) -> Vec<Arc<ToolCall>> {
        let batch = self.state.batch.as_ref();
        batch
            .map(|batch| batch.open().map(|call| Arc::clone(&call.call)).collect())
            .unwrap_or_default()
    }

    /// The call does not run and its result says why: it counts as failed.
    fn refuse(&mut self, call: &ToolCall, text: String) {
        let result = error_result(call, text);
        self.give(call, ToolPhase::Error, result, Vec::new(), Spend::default());
    }

    /// The call does not run, through no fault of its own.
    fn skip(&mut self, call: &ToolCall, text: String) {
        let result = error_result(call, text);
        self.give(
            call,
            ToolPhase::Skipped,
            result,
            Vec::new(),
            Spend::default(),
        );
    }

    fn give(
        &mut self,
        call: &ToolCall,
        phase: ToolPhase,
        result: ToolResult,
        mut pins: Vec<String>,
        spent: Spend,
    ) {
        let message = Message::ToolResult(result);
        self.tool_event(phase, call, message.text());
        // As many as could ever be pinned, and one that says that there were more.
        pins.truncate(MAX_PINS + 1);
        self.record(Entry::Returned {
            message: Arc::new(message),
            pins,
            spent,
        });
    }

    fn tool_event(&mut self, phase: ToolPhase, call: &ToolCall, mut text: String) {
        if let Some((end, _)) = text.char_indices().nth(EVENT_TEXT) {
            text.truncate(end);
            text.push('…');
        }
        self.notify(Event::ToolCall {
            phase,
            call: call.id.clone(),
            name: call.name.clone(),
            text,
        });
    }
}

fn error_result(call: &ToolCall, text: String) -> ToolResult {
    ToolResult {
        call: call.id.clone(),
        parts: vec![plimsoll_context::Part::text(text)],
        is_error: true,
    }
}

/// Why a call's arguments are no JSON object. None at all counts as an empty object, since some
/// models send nothing for a tool without parameters.
fn fault(call: &ToolCall) -> Option<String> {
    if call.arguments.trim().is_empty() {
        return None;
    }
    match serde_json::from_str::<serde_json::Value>(&call.arguments) {
        Ok(serde_json::Value::Object(_)) => None,
        Ok(_) => Some("it is valid JSON, but no object".to_owned()),
        Err(error) => Some(error.to_string()),
    }
}
