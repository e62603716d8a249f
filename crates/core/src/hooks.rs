//! [`Hooks`]: what a host is told, or asked, when a plan is applied. A hook that panics is a
//! fault of that hook: the run goes on and says so. An async one is given up after a while; a sync one
//! is called on the driver's task and must be quick.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use plimsoll_agent::Leaving;
use plimsoll_context::{Item, Tokens};

use crate::session::AgentState;

/// A hook that has not come back after this is given up.
pub const HOOK_TIMEOUT: Duration = Duration::from_secs(30);

/// What has left the view, once for every plan.
#[derive(Debug, Clone)]
pub struct Evicted {
    /// The items, as they stood, in view order.
    pub items: Vec<Item>,
}

type BeforeHook = dyn Fn(Tokens, usize) -> bool + Send + Sync;
type After = dyn Fn(usize, usize, Tokens, Tokens) + Send + Sync;
type OnEvict = dyn Fn(&AgentState, Evicted) -> BoxFuture<'static, ()> + Send + Sync;

/// What a host says to a plan.
pub(crate) enum Before {
    Yes,
    No(String),
    /// Its hook is at fault, which says nothing about the plan.
    Fault(String),
}

/// What a host is told, or asked, when a plan is applied.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    before: Option<Arc<BeforeHook>>,
    after: Option<Arc<After>>,
    on_evict: Option<Arc<OnEvict>>,
}

impl Hooks {
    pub(crate) fn set_before(
        &mut self,
        hook: impl Fn(Tokens, usize) -> bool + Send + Sync + 'static,
    ) {
        self.before = Some(Arc::new(hook));
    }

    pub(crate) fn set_after(
        &mut self,
        hook: impl Fn(usize, usize, Tokens, Tokens) + Send + Sync + 'static,
    ) {
        self.after = Some(Arc::new(hook));
    }

    pub(crate) fn set_on_evict<F, Fut>(&mut self, hook: F)
    where
        F: Fn(&AgentState, Evicted) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = ()> + Send + 'static,
    {
        self.on_evict = Some(Arc::new(move |state, evicted| hook(state, evicted).boxed()));
    }

    /// Whether there is any: only then is the machine to ask.
    pub(crate) fn is_empty(&self) -> bool {
        self.before.is_none() && self.after.is_none() && self.on_evict.is_none()
    }

    /// Whether the host lets a plan pass.
    pub(crate) fn before(&self, leaving: &Leaving) -> Before {
        let Some(hook) = &self.before else {
            return Before::Yes;
        };
        let asked = AssertUnwindSafe(|| hook(leaving.tokens, leaving.messages));
        match std::panic::catch_unwind(asked) {
            Ok(true) => Before::Yes,
            Ok(false) => Before::No("before_compaction_start said no".to_owned()),
            Err(_) => Before::Fault(
                "before_compaction_start broke down; the plan is applied all the same".to_owned(),
            ),
        }
    }

    /// Tells the host what has left, and gives the faults of its hooks.
    pub(crate) async fn gone(
        &self,
        leaving: &Leaving,
        state: &AgentState,
        messages: usize,
        tokens: Tokens,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(hook) = &self.after {
            let told =
                AssertUnwindSafe(|| hook(leaving.messages, messages, leaving.tokens, tokens));
            if std::panic::catch_unwind(told).is_err() {
                faults.push("after_compaction_end broke down; the plan stands".to_owned());
            }
        }
        let items: Vec<Item> = leaving
            .items
            .iter()
            .filter(|leaving| leaving.leaves)
            .map(|leaving| leaving.item.clone())
            .collect();
        let (Some(hook), false) = (&self.on_evict, items.is_empty()) else {
            return faults;
        };
        let called = std::panic::catch_unwind(AssertUnwindSafe(|| hook(state, Evicted { items })));
        let Ok(future) = called else {
            faults.push(LOST_NOTHING.replace("{}", "broke down"));
            return faults;
        };
        match tokio::time::timeout(HOOK_TIMEOUT, AssertUnwindSafe(future).catch_unwind()).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => faults.push(LOST_NOTHING.replace("{}", "broke down")),
            Err(_) => faults.push(LOST_NOTHING.replace("{}", "did not come back in time")),
        }
        faults
    }
}

const LOST_NOTHING: &str = "on_evict {}; what left is in the log all the same";
