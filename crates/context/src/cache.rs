//! [`CacheConfig`]: whether and how a provider's prompt cache is used; [`CachePlan`]: the cache
//! breakpoints of one request, as data.
//!
//! The wire format of breakpoints is written by `wire`.

use std::sync::Arc;

use crate::item::{Item, Seq};
use crate::message::{Message, Part};
use crate::tokens::Tokens;
use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use strum::IntoStaticStr;

/// The maximum number of breakpoints in one request: a fifth one is refused (AM11).
pub const MAX_BREAKPOINTS: usize = 4;
/// How many blocks back from a breakpoint the provider looks for an earlier one, the breakpoint's
/// own block included (AM12).
pub const LOOK_BACK: usize = 20;
/// How many of these blocks are not relied on: a server may count blocks that Plimsoll does not
/// see.
const SAFETY: usize = 5;
/// The assumed minimum size of a cached prefix if the minimum is unknown, as most current models
/// have it. A breakpoint below the true minimum has no effect.
pub const USUAL_MINIMUM: Tokens = Tokens(1_024);

/// Whether and how a provider's prompt cache is used.
///
/// A provider that caches automatically does so regardless of these settings.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Whether the prompt cache is used at all. Default: `true`.
    #[default(true)]
    pub enabled: bool,
    /// How breakpoints are placed.
    pub strategy: CacheStrategy,
}

/// How breakpoints are placed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CacheStrategy {
    /// At every useful position. The default.
    #[default]
    Auto,
    /// No breakpoints.
    Disabled,
    /// Only at the selected positions.
    Manual {
        /// After the system prompt.
        #[serde(default)]
        cache_system: bool,
        /// After the tools.
        #[serde(default)]
        cache_tools: bool,
        /// In the history and at its end.
        #[serde(default)]
        cache_messages: bool,
    },
}

/// How long the provider is asked to keep cache entries, if it offers a longer retention than its
/// usual one.
///
/// An entry with longer retention must not follow one with the usual retention (AM11). Tools and
/// system prompt come before the messages, so they can be kept longer.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CacheRetention {
    /// The provider's default retention.
    #[default]
    Usual,
    /// Longer retention for tools and system prompt, the default for messages.
    Head,
    /// Longer retention for the whole request.
    Long,
}

/// The prompt cache settings of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CachePlan {
    /// The ends of the cached prefixes, in the order tools, system prompt, messages.
    pub breakpoints: Vec<Breakpoint>,
    /// A name of the session, for providers that use it for routing.
    pub key: Option<Arc<str>>,
    /// How long the entries are to be kept.
    pub retention: CacheRetention,
}

/// A position up to which a request is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Breakpoint {
    /// After the last tool.
    Tools,
    /// After the system prompt.
    System,
    /// After the message at this position in the view, counted from 0.
    Message(usize),
}

/// The limits of a provider's prompt cache.
#[derive(Debug, Clone, Copy, SmartDefault, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheRules {
    /// The maximum number of breakpoints.
    #[default(MAX_BREAKPOINTS)]
    pub max: usize,
    /// How many blocks back from a breakpoint the provider looks for an earlier one, the
    /// breakpoint's own block included.
    #[default(LOOK_BACK)]
    pub look_back: usize,
    /// The smallest prefix that can be cached.
    #[default(USUAL_MINIMUM)]
    pub minimum: Tokens,
}

/// The parts of a request that determine its breakpoints.
#[derive(Debug, Clone, Copy)]
pub struct CacheView<'a> {
    /// The size of the tools; zero if there are none.
    pub tools: Tokens,
    /// The size of the system prompt; zero if there is none.
    pub system: Tokens,
    /// The items of the view.
    pub items: &'a [Item],
    /// The last item of the last request, or the last one of it that no plan has rewritten since.
    pub sent: Option<Seq>,
}

