//! [`EventPrinter`]: prints the events of a run for `run` and `chat`: text as it streams, a line
//! for each tool call, plan and limit, and the current activity.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use plimsoll::events::{MessagePhase, ToolPhase};
use plimsoll::machine::{Outcome, Waiting};
use plimsoll::model::CallId;
use plimsoll::permissions::Question;
use plimsoll::policy::Trigger;
use plimsoll::{Delta, Event, Message, Observer, Part, SessionEvent};
use tokio::sync::mpsc::Sender;

use crate::ask::PendingQuestion;
use crate::chat::prompt::Gauge;
use crate::diff::{self, Previews};
use crate::lock;
use crate::outcome::plan_text;
use crate::status::RunStatus;
use crate::terminal::Terminal;
use crate::terminal::style::{BOLD, DIM, RED, paint};
use crate::terminal::text::{clean, counted, first_clause, one_line};
use crate::tool_line::{self, CallResult};

/// Indentation of the details of a tool call.
const DETAIL: &str = "    ";
/// Maximum number of remembered calls. Further changes may be shown twice.
const MAX_PREVIEWED: usize = 1_000;

/// Prints the events of a run.
pub(crate) struct EventPrinter {
    pub(crate) terminal: Arc<Terminal>,
    /// The prompt of a chat, which shows how full the window is. `None` for a single run, whose answer is
    /// printed by the command unless it streams.
    gauge: Option<Arc<Gauge>>,
    /// Where a chat receives questions.
    pub(crate) chat: Option<Sender<PendingQuestion>>,
    previews: Previews,
    state: Mutex<PrinterState>,
}

/// A running tool call.
struct RunningCall {
    argument: String,
    since: Instant,
    /// The change that it makes to a file, if any: its size, and its lines unless the user has seen them.
    change: Option<(String, Vec<String>)>,
}

#[derive(Default)]
struct PrinterState {
    /// Without streaming, only final text may be written.
    text: StreamedText,
    running: HashMap<CallId, RunningCall>,
    /// Calls whose change the user was shown in a question.
    previewed: HashSet<CallId>,
    /// Calls that ended without having run. Their arguments come with the next event.
    ended: HashMap<CallId, (ToolPhase, Arc<str>)>,
    status: RunStatus,
}

/// The model's text as it arrives, so that the end of a run prints only the text that was not printed
/// before.
#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    /// Text of the current turn.
    turn: String,
    /// The last complete text.
    said: String,
}

impl EventPrinter {
    pub(crate) fn new(
        terminal: Arc<Terminal>,
        root: &Path,
        chat: Option<(Arc<Gauge>, Sender<PendingQuestion>)>,
    ) -> Self {
        let (gauge, chat) = chat.unzip();
        Self {
            terminal,
            gauge,
            chat,
            previews: Previews::new(root),
            state: Mutex::default(),
        }
    }

    fn dim(&self, text: &str) {
        self.terminal.note(&paint(DIM, text));
    }

    fn warn(&self, text: &str) {
        let note = paint(BOLD, "note:");
        self.terminal.note(&format!("{note} {}", clean(text)));
    }

    /// Sets the current activity in the status line. An empty text means none.
    fn doing(&self, state: &mut PrinterState, doing: impl Into<String>) {
        let doing = doing.into();
        if state.status.doing == doing {
            return;
        }
        state.status.doing = doing;
        self.show(state);
    }

    /// Shows how full the window is.
    fn measure(&self, state: &PrinterState) {
        let status = &state.status;
        if let Some(gauge) = &self.gauge {
            gauge.set(status.tokens, status.trigger, status.window);
        }
        self.show(state);
    }

    fn show(&self, state: &PrinterState) {
        self.terminal.status(Some(&state.status.line()));
    }

    /// Writes the text of the turn, which is final now.
    fn write(&self, state: &mut PrinterState) {
        let Some(said) = state.text.complete() else {
            return;
        };
        match (self.terminal.is_live(), &self.gauge) {
            (true, _) => self.terminal.end_text(),
            (false, Some(_)) => self.terminal.say(said.trim_end_matches('\n')),
            // The command prints the answer, and nothing but the answer.
            (false, None) => {}
        }
    }

    /// Returns the text of a question: the change of a file, or all arguments of the call.
    pub(crate) fn preview(&self, question: &Question) -> String {
        let call = &question.call;
        let name = paint(BOLD, &clean(&call.name));
        let Some(diff) = self.previews.diff(&call.name, &call.arguments) else {
            return tool_line::in_full(&name, &call.arguments);
        };
        let previewed = &mut lock(&self.state).previewed;
        if previewed.len() < MAX_PREVIEWED {
            previewed.insert(call.id.clone());
        }
        let argument = tool_line::argument(&call.name, &call.arguments);
        let head = format!("{name} {argument} {}", diff.summary());
        [vec![head], diff.lines(diff::ASKED)].concat().join("\n")
    }

