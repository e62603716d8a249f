//! Checks all settings of an agent taken together: by rules of its own, and by building the agent on a
//! model that is never called.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_context::{Author, Chars4, HostedTool, PriceSheet, Rates, Threshold};
use plimsoll_core::process::looks_secret;
use plimsoll_core::testing::ScriptedProvider;
use plimsoll_core::{Agent, Tool, ToolError, Window, sub_agent, tool};
use plimsoll_providers::{BaseUrl, ModelRef, Wire};
use plimsoll_tools::{Root, Toolbox};
use plimsoll_wire::openai_chat::ToolStyle;

use super::agent::AgentConfig;
use super::build_agent::AgentModel;
use super::fault::{ConfigError, ConfigFault, Faults, no_such};
use super::key;
use super::layer::FoundSetting;

/// Tools that an agent has besides the named ones.
const OUR_TOOLS: [&str; 4] = ["recall", "recall_search", "get_tool_response", "skill"];

/// Keys of the provider's own tools that hold secrets, which must not be in a file, a process list or
/// a report.
const SECRETS: [&str; 2] = ["authorization", "headers"];

/// The stage in which a model writes a summary.
const SUMMARIZE: &str = "summarize";

impl AgentConfig {
    /// Reports the faults of all settings taken together. Returns the faults of settings without an effect on
    /// this agent, which may have one on others.
    pub(crate) fn check(&self, faults: &mut Faults) -> Vec<ConfigFault> {
        let (settings, shared) = (&self.settings, self.shared());
        let mut check_names = |path: &str, what: &str, names: &[String], known: &[&str]| {
            for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
                self.report(&[path], &no_such(what, name, known), faults);
            }
            let twice = (1..).zip(names);
            let mut twice = twice.filter(|(at, name)| names.iter().skip(*at).any(|it| it == *name));
            if let Some((_, name)) = twice.next() {
                let text = format!("`{path}` names `{name}` twice; keep one");
                self.report(&[path], &text, faults);
            }
        };
        let agents: Vec<&str> = shared.agent_names().collect();
        check_names("sub_agents", "agent", &settings.sub_agents, &agents);
        let servers: Vec<&str> = shared.mcp.iter().map(|it| it.name.as_str()).collect();
        let named = settings.mcp.as_deref().unwrap_or_default();
        check_names("mcp", "MCP server", named, &servers);
        let groups = ["all", "none"];
        let known: Vec<&str> = plimsoll_tools::NAMES.into_iter().chain(groups).collect();
        check_names("tools", "tool", &settings.tools, &known);
        let mut names = settings.tools.iter();
        if names.len() > 1 && names.any(|name| groups.contains(&name.as_str())) {
            let text = "`tools` names all or none beside others; keep the one you mean";
            self.report(&["tools"], text, faults);
        }
        for fault in settings.builder.hosted_tools.iter().filter_map(secret_of) {
            self.report(&["hosted_tools"], &fault, faults);
        }
        let mut idle = Faults::default();
        match self.trial() {
            Ok(run) => self.check_effects(&run, &mut idle),
            Err(error) => faults.add(error),
        }
        idle.faults
    }

    /// Reports the settings that need another one to have an effect. A default that is set needs none.
    fn check_effects(&self, run: &Agent, faults: &mut Faults) {
        self.check_sizes(faults);
        let (settings, builder) = (&self.settings, &self.settings.builder);
        let mut tools = settings.tools.iter();
        let has_bash = tools.any(|name| name == "all" || name == "bash");
        let mut stages = run.policy().stages().iter();
        let is_extract = builder.summary.author == Author::Extract;
        // The trigger of a strategy that summarizes is one of summaries.
        let strategy = builder.context_strategy.map(|strategy| strategy.name());
        let summarizes = matches!(strategy, Some("summarize" | "extract"));
        let nobody = "no model writes summaries";
        let summarizer = match stages.any(|stage| stage.name() == SUMMARIZE) {
            true => None,
            false if is_extract => Some((nobody, "set `summary.author` to \"model\"")),
            false => Some((nobody, "set `context_strategy` to \"summarize\"")),
        };
        let found = |path: &str| Some(self.layer.0.get(path)?.written.clone());
        let lacks = |need: &str| key::lacks(need, found);
        for (path, FoundSetting { key, written, .. }) in &self.layer.0 {
            let off = match key.needs.as_str() {
                "summarizer" => lacks("summaries").or(summarizer),
                "trigger" if summarizes => lacks("summaries"),
                "bash" if !has_bash && settings.sub_agents.is_empty() => {
                    Some(("no command is run", "add bash to `tools`"))
                }
                need => lacks(need),
            };
            let is_default = key.value.as_ref() == Some(written);
            if let Some((why, cure)) = off.filter(|_| !is_default) {
                let text = format!(
                    "`{path}` has no effect, because {why}; {cure}, or remove this setting"
                );
                self.report(&[path], &text, faults);
            }
        }
    }

    /// Reports sizes that the window or another size keeps from having an effect.
    fn check_sizes(&self, faults: &mut Faults) {
        let (builder, retry) = (&self.settings.builder, &self.settings.builder.driver.retry);
        let sent = |size| match size {
            Threshold::Sent(tokens) => Some(tokens),
            _ => None,
        };
        let sizes = [
            ("trigger", sent(builder.trigger)),
            ("target", builder.target.and_then(sent)),
            ("max_result", builder.max_result),
            ("max_tokens", builder.max_tokens),
        ];
        for (path, size) in sizes {
            if let (Some(size), Window::Known(window)) = (size, builder.window)
                && size >= window
            {
                let text = format!(
                    "`{path}` has no effect, because the window has only {window} tokens; choose less than that"
                );
                self.report(&[path, "window"], &text, faults);
            }
        }
        if retry.initial > retry.cap {
            let text = "`retry.initial` has no effect, because no wait is longer than `retry.cap`; raise that";
            self.report(&["retry.initial", "retry.cap"], text, faults);
        }
    }

    /// Builds the agent without its rules, on a model that is never called. So a builder checks the
    /// combination of settings, and what a run will compute can be shown. No file is read.
    ///
    /// # Errors
    /// If the settings contradict each other.
    pub fn trial(&self) -> Result<Agent, ConfigError> {
        // A program may have more tools of its own, for which there are rules.
        self.built(false)
    }

    /// Builds the agent with its rules and its model, if they are those of a run.
    fn built(&self, is_run: bool) -> Result<Agent, ConfigError> {
        let prices = Some(PriceSheet::of(Rates::FREE));
        let nobody = Arc::new(ScriptedProvider::new([]));
        let nobody = AgentModel {
            prices,
            ..AgentModel::new(nobody)
        };
        // A check needs no keys.
        let variables = |name: &str| {
            let pretended = || looks_secret(name).then(|| "key".to_owned());
            plimsoll_providers::environment(name).or_else(pretended)
        };
        let model = |name: &Option<String>| {
            let name = name.as_deref().filter(|_| is_run)?;
            self.model_with(name, &variables).ok()
        };
        let own = model(&self.settings.model).unwrap_or_else(|| nobody.clone());
        let mut builder = self.settings.apply(Agent::builder_shared(own.provider));
        if self.settings.summarizer.is_some() {
            let summarizer = model(&self.settings.summarizer).unwrap_or(nobody);
            builder = builder.summarizer(summarizer.provider);
            if let Some(prices) = summarizer.prices {
                builder = builder.summarizer_prices(prices);
            }
        }
        if let Some(prices) = own.prices {
            builder = builder.prices(prices);
        }
        if is_run {
            builder = builder.permissions(self.permissions());
        }
        let builder = builder.tools(self.own_tools());
        let built = builder.counter(Arc::new(Chars4)).build();
        built.map_err(|error| self.place(&error))
    }

    /// Returns the built-in tools that the agent has, and those that are agents, to check names and
    /// arguments. They are never called.
    fn own_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools =
            Root::new(".").map(|root| Toolbox::new(root).select(&self.settings.tools.join(",")));
        let mut tools = tools.ok().and_then(Result::ok).unwrap_or_default();
        let called = BTreeSet::from_iter(&self.settings.sub_agents).into_iter();
        tools.extend(called.map(|name| {
            Arc::new(sub_agent(name.as_str(), name.as_str(), || None)) as Arc<dyn Tool>
        }));
        // Whether an agent gets these is known when a run begins.
        tools.extend(OUR_TOOLS.map(|name| {
            let never = |_: serde_json::Value| async { Ok::<_, ToolError>(String::new()) };
            Arc::new(tool(name, name, never)) as Arc<dyn Tool>
        }));
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
            let key = |_: &str| Some("key".to_owned());
            let client = model.as_deref().map(|model| self.chat(model, &key));
            if let Some(Err(error)) = client {
                self.report(&[path], &error.to_string(), faults);
            }
        }
        let model = settings.model.as_deref();
        let model = model.and_then(|name| ModelRef::parse(name).ok());
        if let Some(model) = &model
            && settings.tool_style == Some(ToolStyle::JsonSchema)
            && model.vendor().wire != Wire::Chat
        {
            let wire = model.vendor().wire.label();
            let text = format!(
                "`tool_style` \"json\" has no effect on {model}, which is reached over {wire}; remove it, or set it to \"native\""
            );
            self.report(&["tool_style"], &text, faults);
        }
        let usual = model.as_ref().and_then(|model| model.vendor().base_url);
        let url = settings.base_url.as_ref();
        if let Some(Err(error)) = url.map(|url| BaseUrl::parse(url, usual)) {
            self.report(&["base_url"], &error.to_string(), faults);
        }
    }

    /// Checks all that a run checks before it calls a model: the files and folders that the settings
    /// name, and the tool names and arguments of `permissions`. A program may have more tools of its own.
    ///
    /// # Errors
    /// One fault for each file or folder that cannot be read, for each name that is neither a built-in nor
    /// a configured tool, and for each rule that cannot match a call.
    pub fn check_run(&self) -> Result<(), ConfigError> {
        let mut faults = Faults::default();
        self.check_files(&mut faults);
        faults.check().map(|_| ())
    }

    /// Reports the faults of [`Self::check_run`].
    pub(super) fn check_files(&self, faults: &mut Faults) {
        let prompts = [self.system(), self.summary_prompt()];
        let errors = prompts.into_iter().filter_map(Result::err);
        let errors = errors.chain(self.root().err());
        for error in errors.chain(self.built(true).err()) {
            faults.add(error);
        }
        for folder in self.skill_folders().filter(|folder| !folder.is_dir()) {
            let text = format!("there is no folder {} with skills", folder.display());
            self.report(&["skills"], &text, faults);
        }
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
