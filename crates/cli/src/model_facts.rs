//! The known facts about models: the built-in table, overridden by `[models]` of the configuration.

use plimsoll::providers::{ModelBook, ModelFacts, ModelRef};

use crate::error::CliError;

/// Returns the facts about a model. `configured` overrides the built-in table.
pub(crate) fn facts(model: &ModelRef, configured: &ModelBook) -> Result<ModelFacts, CliError> {
    Ok(book(configured).facts(model))
}

/// Returns the facts about all models.
pub(crate) fn book(configured: &ModelBook) -> ModelBook {
    ModelBook::built_in().clone().overlay(configured.clone())
}