    /// Notes that a tool begins to run.
    fn tool_started(&self, state: &mut PrinterState, call: &CallId, name: &str, arguments: &str) {
        let argument = tool_line::argument(name, arguments);
        self.doing(state, format!("{name} {argument}").trim_end());
        let was_shown = state.previewed.remove(call);
        let change = self.previews.diff(name, arguments).map(|diff| {
            let lines = (!was_shown).then(|| diff.lines(diff::SHOWN));
            (diff.summary(), lines.unwrap_or_default())
        });
        let running = RunningCall {
            argument,
            since: Instant::now(),
            change,
        };
        state.running.insert(call.clone(), running);
    }

    /// Writes the line of a call, and its details below it.
    fn tool_ended(&self, phase: ToolPhase, name: &str, running: RunningCall, text: &str) {
        let terminal = &self.terminal;
        let (summary, details) = match running.change {
            Some(change) if phase == ToolPhase::Success => change,
            _ => {
                let time = running.since.elapsed();
                let CallResult { summary, details } = tool_line::result(phase, name, text, time);
                let details = details.iter();
                let details = details.map(|line| paint(DIM, &format!("{DETAIL}{line}")));
                let summary = if phase == ToolPhase::Error {
                    let error = paint(RED.bold(), "error:");
                    format!("{} {error} {summary}", paint(DIM, "·"))
                } else {
                    paint(DIM, &format!("· {summary}"))
                };
                (summary, details.collect())
            }
        };
        let head = [
            paint(DIM, "·"),
            paint(BOLD, name),
            running.argument,
            summary,
        ];
        let head: Vec<String> = head.into_iter().filter(|part| !part.is_empty()).collect();
        let lines: Vec<String> = [head.join(" ")].into_iter().chain(details).collect();
        terminal.note(&lines.join("\n"));
    }

    fn message(&self, kind: Waiting, phase: MessagePhase, parts: &[Part]) {
        let text = Message::User {
            parts: parts.to_vec(),
        };
        let text = one_line(&text.text());
        let line = match (phase, kind) {
            (MessagePhase::Queued, Waiting::Steer) => format!("queued for the next call: {text}"),
            (MessagePhase::Queued, Waiting::FollowUp) => {
                format!("queued for after the answer: {text}")
            }
            (MessagePhase::Delivered, _) => format!("delivered: {text}"),
            (MessagePhase::Undelivered, _) => {
                return self.warn(&format!("not delivered, the run had ended: {text}"));
            }
        };
        self.dim(&line);
    }

    fn end(&self, state: &mut PrinterState, outcome: &Outcome) {
        self.write(state);
        state.running.clear();
        state.ended.clear();
        state.status.doing.clear();
        self.terminal.status(None);
        if !self.terminal.is_live() && self.gauge.is_none() {
            return;
        }
        if let Some(rest) = state.text.rest(outcome, "") {
            self.terminal.say(&rest);
        }
    }
}

impl Observer for EventPrinter {
    fn see(&self, SessionEvent { event, .. }: &SessionEvent) {
        let mut guard = lock(&self.state);
        let state = &mut *guard;
        match event {
            Event::TurnStart {
                turn,
                tokens,
                trigger,
                window,
                ..
            } => {
                let status = &mut state.status;
                (status.turn, status.tokens) = (*turn, *tokens);
                (status.trigger, status.window) = (*trigger, *window);
                status.doing = "the model reads".to_owned();
                self.measure(state);
            }
            Event::Delta(Delta::Text { text }) => {
                self.doing(state, "the model writes");
                if self.terminal.is_live() {
                    self.terminal.stream(text);
                }
                state.text.push(text);
            }
            Event::Delta(Delta::Thinking { .. }) => self.doing(state, "the model thinks"),
            Event::Delta(Delta::HostedCall { name, text, .. }) => {
                let said = format!("{} {} (at the provider)", clean(name), one_line(text));
                self.terminal.end_text();
                self.dim(&said);
            }
            Event::Delta(Delta::HostedResult { text, is_error, .. }) => {
                let error = if *is_error { "error: " } else { "" };
                self.dim(&format!("→ {error}{}", one_line(text)));
            }
            Event::Delta(Delta::CallStarted { name, .. }) => {
                self.doing(state, format!("the model calls {}", clean(name)));
            }
            Event::Delta(_) => {}
            Event::Retrying {
                attempt,
                wait_ms,
                why,
            } => {
                state.text.discard();
                let seconds = *wait_ms as f64 / 1_000.0;
                self.dim(&format!(
                    "try {attempt} in {seconds:.1} s: {}",
                    first_clause(why)
                ));
            }
            Event::Overflow { message, .. } => {
                state.text.discard();
                let why = one_line(message);
                self.dim(&format!("the request is too long; compacting it: {why}"));
            }
            Event::ToolCall {
                phase,
                call,
                name,
                whole,
                ..
            } => {
                self.write(state);
                if *phase == ToolPhase::Start {
                    self.tool_started(state, call, &clean(name), whole);
                } else if let Some(running) = state.running.remove(call) {
                    self.tool_ended(*phase, &clean(name), running, whole);
                } else {
                    let ended = (*phase, Arc::clone(whole));
                    state.ended.insert(call.clone(), ended);
                }
                if state.running.is_empty() {
                    self.doing(state, "");
                }
            }
            Event::Step(step) => {
                if let Some((phase, text)) = state.ended.remove(&step.call) {
                    let running = RunningCall {
                        argument: tool_line::argument(&step.name, &step.arguments),
                        since: Instant::now(),
                        change: None,
                    };
                    self.tool_ended(phase, &clean(&step.name), running, &text);
                }
            }
            Event::TurnEnd { cost, .. } => {
                state.status.cost = *cost;
                self.write(state);
            }
            Event::Message {
                kind, phase, parts, ..
            } => self.message(*kind, *phase, parts),
            Event::InputRejected { why } => self.warn(&format!("not let in: {why}")),
            Event::PlanApplied(applied) => {
                state.status.tokens = applied.tokens_after;
                self.measure(state);
                // Otherwise it is printed as the output of the command.
                if applied.plan.why != Trigger::Asked {
                    self.dim(&plan_text(applied));
                }
            }
            Event::SummaryStarted {
                model, messages, ..
            } => {
                let messages = counted(*messages, "message");
                self.doing(state, format!("{} sums up {messages}", clean(model)));
            }
            Event::SummaryEnded { failure, .. } => {
                self.doing(state, "");
                if let Some(why) = failure {
                    self.warn(&format!(
                        "the model wrote no usable summary: {why}; extract writes the summaries of \
                         this run"
                    ));
                }
            }
            Event::CacheMissed { expected, read } => {
                self.dim(&format!("read {read} of {expected} tokens from the cache"));
            }
            Event::LimitNear { notice } => self.dim(&clean(notice)),
            Event::LimitReached { notice } => {
                // The text of a call that was cut off stays in the session.
                self.write(state);
                self.terminal.note(&paint(BOLD, &clean(notice)))
            }
            Event::Warning { text } => self.warn(text),
            Event::AgentEnd { outcome, .. } => self.end(state, outcome),
            Event::SubAgent { name, event, .. } => {
                if let Some(text) = below(name, &event.event) {
                    self.dim(&clean(&text));
                }
            }
            _ => {}
        }
    }
}

