//! Checks all settings of an agent taken together: by rules of its own, and by building the agent on a
//! model that is never called.

use std::collections::BTreeSet;
use std::sync::Arc;

use plimsoll_agent::Permissions;
use plimsoll_context::{Author, Chars4, HostedTool, PriceSheet, Rates, Threshold, Tokens};
use plimsoll_core::process::looks_secret;
use plimsoll_core::testing::ScriptedProvider;
use plimsoll_core::{Agent, Tool, ToolError, Window, sub_agent, tool};
use plimsoll_providers::{BaseUrl, ModelRef, Wire};
use plimsoll_tools::{Root, Toolbox};
use plimsoll_wire::openai_chat::ToolStyle;

use super::agent::AgentConfig;
use super::build_agent::AgentModel;
use super::fault::{ConfigError, ConfigFault, Faults, Origin, no_such};
use super::key;
use super::layer::FoundSetting;

/// Tools that an agent has besides the named ones.
const OUR_TOOLS: [&str; 4] = ["recall", "recall_search", "get_tool_response", "skill"];

/// Keys of the provider's own tools that hold secrets, which must not be in a file, a process list or
/// a report.
const SECRETS: [&str; 2] = ["authorization", "headers"];

/// The names of all built-in tools, and of none of them.
const GROUPS: [&str; 2] = ["all", "none"];

