//! Calls of the provider's own tools that have no result yet. They may stay where the turn goes on
//! from them: it was paused, its host's tools are answered first, or the program that runs asks for
//! those. Any other is refused (AM1). Decides nothing about the host's tools; `call_ids.rs` knows those.

use plimsoll_context::{Message, Opaque, Part, ToolCall};
use serde_json::Value;

use super::ORIGIN;
use super::write::says;
use crate::compose::History;

/// What the provider has made of all that stood before it.
const COMPACTION: &str = "compaction";

/// The calls of the provider's own tools that no result has answered, as a request is read from its
/// beginning. Who reads it says what each call is to them.
#[derive(Debug)]
pub struct Waiting<T> {
    open: Vec<Open<T>>,
    /// Whether the newest message ends with a call, be it of the provider's tool or of the host's.
    ends: Ends,
}

#[derive(Debug)]
struct Open<T> {
    id: String,
    what: T,
    /// Whether something other than tool results followed its message.
    passed: bool,
    /// Whether a call of the host's tool came from it: what runs there is a program.
    calls: bool,
    /// Whether its message is the newest.
    newest: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    InCall,
    Otherwise,
}

/// What is wrong with calls of the provider's own tools in a transcript.
#[derive(Debug, Default)]
pub struct Parted {
    /// Calls that nobody answered, by place, kind and id.
    pub calls: Vec<(At, String, String)>,
    /// Results that nothing asked for, by place and kind.
    pub results: Vec<(At, String)>,
}

/// A block of a transcript: which message, and which of its parts.
pub type At = (usize, usize);

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            ends: Ends::Otherwise,
        }
    }
}

impl<T> Waiting<T> {
    /// A message of the assistant begins: what it goes on from is answered or named in it.
    pub fn turn(&mut self) {
        self.said();
        self.ends = Ends::Otherwise;
    }

    /// A call of the provider's own tool.
    pub fn call(&mut self, id: &str, what: T) {
        self.ends = Ends::InCall;
        self.open.push(Open {
            id: id.to_owned(),
            what,
            passed: false,
            calls: false,
            newest: true,
        });
    }

    /// Its result; says whether a call waited for it.
    pub fn result(&mut self, id: &str) -> bool {
        self.ends = Ends::Otherwise;
        // Without an id none is its own.
        let mut open = self.open.iter().filter(|_| !id.is_empty());
        let call = open.position(|open| open.id == id);
        call.map(|call| self.open.remove(call)).is_some()
    }

    /// A call of the host's tool, and the call that it came from, if a program made it.
    pub fn host_call(&mut self, caller: Option<&str>) {
        self.ends = Ends::InCall;
        for open in &mut self.open {
            if caller == Some(open.id.as_str()) {
                (open.calls, open.passed) = (true, false);
            }
        }
    }

    /// Any other block of the assistant's message.
    pub fn other(&mut self) {
        self.ends = Ends::Otherwise;
    }

    /// Results of the host's tools follow.
    pub fn answered(&mut self) {
        for open in &mut self.open {
            open.newest = false;
        }
    }

    /// Something else than those is said.
    pub fn said(&mut self) {
        self.answered();
        for open in &mut self.open {
            open.passed = true;
        }
    }

    /// Whether the turn goes on from a call, so that nothing may be said before that.
    fn goes_on(&self) -> bool {
        self.open.iter().any(|open| !open.passed && !open.newest)
    }

    /// The calls that may not stay as they are.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &T)> {
        let refused = |open: &&Open<T>| {
            let under_way = !open.passed && (!open.newest || self.ends == Ends::InCall);
            !under_way && !open.calls
        };
        let refused = self.open.iter().filter(refused);
        refused.map(|open| (open.id.as_str(), &open.what))
    }
}

/// Whether the last message is a turn that was paused: it ends with a call of the provider's own tool,
/// or with what the provider has made of all that was said before.
pub(super) fn is_paused(messages: &dyn History) -> bool {
    let Some(Message::Assistant { parts }) = messages.last() else {
        return false;
    };
    let mut said = parts.iter().rev();
    let last = said.find(|part| part.as_text().is_none_or(says));
    match last {
        Some(Part::Opaque(opaque)) => {
            matches!(block(opaque), Some((_, HostedBlock::Call(_)))) || is_compaction(opaque)
        }
        _ => false,
    }
}

/// Calls of the provider's own tools without a result, and results without a call, in what is left
/// without the blocks that are `gone`.
pub fn parted<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    gone: impl Fn(At) -> bool,
) -> Parted {
    let mut calls = ServerCalls::default();
    for message in messages {
        calls.message(message, &gone);
    }
    let refused = calls.waiting.refused();
    let refused = refused.map(|(id, (at, kind))| (*at, kind.clone(), id.to_owned()));
    calls.parted.calls.extend(refused);
    calls.parted
}