impl StreamedText {
    /// Adds a piece of text to the turn.
    pub(crate) fn push(&mut self, text: &str) {
        self.turn.push_str(text);
    }

    /// Discards the text of the turn. Returns `true` if there was any.
    pub(crate) fn discard(&mut self) -> bool {
        let had_text = !self.turn.is_empty();
        self.turn.clear();
        had_text
    }

    /// Completes the text of the turn, and returns it unless it is blank.
    pub(crate) fn complete(&mut self) -> Option<&str> {
        let text = std::mem::take(&mut self.turn);
        if text.trim().is_empty() {
            return None;
        }
        self.said = text;
        Some(&self.said)
    }

    /// Ends the run. Returns any text that it adds to the model's answer or gives instead of it,
    /// behind the gap if there was a text before.
    pub(crate) fn rest(&mut self, outcome: &Outcome, gap: &str) -> Option<String> {
        let said = std::mem::take(&mut self.said);
        let rest = outcome.text.strip_prefix(said.trim());
        let rest = rest.unwrap_or(&outcome.text).trim();
        let answered = outcome.reason.is_answer() || outcome.reason.is_limit();
        let gap = if said.is_empty() { "" } else { gap };
        (answered && !rest.is_empty()).then(|| format!("{gap}{rest}"))
    }
}

/// Returns the line for an event of a sub-agent: the start of a tool call, or the end of its run.
pub(crate) fn below(name: &str, event: &Event) -> Option<String> {
    match event {
        Event::ToolCall {
            phase: ToolPhase::Start,
            name: tool,
            text,
            ..
        } => {
            let argument = tool_line::argument(tool, text);
            Some(format!("    {name} › {tool} {argument}"))
        }
        Event::AgentEnd { outcome, .. } => Some(format!(
            "    {name} › {}, {}, {} tokens",
            outcome.reason.word(),
            counted(outcome.turns, "turn"),
            outcome.tokens_used.total_tokens(),
        )),
        Event::SubAgent {
            name: inner, event, ..
        } => below(&format!("{name} › {inner}"), &event.event),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_below_are_told_by_their_way_down() {
        let call = Event::ToolCall {
            phase: ToolPhase::Start,
            call: CallId("c".to_owned()),
            name: "read".to_owned(),
            text: "{\"path\": \"log\"}".to_owned(),
            size: plimsoll::tokens::Bytes(15),
            whole: "".into(),
        };
        let inner = Event::SubAgent {
            call: CallId("c".to_owned()),
            name: "mate".to_owned(),
            event: Box::new(SessionEvent {
                session: "s.scout.1-0.mate.1-0".into(),
                run: 1,
                event: call,
            }),
        };
        assert_eq!(
            below("scout", &inner).as_deref(),
            Some("    scout › mate › read log")
        );
        let warning = Event::Warning {
            text: "x".to_owned(),
        };
        assert_eq!(below("scout", &warning), None);
    }
}
