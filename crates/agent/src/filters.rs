//! [`InputFilter`]: looks at what a person says before the model does. Pure and quick: it is called on
//! the run's own task. Moderation that asks somebody belongs in `before_turn`.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use plimsoll_context::Part;

/// Filters of one agent, at most.
pub const MAX_FILTERS: usize = 64;

/// Looks at what a person says: prompts, steers and follow-ups.
pub trait InputFilter: Send + Sync {
    /// What to do with a text.
    fn filter(&self, text: &str) -> FilterResult;
}

/// What a filter says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterResult {
    /// The text passes as it is.
    Pass,
    /// It passes, and the model reads this too.
    Warn(String),
    /// It does not pass; this is why.
    Reject(String),
}

impl<F: Fn(&str) -> FilterResult + Send + Sync> InputFilter for F {
    fn filter(&self, text: &str) -> FilterResult {
        self(text)
    }
}

/// Filters, asked in order.
#[derive(Clone, Default)]
pub struct InputFilters(Vec<Arc<dyn InputFilter>>);

impl InputFilters {
    /// One more filter, asked last.
    pub fn push(&mut self, filter: Arc<dyn InputFilter>) {
        self.0.push(filter);
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is said once all have seen it: the warnings stand behind it, one part each.
    ///
    /// # Errors
    /// The reason of the first that rejects it; warnings before it say nothing then. One that breaks
    /// down rejects: a guard that is broken lets nobody in.
    pub fn apply(&self, mut parts: Vec<Part>) -> Result<Vec<Part>, String> {
        if self.is_empty() {
            return Ok(parts);
        }
        let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
        let text = texts.join("\n");
        let mut warnings = Vec::new();
        for filter in &self.0 {
            let said = std::panic::catch_unwind(AssertUnwindSafe(|| filter.filter(&text)));
            match said {
                Ok(FilterResult::Pass) => {}
                Ok(FilterResult::Warn(warning)) => warnings.push(warning),
                Ok(FilterResult::Reject(why)) => return Err(why),
                Err(_) => return Err("an input filter broke down".to_owned()),
            }
        }
        let warnings = warnings.into_iter();
        parts.extend(warnings.map(|warning| Part::text(format!("[Warning: {warning}]"))));
        Ok(parts)
    }
}

impl fmt::Debug for InputFilters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputFilters({})", self.0.len())
    }
}
