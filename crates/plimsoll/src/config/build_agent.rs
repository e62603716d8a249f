//! Converts an [`AgentConfig`] to an [`AgentBuilder`], with its tools, the agents that it may call,
//! and the permission rules for both.

use std::sync::Arc;

use plimsoll_agent::Permissions;
use plimsoll_context::{HostedTool, PriceSheet};
use plimsoll_core::{Agent, AgentBuilder, Provider, Tool, Window, sub_agent};
use plimsoll_providers::{ModelRef, Variables};
use serde_json::Value as Json;

use super::agent::AgentConfig;
use super::fault::{ConfigError, Faults};
use super::mcp::McpServer;
use super::permission::Rule;

/// Creates the builder of an agent that another agent calls.
pub type MakeAgent = Arc<MakeAgentFn>;
type MakeAgentFn = dyn Fn(&AgentConfig) -> Result<AgentBuilder, ConfigError> + Send + Sync;

/// The model of an agent, with its properties.
#[derive(Clone)]
pub struct AgentModel {
    /// The provider that calls the model.
    pub provider: Arc<dyn Provider>,
    /// The context window, unless the configuration sets it.
    pub window: Window,
    /// The prices. `None` if they are not known.
    pub prices: Option<PriceSheet>,
}

impl AgentModel {
    /// Creates a model whose window is discovered when a session begins, and whose prices are not
    /// known.
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>) -> Self {
        Self {
            provider,
            window: Window::Discover,
            prices: None,
        }
    }
}

