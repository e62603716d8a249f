//! [`CacheConfig`]: whether a provider's prompt cache is asked for; [`CachePlan`]: what one request
//! asks of it, as data. Not any provider's form; `wire` writes that. What came of it is in
//! `cache/monitor.rs`.

mod monitor;
mod trail;

use std::sync::Arc;

pub use monitor::{CLEARLY_SHORT, CacheBreak, CacheMiss, CacheMonitor, CacheTally, LEAST_EXPECTED};
use serde::{Deserialize, Serialize};
pub use trail::CacheTrail;

use crate::item::{Item, Seq};
use crate::message::{Message, Part};
use crate::tokens::Tokens;

/// Breakpoints of one request, at most: a fifth is refused (AM11).
pub const MAX_BREAKPOINTS: usize = 4;
/// How many blocks before a breakpoint an earlier one is found again, itself counted (AM12).
pub const LOOK_BACK: usize = 20;
/// How many of those we leave alone: a server may count blocks that we do not see.
const SAFETY: usize = 5;
/// The least that can be cached where nobody says: what most models of today have. A breakpoint
/// below the true minimum does nothing.
pub const USUAL_MINIMUM: Tokens = Tokens(1_024);

/// Whether and how a provider's prompt cache is used. A provider that caches by itself goes on
/// doing so whatever is said here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CacheConfig {
    /// Whether it is used at all.
    pub enabled: bool,
    /// How breakpoints are placed.
    pub strategy: CacheStrategy,
}

/// How breakpoints are placed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheStrategy {
    /// Wherever they help.
    #[default]
    Auto,
    /// Nowhere.
    Disabled,
    /// Only after what is named.
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

/// How long entries of the prompt cache are asked to be kept, where the provider has a longer life
/// than its usual one. Nothing that is kept longer follows what is kept as usual (AM11): tools and
/// system prompt stand before the messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheRetention {
    /// As the provider has it where nothing is said.
    #[default]
    Usual,
    /// Tools and system prompt longer, the messages as usual.
    Head,
    /// All of it longer.
    Long,
}

/// What one request asks of the prompt cache.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CachePlan {
    /// What is cached up to, in the order tools, system prompt, messages.
    pub breakpoints: Vec<Breakpoint>,
    /// Names the session, for providers that route by it.
    pub key: Option<Arc<str>>,
    /// How long it is to be kept.
    pub retention: CacheRetention,
}

/// A place up to which a request is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Breakpoint {
    /// The last tool.
    Tools,
    /// The system prompt.
    System,
    /// The message at this place of the view, from 0.
    Message(usize),
}

/// What a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheRules {
    /// Breakpoints, at most.
    pub max: usize,
    /// How many blocks before a breakpoint an earlier one is found again, itself counted.
    pub look_back: usize,
    /// The least that can be cached.
    pub minimum: Tokens,
}

/// What a request will hold, as far as its breakpoints depend on it.
#[derive(Debug, Clone, Copy)]
pub struct CacheView<'a> {
    /// The weight of the tools; zero where there are none.
    pub tools: Tokens,
    /// The weight of the system prompt; zero where there is none.
    pub system: Tokens,
    /// The view.
    pub items: &'a [Item],
    /// What earlier requests have left in the cache.
    pub trail: CacheTrail,
}

/// What may be marked, as a configuration says.
struct Marks {
    system: bool,
    tools: bool,
    messages: bool,
}

/// Places the breakpoints of a request.
///
/// One stands at the end, one after the system prompt, one at the anchor: the place up to which the
/// next plan is expected to leave the view alone ([`CacheTrail`]). One more stands where the request
/// before this one ended, if a look-back from the new end might not reach it. The tools get what is
/// left of the four: they stand before the system prompt, whose breakpoint covers them. So between
/// two plans system prompt and anchor stay, and the others only move forward or give way.
#[must_use]
pub fn breakpoints(view: &CacheView<'_>, config: &CacheConfig, rules: &CacheRules) -> CachePlan {
    let marks = config.marks();
    let last = view.items.len().checked_sub(1);
    let end = last.filter(|_| marks.messages);
    let before = end.and_then(|_| view.trail.end_in(view.items));
    let anchor = end.and_then(|_| view.trail.anchor_in(view.items));
    let far = before.is_some_and(|before| {
        blocks_after(view.items, before).saturating_add(SAFETY) >= rules.look_back
    });
    let system = (marks.system && view.system > Tokens::ZERO).then_some(Breakpoint::System);
    let tools = (marks.tools && view.tools > Tokens::ZERO).then_some(Breakpoint::Tools);
    let message = |at: Option<usize>| at.map(Breakpoint::Message);
    // The first are the last to be given up.
    let wanted = [
        message(end),
        message(before.filter(|_| far)),
        system,
        message(anchor),
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

/// Blocks that a message takes on the wire, at most: a result's images follow it in a message of
/// their own.
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

/// Blocks behind the message at this place.
fn blocks_after(items: &[Item], at: usize) -> usize {
    let items = items.get(at + 1..).unwrap_or_default();
    items.iter().map(|item| blocks(&item.message)).sum()
}

/// Whether what is sent up to a place can be cached. It looks no further than it must: O(1) in the
/// length of the view.
fn is_cacheable(view: &CacheView<'_>, place: Breakpoint, minimum: Tokens) -> bool {
    let (head, messages) = match place {
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

/// The place of the last item with this number or an earlier one.
fn place_of(items: &[Item], seq: Seq) -> Option<usize> {
    items.partition_point(|item| item.seq <= seq).checked_sub(1)
}

impl CacheRetention {
    /// Every name that a configuration may use.
    pub const NAMES: [&'static str; 3] = ["usual", "head", "long"];

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "usual" => Some(Self::Usual),
            "head" => Some(Self::Head),
            "long" => Some(Self::Long),
            _ => None,
        }
    }

    /// As a configuration writes it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Head => "head",
            Self::Long => "long",
        }
    }
}

impl CacheConfig {
    /// It is not used.
    pub const DISABLED: Self = Self {
        enabled: false,
        strategy: CacheStrategy::Disabled,
    };

    /// Whether anything is asked of the cache.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.enabled && self.strategy != CacheStrategy::Disabled
    }

    fn marks(&self) -> Marks {
        let all = |mark| Marks {
            system: mark,
            tools: mark,
            messages: mark,
        };
        match self.strategy {
            _ if !self.is_on() => all(false),
            CacheStrategy::Manual {
                cache_system,
                cache_tools,
                cache_messages,
            } => Marks {
                system: cache_system,
                tools: cache_tools,
                messages: cache_messages,
            },
            _ => all(true),
        }
    }
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            strategy: CacheStrategy::Auto,
        }
    }
}

impl Default for CacheRules {
    fn default() -> Self {
        Self {
            max: MAX_BREAKPOINTS,
            look_back: LOOK_BACK,
            minimum: USUAL_MINIMUM,
        }
    }
}
