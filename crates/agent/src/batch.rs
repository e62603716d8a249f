//! [`Batch`]: the tool calls of one assistant message, with their results, and [`CallKey`], the identifier
//! of one call among those of all sessions: the id that the model assigns may occur again.
//!
//! Results are released in call order, regardless of the order in which they arrive.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use plimsoll_context::{CallId, Message, Part, Seq, ToolCall};

use crate::arguments::read_arguments;
use crate::tool_names::MAX_NAME;

/// Maximum number of tool calls of one message that run; the others receive an explanatory result. A
/// message with more calls is a malfunction of the model, and each call costs resources of the host.
pub const MAX_BATCH: usize = 128;
/// Maximum length of arguments in the view that are not a JSON object, in bytes.
const MAX_FAULTY_ARGUMENTS: usize = 4_096;

/// The identifier of one tool call. The key stays the same if the call is repeated after a crash, and
/// is never reused for another call. Its text form, `SESSION.SEQ-INDEX`, can be used as an idempotency
/// key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CallKey {
    /// The session.
    pub session: Arc<str>,
    /// The number of the message that contains the call.
    pub seq: Seq,
    /// The index of the call in that message, from 0.
    pub index: usize,
}

/// The calls of one assistant message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    calls: Vec<BatchCall>,
    /// Number of results that have entered the view.
    pushed: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct BatchCall {
    pub(crate) call: Arc<ToolCall>,
    pub(crate) began: bool,
    pub(crate) result: Option<Arc<Message>>,
}

/// Makes the ids of the calls of a reply unique, since some providers repeat them.
pub(crate) fn with_unique_ids(mut parts: Vec<Part>) -> Vec<Part> {
    let mut ids = HashSet::new();
    for (at, part) in parts.iter_mut().enumerate() {
        let Part::ToolCall(call) = part else {
            continue;
        };
        while !ids.insert(call.id.clone()) {
            call.id.0.push_str(&format!("_{at}"));
        }
    }
    parts
}

/// Shortens calls that no tool can run: names longer than any tool's, and long arguments that are not
/// a JSON object. The log keeps them whole, but in the view they could leave no room for the answer.
pub(crate) fn without_long_faults(message: &Arc<Message>) -> Arc<Message> {
    let is_long = |call: &ToolCall| {
        call.name.len() > MAX_NAME
            || call.arguments.len() > MAX_FAULTY_ARGUMENTS
                && read_arguments(&call.arguments).is_err()
    };
    if !message.calls().any(is_long) {
        return Arc::clone(message);
    }
    let mut message = Message::clone(message);
    if let Message::Assistant { parts } = &mut message {
        let calls = parts.iter_mut().filter_map(|part| match part {
            Part::ToolCall(call) if is_long(call) => Some(call),
            _ => None,
        });
        for call in calls {
            cut(&mut call.name, MAX_NAME);
            cut(&mut call.arguments, MAX_FAULTY_ARGUMENTS);
        }
    }
    Arc::new(message)
}

fn cut(text: &mut String, max: usize) {
    text.truncate(text.floor_char_boundary(max));
}

impl Batch {
    pub(crate) fn of(message: &Message) -> Option<Self> {
        let calls = message.calls().map(|call| BatchCall {
            call: Arc::new(call.clone()),
            began: false,
            result: None,
        });
        let calls: Vec<BatchCall> = calls.collect();
        (!calls.is_empty()).then_some(Self { calls, pushed: 0 })
    }

    fn open_call(&mut self, id: &CallId) -> Option<&mut BatchCall> {
        let mut calls = self.calls.iter_mut().skip(self.pushed);
        calls.find(|call| call.result.is_none() && call.call.id == *id)
    }

    /// Marks a call as started. Returns `false` if no call with this id is open.
    pub(crate) fn begin(&mut self, id: &CallId) -> bool {
        self.open_call(id).map(|call| call.began = true).is_some()
    }

    /// Returns the tool's name as the model wrote it. Returns `None` if no call with this id is open.
    pub(crate) fn written_name(&self, id: &CallId) -> Option<&str> {
        let call = self.open().find(|call| call.call.id == *id)?;
        Some(&call.call.name)
    }

    /// Stores a result. Returns `false` if no call with this id is open.
    pub(crate) fn take(&mut self, id: &CallId, result: Arc<Message>) -> bool {
        let call = self.open_call(id);
        call.map(|call| call.result = Some(result)).is_some()
    }

    /// Returns the results that may enter the view now: all calls before them have results.
    pub(crate) fn release(&mut self) -> Vec<Arc<Message>> {
        let ready = self
            .calls
            .iter()
            .skip(self.pushed)
            .map_while(|call| call.result.clone());
        let ready: Vec<_> = ready.collect();
        self.pushed += ready.len();
        ready
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.pushed == self.calls.len()
    }

    /// Returns all calls, in order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &BatchCall> {
        self.calls.iter()
    }

    /// Returns the calls without a result, in order.
    pub(crate) fn open(&self) -> impl Iterator<Item = &BatchCall> {
        self.calls.iter().filter(|call| call.result.is_none())
    }
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}-{}", self.session, self.seq.0, self.index)
    }
}
