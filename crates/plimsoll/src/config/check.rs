//! Checks all settings of an agent taken together: by rules of its own, and by building the agent on a
//! model that is never called.

use std::sync::Arc;

use async_trait::async_trait;
use plimsoll_agent::{ExecutionLimits, Failure, MAX_RULES, Request};
use plimsoll_context::{
    CacheRetention, Chars4, ContextStrategy, Delta, HostedTool, PriceSheet, Rates, Reply,
    Threshold, nearest,
};
use plimsoll_core::{Agent, Error, Provider, Tool, ToolError, sub_agent, tool};
use plimsoll_providers::{BaseUrl, ModelRef, Wire};
use plimsoll_tools::{Root, Toolbox};
use plimsoll_wire::openai_chat::ToolStyle;

use super::agent::AgentConfig;
use super::fault::{ConfigError, Faults, Origin};

/// Tools that an agent has besides the named ones.
const OUR_TOOLS: [&str; 4] = ["recall", "recall_search", "get_tool_response", "skill"];

/// Keys of the provider's own tools that hold secrets, which must not be in a file, a process list or
/// a report.
const SECRETS: [&str; 2] = ["authorization", "headers"];

impl AgentConfig {
    /// Reports the faults of all settings taken together.
    pub(crate) fn check(&self, faults: &mut Faults) {
        let settings = self.settings();
        let summarizes = matches!(
            settings.builder.context_strategy,
            Some(ContextStrategy::Summarize { .. } | ContextStrategy::Extract { .. })
        );
        let has_trigger = settings.builder.trigger != Threshold::Auto;
        if !settings.builder.summarization && summarizes && has_trigger {
            let fault = "`summarization` is false, so the `trigger` of this `context_strategy` has \
                         no effect; remove one of the three, or choose \"evict\"";
            faults.add([self.merged.placed(fault, &[])]);
        }
        let agents = self.shared.agents.iter();
        let agents: Vec<&str> = agents.map(|part| part.name.as_str()).collect();
        self.check_names("sub_agents", "agent", &settings.sub_agents, &agents, faults);
        self.check_called(faults);
        let servers = self.shared.mcp.iter();
        let servers: Vec<&str> = servers.map(|server| server.name.as_str()).collect();
        let named = settings.mcp.as_deref().unwrap_or_default();
        self.check_names("mcp", "MCP server", named, &servers, faults);
        let tools = &settings.tools;
        let known = plimsoll_tools::NAMES.iter().copied();
        let known: Vec<&str> = known.chain(["all", "none"]).collect();
        self.check_names("tools", "tool", tools, &known, faults);
        if tools.len() > 1
            && tools
                .iter()
                .any(|name| ["all", "none"].contains(&name.as_str()))
        {
            let text = "`tools` names all or none beside others; keep the one you mean";
            self.report("tools", text, faults);
        }
        let rules = settings.permissions.len();
        if rules > MAX_RULES {
            let text = format!("there are {rules} permissions; {MAX_RULES} are allowed");
            self.report("permissions", &text, faults);
        }
        // The trial below has no rules, because rules for a program's tools would be faults there.
        let rules = self.own_rules(None);
        let permissions = self.permissions_of(&rules);
        for tool in &settings.builder.hosted_tools {
            if let Some(fault) = secret_of(tool) {
                self.report("hosted_tools", &fault, faults);
            }
            if let Err(fault) = permissions.hosted(tool) {
                faults.add([self.merged.placed(&fault, &rules)]);
            }
        }
        if let Err(error) = self.trial() {
            faults.add(error.faults);
        }
    }

    /// Builds the agent without its tools and rules, on a model that is never called. So a builder
    /// checks the combination of settings, and what a run will compute can be shown. No file is read.
    ///
    /// # Errors
    /// If the settings contradict each other.
    pub fn trial(&self) -> Result<Agent, ConfigError> {
        self.trial_of(None)
    }

    /// Builds the agent with tools, and the rules for them if there are any.
    fn trial_of(&self, tools: Option<Vec<Arc<dyn Tool>>>) -> Result<Agent, ConfigError> {
        // The prices of the model are known when there is one.
        let prices = PriceSheet::of(Rates::FREE);
        let mut builder = self.settings().apply(Agent::builder(Nobody));
        if self.settings().summarizer.is_some() {
            let summarizer = builder.summarizer(Arc::new(Nobody));
            builder = summarizer.summarizer_prices(prices);
        }
        let mut rules = Vec::new();
        if let Some(tools) = tools {
            rules = self.own_rules(Some(&tools));
            builder = builder
                .permissions(self.permissions_of(&rules))
                .tools(tools);
        }
        let built = builder.counter(Arc::new(Chars4)).prices(prices).build();
        built.map_err(|error| self.place_of(&error, &rules))
    }

