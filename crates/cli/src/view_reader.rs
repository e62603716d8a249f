//! [`ViewReader`]: reads a log entry by entry, and compares the view before and after each entry. So it
//! does not depend on the kinds of edits.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll::Message;
use plimsoll::context::{Item, Transcript};
use plimsoll::machine::{Entry, FoldError, State};
use plimsoll::model::CallId;
use plimsoll::tokens::{Memo, TokenCounter};

use crate::tool_line;

/// Reads a log from its beginning.
pub(crate) struct ViewReader {
    state: State,
    /// The name and the most informative argument of each call.
    tools: HashMap<CallId, (String, String)>,
}

/// The effect of an entry on the view.
pub(crate) struct ViewChange {
    /// The messages that the entry added.
    pub(crate) added: Vec<Item>,
    /// The messages that a plan removed or replaced, as they were before it.
    pub(crate) replaced: Vec<Item>,
}

impl ViewReader {
    pub(crate) fn new(counter: impl TokenCounter + 'static) -> Self {
        Self {
            state: State::new(Arc::new(Memo::new(counter))),
            tools: HashMap::new(),
        }
    }

    /// Reads the next entry.
    pub(crate) fn read(&mut self, entry: &Entry) -> Result<ViewChange, FoldError> {
        let next = self.view().next_seq();
        let mut replaced = match entry {
            Entry::PlanApplied { .. } => self.view().items().to_vec(),
            _ => Vec::new(),
        };
        self.state.absorb(entry)?;
        let view = self.state.transcript();
        replaced.retain(|was| {
            let now = view.get(was.seq);
            now.is_none_or(|now| !Arc::ptr_eq(&now.message, &was.message))
        });
        let new = view.items().partition_point(|item| item.seq < next);
        let added = view.items().get(new..).unwrap_or_default().to_vec();
        for call in added.iter().flat_map(|item| item.message.calls()) {
            let argument = tool_line::argument(&call.name, &call.arguments);
            let tool = (call.name.clone(), argument);
            self.tools.insert(call.id.clone(), tool);
        }
        Ok(ViewChange { added, replaced })
    }

    /// Returns the view after the last entry.
    pub(crate) fn view(&self) -> &Transcript {
        self.state.transcript()
    }

    /// Returns the call that a message is the result of, and its tool if that is known.
    pub(crate) fn call(&self, message: &Message) -> (Option<CallId>, Option<String>) {
        match message {
            Message::ToolResult(result) => {
                let tool = self.tools.get(&result.call);
                (
                    Some(result.call.clone()),
                    tool.map(|(name, _)| name.clone()),
                )
            }
            _ => (None, None),
        }
    }

    /// Returns the most informative argument of a call. Empty if it is not known.
    pub(crate) fn argument(&self, call: Option<&CallId>) -> String {
        let tool = call.and_then(|call| self.tools.get(call));
        tool.map_or_else(String::new, |(_, argument)| argument.clone())
    }
}
