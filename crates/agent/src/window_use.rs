//! [`WindowUse`]: the current content of the window, by kind.
//!
//! It is computed from the state on request and only informs the user.

use std::collections::{BTreeMap, HashMap};

use plimsoll_context::{CallId, Item, Message, Tokens};
use serde::{Deserialize, Serialize};

use crate::state::State;

/// The content of a view. All sizes are by our counter. Each message counts once; pinned messages count
/// as pins, whatever their kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// Pinned messages.
    pub pins: Share,
    /// The user's messages.
    pub user: Share,
    /// Notices of the run, which are sent in the role of the user.
    pub notices: Share,
    /// Summaries of removed messages.
    pub summaries: Share,
    /// System messages within the view.
    pub system: Share,
    /// The model's messages, including tool calls.
    pub answers: Share,
    /// Tool results, by tool.
    pub results: BTreeMap<String, Share>,
}

/// One part of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Number of messages.
    pub messages: usize,
    /// Their size.
    pub tokens: Tokens,
}

/// The content of the window and its limits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WindowUse {
    /// The size of the system prompt and the request's frame.
    pub system: Tokens,
    /// The size of the tool schemas.
    pub tools: Tokens,
    /// Number of tools.
    pub tool_count: usize,
    /// The size of the text that the host appends to the history.
    pub dynamic_context: Tokens,
    /// The messages of the view.
    pub view: Contents,
    /// The total: the size of the request that would be sent now.
    pub used: Tokens,
    /// Tokens reserved for the answer; `None` if no window is known.
    pub reserve: Option<Tokens>,
    /// The model's window as its provider counts, if known.
    pub window: Option<Tokens>,
    /// The window by our counter, like all other fields here.
    pub window_counted: Option<Tokens>,
    /// Maximum size of a request; `None` if there is no limit.
    pub limit: Option<Tokens>,
    /// The size at which a plan is due; `None` if there is no trigger.
    pub trigger: Option<Tokens>,
    /// The size that a plan aims for.
    pub target: Option<Tokens>,
}

impl Contents {
    /// Measures the view of a state.
    #[must_use]
    pub fn of(state: &State) -> Self {
        let mut contents = Self::default();
        let mut tools: HashMap<&CallId, &str> = HashMap::new();
        for item in state.transcript().items() {
            for call in item.message.calls() {
                tools.insert(&call.id, &call.name);
            }
            let share = contents.share_of(item, &tools);
            share.messages += 1;
            share.tokens += item.tokens;
        }
        contents
    }

    /// Returns the sum of all tool results.
    #[must_use]
    pub fn all_results(&self) -> Share {
        let mut all = Share::default();
        for share in self.results.values() {
            all.messages += share.messages;
            all.tokens += share.tokens;
        }
        all
    }

    fn share_of(&mut self, item: &Item, tools: &HashMap<&CallId, &str>) -> &mut Share {
        if item.pin.is_some() {
            return &mut self.pins;
        }
        match item.message.as_ref() {
            Message::System { .. } => &mut self.system,
            Message::User { .. } => &mut self.user,
            Message::Notice { .. } => &mut self.notices,
            Message::Summary { .. } => &mut self.summaries,
            Message::Assistant { .. } => &mut self.answers,
            Message::ToolResult(result) => {
                let name = tools.get(&result.call).copied().unwrap_or("(unknown)");
                self.results.entry(name.to_owned()).or_default()
            }
        }
    }
}