impl AgentConfig {
    /// Returns the permission rules. A file's rules apply to all of its agents, so that a rule for a tool of
    /// another agent is no fault; nor is one for a tool of an MCP server, because a run continues without it.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        let (settings, shared) = (&self.settings, self.shared());
        let hosted = shared.found::<Vec<HostedTool>>("hosted_tools");
        let hosted: Vec<HostedTool> = hosted.flatten().collect();
        let names = plimsoll_tools::NAMES.into_iter();
        let names = names.chain(shared.agent_names());
        let names = names.chain(hosted.iter().flat_map(HostedTool::names));
        let servers = hosted.iter().filter_map(HostedTool::server);
        let servers = servers.chain(shared.mcp.iter().map(|server| server.name.as_str()));
        let servers = servers.map(|server| format!("{server}_"));
        Permissions::new(settings.permissions.iter().map(Rule::rule))
            .with_mode(settings.permission_mode())
            .with_other_tools(names.map(str::to_owned).chain(servers))
    }

    /// Returns the agents that it may call, as tools. `make` creates the builder of one, with its
    /// own tools, at each call.
    ///
    /// # Errors
    /// If one of them, or of the agents that they may call, cannot be created. Each is created once
    /// in advance, so that a missing key is reported before the run begins.
    pub fn sub_agents(&self, make: &MakeAgent) -> Result<Vec<Arc<dyn Tool>>, ConfigError> {
        for agent in self.users().iter().skip(1) {
            let built = make(agent).and_then(|builder| {
                let built = builder.tools(agent.called(make)?).build();
                built.map_err(|error| agent.place(&error))
            });
            built.map_err(|why| {
                let name = agent.settings.name.as_deref().unwrap_or_default();
                self.fault(format!("the agent `{name}` cannot be made: {why}"))
            })?;
        }
        self.called(make)
    }

    fn called(&self, make: &MakeAgent) -> Result<Vec<Arc<dyn Tool>>, ConfigError> {
        let tools = self.settings.sub_agents.iter().map(|name| {
            let config = self.sibling(name)?;
            let description = config.settings.description.clone();
            let description = description.unwrap_or_else(|| format!("The agent {name}."));
            let make = Arc::clone(make);
            // Created anew for each call, because agents may call each other and themselves.
            let agent = move || {
                let own = config.called(&make).ok()?;
                make(&config).ok()?.tools(own).build().ok()
            };
            let tool = sub_agent(name.as_str(), description, agent);
            Ok(Arc::new(tool) as Arc<dyn Tool>)
        });
        tools.collect()
    }

    /// Adds a program's tool servers to this agent. Returns the names that are already in use;
    /// these servers are not replaced.
    pub fn add_mcp(&mut self, servers: impl IntoIterator<Item = McpServer>) -> Vec<String> {
        let shared = Arc::make_mut(&mut self.config.shared);
        let mut known = Vec::new();
        for server in servers {
            if shared.mcp.iter().any(|other| other.name == server.name) {
                known.push(server.name);
                continue;
            }
            if let Some(names) = &mut self.settings.mcp {
                names.push(server.name.clone());
            }
            shared.mcp.push(server);
        }
        known
    }

    /// Checks whether it uses the tools of this server.
    #[must_use]
    pub fn uses_mcp(&self, server: &str) -> bool {
        let named = self.settings.mcp.as_ref();
        named.is_none_or(|names| names.iter().any(|name| name == server))
    }

    /// Returns the servers whose tools it uses, and those used by the agents that it may call.
    #[must_use]
    pub fn mcp(&self) -> Vec<&McpServer> {
        let users = self.users();
        let is_used = |server: &&McpServer| users.iter().any(|user| user.uses_mcp(&server.name));
        self.shared().mcp.iter().filter(is_used).collect()
    }

    /// Returns the agent, those that it may call, and those that they may call, each once.
    fn users(&self) -> Vec<Self> {
        let mut users = vec![self.clone()];
        let mut at = 0;
        while let Some(user) = users.get(at) {
            let called = user.settings.sub_agents.iter();
            let called: Vec<Self> = called.filter_map(|name| user.sibling(name).ok()).collect();
            for agent in called {
                let name = &agent.settings.name;
                if users.iter().all(|user| user.settings.name != *name) {
                    users.push(agent);
                }
            }
            at += 1;
        }
        users
    }

    /// Returns a builder with the model, its prices, the tools and the prompts. The model's key is
    /// read from this process's environment.
    ///
    /// # Errors
    /// If no model is named, or something cannot be read, found or reached.
    pub fn builder(&self) -> Result<AgentBuilder, ConfigError> {
        let Some(model) = &self.settings.model else {
            let why = "no model is named; set `model` to PROVIDER/NAME, or give a provider";
            return Err(self.fault(why));
        };
        let builder = self.with_sub_agents(self.model(model)?)?;
        Ok(builder.tools(self.tools()?))
    }

    /// Returns a builder for a provider of the caller, without the tools of the root. Agents that
    /// it may call share the provider unless they name another model.
    ///
    /// # Errors
    /// If a prompt cannot be read, or the summarizer's model cannot be reached.
    pub fn builder_on(&self, provider: Arc<dyn Provider>) -> Result<AgentBuilder, ConfigError> {
        let name = ModelRef::parse(provider.model()).ok();
        let prices = name.and_then(|model| self.prices(&model));
        self.with_sub_agents(AgentModel {
            prices,
            ..AgentModel::new(provider)
        })
    }

    fn with_sub_agents(&self, model: AgentModel) -> Result<AgentBuilder, ConfigError> {
        let own = model.clone();
        let same = self.settings.model.clone();
        let make: MakeAgent = Arc::new(move |config: &Self| {
            let model = config.model_beside(same.as_deref(), &own)?;
            config.builder_with(model, config.tools()?)
        });
        self.builder_with(model, self.sub_agents(&make)?)
    }

    /// Returns a model by its name, with the environment of this process.
    fn model(&self, name: &str) -> Result<AgentModel, ConfigError> {
        self.model_with(name, &plimsoll_providers::environment)
    }

    /// Returns a model by its name. The agent's own model is called at the agent's own address.
    pub(super) fn model_with(
        &self,
        name: &str,
        variables: Variables<'_>,
    ) -> Result<AgentModel, ConfigError> {
        let (model, mut chat) = self.chat(name, variables)?;
        // The address belongs to the agent's own model, not to the summarizer.
        let is_own = self.settings.model.as_deref() == Some(name);
        if let Some(url) = self.settings.base_url.as_ref().filter(|_| is_own) {
            chat = chat.base_url(url);
        }
        let provider = chat.build_with(variables);
        let provider = provider.map_err(|error| self.fault(error))?;
        Ok(AgentModel {
            prices: self.prices(&model),
            ..AgentModel::new(Arc::new(provider))
        })
    }

    /// Returns the model of an agent that another agent calls: its own if it names one, else the
    /// caller's `model`. `name` is the caller's name for that model.
    ///
    /// # Errors
    /// If its own model cannot be reached.
    pub fn model_beside(
        &self,
        name: Option<&str>,
        model: &AgentModel,
    ) -> Result<AgentModel, ConfigError> {
        match self.settings.model.as_deref() {
            Some(own) if Some(own) != name => self.model(own),
            _ => Ok(model.clone()),
        }
    }

    /// Returns a builder with the given model and tools.
    ///
    /// # Errors
    /// If a prompt cannot be read, or the summarizer's model cannot be reached.
    pub fn builder_with(
        &self,
        model: AgentModel,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Result<AgentBuilder, ConfigError> {
        let summarizer = self.settings.summarizer.as_ref();
        let summarizer = summarizer.map(|name| self.model(name)).transpose()?;
        let mut builder = self.without_prompts(model, summarizer).tools(tools);
        if let Some(system) = self.system()? {
            builder = builder.system(system);
        }
        if let Some(prompt) = self.summary_prompt()? {
            builder = builder.summary_prompt(prompt);
        }
        Ok(builder)
    }

    /// Returns a builder with these models. All builders are created here.
    pub(super) fn without_prompts(
        &self,
        model: AgentModel,
        summarizer: Option<AgentModel>,
    ) -> AgentBuilder {
        let mut builder = self
            .settings
            .apply(Agent::builder_shared(model.provider))
            .secrets(self.secrets(&plimsoll_providers::environment))
            .permissions(self.permissions());
        if self.settings.builder.window == Window::Discover {
            builder = builder.window(model.window);
        }
        if let Some(sheet) = model.prices {
            builder = builder.prices(sheet);
        }
        if let Some(summarizer) = summarizer {
            builder = builder.summarizer(summarizer.provider);
            if let Some(sheet) = summarizer.prices {
                builder = builder.summarizer_prices(sheet);
            }
        }
        builder
    }

    /// Returns another agent of the same file.
    pub(super) fn sibling(&self, name: &str) -> Result<Self, ConfigError> {
        let mut faults = Faults::default();
        let part = self.shared().agent(name)?;
        let mut called = self.config.agent_of(&[], Some(part), &mut faults);
        faults.check()?;
        // A called agent must not do more than its caller, and than the command line allowed that.
        self.restrict(&mut called);
        let (own, mode) = (&mut called.settings, self.settings.permission_mode());
        own.permission_mode = Some(own.permission_mode.unwrap_or(mode).min(mode));
        own.sandbox = own.sandbox.min(self.settings.sandbox);
        // A limit of the caller holds for both. As a limit of its own, one call would reserve all of it.
        let [own_cost, own_tokens] = ["max_cost", "max_total_tokens"]
            .map(|path| self.layer.get::<Json>(path) != called.layer.get(path));
        let limits = &mut called.settings.builder.limits;
        limits.max_cost = limits.max_cost.filter(|_| own_cost);
        limits.max_total_tokens = limits.max_total_tokens.filter(|_| own_tokens);
        Ok(called)
    }
}
