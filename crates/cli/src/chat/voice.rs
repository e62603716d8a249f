//! [`Voice`]: what `run` and `chat` show of a run: text as it streams, a line for each tool call, plan
//! and limit, and what is under way. It decides nothing and asks nobody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll::{
    Bytes, CallId, Delta, Event, Message, MessagePhase, Observer, Outcome, Part, Plan, Price,
    ToolPhase, Waiting,
};

use crate::chat::paper::{Paper, clean};
use crate::chat::prompt::Gauge;
use crate::screen::{RunStatus, counted, one_line};

/// What a run says.
pub(crate) struct Voice {
    paper: Arc<Paper>,
    /// The prompt of a chat, which shows how full the window is. `None` for a single run: its status
    /// line shows that, and its answer is printed by the command unless it streams.
    gauge: Option<Arc<Gauge>>,
    state: Mutex<State>,
}

/// What a tool was given, or gave: its beginning, and how long all of it is.
struct Text<'a> {
    text: &'a str,
    size: Bytes,
}

#[derive(Default)]
struct State {
    /// Text of the turn that is not written yet: where nothing streams, what is written must stand.
    text: String,
    /// What was last said, whole.
    said: String,
    /// Tools that run, with their arguments.
    running: HashMap<CallId, String>,
    status: RunStatus,
}

impl Voice {
    pub(crate) fn new(paper: Arc<Paper>, gauge: Option<Arc<Gauge>>) -> Self {
        Self {
            paper,
            gauge,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn dim(&self, text: &str) {
        self.paper.note(&self.paper.dim(text));
    }

    fn warn(&self, text: &str) {
        let note = self.paper.bold("note:");
        self.paper.note(&format!("{note} {}", clean(text)));
    }

    /// Shows what is under way; nothing if that is empty.
    fn doing(&self, state: &mut State, doing: impl Into<String>) {
        let doing = doing.into();
        if state.status.doing == doing {
            return;
        }
        state.status.doing = doing;
        self.show(state);
    }

    /// Shows how full the window is.
    fn measure(&self, state: &State) {
        let status = &state.status;
        if let Some(gauge) = &self.gauge {
            gauge.set(status.tokens, status.trigger, status.window);
        }
        self.show(state);
    }

    fn show(&self, state: &State) {
        let status = &state.status;
        match &self.gauge {
            None => self.paper.status(Some(&status.line())),
            Some(_) => {
                let doing = format!("· {} …", status.doing);
                let shown = !status.doing.is_empty();
                self.paper.status(shown.then_some(doing.as_str()));
            }
        }
    }

    /// Writes what the turn has said, now that it stands.
    fn write(&self, state: &mut State) {
        if state.text.trim().is_empty() {
            state.text.clear();
            return;
        }
        state.said = std::mem::take(&mut state.text);
        match (self.paper.is_live(), &self.gauge) {
            (true, _) => self.paper.end_row(),
            (false, Some(_)) => self.paper.say(state.said.trim_end_matches('\n')),
            // The command prints the answer, and nothing but the answer.
            (false, None) => {}
        }
    }

    fn tool(&self, state: &mut State, phase: ToolPhase, call: &CallId, name: &str, had: Text<'_>) {
        let text = had.text;
        let arguments = match phase {
            ToolPhase::Start => {
                let arguments = one_line(&clean(text));
                self.doing(state, format!("{name} {arguments}").trim_end());
                state.running.insert(call.clone(), arguments);
                return;
            }
            _ => state.running.remove(call).unwrap_or_default(),
        };
        if state.running.is_empty() {
            self.doing(state, "");
        }
        let called = format!("· {name} {arguments}");
        let called = called.trim_end();
        match phase {
            ToolPhase::Success => self.dim(&format!("{called} → {}", counted(had.size.0, "byte"))),
            ToolPhase::Skipped => {
                self.dim(&format!("{called} → skipped: {}", one_line(&clean(text))))
            }
            ToolPhase::Error => {
                let error = self.paper.bold("error:");
                let text = one_line(&clean(text));
                self.paper.note(&format!(
                    "{} {error} {text}",
                    self.paper.dim(&format!("{called} →"))
                ));
            }
            ToolPhase::Start => {}
        }
    }

    fn message(&self, kind: Waiting, phase: MessagePhase, parts: &[Part]) {
        let text = Message::User {
            parts: parts.to_vec(),
        };
        let text = one_line(&clean(&text.text()));
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

    fn end(&self, state: &mut State, outcome: &Outcome) {
        // What a call that was cut off had said is not in the log, and a pipe is given what stands.
        if !self.paper.is_live() {
            state.text.clear();
        }
        self.write(state);
        state.running.clear();
        state.status.doing.clear();
        self.paper.status(None);
        if !self.paper.is_live() && self.gauge.is_none() {
            return;
        }
        // What the run adds to the model's words, or says in their place.
        let said = std::mem::take(&mut state.said);
        let answered = outcome.reason.is_answer() || outcome.reason.is_limit();
        let rest = outcome
            .text
            .strip_prefix(said.trim())
            .unwrap_or(&outcome.text);
        if answered && !rest.trim().is_empty() {
            self.paper.say(rest.trim());
        }
    }
}

impl Observer for Voice {
    fn see(&self, event: &Event) {
        let mut guard = self.lock();
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
                // Above a prompt, the text shows that by itself.
                let doing = match self.gauge {
                    Some(_) => "",
                    None => "the model writes",
                };
                self.doing(state, doing);
                if self.paper.is_live() {
                    self.paper.stream(text);
                }
                state.text.push_str(text);
            }
            Event::Delta(Delta::Thinking { .. }) => self.doing(state, "the model thinks"),
            Event::Delta(Delta::HostedCall { name, text, .. }) => {
                let said = format!(
                    "{} {} (at the provider)",
                    clean(name),
                    one_line(&clean(text))
                );
                self.paper.end_row();
                self.dim(&said);
            }
            Event::Delta(Delta::HostedResult { text, is_error, .. }) => {
                let error = if *is_error { "error: " } else { "" };
                self.dim(&format!("→ {error}{}", one_line(&clean(text))));
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
                let void = match state.text.is_empty() {
                    true => "",
                    false => ", what it had said is void",
                };
                state.text.clear();
                let seconds = *wait_ms as f64 / 1_000.0;
                self.dim(&format!(
                    "try {attempt} in {seconds:.1} s{void}: {}",
                    one_line(&clean(why))
                ));
            }
            Event::Overflow {
                window, message, ..
            } => {
                state.text.clear();
                let known =
                    window.map_or_else(String::new, |window| format!(" (window: {window})"));
                self.dim(&format!(
                    "too long{known}; making it smaller: {}",
                    one_line(&clean(message))
                ));
            }
            Event::ToolCall {
                phase,
                call,
                name,
                text,
                size,
            } => {
                let had = Text { text, size: *size };
                self.write(state);
                self.tool(state, *phase, call, &clean(name), had);
            }
            Event::TurnEnd {
                cost, estimated, ..
            } => {
                (state.status.cost, state.status.estimated) = (*cost, *estimated);
                self.write(state);
            }
            Event::Message {
                kind, phase, parts, ..
            } => self.message(*kind, *phase, parts),
            Event::InputRejected { why } => self.warn(&format!("not let in: {why}")),
            Event::CompactionEnded {
                plan,
                messages_before,
                messages_after,
                tokens_after,
                ..
            } => {
                state.status.tokens = *tokens_after;
                self.measure(state);
                self.dim(&compacted(
                    plan,
                    messages_before.saturating_sub(*messages_after),
                ));
            }
            Event::ResultsShortened {
                results,
                tokens_before,
                tokens_after,
            } => {
                state.status.tokens = *tokens_after;
                self.measure(state);
                let results = counted(*results, "result");
                let freed = tokens_before.minus(*tokens_after);
                self.dim(&format!("{results} shortened: −{freed} tokens"));
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
                        "no summary by a model: {why}; extract writes it instead"
                    ));
                }
            }
            // What a plan breaks, its own line has told.
            Event::CacheMissed(miss) if !miss.is_planned() => self.dim(&miss.to_string()),
            Event::LimitNear { notice } => self.dim(&clean(notice)),
            Event::LimitReached { notice } => self.paper.note(&self.paper.bold(&clean(notice))),
            Event::Warning { text } => self.warn(text),
            Event::AgentEnd { outcome, .. } => self.end(state, outcome),
            Event::SubAgent { name, event, .. } => {
                if let Some(text) = below(name, event) {
                    self.dim(&clean(&text));
                }
            }
            _ => {}
        }
    }
}

