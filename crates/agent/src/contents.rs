//! [`WindowUse`]: what fills the window now, by kind. A view of the state, made when it is asked for;
//! nothing is decided by it.

use std::collections::{BTreeMap, HashMap};

use plimsoll_context::{CallId, Item, Message, Tokens};
use serde::{Deserialize, Serialize};

use crate::run::Run;
use crate::setup::REQUEST_OVERHEAD;
use crate::state::State;

/// What a view is made of. All weights are our counter's; each message counts once, pins first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contents {
    /// What is pinned, whatever it is.
    pub pins: Share,
    /// The first message of a person.
    pub task: Share,
    /// Their further messages.
    pub messages: Share,
    /// What the run told the model in their place.
    pub notices: Share,
    /// Summaries of what has left.
    pub summaries: Share,
    /// System messages within the view.
    pub system: Share,
    /// What the model said, its tool calls included.
    pub answers: Share,
    /// Results, by tool.
    pub results: BTreeMap<String, Share>,
}

/// A part of a view.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Messages.
    pub messages: usize,
    /// What they weigh.
    pub tokens: Tokens,
}

/// What fills the window now, and where it ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowUse {
    /// The system prompt, and what the request's frame weighs.
    pub system: Tokens,
    /// What the tools' schemas weigh.
    pub tools: Tokens,
    /// How many tools there are.
    pub tool_count: usize,
    /// What the host puts behind the history.
    pub dynamic_context: Tokens,
    /// The messages.
    pub view: Contents,
    /// All of it: what would be sent now.
    pub used: Tokens,
    /// What is kept free for the answer; `None` where no window is known.
    pub reserve: Option<Tokens>,
    /// The model's window as its provider counts, where it is known.
    pub window: Option<Tokens>,
    /// The same as we count, which is how all else here is counted.
    pub window_counted: Option<Tokens>,
    /// What may be sent at most; `None` where nothing says.
    pub limit: Option<Tokens>,
    /// Where a plan is due; `None` where none ever is.
    pub trigger: Option<Tokens>,
    /// Where a plan ends.
    pub target: Option<Tokens>,
}

impl Contents {
    /// What a state's view is made of.
    #[must_use]
    pub fn of(state: &State) -> Self {
        let mut contents = Self::default();
        let mut tools: HashMap<&CallId, &str> = HashMap::new();
        let mut has_task = false;
        for item in state.transcript().items() {
            for call in item.message.calls() {
                tools.insert(&call.id, &call.name);
            }
            let is_task = item.message.is_user() && !has_task;
            has_task |= is_task;
            contents.share_of(item, is_task, &tools).add(item);
        }
        contents
    }

    /// All results together.
    #[must_use]
    pub fn all_results(&self) -> Share {
        let mut all = Share::default();
        for share in self.results.values() {
            all.messages += share.messages;
            all.tokens += share.tokens;
        }
        all
    }

    fn share_of(
        &mut self,
        item: &Item,
        is_task: bool,
        tools: &HashMap<&CallId, &str>,
    ) -> &mut Share {
        if item.pin.is_some() {
            return &mut self.pins;
        }
        match item.message.as_ref() {
            Message::System { .. } => &mut self.system,
            Message::User { .. } if is_task => &mut self.task,
            Message::User { .. } => &mut self.messages,
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

impl Share {
    fn add(&mut self, item: &Item) {
        self.messages += 1;
        self.tokens += item.tokens;
    }
}

impl Run {
    /// What fills the window now.
    #[must_use]
    pub fn window_use(&self) -> WindowUse {
        let (tools, system) = self.setup.head(self.has_planned());
        let system = system + REQUEST_OVERHEAD;
        let (line, calibration) = (self.line(), self.state.calibration);
        let budget = self.budget().ok();
        let priced = budget.map(|budget| self.priced(&budget));
        let sent = |tokens: Tokens| (tokens != Tokens::MAX).then(|| tokens + self.overhead);
        WindowUse {
            system,
            tools,
            tool_count: self.specs.len() + self.setup.hosted_tools.len(),
            dynamic_context: self.overhead.minus(system + tools),
            view: Contents::of(&self.state),
            used: self.tokens(),
            reserve: line.window.map(|_| calibration.counted(line.reserve())),
            window: line.window,
            window_counted: line.window.map(|window| calibration.counted(window)),
            limit: budget.and_then(|budget| sent(budget.limit)),
            trigger: priced.and_then(|budget| sent(budget.trigger)),
            target: budget.and_then(|budget| sent(budget.target)),
        }
    }
}
