//! Calls of the provider's own tools that have no result yet.
//!
//! They are allowed if the turn continues from them: because it was paused, because the host's tools
//! are answered first, or because the running program called host tools. All others are refused (AM1).
//! The host's tools are handled in `call_ids.rs`.

use plimsoll_context::{Message, Opaque, Part, ToolCall};
use serde_json::Value;

use super::ORIGIN;
use super::write::says;

/// The type of a block that replaces all messages before it.
const COMPACTION: &str = "compaction";

/// The open calls of the provider's own tools, while a request is read from its beginning. `T` is the
/// reader's data for a call.
#[derive(Debug)]
pub struct OpenCalls<T> {
    open: Vec<HostedCall<T>>,
    /// Whether the newest message ends with a call of the provider's or the host's tool.
    ends_in_call: bool,
}

#[derive(Debug)]
struct HostedCall<T> {
    id: String,
    what: T,
    /// Whether something other than tool results followed its message.
    passed: bool,
    /// Whether it caused a call of the host's tool. Then it runs a program.
    calls: bool,
    /// Whether its message is the newest.
    newest: bool,
}

/// The place of a block: the index of its message and of the part in it.
pub(super) type At = (usize, usize);

impl<T> Default for OpenCalls<T> {
    fn default() -> Self {
        Self {
            open: Vec::new(),
            ends_in_call: false,
        }
    }
}

impl<T> OpenCalls<T> {
    /// Begins an assistant message. Calls from which it continues are answered or named in it.
    pub fn turn(&mut self) {
        self.other_message();
        self.ends_in_call = false;
    }

    /// Takes a call of the provider's own tool.
    pub fn call(&mut self, id: &str, what: T) {
        self.ends_in_call = true;
        self.open.push(HostedCall {
            id: id.to_owned(),
            what,
            passed: false,
            calls: false,
            newest: true,
        });
    }

    /// Takes a result. Returns `true` if a call waited for it.
    pub fn result(&mut self, id: &str) -> bool {
        self.ends_in_call = false;
        // Without an id, a result matches no call.
        let mut open = self.open.iter().filter(|_| !id.is_empty());
        let call = open.position(|open| open.id == id);
        call.map(|call| self.open.remove(call)).is_some()
    }

    /// Takes a call of the host's tool. `caller` is the id of the call whose program made it, if one
    /// did.
    pub fn host_call(&mut self, caller: Option<&str>) {
        self.ends_in_call = true;
        for open in &mut self.open {
            if caller == Some(open.id.as_str()) {
                (open.calls, open.passed) = (true, false);
            }
        }
    }

    /// Takes any other block of the assistant message.
    pub fn other(&mut self) {
        self.ends_in_call = false;
    }

    /// Takes results of the host's tools.
    pub fn answered(&mut self) {
        for open in &mut self.open {
            open.newest = false;
        }
    }

    /// Takes a message other than those results.
    pub fn other_message(&mut self) {
        self.answered();
        for open in &mut self.open {
            open.passed = true;
        }
    }

    /// Returns `true` if the turn continues from a call, so that no other message may come before that.
    fn goes_on(&self) -> bool {
        self.open.iter().any(|open| !open.passed && !open.newest)
    }

    /// Returns the calls that the API would refuse.
    pub fn refused(&self) -> impl Iterator<Item = (&str, &T)> {
        let refused = |open: &&HostedCall<T>| {
            let under_way = !open.passed && (!open.newest || self.ends_in_call);
            !under_way && !open.calls
        };
        let refused = self.open.iter().filter(refused);
        refused.map(|open| (open.id.as_str(), &open.what))
    }
}

/// Returns `true` if the last message is a paused turn: it ends with a call of the provider's own tool.
pub(super) fn is_paused(messages: &[&Message]) -> bool {
    let Some(Message::Assistant { parts }) = messages.last() else {
        return false;
    };
    let mut backwards = parts.iter().rev();
    match backwards.find(|part| part.as_text().is_none_or(says)) {
        Some(Part::Opaque(opaque)) => matches!(block(opaque), Some(HostedBlock::Call(_))),
        _ => false,
    }
}

/// The calls of the provider's own tools in a transcript.
#[derive(Debug, Default)]
pub(super) struct ServerCalls {
    waiting: OpenCalls<At>,
    /// Calls outside the model's messages, which no result can follow, and results without a call.
    single: Vec<At>,
    /// The number of messages that were read.
    messages: usize,
}

