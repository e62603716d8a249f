//! Contains panics in a host's stages and token counters. The run continues without the failing
//! part and reports it once. [`panic_message`] reads the message of any panic.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_context::{
    Budget, Draft, Estimate, File, Image, Message, Part, Policy, Stage, TokenCounter, Tokens,
    ToolSpec, Trigger,
};

/// Failures and other warnings that have not been reported yet.
#[derive(Debug, Default)]
pub(crate) struct PendingWarnings {
    any: AtomicBool,
    texts: Mutex<Vec<String>>,
}

impl PendingWarnings {
    /// Adds a warning to report.
    pub(crate) fn add(&self, text: String) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        texts.push(text);
        self.any.store(true, Ordering::Release);
    }

    /// Takes the unreported warnings.
    pub(crate) fn take(&self) -> Vec<String> {
        if !self.any.swap(false, Ordering::Acquire) {
            return Vec::new();
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *texts)
    }
}

/// A value supplied by the host, with a flag for whether its failure has been reported.
struct Contained<T: ?Sized> {
    inner: Arc<T>,
    name: String,
    breakdowns: Arc<PendingWarnings>,
    told: AtomicBool,
}

impl<T: ?Sized> Contained<T> {
    fn new(
        inner: Arc<T>,
        name: impl FnOnce(&T) -> String,
        breakdowns: &Arc<PendingWarnings>,
    ) -> Self {
        let named = catch_unwind(AssertUnwindSafe(|| name(&inner)));
        Self {
            inner,
            name: named.unwrap_or_else(|_| "unnamed".to_owned()),
            breakdowns: Arc::clone(breakdowns),
            told: AtomicBool::new(false),
        }
    }

    /// Calls the value. Returns `None` if it panics, and reports the first panic.
    fn call<R>(&self, so: &str, call: impl FnOnce(&T) -> R) -> Option<R> {
        let called = catch_unwind(AssertUnwindSafe(|| call(&self.inner)));
        let report = |panic: Box<dyn std::any::Any + Send>| {
            if !self.told.swap(true, Ordering::Relaxed) {
                let (name, why) = (&self.name, panic_message(&*panic));
                self.breakdowns
                    .add(format!("{name} broke down: {why}; {so}"));
            }
        };
        called.map_err(report).ok()
    }
}

impl<T: ?Sized> fmt::Debug for Contained<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Returns the policy with contained stages. A stage that panics leaves the draft as it is at that
/// moment.
pub(crate) fn policy(policy: Policy, breakdowns: &Arc<PendingWarnings>) -> Policy {
    policy.map_stages(|stage| {
        let stage = Contained::new(stage, |stage| stage.name().to_owned(), breakdowns);
        Arc::new(stage)
    })
}

/// Returns the counter, contained. If it panics, the tokens are estimated.
pub(crate) fn counter(
    counter: Arc<dyn TokenCounter>,
    breakdowns: &Arc<PendingWarnings>,
) -> Arc<dyn TokenCounter> {
    let counter = Contained::new(counter, |counter| counter.name().to_owned(), breakdowns);
    Arc::new(counter)
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_default()
}

impl Stage for Contained<dyn Stage> {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_eager(&self) -> bool {
        let so = "it acts only when a plan is due";
        self.call(so, |stage| stage.is_eager()).unwrap_or_default()
    }

    fn is_limit(&self) -> bool {
        let so = "it acts only when a plan is due";
        self.call(so, |stage| stage.is_limit()).unwrap_or_default()
    }

    fn propose(&self, draft: &mut Draft<'_>, budget: &Budget, why: Trigger) {
        let so = "the plan is made without it";
        self.call(so, |stage| stage.propose(draft, budget, why));
    }
}

impl Contained<dyn TokenCounter> {
    fn count(&self, count: impl Fn(&dyn TokenCounter) -> Tokens) -> Tokens {
        let counted = self.call("texts that it cannot count are estimated", |counter| {
            count(counter)
        });
        counted.unwrap_or_else(|| count(&Estimate))
    }
}

impl TokenCounter for Contained<dyn TokenCounter> {
    fn name(&self) -> &str {
        &self.name
    }

    fn text(&self, text: &str) -> Tokens {
        self.count(|counter| counter.text(text))
    }

    fn image(&self, image: &Image) -> Tokens {
        self.count(|counter| counter.image(image))
    }

    fn file(&self, file: &File) -> Tokens {
        self.count(|counter| counter.file(file))
    }

    fn part(&self, part: &Part) -> Tokens {
        self.count(|counter| counter.part(part))
    }

    fn message(&self, message: &Message) -> Tokens {
        self.count(|counter| counter.message(message))
    }

    fn tool(&self, tool: &ToolSpec) -> Tokens {
        self.count(|counter| counter.tool(tool))
    }
}
