//! [`LoopRecord`]: what a log tells of one run, and [`LoopConfigSnapshot`], what the run was
//! configured as. A view of the log and nothing beside it; no message is copied.

use plimsoll_context::Tokens;
use serde::{Deserialize, Serialize};

use crate::limits::ExecutionLimits;
use crate::loop_id::DEFAULT_CONFIG;
use crate::setup::Setup;

/// What a run was configured as, where it makes a difference to what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopConfigSnapshot {
    /// The configuration's id. Default: [`DEFAULT_CONFIG`].
    pub config_id: String,
    /// The model, as `provider/name`.
    pub model: String,
    /// How hard the model was asked to think, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thinking_level: Option<String>,
    /// Temperature, where it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Seed, where it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Tokens of one answer, at most, where it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<Tokens>,
    /// How long it could be.
    pub limits: ExecutionLimits,
    /// Tool calls that could run at once.
    pub max_parallel_tools: usize,
    /// The policy's stages by name, in their order.
    pub policy: Vec<String>,
}

impl LoopConfigSnapshot {
    /// What a run with this setup is configured as.
    #[must_use]
    pub fn of(setup: &Setup) -> Self {
        let stages = setup.policy.stages().iter();
        Self {
            config_id: setup.config_id.clone(),
            model: setup.model.clone(),
            thinking_level: None,
            temperature: setup.sampling.temperature,
            seed: setup.sampling.seed,
            max_tokens: setup.max_output,
            limits: ExecutionLimits::clone(&setup.limits),
            max_parallel_tools: setup.max_parallel_tools,
            policy: stages.map(|stage| stage.name().to_owned()).collect(),
        }
    }
}

impl Default for LoopConfigSnapshot {
    fn default() -> Self {
        Self {
            config_id: DEFAULT_CONFIG.to_owned(),
            model: String::new(),
            thinking_level: None,
            temperature: None,
            seed: None,
            max_tokens: None,
            limits: ExecutionLimits::default(),
            max_parallel_tools: 1,
            policy: Vec::new(),
        }
    }
}
