//! `plimsoll config`: checks, shows and trusts a configuration, creates a new one, imports that of
//! another system, and prints the schema. The library defines the settings.

use std::path::{Path, PathBuf};

use plimsoll::config::{
    self, AgentConfig, CONFIG_FILE, Config, ConfigError, Effective, Import, Origin,
};
use plimsoll::context::{Counts, FALLBACK_WINDOW, Threshold, Thresholds, ViewLimits};
use plimsoll::policy::{Author, Policy};
use plimsoll::providers::ModelRef;
use plimsoll::tokens::Calibration;
use plimsoll::{Agent, Tokens, Window};
use serde_json::{Map, Value, json};

use crate::args::{ConfigArgs, ConfigCommand};
use crate::error::{CliError, DONE, FAILED};
use crate::input;
use crate::mcp;
use crate::paths;
use crate::settings::{Sources, notes_of, users_file};
use crate::terminal::text::counted;
use crate::trust;
use crate::write;

/// Runs `plimsoll config`.
pub(crate) async fn run(args: &ConfigArgs) -> Result<u8, CliError> {
    match &args.command {
        ConfigCommand::Check {
            file,
            connect,
            json,
        } => {
            let config = checked(file.as_deref(), *connect)?;
            let tried = match config.defaults() {
                Ok(agent) if *connect => Some(mcp::check(&agent, config.mcp()).await),
                // Without settings for all agents, `check` reports why.
                _ => None,
            };
            check(&config, tried, *json)
        }
        ConfigCommand::Trust { folder, revoke } => trust::run(folder.as_deref(), *revoke),
        ConfigCommand::Show {
            sources,
            origin,
            json,
        } => show(sources, *origin, *json),
        ConfigCommand::Init { file } => init(file.as_deref()),
        ConfigCommand::Import { file, json } => import(file, *json),
        ConfigCommand::Schema => {
            out!("{:#}", config::schema());
            Ok(DONE)
        }
    }
}

/// Reads a configuration like `plimsoll run --config FILE`. Without a file, reads the one in the
/// root, whether or not it is trusted; but nobody connects to the servers of one that is not.
fn checked(file: Option<&Path>, connects: bool) -> Result<Config, CliError> {
    let mut sources = Sources {
        config: file.map(Path::to_owned),
        ..Sources::default()
    };
    let found = sources.found();
    let path = file.unwrap_or(&found);
    let users = users_file();
    let is_users = |users: &PathBuf| paths::is_same(users, &found);
    let is_of_project = file.is_none() && found.is_file() && !users.as_ref().is_some_and(is_users);
    let project = paths::project(&sources.root()).found();
    if is_of_project && !trust::is_trusted(&project) {
        let shown = found.display();
        if let Some(why) = project.left_out_config() {
            return Err(CliError::failed(format!(
                "{why}; a run ignores it unless you name it with --config"
            )));
        }
        if connects {
            return Err(CliError::usage(format!(
                "you have not trusted {shown}, so its MCP servers are not started; read it, then \
                 run `plimsoll config trust`"
            )));
        }
        say!("a run ignores {shown} until you trust it: read it, then run `plimsoll config trust`");
        sources.config = Some(found.clone());
    }
    let has_own = file.is_none() && users.is_some_and(|users| users.exists());
    if !path.exists() && !has_own {
        return Err(CliError::usage(format!(
            "{} cannot be read: it does not exist; `plimsoll config init` writes one",
            path.display()
        )));
    }
    let config = sources.read().map_err(|error| read_fault(path, error))?;
    for note in notes_of(&config) {
        crate::say(&note);
    }
    Ok(config)
}

/// Prints a configuration. `tried` has lines about its MCP servers, and whether all are available.
fn check(config: &Config, tried: Option<(Vec<String>, bool)>, json: bool) -> Result<u8, CliError> {
    let users_file = users_file();
    let path = config.path().or(users_file.as_deref());
    let path = path.unwrap_or(CONFIG_FILE.as_ref());
    let all = EffectiveAgent::of(config.defaults().map_err(CliError::failed)?)?;
    let agents = config.agents().map(|name| {
        let agent = config.agent(name).map_err(CliError::failed)?;
        Ok((name, EffectiveAgent::of(agent)?))
    });
    let agents: Vec<_> = agents.collect::<Result<_, CliError>>()?;
    let code = match &tried {
        Some((_, false)) => FAILED,
        _ => DONE,
    };
    if json {
        let mut object = all.json();
        let agents = agents.iter().map(|(name, agent)| {
            let mut object = agent.json();
            object.insert("name".to_owned(), (*name).into());
            object
        });
        let servers = config.mcp().iter().map(|server| server.name.as_str());
        let mut add = |key: &str, value: Value| object.insert(key.to_owned(), value);
        add("agents", agents.collect());
        add("mcp", servers.collect());
        add("warnings", notes_of(config).into());
        if let Some((told, all_there)) = &tried {
            add("mcp_tried", json!({ "all_there": all_there, "told": told }));
        }
        out!("{}", Value::Object(object));
        return Ok(code);
    }
    out!("{} is good", path.display());
    all.print()?;
    for (name, agent) in &agents {
        out!("");
        out!("agent {name}");
        agent.print()?;
    }
    let models = all.config.own_models().len();
    if models > 0 {
        out!("models: {models} of your own");
    }
    for server in config.mcp() {
        out!("mcp: {}, {}", server.name, server.place());
    }
    for line in tried.iter().flat_map(|(told, _)| told) {
        out!("{line}");
    }
    Ok(code)
}

