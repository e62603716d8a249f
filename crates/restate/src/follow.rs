//! [`LogFollower`]: reconstructs the events of a run on another machine from its log. Text arrives
//! in whole messages.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_agent::{
    EVENT_VERSION, Entry, Event, MessagePhase, Outcome, SessionEvent, ToolPhase, Waiting,
};
use plimsoll_context::{Bytes, CallId, Delta, Message, Part, Tokens, ToolCall, Usage};

/// Converts entries of a log to the events of one request's run.
#[derive(Debug, Default)]
pub struct LogFollower {
    session: Arc<str>,
    request: String,
    /// Whether the request was accepted.
    is_taken: bool,
    turns: u64,
    calls: HashMap<CallId, FollowedCall>,
    waiting: HashMap<u64, (Waiting, Vec<Part>)>,
    /// The newest start, which precedes the request.
    started: Option<(u64, String)>,
    outcome: Option<Outcome>,
}

#[derive(Debug)]
struct FollowedCall {
    call: ToolCall,
    began: bool,
}

impl LogFollower {
    /// Creates a follower for the run of the request with this key in a session.
    #[must_use]
    pub fn new(session: impl Into<Arc<str>>, request: impl Into<String>) -> Self {
        Self {
            session: session.into(),
            request: request.into(),
            ..Self::default()
        }
    }

    /// Returns the outcome of the run after it has ended.
    #[must_use]
    pub fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Returns the events of the next entry; none if it belongs to another run.
    pub fn see(&mut self, entry: &Entry) -> Vec<SessionEvent> {
        let events = self.events(entry).into_iter();
        let run = self.started.as_ref().map_or(0, |(run, _)| *run);
        let told = events.map(|event| SessionEvent {
            session: Arc::clone(&self.session),
            run,
            event,
        });
        told.collect()
    }

    fn events(&mut self, entry: &Entry) -> Vec<Event> {
        let mut events = Vec::new();
        if self.outcome.is_some() {
            return events;
        }
        match entry {
            Entry::RunStarted { run, model, .. } => {
                let is_again = self.is_taken;
                self.started = Some((*run, model.clone()));
                if is_again {
                    let text = "another worker continues the run".to_owned();
                    events.push(Event::Warning { text });
                }
            }
            Entry::Accepted { key } if *key == self.request && !self.is_taken => {
                self.is_taken = true;
                let (_, model) = self.started.clone().unwrap_or_default();
                events.push(Event::AgentStart {
                    version: EVENT_VERSION,
                    run_id: None,
                    model,
                    config_snapshot: None,
                });
            }
            _ if !self.is_taken => {}
            Entry::Queued { id, kind, parts } => {
                self.waiting.insert(*id, (*kind, parts.clone()));
                events.push(Event::Message {
                    id: *id,
                    kind: *kind,
                    phase: MessagePhase::Queued,
                    parts: parts.clone(),
                });
            }
            Entry::Message {
                queued: Some(id), ..
            } => events.extend(self.message(*id, MessagePhase::Delivered)),
            Entry::Undelivered { ids } => {
                for id in ids {
                    events.extend(self.message(*id, MessagePhase::Undelivered));
                }
            }
            Entry::Reply {
                message,
                stop,
                usage,
                cost,
                ..
            } => {
                self.turns += 1;
                events.push(Event::TurnStart {
                    turn: self.turns,
                    cause: Default::default(),
                    tokens: usage.map_or(Tokens::ZERO, |usage| usage.processed()),
                    trigger: None,
                    window: None,
                });
                let text = texts(message);
                if !text.is_empty() {
                    events.push(Event::Delta(Delta::Text { text }));
                }
                for call in message.calls() {
                    let began = false;
                    let call = call.clone();
                    self.calls
                        .insert(call.id.clone(), FollowedCall { call, began });
                }
                events.push(Event::TurnEnd {
                    turn: self.turns,
                    stop: *stop,
                    usage: *usage,
                    total: Usage::default(),
                    estimated: Usage::default(),
                    cost: *cost,
                    memory: Bytes(0),
                });
            }
            Entry::PartialReply { message, .. } => {
                let text = texts(message);
                if !text.is_empty() {
                    events.push(Event::Delta(Delta::Text { text }));
                }
            }
            Entry::ToolStarted { call } => {
                if let Some(found) = self.calls.get_mut(call) {
                    found.began = true;
                    let text = found.call.arguments.clone();
                    events.push(tool_event(ToolPhase::Start, &found.call, text));
                }
            }
            Entry::ToolResult { message, .. } => {
                if let Message::ToolResult(result) = &**message
                    && let Some(found) = self.calls.remove(&result.call)
                {
                    let phase = match (result.is_error, found.began) {
                        (true, _) => ToolPhase::Error,
                        (false, true) => ToolPhase::Success,
                        (false, false) => ToolPhase::Skipped,
                    };
                    events.push(tool_event(phase, &found.call, message.text()));
                }
            }
            Entry::Summarized {
                calls,
                usage,
                failure,
                ..
            } => events.push(Event::SummaryEnded {
                calls: *calls,
                usage: *usage,
                failure: failure.clone(),
            }),
            Entry::RunEnded { outcome } => {
                self.outcome = Some(outcome.clone());
                events.push(Event::AgentEnd {
                    outcome: outcome.clone(),
                    peak_memory: Bytes(0),
                });
            }
            _ => {}
        }
        events
    }

    fn message(&mut self, id: u64, phase: MessagePhase) -> Option<Event> {
        let (kind, parts) = self.waiting.remove(&id)?;
        Some(Event::Message {
            id,
            kind,
            phase,
            parts,
        })
    }
}

fn tool_event(phase: ToolPhase, call: &ToolCall, text: String) -> Event {
    Event::ToolCall {
        phase,
        call: call.id.clone(),
        name: call.name.clone(),
        size: Bytes(text.len() as u64),
        whole: text.as_str().into(),
        text,
    }
}

fn texts(message: &Message) -> String {
    let texts = message.parts().iter().filter_map(Part::as_text);
    texts.collect::<Vec<_>>().join("\n")
}
