//! Converts an [`AgentConfig`] to an [`AgentBuilder`], with its tools, the agents that it may call,
//! and the permission rules for both.

use std::fmt;
use std::sync::Arc;

use plimsoll_agent::{Pattern, Permissions};
use plimsoll_context::{HostedTool, PriceSheet};
use plimsoll_core::{Agent, AgentBuilder, Provider, Tool, Window, sub_agent};
use plimsoll_providers::ModelRef;

use super::agent::AgentConfig;
use super::fault::{ConfigError, Faults};
use super::file::AgentPart;
use super::layer::FoundSetting;
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
    /// Returns the permission rules, or those for an agent with these tools. Rules for tools that exist
    /// but that this agent does not have are left out, because a file's rules apply to all of its
    /// agents; so are rules for tools of a missing MCP server, because a run continues without it.
    #[must_use]
    pub fn permissions(&self, tools: Option<&[Arc<dyn Tool>]>) -> Permissions {
        let rules = self.rules(tools).map(|(_, rule)| rule.rule());
        Permissions::new(rules).with_mode(self.settings.permission_mode())
    }

    /// Returns the rules of [`Self::permissions`], each with its position in the settings.
    pub(super) fn rules(
        &self,
        tools: Option<&[Arc<dyn Tool>]>,
    ) -> impl Iterator<Item = (usize, &Rule)> {
        let settings = &self.settings;
        let built_in = plimsoll_tools::NAMES.iter().copied();
        let is_chosen = |name: &&str| settings.tools.iter().any(|own| own == "all" || own == name);
        let called = settings.sub_agents.iter().map(String::as_str);
        let given = tools.into_iter().flatten();
        let given = given.map(|tool| tool.spec().name.as_str());
        let own = built_in.clone().filter(is_chosen);
        let own: Vec<&str> = own.chain(called).chain(given).collect();
        let known: Vec<&str> = built_in.chain(self.shared().agent_names()).collect();
        let all_hosted: Vec<HostedTool> = self.shared().hosted_tools().collect();
        let is_of_mcp = |rule: &Rule| {
            let mut servers = self.shared().mcp.iter();
            tools.is_some() && servers.any(|server| is_of_server(rule, &server.name))
        };
        // A rule for all tools applies to this agent, whatever tools it gets.
        let is_own = |rule: &Rule| {
            rule.tool == "*" || is_of_tool(rule, &own, &settings.builder.hosted_tools)
        };
        // A rule for no tool of the file is a mistake, which the builder reports.
        let is_known = |rule: &Rule| is_of_mcp(rule) || is_of_tool(rule, &known, &all_hosted);
        let rules = settings.permissions.iter().enumerate();
        let rules = rules.filter(|(_, rule)| is_own(rule) || !is_known(rule));
        rules.collect::<Vec<_>>().into_iter()
    }

    /// Returns the agents that it may call, as tools. `make` creates the builder of one, with its
    /// own tools, at each call.
    ///
    /// # Errors
    /// If one of them, or of the agents that they may call, cannot be created. Each is created once
    /// in advance, so that a missing key is reported before the run begins.
    pub fn sub_agents(&self, make: &MakeAgent) -> Result<Vec<Arc<dyn Tool>>, ConfigError> {
        for agent in self.reached() {
            let cannot = |why: &dyn fmt::Display| {
                let name = agent.settings.name.as_deref().unwrap_or_default();
                self.fault(format!("the agent `{name}` cannot be made: {why}"))
            };
            let builder = make(&agent).map_err(|error| cannot(&error))?;
            let built = builder.tools(agent.called(make)?).build();
            built.map_err(|error| cannot(&error))?;
        }
        self.called(make)
    }

    fn called(&self, make: &MakeAgent) -> Result<Vec<Arc<dyn Tool>>, ConfigError> {
        let names = self.settings.sub_agents.iter();
        let tools = names.filter_map(|name| self.part(name)).map(|part| {
            let config = self.sibling(part)?;
            let description = config.settings.description.clone();
            let description = description.unwrap_or_else(|| format!("The agent {}.", part.name));
            let make = Arc::clone(make);
            // Created anew for each call, because agents may call each other and themselves.
            let agent = move || {
                let own = config.called(&make).ok()?;
                make(&config).ok()?.tools(own).build().ok()
            };
            let tool = sub_agent(part.name.as_str(), description, agent);
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
        let users: Vec<Self> = std::iter::once(self.clone())
            .chain(self.reached())
            .collect();
        let servers = self.shared().mcp.iter();
        servers
            .filter(|server| users.iter().any(|user| user.uses_mcp(&server.name)))
            .collect()
    }

    /// Returns the agents that it may call, and those that they may call, each once. The agent
    /// itself is not among them.
    fn reached(&self) -> Vec<Self> {
        let mut users = vec![self.clone()];
        let mut at = 0;
        while let Some(user) = users.get(at) {
            let called = user.settings.sub_agents.iter();
            let called = called.filter_map(|name| self.sibling(self.part(name)?).ok());
            let called: Vec<Self> = called.collect();
            for agent in called {
                let is_new = |user: &Self| user.settings.name != agent.settings.name;
                if users.iter().all(is_new) {
                    users.push(agent);
                }
            }
            at += 1;
        }
        users.split_off(1)
    }

    /// Returns a builder with the model, its prices, the tools and the prompts. The model's key is
    /// read from this process's environment.
    ///
    /// # Errors
    /// If no model is named, or something cannot be read, found or reached.
    pub fn builder(&self) -> Result<AgentBuilder, ConfigError> {
        let Some(model) = &self.settings.model else {
            return Err(self.fault(
                "no model is named; set `model` to PROVIDER/NAME, or give a provider".to_owned(),
            ));
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
            config.assembled(model, config.permissions(None), config.tools()?)
        });
        self.assembled(model, self.permissions(None), self.sub_agents(&make)?)
    }

    /// Returns a model by its name. The agent's own model is called at the agent's own address.
    fn model(&self, name: &str) -> Result<AgentModel, ConfigError> {
        let environment = &plimsoll_providers::environment;
        let (model, mut chat) = self.chat(name, environment)?;
        // The address belongs to the agent's own model, not to the summarizer.
        let is_own = self.settings.model.as_deref() == Some(name);
        if let Some(url) = self.settings.base_url.as_ref().filter(|_| is_own) {
            chat = chat.base_url(url);
        }
        let provider = chat.build();
        let provider = provider.map_err(|error| self.fault(error.to_string()))?;
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

    /// Returns a builder with the given model and tools. The permission rules are checked against
    /// these tools.
    ///
    /// # Errors
    /// If a prompt cannot be read, or the summarizer's model cannot be reached.
    pub fn builder_with(
        &self,
        model: AgentModel,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Result<AgentBuilder, ConfigError> {
        self.assembled(model, self.permissions(Some(&tools)), tools)
    }

    /// Assembles an agent from its parts. All builders are created here.
    fn assembled(
        &self,
        model: AgentModel,
        permissions: Permissions,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Result<AgentBuilder, ConfigError> {
        let settings = &self.settings;
        let mut builder = settings
            .apply(Agent::builder_shared(model.provider))
            .secrets(self.secrets(&plimsoll_providers::environment))
            .permissions(permissions)
            .tools(tools);
        if settings.builder.window == Window::Discover {
            builder = builder.window(model.window);
        }
        if let Some(system) = self.system()? {
            builder = builder.system(system);
        }
        if let Some(sheet) = model.prices {
            builder = builder.prices(sheet);
        }
        if let Some(name) = &settings.summarizer {
            let summarizer = self.model(name)?;
            builder = builder.summarizer(summarizer.provider);
            if let Some(sheet) = summarizer.prices {
                builder = builder.summarizer_prices(sheet);
            }
        }
        if let Some(prompt) = self.summary_prompt()? {
            builder = builder.summary_prompt(prompt);
        }
        Ok(builder)
    }

    pub(super) fn part(&self, name: &str) -> Option<&AgentPart> {
        let mut agents = self.shared().agents.iter();
        agents.find(|part| part.name == name)
    }

    /// Returns another agent of the same file.
    pub(super) fn sibling(&self, part: &AgentPart) -> Result<Self, ConfigError> {
        let mut faults = Faults::default();
        let mut called = self.config.agent_of(&[], Some(part), &mut faults);
        faults.check()?;
        // A called agent must not do more than its caller, and than the command line allowed that.
        self.guards.hold(&mut called);
        let (own, mode) = (&mut called.settings, self.settings.permission_mode());
        own.permission_mode = Some(own.permission_mode.unwrap_or(mode).min(mode));
        own.sandbox = own.sandbox.min(self.settings.sandbox);
        // A limit of the caller holds for both. As a limit of its own, one call would reserve all of it.
        let of = |config: &Self, path| config.layer.0.get(path).and_then(FoundSetting::value);
        let is_own =
            ["max_cost", "max_total_tokens"].map(|path| of(self, path) != of(&called, path));
        let [own_cost, own_tokens] = is_own;
        let limits = &mut called.settings.builder.limits;
        limits.max_cost = limits.max_cost.filter(|_| own_cost);
        limits.max_total_tokens = limits.max_total_tokens.filter(|_| own_tokens);
        Ok(called)
    }
}

/// Checks whether a rule is for one of these tools.
fn is_of_tool(rule: &Rule, names: &[&str], hosted: &[HostedTool]) -> bool {
    let fits = |tool: &str| Pattern::new(&rule.tool).fits(tool);
    let is_hosted = |tool: &HostedTool| {
        let mut names = tool.names();
        names.any(fits)
            || tool
                .server()
                .is_some_and(|server| is_of_server(rule, server))
    };
    names.iter().any(|name| fits(name)) || hosted.iter().any(is_hosted)
}

/// Checks whether a rule is for tools of a server.
fn is_of_server(rule: &Rule, server: &str) -> bool {
    rule.tool.starts_with(&format!("{server}_"))
}