    /// Returns the built-in tools that the agent has, and those that are agents, to check names and
    /// arguments. They are never called.
    fn own_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools =
            Root::new(".").map(|root| Toolbox::new(root).select(&self.settings().tools.join(",")));
        let mut tools = tools.ok().and_then(Result::ok).unwrap_or_default();
        let called = self.settings().sub_agents.iter();
        tools.extend(called.map(|name| {
            Arc::new(sub_agent(name.as_str(), name.as_str(), || None)) as Arc<dyn Tool>
        }));
        // Whether there are skills is known when a run begins.
        let skill = |_: serde_json::Value| async { Ok::<_, ToolError>(String::new()) };
        tools.push(Arc::new(tool("skill", "Loads a skill.", skill)));
        tools
    }

    /// Converts a builder's faults, and adds the origins of the settings that caused them.
    #[must_use]
    pub fn place(&self, error: &Error) -> ConfigError {
        self.place_of(error, &[])
    }

    fn place_of(&self, error: &Error, rules: &[usize]) -> ConfigError {
        let mut faults = Faults::default();
        match error {
            Error::Build(texts) => {
                faults.add(texts.iter().map(|text| self.merged.placed(text, rules)));
            }
            other => faults.push(&Origin::Default, other.to_string()),
        }
        faults.into()
    }

    /// Checks the names of models, and the address. Only the whole configuration has all providers: the
    /// user's own file may name some.
    pub(super) fn check_models(&self, faults: &mut Faults) {
        let settings = self.settings();
        for (path, model) in [
            ("model", &settings.model),
            ("summary.model", &settings.summarizer),
        ] {
            let is_own = |model: &str| {
                let provider = model.split('/').next().unwrap_or_default();
                self.shared.providers.contains_key(provider)
            };
            if let Some(model) = model.as_ref().filter(|model| !is_own(model))
                && let Err(error) = ModelRef::parse(model)
            {
                self.report(path, &error.to_string(), faults);
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
            self.report("tool_style", &text, faults);
        }
        // The port of an address without one depends on the provider.
        let url = settings.base_url.as_ref();
        let url = url.map(|url| BaseUrl::parse(url, Some("http://127.0.0.1:8080")));
        if let Some(Err(error)) = url {
            self.report("base_url", &error.to_string(), faults);
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
        let there_is = match known {
            [] => "the configuration has none".to_owned(),
            known => format!("there is: {}", known.join(", ")),
        };
        for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
            let near = nearest(name, known.iter().copied());
            let near = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let text = format!("there is no {what} `{name}`; {near}{there_is}");
            self.report(path, &text, faults);
        }
    }

    /// Checks whether the agents that it may call can be tools beside its other tools.
    fn check_called(&self, faults: &mut Faults) {
        let settings = self.settings();
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
            self.report("sub_agents", &text, faults);
        }
    }

    /// Checks the tool names and arguments of `permissions` and `max_calls_per_tool`. A program may have
    /// more tools of its own.
    ///
    /// # Errors
    /// One fault for each name that is neither a built-in nor a configured tool, and for each rule that
    /// cannot match a call.
    pub fn check_tools(&self) -> Result<(), ConfigError> {
        let agents = self.shared.agents.iter().map(|part| part.name.as_str());
        let known = plimsoll_tools::NAMES.iter().copied();
        let known: Vec<&str> = known.chain(OUR_TOOLS).chain(agents).collect();
        let is_of_mcp = |name: &str| {
            let mut servers = self.shared.mcp.iter();
            servers.any(|server| name.starts_with(&format!("{}_", server.name)))
        };
        let builder = &self.settings().builder;
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
            self.report("max_calls_per_tool", &text, &mut faults);
        }
        faults.add(
            self.trial_of(Some(self.own_tools()))
                .err()
                .into_iter()
                .flat_map(|it| it.faults),
        );
        faults.check()
    }

    /// Reports a fault of a setting.
    fn report(&self, path: &str, text: &str, faults: &mut Faults) {
        faults.push(self.origin(path).unwrap_or(&Origin::Default), text);
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