/// Places the breakpoints of a request.
///
/// There is one at the end, one after the system prompt, and one after the task, before which plans
/// leave the view unchanged. Another one marks the end of the previous request if the provider might
/// not find it by looking back from the new end. The tools get a breakpoint only if one is left: they
/// come before the system prompt, whose breakpoint covers them. Between two plans, the breakpoints of
/// system prompt and task stay, and the others only move forward or are dropped.
#[must_use]
pub fn breakpoints(view: &CacheView<'_>, config: &CacheConfig, rules: &CacheRules) -> CachePlan {
    let (marks_system, marks_tools, marks_messages) = config.marks();
    let last = view.items.len().checked_sub(1);
    let end = last.filter(|_| marks_messages);
    let before = end.and_then(|_| place_of(view.items, view.sent?));
    let mut items = view.items.iter();
    let task = end.and_then(|_| items.position(|item| item.message.is_user()));
    let far = before.is_some_and(|before| {
        blocks_after(view.items, before).saturating_add(SAFETY) >= rules.look_back
    });
    let system = (marks_system && view.system > Tokens::ZERO).then_some(Breakpoint::System);
    let tools = (marks_tools && view.tools > Tokens::ZERO).then_some(Breakpoint::Tools);
    let message = |at: Option<usize>| at.map(Breakpoint::Message);
    // In order of priority: the last ones are dropped first.
    let wanted = [
        message(end),
        message(before.filter(|_| far)),
        system,
        message(task),
        tools,
        message(before),
    ];
    let mut breakpoints: Vec<Breakpoint> = Vec::with_capacity(MAX_BREAKPOINTS);
    for place in wanted.into_iter().flatten() {
        let fits = breakpoints.len() < rules.max && !breakpoints.contains(&place);
        if fits && is_cacheable(view, place, rules.minimum) {
            breakpoints.push(place);
        }
    }
    breakpoints.sort_unstable();
    CachePlan {
        breakpoints,
        ..CachePlan::default()
    }
}

/// Returns the maximum number of blocks of a message on the wire. The images of a tool result
/// follow it in a separate message.
fn blocks(message: &Message) -> usize {
    let others = |parts: &[Part]| {
        let texts = parts.iter().filter(|part| part.as_text().is_some()).count();
        parts.len() - texts
    };
    match message {
        Message::ToolResult(result) => match others(&result.parts) {
            0 => 1,
            more => more + 2,
        },
        other => other.parts().len().max(1),
    }
}

/// Returns the number of blocks after the message at this position.
fn blocks_after(items: &[Item], at: usize) -> usize {
    let items = items.get(at + 1..).unwrap_or_default();
    items.iter().map(|item| blocks(&item.message)).sum()
}

/// Checks whether the prefix up to a position is large enough to be cached. Stops as soon as the
/// minimum is reached: O(1) in the length of the view.
fn is_cacheable(view: &CacheView<'_>, breakpoint: Breakpoint, minimum: Tokens) -> bool {
    let (head, messages) = match breakpoint {
        Breakpoint::Tools => (view.tools, 0),
        Breakpoint::System => (view.tools + view.system, 0),
        Breakpoint::Message(at) => (view.tools + view.system, at + 1),
    };
    let mut prefix = head;
    for item in view.items.iter().take(messages) {
        if prefix >= minimum {
            break;
        }
        prefix += item.tokens;
    }
    prefix >= minimum
}

/// Returns the position of the last item with this number or an earlier one.
fn place_of(items: &[Item], seq: Seq) -> Option<usize> {
    items.partition_point(|item| item.seq <= seq).checked_sub(1)
}

impl CacheRetention {
    /// The names that a configuration may use.
    pub const NAMES: [&'static str; 3] = ["usual", "head", "long"];

    /// Returns the name that is used in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl CacheConfig {
    /// A configuration that does not use the prompt cache.
    pub const DISABLED: Self = Self {
        enabled: false,
        strategy: CacheStrategy::Disabled,
    };

    /// Returns `true` if the prompt cache is used.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.enabled && self.strategy != CacheStrategy::Disabled
    }

    /// Returns whether the system prompt, the tools and the messages get breakpoints.
    fn marks(&self) -> (bool, bool, bool) {
        match self.strategy {
            _ if !self.is_on() => (false, false, false),
            CacheStrategy::Manual {
                cache_system,
                cache_tools,
                cache_messages,
            } => (cache_system, cache_tools, cache_messages),
            _ => (true, true, true),
        }
    }
}