/// Returns the error for a file that cannot be used: its content is wrong, or its name.
fn read_fault(file: &Path, error: ConfigError) -> CliError {
    if file.is_file() {
        CliError::failed(error)
    } else {
        CliError::usage(error)
    }
}

fn show(sources: &Sources, origin: bool, json: bool) -> Result<u8, CliError> {
    let resolved = sources.resolve()?;
    for note in &resolved.notes {
        crate::say(note);
    }
    let settings = resolved.agent.effective();
    if json {
        let settings: Vec<serde_json::Value> = settings.map(|setting| setting.json()).collect();
        out!("{}", serde_json::to_string_pretty(&settings)?);
        return Ok(DONE);
    }
    for setting in settings {
        if origin {
            out!("{:<60}  # {}", setting.line(), setting.origin)
        } else {
            out!("{}", setting.line())
        }
    }
    Ok(DONE)
}

fn init(file: Option<&Path>) -> Result<u8, CliError> {
    let path = file.unwrap_or_else(|| Path::new(CONFIG_FILE));
    let advice = " and stays as it is; name another file, or move it away";
    write::create(path, config::TEMPLATE, advice)?;
    say!(
        "wrote {}; `plimsoll config show` lists every setting",
        path.display()
    );
    Ok(DONE)
}

/// Prints the configuration of another system as a `plimsoll.toml`, and reports the untranslated
/// settings.
fn import(file: &Path, json: bool) -> Result<u8, CliError> {
    let import = match file.to_str() {
        Some("-") => Import::of(&input::whole(input::open(None)?)?),
        _ => Import::read(file),
    };
    let import = import.map_err(|error| read_fault(file, error))?;
    if json {
        let Import { toml, settings } = &import;
        out!("{}", json!({ "toml": toml, "settings": settings }));
        return Ok(DONE);
    }
    out!("{}", import.toml.trim_end());
    for config::ImportedSetting { name, became, note } in &import.settings {
        let note = note.as_deref().unwrap_or_default();
        match became.join(", ") {
            became if became.is_empty() => say!("{name} is not translated: {note}"),
            became if note.is_empty() => say!("{name} became {became}"),
            became => say!("{name} became {became}: {note}"),
        }
    }
    let lost = import.settings.iter().filter(|it| it.became.is_empty());
    let lost = lost.count();
    let found = import.settings.len() - lost;
    say!(
        "{} translated, {lost} not; each other setting has Plimsoll's default",
        counted(found as u64, "setting"),
    );
    Ok(DONE)
}

/// Returns the policy and the limits for compacting a chat with an agent's configuration. The
/// system prompt has `system` tokens. `size` limits the chat if it is less than the configuration
/// allows. No model is used.
pub(crate) fn filter(
    agent: &AgentConfig,
    system: Tokens,
    size: Option<Tokens>,
) -> Result<(Policy, ViewLimits), CliError> {
    let mut agent = agent.clone();
    let summary = &mut agent.settings_mut().builder.summary;
    *summary = summary.without_model();
    let trial = agent.trial()?;
    let context = trial.context_config().ok_or_else(|| {
        CliError::usage(
            "the configuration has no [context]; add one, or give --budget without --config",
        )
    })?;
    let fires = context.thresholds(system, size).fires_above;
    if fires == Tokens::ZERO {
        let max = context.max_context_tokens.min(size.unwrap_or(Tokens::MAX));
        let aside = context.system_prompt_tokens.max(system);
        return Err(CliError::cannot_fit(format!(
            "every request would be compacted: the system prompt takes {aside} of the {max} \
             tokens of context; raise the limit"
        )));
    }
    let line = ViewLimits {
        window: size,
        // No tokens are set aside for an answer, because the chat is not sent.
        max_output: Some(Tokens::ZERO),
        ..ViewLimits::default()
    };
    Ok((trial.policy().clone(), context.line(line, system)))
}

/// An agent of the configuration, and what a run of it computes from the settings.
struct EffectiveAgent {
    config: AgentConfig,
    run: Agent,
}

