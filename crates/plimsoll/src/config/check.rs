//! Checks all settings of an agent taken together: by rules of its own, and by building the agent on a
//! model that is never called.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_agent::{ExecutionLimits, Failure, MAX_RULES, Request};
use plimsoll_context::{
    Author, CacheRetention, Chars4, ContextStrategy, Delta, HostedTool, PriceSheet, Rates, Reply,
    Threshold,
};
use plimsoll_core::{Agent, AgentBuilder, Error, Provider, Tool, ToolError, sub_agent, tool};
use plimsoll_providers::{BaseUrl, ModelRef, Wire};
use plimsoll_tools::{Root, Toolbox};
use plimsoll_wire::openai_chat::ToolStyle;

use super::agent::AgentConfig;
use super::fault::{ConfigError, Faults, no_such};

/// Tools that an agent has besides the named ones.
const OUR_TOOLS: [&str; 4] = ["recall", "recall_search", "get_tool_response", "skill"];

/// Keys of the provider's own tools that hold secrets, which must not be in a file, a process list or
/// a report.
const SECRETS: [&str; 2] = ["authorization", "headers"];

/// Settings that decide whether a model writes the summaries.
const AUTHORS: [&str; 3] = ["context_strategy", "summarization", "summary.author"];
/// Settings that only have an effect if a model writes the summaries.
const OF_SUMMARIZER: [&str; 3] = ["summary.model", "summary.prompt_file", "summary.timeout"];

impl AgentConfig {
    /// Reports the faults of all settings taken together.
    pub(crate) fn check(&self, faults: &mut Faults) {
        let settings = &self.settings;
        let summarizes = matches!(
            settings.builder.context_strategy,
            Some(ContextStrategy::Summarize { .. } | ContextStrategy::Extract { .. })
        );
        let has_trigger = settings.builder.trigger != Threshold::Auto;
        if !settings.builder.summarization && summarizes && has_trigger {
            let fault = "`summarization` is false, so the `trigger` of this `context_strategy` has \
                         no effect; remove one of the three, or choose \"evict\"";
            let paths = ["summarization", "context_strategy", "trigger"];
            self.report(&paths, fault, faults);
        }
        self.check_summarizer(faults);
        let agents: Vec<&str> = self.shared().agent_names().collect();
        self.check_names("sub_agents", "agent", &settings.sub_agents, &agents, faults);
        self.check_called(faults);
        let servers = self.shared().mcp.iter();
        let servers: Vec<&str> = servers.map(|server| server.name.as_str()).collect();
        let named = settings.mcp.as_deref().unwrap_or_default();
        self.check_names("mcp", "MCP server", named, &servers, faults);
        let tools = &settings.tools;
        let known = plimsoll_tools::NAMES.into_iter();
        let known: Vec<&str> = known.chain(["all", "none"]).collect();
        self.check_names("tools", "tool", tools, &known, faults);
        let mut names = tools.iter();
        if tools.len() > 1 && names.any(|name| name == "all" || name == "none") {
            let text = "`tools` names all or none beside others; keep the one you mean";
            self.report(&["tools"], text, faults);
        }
        let rules = settings.permissions.len();
        if rules > MAX_RULES {
            let text = format!("there are {rules} permissions; {MAX_RULES} are allowed");
            self.report(&["permissions"], &text, faults);
        }
        for tool in &settings.builder.hosted_tools {
            if let Some(fault) = secret_of(tool) {
                self.report(&["hosted_tools"], &fault, faults);
            }
        }
        self.place_all(self.hosted_faults(), &Self::hosted_faults, faults);
        let faults_of = |agent: &Self| agent.trial_faults(None);
        self.place_all(faults_of(self), &faults_of, faults);
    }

    /// Checks whether the settings of a model that writes summaries have an effect. Those of a lower layer
    /// than the one that turns such summaries off may be for other agents.
    fn check_summarizer(&self, faults: &mut Faults) {
        let found = |path| self.layer.0.get(path);
        if self.settings.summary_author() == Some(Author::Model) {
            return;
        }
        let off = AUTHORS.iter().filter_map(|path| found(*path));
        let off = off.map(|found| found.depth).max();
        let cure = match &self.settings.builder {
            builder if !builder.summarization => "set `summarization` to true",
            builder if builder.summary.author == Author::Extract => {
                "set `summary.author` to \"model\""
            }
            _ => "set `context_strategy` to \"summarize\"",
        };
        for path in OF_SUMMARIZER {
            if found(path).is_some_and(|found| off.is_none_or(|off| found.depth >= off)) {
                let text = format!(
                    "`{path}` has no effect, because no model writes summaries; {cure}, or remove \
                     this setting"
                );
                self.report(&[path], &text, faults);
            }
        }
    }

