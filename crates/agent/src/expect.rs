//! The expectations about a request before it is sent: the token report, the use of the prompt cache,
//! and the possible reasons for a cache miss.
//!
//! The `wire` crate compares them with the answer.

use std::sync::Arc;

use plimsoll_context::{
    CacheBreak, CachePlan, CacheRules, CacheView, Item, Part, Ppm, Tokens, USUAL_MINIMUM,
    breakpoints,
};

use crate::event::Event;
use crate::phase::ModelCallFacts;
use crate::request::{Expects, ToolChoice};
use crate::run::Run;

/// The parts of a request that are not in the log.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aside {
    choice: Option<ToolChoice>,
    context: Option<Arc<str>>,
}

impl Run {
    /// Returns the expected token report of a request of this size.
    ///
    /// The estimate starts from the last report. New messages count by our counter. If our counter
    /// counted more than the provider last time, they are reduced in proportion. Therefore only a much
    /// lower report indicates that the server has cut the request.
    pub(crate) fn expects(
        &self,
        counted: Tokens,
        max_output: Option<Tokens>,
        room: Option<Tokens>,
    ) -> Expects {
        let line = self.line();
        let heard = self.state.facts.heard;
        Expects {
            window: line.window,
            room,
            output: max_output.or_else(|| line.window.map(|_| line.reserve())),
            input: heard.and_then(|(then, reported)| self.expected(counted, then, reported)),
            previous: heard.map(|(_, reported)| reported),
        }
    }

    fn expected(&self, counted: Tokens, then: Tokens, reported: Tokens) -> Option<Tokens> {
        let grown = Some(counted.minus(then)).filter(|grown| *grown > Tokens::ZERO)?;
        // Some chat templates omit the tools if none may be called.
        if self.current.finalizing.is_some() || self.state.facts.trail.end().is_none() {
            return None;
        }
        if self.since_last_call().any(is_uncertain) {
            return None;
        }
        let per_token = u128::from(reported.0) * u128::from(Ppm::ONE.0) / u128::from(then.0.max(1));
        let per_token = u64::try_from(per_token).unwrap_or(u64::MAX);
        Some(reported + grown.share(Ppm(per_token.min(Ppm::ONE.0))))
    }

    /// Returns the items since the last request, including its answer.
    fn since_last_call(&self) -> impl Iterator<Item = &Item> {
        let end = self.state.facts.trail.end();
        let items = self.state.transcript.items();
        let from = items.partition_point(|item| Some(item.seq) <= end);
        items.get(from..).unwrap_or_default().iter()
    }

    /// Returns the cache instructions of the next request.
    pub(crate) fn cache_plan(&self) -> CachePlan {
        if !self.setup.cache.is_on() {
            return CachePlan::default();
        }
        let (tools, system) = self.setup.head(self.tools.has_joined);
        let view = CacheView {
            tools,
            system,
            items: self.state.transcript.items(),
            trail: self.state.facts.trail,
        };
        let minimum = self.least_cached();
        let rules = CacheRules {
            minimum: self.state.facts.calibration.counted(minimum),
            ..CacheRules::default()
        };
        CachePlan {
            retention: self.setup.retention,
            ..breakpoints(&view, &self.setup.cache, &rules)
        }
    }

    /// Returns the reason why the next call may miss the cache although the view is unchanged. `None`
    /// if only the provider can be the cause.
    pub(crate) fn not_view(&mut self, choice: ToolChoice) -> Option<CacheBreak> {
        let now = Aside {
            choice: Some(choice),
            context: self.setup.dynamic_context.clone(),
        };
        let then = std::mem::replace(&mut self.server.aside, now);
        let first = then.choice.is_none();
        let cold = self
            .setup
            .sheet
            .is_some_and(|sheet| sheet.cold_after(self.now.since_call) == Ppm::ONE);
        if first {
            cold.then_some(CacheBreak::Expired)
        } else if then.context != self.server.aside.context {
            Some(CacheBreak::DynamicContext)
        } else if then.choice != self.server.aside.choice {
            Some(CacheBreak::ToolChoice)
        } else {
            cold.then_some(CacheBreak::Expired)
        }
    }

    /// Reports a cache miss of the last call, if there was one.
    pub(crate) fn tell_miss(&mut self, calling: &ModelCallFacts) {
        let Some(mut miss) = self.state.facts.cache.take_miss() else {
            return;
        };
        if miss.expected < self.least_cached() {
            return;
        }
        if let Some(known) = &calling.not_view {
            for why in &mut miss.why {
                if *why == CacheBreak::Provider {
                    why.clone_from(known);
                }
            }
        }
        self.notify(Event::CacheMissed(miss));
    }

    fn least_cached(&self) -> Tokens {
        let known = self.setup.sheet.and_then(|sheet| sheet.min_cacheable);
        known.unwrap_or(USUAL_MINIMUM)
    }
}

/// Checks whether our counter may differ much from the provider's. Every provider counts images
/// differently, and many servers remove earlier thinking.
fn is_uncertain(item: &Item) -> bool {
    let parts = item.message.parts();
    parts
        .iter()
        .any(|part| !matches!(part, Part::Text { .. } | Part::ToolCall(_)))
}
