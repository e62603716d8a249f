//! [`PendingWarnings`]: what parts without access to the observers have to report.

use std::sync::{Mutex, PoisonError};

/// Warnings that have not been reported yet.
#[derive(Debug, Default)]
pub(crate) struct PendingWarnings(Mutex<Vec<String>>);

impl PendingWarnings {
    /// Adds a warning to report.
    pub(crate) fn add(&self, text: String) {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        texts.push(text);
    }

    /// Takes the unreported warnings.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *texts)
    }
}