    /// Returns the rules that a tool of the provider's own cannot obey.
    fn hosted_faults(&self) -> Vec<String> {
        let permissions = self.permissions(None);
        let tools = self.settings.builder.hosted_tools.iter();
        let faults = tools.filter_map(|tool| permissions.hosted(tool).err());
        faults.collect()
    }

    /// Builds the agent without its tools and rules, on a model that is never called. So a builder
    /// checks the combination of settings, and what a run will compute can be shown. No file is read.
    ///
    /// # Errors
    /// If the settings contradict each other.
    pub fn trial(&self) -> Result<Agent, ConfigError> {
        let make = |agent: &Self| Ok(agent.trial_builder(None));
        let built = self.trial_builder(None).build();
        built.map_err(|error| self.place(&error, &make))
    }

    /// Returns the faults of the agent with tools, and with the rules for them if there are any.
    fn trial_faults(&self, tools: Option<&[Arc<dyn Tool>]>) -> Vec<String> {
        match self.trial_builder(tools).build() {
            Err(Error::Build(texts)) => texts,
            _ => Vec::new(),
        }
    }

    fn trial_builder(&self, tools: Option<&[Arc<dyn Tool>]>) -> AgentBuilder {
        // The prices of the model are known when there is one.
        let prices = PriceSheet::of(Rates::FREE);
        let mut builder = self.settings.apply(Agent::builder(Nobody));
        if self.settings.summarizer.is_some() {
            let summarizer = builder.summarizer(Arc::new(Nobody));
            builder = summarizer.summarizer_prices(prices);
        }
        // Without tools, rules for a program's tools would be faults.
        if let Some(tools) = tools {
            builder = builder
                .permissions(self.permissions(Some(tools)))
                .tools(tools.iter().cloned());
        }
        builder.counter(Arc::new(Chars4)).prices(prices)
    }

