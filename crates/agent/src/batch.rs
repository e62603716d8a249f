//! [`Batch`]: the tool calls of one assistant message and what has become of each. Results leave
//! it in call order, whatever the order in which they came.

use std::sync::Arc;

use plimsoll_context::{CallId, Message, ToolCall};

/// The calls of one assistant message.
#[derive(Debug, Clone, Default)]
pub(crate) struct Batch {
    calls: Vec<Call>,
    /// How many results have entered the view.
    pushed: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) call: Arc<ToolCall>,
    pub(crate) began: bool,
    pub(crate) result: Option<Arc<Message>>,
}

impl Batch {
    pub(crate) fn of(message: &Message) -> Option<Self> {
        let calls: Vec<Call> = message
            .calls()
            .map(|call| Call {
                call: Arc::new(call.clone()),
                began: false,
                result: None,
            })
            .collect();
        (!calls.is_empty()).then_some(Self { calls, pushed: 0 })
    }

    /// Notes that a call is about to run, and gives its tool; `None` if there is none such without a
    /// result.
    pub(crate) fn begin(&mut self, id: &CallId) -> Option<String> {
        let open = self
            .calls
            .iter_mut()
            .find(|call| call.call.id == *id && call.result.is_none());
        open.map(|call| {
            call.began = true;
            call.call.name.clone()
        })
    }

    /// Takes a result; false if no call waits for it.
    pub(crate) fn take(&mut self, id: &CallId, result: Arc<Message>) -> bool {
        let open = self
            .calls
            .iter_mut()
            .find(|call| call.call.id == *id && call.result.is_none());
        open.map(|call| call.result = Some(result)).is_some()
    }

    /// The results that may enter the view now: those before which none is missing.
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

    /// All its calls, in order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter()
    }

    /// Calls without a result, in order.
    pub(crate) fn open(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| call.result.is_none())
    }

    /// The call that a result would answer.
    pub(crate) fn find(&self, id: &CallId) -> Option<&Arc<ToolCall>> {
        self.open()
            .map(|call| &call.call)
            .find(|call| call.id == *id)
    }
}
