//! [`InputFilter`]: checks the user's input before the model reads it.
//!
//! Filters must be fast and free of side effects, because the run waits for them. A filter that has not
//! decided within the timeout of hooks rejects its input. Moderation by an external service belongs in a
//! `before_turn` hook.

use std::fmt;
use std::sync::Arc;

use plimsoll_context::Part;

/// Checks the user's input: prompts, steers and follow-ups.
pub trait InputFilter: Send + Sync {
    /// Returns the decision about a text.
    fn filter(&self, text: &str) -> FilterResult;
}

/// The decision of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterResult {
    /// The text is accepted unchanged.
    Pass,
    /// The text is accepted, and the model also reads this warning.
    Warn(String),
    /// The text is rejected for this reason.
    Reject(String),
}

impl<F: Fn(&str) -> FilterResult + Send + Sync> InputFilter for F {
    fn filter(&self, text: &str) -> FilterResult {
        self(text)
    }
}

/// A list of filters, applied in order.
#[derive(Clone, Default)]
pub struct InputFilters(Vec<Arc<dyn InputFilter>>);

impl InputFilters {
    /// Appends a filter.
    pub fn push(&mut self, filter: Arc<dyn InputFilter>) {
        self.0.push(filter);
    }

    /// Applies all filters. Returns the input with the warnings appended, one part each.
    ///
    /// # Errors
    /// The reason of the first filter that rejects the input; earlier warnings are dropped.
    pub fn apply(&self, mut parts: Vec<Part>) -> Result<Vec<Part>, String> {
        if self.0.is_empty() {
            return Ok(parts);
        }
        let text = Part::texts(&parts);
        let mut warnings = Vec::new();
        for filter in &self.0 {
            match filter.filter(&text) {
                FilterResult::Pass => {}
                FilterResult::Warn(warning) => warnings.push(warning),
                FilterResult::Reject(why) => return Err(why),
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
