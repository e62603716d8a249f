//! Agents that another agent calls. Each is built from its configuration, with its own model or the
//! caller's. They ask the caller's gate.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use plimsoll::config::{AgentConfig, AgentModel, ConfigError};
use plimsoll::permissions::{Answer, DenyAll, Question};
use plimsoll::tools::SandboxMode;
use plimsoll::{AgentBuilder, Gate, PermissionMode};

use crate::agent::{SYSTEM, adapt};
use crate::mcp::Mcp;
use crate::model_choice::ModelLimits;
use crate::paths;

/// The gate of called agents. Until it is set, all questions are denied.
#[derive(Clone, Default)]
pub(crate) struct DeferredGate(Arc<OnceLock<Arc<dyn Gate>>>);

/// The caller's properties that a called agent inherits unless it has its own.
pub(crate) struct CallerSettings {
    pub(crate) model: AgentModel,
    /// The name of the caller's model. Agents with the same model name share its connection.
    pub(crate) name: Option<String>,
    pub(crate) fit: ModelLimits,
    /// The caller's permission mode. An agent may be stricter.
    pub(crate) mode: PermissionMode,
    pub(crate) sandbox: SandboxMode,
    pub(crate) asked: DeferredGate,
    pub(crate) mcp: Mcp,
}

impl DeferredGate {
    /// Sets the gate. Only the first call has an effect.
    pub(crate) fn set(&self, gate: Arc<dyn Gate>) {
        let _ = self.0.set(gate);
    }
}

#[async_trait]
impl Gate for DeferredGate {
    async fn decide(&self, question: &Question) -> Answer {
        match self.0.get() {
            Some(gate) => gate.decide(question).await,
            None => DenyAll.decide(question).await,
        }
    }
}

impl CallerSettings {
    /// Returns the builder of a called agent.
    pub(crate) fn make(&self, config: &AgentConfig) -> Result<AgentBuilder, ConfigError> {
        let mut config = config.clone();
        let model = config.model_beside(self.name.as_deref(), &self.model)?;
        let built_in = if Arc::ptr_eq(&model.provider, &self.model.provider) {
            adapt(config.settings_mut(), self.fit);
            self.fit.system
        } else {
            SYSTEM
        };
        let system = config.system()?;
        let settings = config.settings_mut();
        settings.system = Some(system.as_deref().unwrap_or(built_in).trim_end().to_owned());
        let own = settings.permission_mode.unwrap_or(self.mode);
        settings.permission_mode = Some(own.min(self.mode));
        settings.sandbox = settings.sandbox.min(self.sandbox);
        paths::project(&config.settings().root).add_skills(&mut config);
        let mut tools = config.tools()?;
        tools.extend(self.mcp.tools(&config, &tools));
        Ok(config.builder_with(model, tools)?.gate(self.asked.clone()))
    }
}