/// The calls of the provider's own tools in a transcript, which may grow.
#[derive(Debug, Default)]
pub(super) struct ServerCalls {
    waiting: Waiting<(At, String)>,
    parted: Parted,
    /// How many messages were read.
    messages: usize,
}

impl ServerCalls {
    /// Reads those of the messages that it has not read.
    pub(super) fn take(&mut self, messages: &dyn History) {
        for message in messages.since(self.messages) {
            self.message(message, |_| false);
        }
    }

    /// Whether the last of the messages answers calls of a turn that goes on from a call of the provider's
    /// own tool: nothing but results may stand there.
    pub(super) fn is_waiting(&self, messages: &dyn History) -> bool {
        matches!(messages.last(), Some(Message::ToolResult(_))) && self.waiting.goes_on()
    }

    /// Returns the calls that nobody answered, but those that may stay. Not their ids: another call of the
    /// same id may have its result.
    pub(super) fn unanswered<'a>(&self, messages: &'a dyn History) -> Vec<(At, &'a Opaque)> {
        let refused = self.waiting.refused().map(|(_, (at, _))| at);
        let calls = self.parted.calls.iter().map(|(at, ..)| at).chain(refused);
        let calls = calls.filter_map(|at| match messages.message(at.0)?.parts().get(at.1)? {
            Part::Opaque(opaque) => Some((*at, opaque)),
            _ => None,
        });
        calls.collect()
    }

    fn message(&mut self, message: &Message, gone: impl Fn(At) -> bool) {
        let (index, waiting, parted) = (self.messages, &mut self.waiting, &mut self.parted);
        self.messages += 1;
        let is_turn = matches!(message, Message::Assistant { .. });
        match message {
            Message::Assistant { .. } => waiting.turn(),
            Message::ToolResult(result) => {
                // What a failed result shows is said after the batch.
                let told = result.parts.iter().all(|part| part.as_text().is_some());
                match result.is_error && !told {
                    true => waiting.said(),
                    false => waiting.answered(),
                }
            }
            Message::Notice { text } if !says(text) => {}
            Message::User { parts } | Message::System { parts }
                if parts
                    .iter()
                    .all(|part| part.as_text().is_some_and(|text| !says(text))) => {}
            _ => waiting.said(),
        }
        for (at, part) in message.parts().iter().enumerate() {
            let at = (index, at);
            match part {
                Part::ToolCall(call) if is_turn => waiting.host_call(caller(call).as_deref()),
                Part::Opaque(opaque) if !gone(at) => match block(opaque) {
                    Some((kind, HostedBlock::Call(id))) if is_turn => waiting.call(&id, (at, kind)),
                    Some((kind, HostedBlock::Call(id))) => parted.calls.push((at, kind, id)),
                    Some((kind, HostedBlock::Result(id))) if is_turn => {
                        let answers = waiting.result(&id);
                        if !answers {
                            parted.results.push((at, kind));
                        }
                    }
                    _ if is_turn => waiting.other(),
                    _ => {}
                },
                Part::Text { text } if !says(text) => {}
                _ if is_turn => waiting.other(),
                _ => {}
            }
        }
    }
}

/// Whether a block of a request calls a tool of the provider's own.
pub fn calls_server(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use")
}

/// Whether a turn of the assistant goes on from a block of that kind: it is no prefill.
pub fn goes_on_from(kind: &str) -> bool {
    calls_server(kind) || kind == COMPACTION
}

fn is_compaction(opaque: &Opaque) -> bool {
    if opaque.origin != ORIGIN || !opaque.data.contains(COMPACTION) {
        return false;
    }
    let value: Option<Value> = serde_json::from_str(&opaque.data).ok();
    value.is_some_and(|value| value.get("type").and_then(Value::as_str) == Some(COMPACTION))
}

/// What a block has to do with the provider's own tools.
enum HostedBlock {
    Call(String),
    Result(String),
}

/// Its kind, and that.
fn block(opaque: &Opaque) -> Option<(String, HostedBlock)> {
    // Most blocks are something else: looked at only as far as that takes.
    if opaque.origin != ORIGIN || !opaque.data.contains("_tool_") {
        return None;
    }
    let value: Value = serde_json::from_str(&opaque.data).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    let block = if calls_server(kind) {
        HostedBlock::Call(text("id").to_owned())
    } else if kind.ends_with("_tool_result") {
        HostedBlock::Result(text("tool_use_id").to_owned())
    } else {
        return None;
    };
    Some((kind.to_owned(), block))
}

/// The call of the provider's own tool from which a call of the host's came.
fn caller(call: &ToolCall) -> Option<String> {
    let own = call.opaque.as_ref().filter(|own| own.origin == ORIGIN)?;
    let keys: Value = serde_json::from_str(&own.data).ok()?;
    named_caller(&keys).map(str::to_owned)
}

/// The same of a block `tool_use`.
pub fn named_caller(block: &Value) -> Option<&str> {
    block.get("caller")?.get("tool_id")?.as_str()
}