impl ServerCalls {
    /// Reads a transcript.
    pub(super) fn of(messages: &[&Message]) -> Self {
        let mut calls = Self::default();
        for message in messages {
            calls.message(message);
        }
        calls
    }

    /// Returns `true` if the last message answers calls of a turn that continues from a call of the
    /// provider's own tool. Only results are allowed there.
    pub(super) fn is_waiting(&self, messages: &[&Message]) -> bool {
        matches!(messages.last(), Some(Message::ToolResult(_))) && self.waiting.goes_on()
    }

    /// Returns the calls without a result, and the results without a call, that the API would refuse. Returns their
    /// places, not their ids: another call with the same id may have its result.
    pub(super) fn unpaired<'a>(&self, messages: &[&'a Message]) -> Vec<(At, &'a Opaque)> {
        let refused = self.waiting.refused().map(|(_, at)| at);
        let calls = self.single.iter().chain(refused);
        let calls = calls.filter_map(|at| match messages.get(at.0)?.parts().get(at.1)? {
            Part::Opaque(opaque) => Some((*at, opaque)),
            _ => None,
        });
        calls.collect()
    }

    fn message(&mut self, message: &Message) {
        let (index, waiting) = (self.messages, &mut self.waiting);
        self.messages += 1;
        let is_turn = matches!(message, Message::Assistant { .. });
        match message {
            Message::Assistant { .. } => waiting.turn(),
            Message::ToolResult(result) => {
                // Images and files of a failed result are sent after the batch.
                let is_text = result.parts.iter().all(|part| part.as_text().is_some());
                if result.is_error && !is_text {
                    waiting.other_message()
                } else {
                    waiting.answered()
                }
            }
            Message::Notice { text } if !says(text) => {}
            Message::User { parts } | Message::System { parts }
                if parts
                    .iter()
                    .all(|part| part.as_text().is_some_and(|text| !says(text))) => {}
            _ => waiting.other_message(),
        }
        for (at, part) in message.parts().iter().enumerate() {
            let at = (index, at);
            match part {
                Part::ToolCall(call) if is_turn => waiting.host_call(caller(call).as_deref()),
                Part::Opaque(opaque) => match block(opaque) {
                    Some(HostedBlock::Call(id)) if is_turn => waiting.call(&id, at),
                    Some(HostedBlock::Call(_)) => self.single.push(at),
                    Some(HostedBlock::Result(id)) if is_turn && !waiting.result(&id) => {
                        self.single.push(at);
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

/// Returns `true` if a block of this type calls one of the provider's own tools.
pub fn calls_server(kind: &str) -> bool {
    matches!(kind, "server_tool_use" | "mcp_tool_use")
}

/// Returns `true` if an answer may have a block of this type, which is passed through.
pub fn is_passed_through(kind: &str) -> bool {
    let is_of_tool = kind.ends_with("_tool_use") || kind.ends_with("_tool_result");
    is_of_tool || matches!(kind, "search_result" | "container_upload" | COMPACTION)
}

/// Returns `true` if an assistant turn continues from a block of this type. Then it is not a prefill.
pub fn goes_on_from(kind: &str) -> bool {
    calls_server(kind) || kind == COMPACTION
}

/// The role of a block of the provider's own tools.
enum HostedBlock {
    Call(String),
    Result(String),
}

/// Returns the role of a block.
fn block(opaque: &Opaque) -> Option<HostedBlock> {
    // Most blocks are of other types, so they are not parsed.
    if opaque.origin != ORIGIN || !opaque.data.contains("_tool_") {
        return None;
    }
    let value: Value = serde_json::from_str(&opaque.data).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = text("type");
    if calls_server(kind) {
        return Some(HostedBlock::Call(text("id").to_owned()));
    }
    let is_result = kind.ends_with("_tool_result");
    is_result.then(|| HostedBlock::Result(text("tool_use_id").to_owned()))
}

/// Returns the id of the call of the provider's own tool that caused a call of the host's tool.
fn caller(call: &ToolCall) -> Option<String> {
    let own = call.opaque.as_ref().filter(|own| own.origin == ORIGIN)?;
    let keys: Value = serde_json::from_str(&own.data).ok()?;
    named_caller(&keys).map(str::to_owned)
}

/// Returns the id of the causing call in a `tool_use` block.
pub fn named_caller(block: &Value) -> Option<&str> {
    block.get("caller")?.get("tool_id")?.as_str()
}