impl AgentConfig {
    /// Reports the faults of all settings taken together. Returns the faults of settings without an effect on
    /// this agent, which may have one on others.
    pub(crate) fn check(&self, faults: &mut Faults) -> Vec<ConfigFault> {
        let (settings, shared) = (&self.settings, self.shared());
        let agents: Vec<&str> = shared.agent_names().collect();
        let servers = shared
            .mcp
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        let own_servers = settings.mcp.as_deref().unwrap_or_default();
        let tools = plimsoll_tools::NAMES.into_iter().chain(GROUPS).collect();
        let lists = [
            ("sub_agents", "agent", &*settings.sub_agents, agents),
            ("mcp", "MCP server", own_servers, servers),
            ("tools", "tool", &*settings.tools, tools),
        ];
        for (path, what, names, known) in lists {
            for (at, name) in names.iter().enumerate() {
                let text = if !known.contains(&name.as_str()) {
                    no_such(what, name, &known)
                } else if names.iter().take(at).any(|other| other == name) {
                    format!("`{path}` names `{name}` twice; keep one")
                } else if path == "tools" && names.len() > 1 && GROUPS.contains(&name.as_str()) {
                    format!("`tools` names {name} beside others; keep what you mean")
                } else {
                    continue;
                };
                self.report(&[path], &text, faults);
            }
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

    /// Reports the settings that need another one to have an effect. A default that is set needs none, and
    /// only settings of one source are judged together.
    fn check_effects(&self, run: &Agent, faults: &mut Faults) {
        self.check_sizes(faults);
        let (settings, builder) = (&self.settings, &self.settings.builder);
        let has_bash = settings.tools.iter().any(|it| it == "all" || it == "bash");
        // The trigger of a strategy that summarizes is one of summaries.
        let strategy = builder.context_strategy.map(|strategy| strategy.name());
        let summarizes = matches!(strategy, Some("summarize" | "extract"));
        let mut stages = run.policy().stages().iter();
        let has_summarizer = stages.any(|stage| stage.name() == "summarize");
        let cure = match builder.summary.author {
            Author::Extract => "set `summary.author` to \"model\"",
            Author::Model => "set `context_strategy` to \"summarize\"",
        };
        let summarizer = (!has_summarizer).then_some(("no model writes summaries", cure));
        let found = |path: &str| Some(self.layer.0.get(path)?.written.clone());
        let lacks = |need: &str| key::lacks(need, found);
        for (path, found) in &self.layer.0 {
            let FoundSetting {
                key,
                written,
                origin,
                ..
            } = found;
            let need = match key.needs.as_str() {
                "summarizer" | "trigger" => "summaries",
                need => need,
            };
            let needed = key::needed(need).and_then(|path| self.origin(path));
            if needed.is_some_and(|needed| needed.path() != origin.path()) {
                continue;
            }
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
            Threshold::Sent(tokens) => tokens,
            _ => Tokens::ZERO,
        };
        let sizes = [
            ("trigger", sent(builder.trigger)),
            ("target", builder.target.map_or(Tokens::ZERO, sent)),
            ("max_result", builder.max_result.unwrap_or_default()),
            ("max_tokens", builder.max_tokens.unwrap_or_default()),
            (
                "summary.max_summary_tokens",
                builder.summary.max_summary_tokens,
            ),
        ];
        let are_beside = |path: &str, other: &str| {
            let origins = self.origin(path).zip(self.origin(other));
            origins.is_some_and(|(own, other)| own.path() == other.path())
        };
        if let Window::Known(window) = builder.window {
            let above = sizes.into_iter().filter(|(_, size)| *size >= window);
            for (path, _) in above.filter(|(path, _)| are_beside(path, "window")) {
                let text = format!(
                    "`{path}` has no effect, because the window has only {window} tokens; choose less than that"
                );
                self.report(&[path, "window"], &text, faults);
            }
        }
        if retry.initial > retry.cap && are_beside("retry.initial", "retry.cap") {
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
        let model = |name: &Option<String>| {
            let name = name.as_deref().filter(|_| is_run)?;
            self.model_with(name, &pretended).ok()
        };
        let own = model(&self.settings.model).unwrap_or_else(|| nobody.clone());
        let summarizer = &self.settings.summarizer;
        let summarizer = summarizer
            .is_some()
            .then(|| model(summarizer).unwrap_or(nobody));
        let mut builder = self
            .without_prompts(own, summarizer)
            .tools(self.own_tools());
        if !is_run {
            // A program may have more tools of its own, for which there are rules.
            builder = builder.permissions(Permissions::default());
        }
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
        let own = settings.model.as_deref();
        for (path, name) in [
            ("model", own),
            ("summary.model", settings.summarizer.as_deref()),
        ] {
            if let Some(Err(error)) = name.map(|name| self.chat(name, &pretended)) {
                self.report(&[path], &error.to_string(), faults);
            }
        }
        let model = own.and_then(|name| ModelRef::parse(name).ok());
        let vendor = model.as_ref().map(ModelRef::vendor);
        if let (Some(model), Some(ToolStyle::JsonSchema)) = (&model, settings.tool_style)
            && model.vendor().wire != Wire::Chat
        {
            let wire = model.vendor().wire.label();
            let text = format!(
                "`tool_style` \"json\" has no effect on {model}, which is reached over {wire}; remove it, or set it to \"native\""
            );
            self.report(&["tool_style"], &text, faults);
        }
        if let (Some("local"), Some(_)) = (own, &settings.base_url) {
            let text = "`base_url` has no effect on `local`, whose server Plimsoll starts; name the model of your server, as openai-compatible/NAME";
            self.report(&["base_url", "model"], text, faults);
        }
        let usual = vendor.and_then(|vendor| vendor.base_url);
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
        let run = self.built(true);
        for note in run.iter().flat_map(Agent::notes) {
            faults.warn(&Origin::Default, note);
        }
        let prompts = [self.system().err(), self.summary_prompt().err()];
        let errors = prompts.into_iter().chain([self.root().err(), run.err()]);
        errors.flatten().for_each(|error| faults.add(error));
        for folder in self.skill_folders().filter(|folder| !folder.is_dir()) {
            let text = format!("there is no folder {} with skills", folder.display());
            self.report(&["skills"], &text, faults);
        }
    }
}

/// Returns a variable of the environment, and something for each key: a check needs none.
fn pretended(name: &str) -> Option<String> {
    let key = || looks_secret(name).then(|| "key".to_owned());
    plimsoll_providers::environment(name).or_else(key)
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