/// Returns the line that is shown of an event of a sub-agent: its tool calls, and how it ended.
fn below(name: &str, event: &Event) -> Option<String> {
    match event {
        Event::ToolCall {
            phase: ToolPhase::Start,
            name: tool,
            text,
            ..
        } => Some(format!("    {name} › {tool} {}", one_line(text))),
        Event::AgentEnd { outcome, .. } => Some(format!(
            "    {name} › {}, {}, {} tokens",
            outcome.reason.word(),
            counted(outcome.turns, "turn"),
            outcome.usage.total_tokens(),
        )),
        Event::SubAgent {
            name: inner, event, ..
        } => below(&format!("{name} › {inner}"), event),
        _ => None,
    }
}

/// What a plan did, in one line: compacted: 12 messages, 3400 tokens freed, est. $0.01 saved.
pub(crate) fn compacted(plan: &Plan, gone: usize) -> String {
    let messages = match gone {
        0 => plan.edits.len(),
        gone => gone,
    };
    let what = match gone {
        0 => "shortened",
        _ => "compacted",
    };
    let saved = plan.price.as_ref().and_then(Price::net).map(|net| {
        let money = plimsoll::Money(u64::try_from(net.unsigned_abs()).unwrap_or(u64::MAX));
        match net >= 0 {
            true => format!(", est. {money} saved"),
            false => format!(", est. {money} spent"),
        }
    });
    format!(
        "{what} ({}): {}, {} freed{}",
        plan.stages.join(", "),
        counted(messages, "message"),
        counted(plan.frees.0, "token"),
        saved.unwrap_or_default()
    )
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
            size: Bytes(15),
        };
        let inner = Event::SubAgent {
            call: CallId("c".to_owned()),
            name: "mate".to_owned(),
            session: "s.scout.1-0.mate.1-0".to_owned(),
            event: Box::new(call),
        };
        assert_eq!(
            below("scout", &inner).as_deref(),
            Some("    scout › mate › read {\"path\": \"log\"}")
        );
        let warning = Event::Warning {
            text: "x".to_owned(),
        };
        assert_eq!(below("scout", &warning), None);
    }
}
