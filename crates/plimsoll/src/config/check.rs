//! Checks all settings of an agent taken together: by rules of its own, and by building the agent on a
//! model that is never called.

use std::sync::Arc;

use plimsoll_context::{Author, Chars4, HostedTool, PriceSheet, Rates};
use plimsoll_core::testing::ScriptedProvider;
use plimsoll_core::{Agent, Tool, ToolError, sub_agent, tool};
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

/// The stage in which a model writes a summary.
const SUMMARIZE: &str = "summarize";
/// Settings that decide whether and how messages are summarized.
const AUTHORS: [&str; 3] = ["context_strategy", "summarization", "summary.author"];
impl AgentConfig {
    /// Reports the faults of all settings taken together.
    pub(crate) fn check(&self, faults: &mut Faults) {
        let (settings, shared) = (&self.settings, self.shared());
        let mut check_names = |path: &str, what: &str, names: &[String], known: &[&str]| {
            for name in names.iter().filter(|name| !known.contains(&name.as_str())) {
                self.report(&[path], &no_such(what, name, known), faults);
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
        match self.trial() {
            Ok(run) => self.check_summaries(&run, faults),
            Err(error) => faults.add(error),
        }
    }

    /// Checks whether the settings of summaries have an effect. Those of a lower layer than the one that turns
    /// summaries off may be for other agents.
    fn check_summaries(&self, run: &Agent, faults: &mut Faults) {
        let builder = &self.settings.builder;
        let mut stages = run.policy().stages().iter();
        let cure = match builder.summary.author {
            _ if !builder.summarization => "set `summarization` to true",
            _ if stages.any(|stage| stage.name() == SUMMARIZE) => return,
            Author::Extract => "set `summary.author` to \"model\"",
            Author::Model => "set `context_strategy` to \"summarize\"",
        };
        let why = if builder.summarization {
            "no model writes summaries"
        } else {
            "evicted messages are not summarized"
        };
        // The trigger of a strategy that summarizes is one of summaries.
        let strategy = builder.context_strategy.map(|strategy| strategy.name());
        let summarizes = matches!(strategy, Some("summarize" | "extract"));
        let off = AUTHORS.iter().filter_map(|path| self.layer.0.get(*path));
        let off = off.map(|found| found.depth).max();
        for (path, found) in &self.layer.0 {
            let has_no_effect = match found.key.needs.as_str() {
                "summarizer" => true,
                "summaries" => !builder.summarization,
                _ => path == "trigger" && summarizes && !builder.summarization,
            };
            if has_no_effect && off.is_none_or(|off| found.depth >= off) {
                let text = format!(
                    "`{path}` has no effect, because {why}; {cure}, or remove this setting"
                );
                self.report(&[path], &text, faults);
            }
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

    fn built(&self, has_rules: bool) -> Result<Agent, ConfigError> {
        // The prices of the model are known when there is one.
        let prices = PriceSheet::of(Rates::FREE);
        let nobody = ScriptedProvider::new([]);
        let mut builder = self.settings.apply(Agent::builder(nobody.clone()));
        if self.settings.summarizer.is_some() {
            let summarizer = builder.summarizer(Arc::new(nobody));
            builder = summarizer.summarizer_prices(prices);
        }
        if has_rules {
            builder = builder.permissions(self.permissions());
        }
        let builder = builder.tools(self.own_tools()).prices(prices);
        let built = builder.counter(Arc::new(Chars4)).build();
        built.map_err(|error| self.place(&error))
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
