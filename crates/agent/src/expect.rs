//! What is known of a request before it is sent: what the provider should report of it, what it
//! asks of the prompt cache, and why it may miss it. Not the judging of the answer; that is `wire`'s.

use std::sync::Arc;

use plimsoll_context::{
    CacheBreak, CachePlan, CacheRules, CacheView, Item, Part, Ppm, Tokens, USUAL_MINIMUM,
    breakpoints,
};

use crate::event::Event;
use crate::request::{Expects, ToolChoice};
use crate::run::{Calling, Run};

/// What a request carries that no log tells of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aside {
    choice: Option<ToolChoice>,
    context: Option<Arc<str>>,
}

impl Run {
    /// What the provider should report of a request of this weight.
    ///
    /// It is made of the last report: what has come since weighs by our counter what it weighs, or,
    /// where ours counts more than the provider does, as much less as it did then. So only a much
    /// smaller report is a sign that the server has cut the request.
    pub(crate) fn expects(
        &self,
        counted: Tokens,
        max_output: Option<Tokens>,
        room: Option<Tokens>,
    ) -> Expects {
        let line = self.line();
        let heard = self.state.heard;
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
        // Some templates leave the tools out where none may be called.
        if self.finalizing.is_some() || self.state.trail.end().is_none() {
            return None;
        }
        if self.since_last_call().any(is_uncertain) {
            return None;
        }
        let per_token = u128::from(reported.0) * u128::from(Ppm::ONE.0) / u128::from(then.0.max(1));
        let per_token = u64::try_from(per_token).unwrap_or(u64::MAX);
        Some(reported + grown.share(Ppm(per_token.min(Ppm::ONE.0))))
    }

    /// What has come since the last request, its answer included.
    fn since_last_call(&self) -> impl Iterator<Item = &Item> {
        let end = self.state.trail.end();
        let items = self.state.transcript.items();
        let from = items.partition_point(|item| Some(item.seq) <= end);
        items.get(from..).unwrap_or_default().iter()
    }

    /// What the next request asks of the prompt cache.
    pub(crate) fn cache_plan(&self) -> CachePlan {
        if !self.setup.cache.is_on() {
            return CachePlan::default();
        }
        let (tools, system) = self.setup.head(self.has_planned());
        let view = CacheView {
            tools,
            system,
            items: self.state.transcript.items(),
            trail: self.state.trail,
        };
        let minimum = self.least_cached();
        let rules = CacheRules {
            minimum: self.state.calibration.counted(minimum),
            ..CacheRules::default()
        };
        CachePlan {
            retention: self.setup.retention,
            ..breakpoints(&view, &self.setup.cache, &rules)
        }
    }

    /// Why the next call may miss the cache although the view is as it was; `None` where nothing
    /// but the provider could be to blame.
    pub(crate) fn not_view(&mut self, choice: ToolChoice) -> Option<CacheBreak> {
        let now = Aside {
            choice: Some(choice),
            context: self.setup.dynamic_context.clone(),
        };
        let then = std::mem::replace(&mut self.aside, now);
        let first = then.choice.is_none();
        let cold = self
            .setup
            .sheet
            .is_some_and(|sheet| sheet.cold_after(self.idle) == Ppm::ONE);
        if first {
            cold.then_some(CacheBreak::Expired)
        } else if then.context != self.aside.context {
            Some(CacheBreak::DynamicContext)
        } else if then.choice != self.aside.choice {
            Some(CacheBreak::ToolChoice)
        } else {
            cold.then_some(CacheBreak::Expired)
        }
    }

    /// Says what the last call has missed in the cache, if it missed anything.
    pub(crate) fn tell_miss(&mut self, calling: &Calling) {
        let Some(mut miss) = self.state.cache.take_miss() else {
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

/// Whether our counter may be far from what the provider counts: images weigh differently
/// everywhere, and many servers drop earlier thinking.
fn is_uncertain(item: &Item) -> bool {
    let parts = item.message.parts();
    parts
        .iter()
        .any(|part| !matches!(part, Part::Text { .. } | Part::ToolCall(_)))
}
