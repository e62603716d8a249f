//! Agents that another calls: each is made as its configuration says, on its own model or on the
//! caller's. Whom they ask is whom the caller asks.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use plimsoll::config::{AgentConfig, WindowSetting};
use plimsoll::providers;
use plimsoll::tools::SandboxMode;
use plimsoll::{
    Agent, AgentBuilder, Answer, DenyAll, Gate, PermissionMode, PriceSheet, Provider, Question,
    Window,
};

use crate::agent::{SYSTEM, adapt};
use crate::choice::{self, Fit};
use crate::exit::Stop;
use crate::known;
use crate::mcp::Mcp;
use crate::places;

/// Whom agents ask that another calls; nobody, which is a no, until it is set.
#[derive(Clone, Default)]
pub(crate) struct Asked(Arc<OnceLock<Arc<dyn Gate>>>);

/// What such an agent has of its caller where it has none of its own.
pub(crate) struct Called {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) window: Window,
    pub(crate) prices: Option<PriceSheet>,
    pub(crate) fit: Fit,
    /// How much runs without a question; an agent may be stricter.
    pub(crate) mode: PermissionMode,
    pub(crate) sandbox: SandboxMode,
    /// The caller's model by name; who names the same shares it.
    pub(crate) model: Option<String>,
    pub(crate) asked: Asked,
    pub(crate) mcp: Mcp,
}

impl Asked {
    /// Says who it is; the first one stays.
    pub(crate) fn set(&self, gate: Arc<dyn Gate>) {
        let _ = self.0.set(gate);
    }
}

#[async_trait]
impl Gate for Asked {
    async fn decide(&self, question: &Question) -> Answer {
        match self.0.get() {
            Some(gate) => gate.decide(question).await,
            None => DenyAll.decide(question).await,
        }
    }
}

impl Called {
    /// The settings of such an agent.
    pub(crate) fn make(&self, config: &AgentConfig) -> Result<AgentBuilder, Stop> {
        let mut config = config.clone();
        let settings = config.settings_mut();
        let own = settings.permission_mode.unwrap_or(self.mode);
        settings.permission_mode = Some(own.min(self.mode));
        settings.sandbox = settings.sandbox.min(self.sandbox);
        let model = settings.model.clone();
        let mut built_in = SYSTEM;
        let (provider, window, sheet) =
            match model.filter(|_| config.settings().model != self.model) {
                None => {
                    adapt(config.settings_mut(), self.fit);
                    built_in = self.fit.system;
                    (Arc::clone(&self.provider), self.window, self.prices)
                }
                Some(name) => {
                    let environment = &providers::environment;
                    let (model, mut chat) = config.chat(&name, environment).map_err(Stop::usage)?;
                    if let Some(base_url) = &config.settings().base_url {
                        chat = chat.base_url(base_url);
                    }
                    let facts = known::facts(&model, config.own_models())?;
                    let sheet = facts.sheet();
                    let provider = chat.facts(facts).build().map_err(Stop::usage)?;
                    (
                        Arc::new(provider) as Arc<dyn Provider>,
                        Window::Discover,
                        sheet,
                    )
                }
            };
        places::add_skills(&mut config);
        let system = config.system().map_err(Stop::usage)?;
        let mut tools = config.tools().map_err(Stop::usage)?;
        tools.extend(self.mcp.tools(&config, &tools));
        let mut builder = config
            .settings()
            .apply(Agent::builder_shared(provider))
            .permissions(config.permissions_for(&tools))
            .secrets(config.secrets(&providers::environment))
            .system(system.as_deref().unwrap_or(built_in).trim_end())
            .tools(tools)
            .gate(self.asked.clone());
        if config.settings().window == WindowSetting::Ask {
            builder = builder.window(window);
        }
        if let Some(sheet) = sheet {
            builder = builder.prices(sheet);
        }
        if let Some(summarizer) = choice::summarizer(&config)? {
            builder = builder.summarizer(summarizer.provider);
            if let Some(sheet) = summarizer.prices {
                builder = builder.summarizer_prices(sheet);
            }
        }
        if let Some(prompt) = config.summary_prompt().map_err(Stop::usage)? {
            builder = builder.summary_prompt(prompt);
        }
        Ok(builder)
    }
}