impl EffectiveAgent {
    fn of(config: AgentConfig) -> Result<Self, CliError> {
        config.check_run().map_err(CliError::failed)?;
        let run = config.trial().map_err(CliError::failed)?;
        Ok(Self { config, run })
    }

    /// Prints the sizes that a run computes, then the settings that are not the defaults.
    fn print(&self) -> Result<(), CliError> {
        out!("{}", self.timing());
        out!("{}", self.summary());
        out!("stages: {}", self.stages().join(" → "));
        for setting in self.set() {
            out!("{}", setting.line());
        }
        Ok(())
    }

    fn set(&self) -> impl Iterator<Item = Effective> {
        let settings = self.config.effective();
        settings.filter(|setting| setting.origin != Origin::Default)
    }

    /// Returns the window: as configured, that of the model, or the usual one.
    fn window(&self) -> Tokens {
        let settings = self.config.settings();
        let model = settings.model.as_deref().map(ModelRef::parse);
        let model = model.and_then(Result::ok);
        let known = model.and_then(|model| self.config.facts(&model).window);
        match settings.builder.window {
            Window::Known(window) => window,
            _ => known.map_or(FALLBACK_WINDOW, |fact| fact.value),
        }
    }

    /// Returns the sizes at which a compaction starts and ends, after the provider's cache has
    /// expired (`is_cold`) or before.
    fn thresholds(&self, is_cold: bool) -> Option<Thresholds> {
        if let Some(context) = self.run.context_config() {
            return Some(context.thresholds(Tokens::ZERO, None));
        }
        let limits = ViewLimits {
            window: Some(self.window()),
            is_cold,
            ..self.run.view_limits()
        };
        let budget = limits.budget(Tokens::ZERO, Tokens::ZERO, Calibration::default());
        let budget = budget
            .ok()
            .filter(|_| limits.trigger != Threshold::Sent(Tokens::MAX))?;
        Some(Thresholds {
            fires_above: budget.trigger,
            ends_at: budget.target,
            counts: Counts::All,
        })
    }

    /// Describes when the context is compacted.
    fn timing(&self) -> String {
        let Some(sizes) = self.thresholds(false) else {
            return "compacts only if the provider refuses a request".to_owned();
        };
        let (above, ends) = (grouped(sizes.fires_above), grouped(sizes.ends_at));
        if sizes.counts == Counts::AllButSystem {
            return format!(
                "compacts above {above} tokens without the system prompt, or earlier if that or the \
                 answer takes more than is set aside; ends at {ends}"
            );
        }
        let cold = self.thresholds(true).filter(|cold| *cold != sizes);
        let cold = cold.map_or(String::new(), |cold| {
            let (above, ends) = (grouped(cold.fires_above), grouped(cold.ends_at));
            format!("; above {above} and at {ends} if the provider's cache has expired")
        });
        let window = match self.run.context_config() {
            Some(_) => String::new(),
            None => format!(", in a window of {}", grouped(self.window())),
        };
        format!(
            "compacts above {above} tokens of the whole request and ends at {ends}{window}{cold}"
        )
    }

    /// Describes the summaries of evicted messages.
    fn summary(&self) -> String {
        let settings = self.config.settings();
        let Some(author) = settings.summary_author() else {
            return "summary: none, evicted messages are in the log only".to_owned();
        };
        let summary = &settings.builder.summary;
        let most = match author {
            Author::Extract if summary.is_sized_by_need() => {
                "as long as the user's words require".to_owned()
            }
            _ => format!("{} tokens at most", grouped(summary.max_summary_tokens)),
        };
        let by = match author {
            Author::Model => "by a model",
            Author::Extract => "without a model",
        };
        format!("summary: {most}, written {by}")
    }

    fn stages(&self) -> Vec<&str> {
        let stages = self.run.policy().stages().iter();
        stages.map(|stage| stage.name()).collect()
    }

    fn json(&self) -> Map<String, Value> {
        let settings = self.config.settings();
        let thresholds = self.thresholds(false).map(|sizes| {
            json!({
                "fires_above": sizes.fires_above,
                "ends_at": sizes.ends_at,
                "counts": match sizes.counts {
                    Counts::All => "all",
                    Counts::AllButSystem => "all_but_system",
                },
            })
        });
        let set: Vec<Value> = self.set().map(|setting| setting.json()).collect();
        let object = json!({
            "model": settings.model,
            "context_strategy": self.run.context_strategy(),
            "context": self.run.context_config(),
            "thresholds": thresholds,
            "limits": settings.builder.limits.filled(),
            "own_models": self.config.own_models().len(),
            "stages": self.stages(),
            "settings": set,
        });
        object.as_object().cloned().unwrap_or_default()
    }
}

/// Formats a number with thousands separators: `81000` as `81,000`.
pub(crate) fn grouped(tokens: Tokens) -> String {
    let digits = tokens.0.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