    /// Returns the built-in tools that the agent has, and those that are agents, to check names and
    /// arguments. They are never called.
    fn own_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools =
            Root::new(".").map(|root| Toolbox::new(root).select(&self.settings.tools.join(",")));
        let mut tools = tools.ok().and_then(Result::ok).unwrap_or_default();
        let called = self.settings.sub_agents.iter();
        tools.extend(called.map(|name| {
            Arc::new(sub_agent(name.as_str(), name.as_str(), || None)) as Arc<dyn Tool>
        }));
        // Whether there are skills is known when a run begins.
        let skill = |_: serde_json::Value| async { Ok::<_, ToolError>(String::new()) };
        tools.push(Arc::new(tool("skill", "Loads a skill.", skill)));
        tools
    }

    /// Checks the names of models, and the address. Only the whole configuration has all providers: the
    /// user's own file may name some.
    pub(super) fn check_models(&self, faults: &mut Faults) {
        let settings = &self.settings;
        for (path, model) in [
            ("model", &settings.model),
            ("summary.model", &settings.summarizer),
        ] {
            let is_own = |model: &str| {
                let provider = model.split('/').next().unwrap_or_default();
                self.shared().providers.contains_key(provider)
            };
            if let Some(model) = model.as_ref().filter(|model| !is_own(model))
                && let Err(error) = ModelRef::parse(model)
            {
                self.report(&[path], &error.to_string(), faults);
            }
        }
        let model = settings.model.as_deref();
        let model = model.and_then(|name| ModelRef::parse(name).ok());
        if let Some(model) = model
            && settings.tool_style == Some(ToolStyle::JsonSchema)
            && model.vendor().wire != Wire::Chat
        {
            let wire = model.vendor().wire.label();
            let text = format!(
                "`tool_style` \"json\" has no effect on {model}, which is reached over {wire}; remove it, or set it to \"native\""
            );
            self.report(&["tool_style"], &text, faults);
        }
        // The port of an address without one depends on the provider.
        let url = settings.base_url.as_ref();
        let url = url.map(|url| BaseUrl::parse(url, Some("http://127.0.0.1:8080")));
        if let Some(Err(error)) = url {
            self.report(&["base_url"], &error.to_string(), faults);
        }
    }

    /// Reports the names in a list that nothing has.
    fn check_names(
        &self,
        path: &str,
        what: &str,
        names: &[String],
        known: &[&str],
        faults: &mut Faults,
    ) {
        for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
            self.report(&[path], &no_such(what, name, known), faults);
        }
    }

    /// Checks whether the agents that it may call can be tools beside its other tools.
    fn check_called(&self, faults: &mut Faults) {
        let settings = &self.settings;
        let all = settings.tools.iter().any(|name| name == "all");
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        for (at, name) in settings.sub_agents.iter().enumerate() {
            let has = all || settings.tools.contains(name);
            let is_tool = has && plimsoll_tools::NAMES.contains(&name.as_str());
            let mut before = settings.sub_agents.iter().take(at);
            let text = if before.any(|other| other == name) {
                format!("`{name}` stands twice in sub_agents; name it once")
            } else if is_tool || OUR_TOOLS.contains(&name.as_str()) {
                format!(
                    "the agent `{name}` has the name of a tool of the agent that is to call it; rename it"
                )
            } else if name.is_empty() || name.len() > 64 || !name.chars().all(good) {
                format!(
                    "`{name}` cannot name a tool, which an agent is that another calls: use 1 to 64 \
                     letters, digits, `_` or `-`"
                )
            } else {
                continue;
            };
            self.report(&["sub_agents"], &text, faults);
        }
    }

    /// Checks the tool names and arguments of `permissions` and `max_calls_per_tool`. A program may have
    /// more tools of its own.
    ///
    /// # Errors
    /// One fault for each name that is neither a built-in nor a configured tool, and for each rule that
    /// cannot match a call.
    pub fn check_tools(&self) -> Result<(), ConfigError> {
        let known = plimsoll_tools::NAMES.into_iter().chain(OUR_TOOLS);
        let known: Vec<&str> = known.chain(self.shared().agent_names()).collect();
        let is_of_mcp = |name: &str| {
            let mut servers = self.shared().mcp.iter();
            servers.any(|server| name.starts_with(&format!("{}_", server.name)))
        };
        let builder = &self.settings.builder;
        let mut faults = Faults::default();
        for name in builder.limits.max_calls_per_tool.keys() {
            let mut hosted = builder.hosted_tools.iter();
            let text = if hosted.any(|tool| tool.is_called(name)) {
                format!(
                    "max_calls_per_tool names `{name}`, which the provider runs itself; limit it \
                     with that tool's own setting, for example `max_uses`"
                )
            } else if known.contains(&name.as_str()) || is_of_mcp(name) {
                continue;
            } else {
                ExecutionLimits::no_such_tool(name, &known)
            };
            self.report(&["max_calls_per_tool"], &text, &mut faults);
        }
        let tools = self.own_tools();
        let faults_of = |agent: &Self| agent.trial_faults(Some(&tools));
        self.place_all(faults_of(self), &faults_of, &mut faults);
        faults.check().map(|_| ())
    }
}

/// Returns the fault of a tool of the provider's own, if it holds a secret.
fn secret_of(tool: &HostedTool) -> Option<String> {
    let secret = SECRETS.iter().find(|key| tool.0.get(**key).is_some())?;
    let name = tool.name();
    Some(format!(
        "`{secret}` of `{name}` in hosted_tools is a secret, which a configuration would show; give the \
         tool in a program, with `hosted_tool`"
    ))
}

/// A model that is never called.
struct Nobody;

#[async_trait]
impl Provider for Nobody {
    fn model(&self) -> &str {
        "nobody/none"
    }

    fn keeps(&self, _: CacheRetention) -> bool {
        true
    }

    fn hosted_tool_faults(&self, _: &[HostedTool]) -> Vec<String> {
        Vec::new()
    }

    async fn call(
        &self,
        _request: &Request,
        _deltas: &(dyn Fn(Delta) + Send + Sync),
    ) -> Result<Reply, Failure> {
        Err(Failure::Refused {
            status: None,
            message: "a configuration is checked, nobody is asked".to_owned(),
        })
    }
}
