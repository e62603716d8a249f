//! `plimsoll config`: checks, shows and trusts a configuration, creates a new one, imports that of
//! another system, and prints the schema. The library defines the settings.

mod preset;

use std::fmt::Write;
use std::path::Path;

use plimsoll::config::{self, AgentConfig, CONFIG_FILE, Config, Import, System};
use plimsoll::context::{ContextConfig, Counts, EXTRACT_SHARE, ViewLimits};
use plimsoll::policy::{Author, Policy};
use plimsoll::{Agent, ContextStrategy, Tokens};
use serde_json::json;

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
            let tried = if *connect { tried(&config).await } else { None };
            check(&config, tried, *json)
        }
        ConfigCommand::Trust { folder, revoke } => trust::run(folder.as_deref(), *revoke),
        ConfigCommand::Show {
            sources,
            origin,
            json,
        } => show(sources, *origin, *json),
        ConfigCommand::Init { file } => init(file.as_deref()),
        ConfigCommand::Import { file, from, json } => import(file, *from, *json),
        ConfigCommand::Schema => {
            out!("{:#}", config::schema());
            Ok(DONE)
        }
    }
}

/// The result of connecting to the MCP servers.
struct McpTrial {
    told: Vec<String>,
    all_there: bool,
}

/// Connects to the servers if there are settings for all agents. If there are none, `check` reports
/// why.
async fn tried(config: &Config) -> Option<McpTrial> {
    let agent = config.defaults().ok()?;
    let (told, all_there) = mcp::check(&agent, config.mcp()).await;
    Some(McpTrial { told, all_there })
}

/// Reads a configuration like `plimsoll run --config FILE`. Without a file, reads the one in the
/// root, whether or not it is trusted; but nobody connects to the servers of one that is not.
fn checked(file: Option<&Path>, connects: bool) -> Result<Config, CliError> {
    let found = Sources::default().found();
    let path = file.map_or_else(|| found.clone(), Path::to_owned);
    let is_users =
        users_file().is_some_and(|users| users.canonicalize().ok() == found.canonicalize().ok());
    let in_root = (file.is_none() && found.is_file() && !is_users).then_some(found);
    let project = paths::project(&Sources::default().root()).found();
    let untrusted = in_root.filter(|_| !trust::is_trusted(&project));
    if let Some(untrusted) = &untrusted {
        let shown = untrusted.display();
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
    }
    let sources = Sources {
        config: file.map(Path::to_owned).or(untrusted),
        ..Sources::default()
    };
    let has_own = file.is_none() && users_file().is_some_and(|users| users.exists());
    if !path.exists() && !has_own {
        let path = path.display();
        return Err(CliError::usage(format!(
            "{path} cannot be read: it does not exist; `plimsoll config init` writes one"
        )));
    }
    let config = sources.read().map_err(|error| {
        if path.is_file() {
            CliError::failed(error)
        } else {
            CliError::usage(error)
        }
    })?;
    for note in notes_of(&config) {
        crate::say(&note);
    }
    Ok(config)
}

fn check(config: &Config, tried: Option<McpTrial>, json: bool) -> Result<u8, CliError> {
    let users_file = users_file();
    let path = config.path().or(users_file.as_deref());
    let path = path.unwrap_or(CONFIG_FILE.as_ref());
    let all = config.defaults().map_err(CliError::failed)?;
    let all = EffectiveAgent::of(all)?;
    let agents = config.agents().map(|name| {
        let agent = config.agent(name).map_err(CliError::failed)?;
        Ok((name, EffectiveAgent::of(agent)?))
    });
    let agents: Vec<_> = agents.collect::<Result<_, CliError>>()?;
    let code = match &tried {
        Some(tried) if !tried.all_there => FAILED,
        _ => DONE,
    };
    if json {
        let agents = agents.iter().map(|(name, agent)| {
            let name = ("name", (*name).into());
            with(agent.json(), [name])
        });
        let servers = config.mcp().iter().map(|server| server.name.as_str());
        let tried = tried
            .as_ref()
            .map(|tried| json!({ "all_there": tried.all_there, "told": tried.told }));
        let more = [
            ("agents", agents.collect()),
            ("mcp", servers.collect()),
            ("warnings", notes_of(config).into()),
        ];
        let object = with(all.json(), more);
        let object = with(object, tried.map(|tried| ("mcp_tried", tried)));
        out!("{object}");
        return Ok(code);
    }
    out!("{} is good", path.display());
    out!("{}", all.text().trim_end());
    for (name, agent) in &agents {
        out!("");
        out!("agent {name}");
        out!("{}", agent.text().trim_end());
    }
    let models = all.config.own_models().len();
    if models > 0 {
        out!("models: {models} of your own");
    }
    for server in config.mcp() {
        out!("mcp: {}, {}", server.name, server.place());
    }
    for line in tried.iter().flat_map(|tried| &tried.told) {
        out!("{line}");
    }
    Ok(code)
}

/// Adds fields to an object.
fn with(
    mut object: serde_json::Value,
    more: impl IntoIterator<Item = (&'static str, serde_json::Value)>,
) -> serde_json::Value {
    if let Some(object) = object.as_object_mut() {
        object.extend(more.into_iter().map(|(key, value)| (key.to_owned(), value)));
    }
    object
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
    write::create(path, &config::template(), advice)?;
    say!(
        "wrote {}; it lists every setting as a comment",
        path.display()
    );
    Ok(DONE)
}

/// Prints the configuration of another system as a `plimsoll.toml`, and reports the untranslated
/// settings.
fn import(file: &Path, from: Option<System>, json: bool) -> Result<u8, CliError> {
    let import = match file.to_str() {
        Some("-") => Import::of(&input::whole(input::open(None)?)?, from),
        _ => Import::read(file, from),
    };
    let import = import.map_err(|error| {
        if file.is_file() {
            CliError::failed(error)
        } else {
            CliError::usage(error)
        }
    })?;
    if json {
        let (from, settings) = (import.system.name(), &import.settings);
        out!(
            "{}",
            json!({ "from": from, "toml": import.toml, "settings": settings })
        );
        return Ok(DONE);
    }
    out!("{}", import.toml.trim_end());
    for setting in &import.settings {
        let config::ImportedSetting { line, name, .. } = setting;
        let note = setting.note.as_deref().unwrap_or_default();
        let file = file.display();
        match setting.became.is_empty() {
            true => say!("{file}:{line}: {name} is not translated: {note}"),
            false if note.is_empty() => {}
            false => say!("{file}:{line}: {name}: {note}"),
        }
    }
    let lost = import
        .settings
        .iter()
        .filter(|setting| setting.became.is_empty());
    let lost = lost.count();
    let found = import.settings.len() - lost;
    say!(
        "{} of {} translated, {lost} not; each other setting has Plimsoll's default",
        counted(found as u64, "setting"),
        import.system,
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
    let trial = agent.trial().map_err(CliError::usage)?;
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
        config.check_tools().map_err(CliError::failed)?;
        let run = config.trial().map_err(CliError::failed)?;
        Ok(Self { config, run })
    }

    fn text(&self) -> String {
        let settings = &self.config.settings().builder;
        let mut text = String::new();
        let mut line = |words: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{words}");
        };
        if let Some(model) = &self.config.settings().model {
            line(format!("model: {model}"));
        }
        if let Some(strategy) = self.run.context_strategy() {
            let name = strategy.name();
            line(format!(
                "context: {name}, without [context], so the model's window decides"
            ));
            line(preset::timing(self.run.view_limits()));
        }
        if let Some(context) = self.run.context_config() {
            let compaction = &context.compaction;
            line(format!(
                "context: {} tokens at most, {} of them for the system prompt",
                grouped(context.max_context_tokens),
                grouped(context.system_prompt_tokens),
            ));
            line(fires(context));
            line(format!(
                "kept: the first {} and the last {} of the newest run; results of the last at \
                 most {}",
                compaction.keep_first_turns,
                counted(compaction.keep_recent_turns as u64, "turn"),
                counted(compaction.tool_output_max_lines as u64, "line"),
            ));
            line(format!("summarized of earlier runs: {}", scope(context)));
        }
        line(self.summary());
        if let Some(digest) = settings.argument_digest {
            line(format!(
                "arguments: texts of more than {} characters in old calls become digests",
                digest.over_chars
            ));
        }
        if let Some(messages) = settings.max_history_messages {
            let messages = counted(messages as u64, "message");
            line(format!("history: {messages} at most"));
        }
        line(limits(&self.config));
        line(format!("stages: {}", self.stages().join(" → ")));
        text
    }

    /// Describes the summaries of evicted messages.
    fn summary(&self) -> String {
        let settings = &self.config.settings().builder;
        let summary = &settings.summary;
        let author = match self.run.context_strategy() {
            Some(ContextStrategy::Extract { .. }) => Author::Extract,
            Some(ContextStrategy::Summarize { .. }) => summary.author,
            None if settings.summarization => summary.author,
            _ => return "summary: none, evicted messages are in the log only".to_owned(),
        };
        if author == Author::Extract && summary.is_sized_by_need() {
            return format!(
                "summary: written without a model, as long as the user's words require, at most {} of the target",
                fraction(EXTRACT_SHARE.0)
            );
        }
        format!(
            "summary: {} tokens at most and {} of the target, written by {}",
            grouped(summary.max_summary_tokens),
            fraction(summary.share.0),
            match author {
                Author::Model => "a model",
                Author::Extract => "Plimsoll, without a model",
            }
        )
    }

    fn stages(&self) -> Vec<&str> {
        let stages = self.run.policy().stages().iter();
        stages.map(|stage| stage.name()).collect()
    }

    fn json(&self) -> serde_json::Value {
        let settings = self.config.settings();
        let context = self.run.context_config();
        let thresholds = context.map(|context| {
            let thresholds = context.thresholds(Tokens::ZERO, None);
            json!({
                "fires_above": thresholds.fires_above,
                "ends_at": thresholds.ends_at,
                "counts": match thresholds.counts {
                    Counts::All => "all",
                    Counts::AllButSystem => "all_but_system",
                },
            })
        });
        // A context limited by its size has thresholds instead.
        let view = context.is_none().then(|| self.run.view_limits());
        let own = &settings.builder;
        json!({
            "model": settings.model,
            "context_strategy": self.run.context_strategy(),
            "trigger": view.map(|view| view.trigger),
            "target": view.and_then(|view| view.target),
            "context": context,
            "thresholds": thresholds,
            "summary": {
                "max_summary_tokens": own.summary.max_summary_tokens,
                "share": fraction(own.summary.share.0),
                "author": own.summary.author,
            },
            "summarization": own.summarization,
            "argument_digest": own.argument_digest,
            "max_history_messages": own.max_history_messages,
            "limits": own.limits.filled(),
            "own_models": self.config.own_models().len(),
            "stages": self.stages(),
        })
    }
}

fn limits(agent: &AgentConfig) -> String {
    let limits = &agent.settings().builder.limits;
    let mut words = vec![counted(limits.max_turns(), "turn")];
    if let Some(tokens) = limits.max_total_tokens {
        words.push(format!("{} tokens", grouped(tokens)));
    }
    if let Some(time) = limits.max_duration {
        words.push(format!("{} s", time.as_secs_f64()));
    }
    if let Some(cost) = limits.max_cost {
        words.push(cost.to_string());
    }
    if let Some(calls) = limits.max_tool_calls {
        words.push(format!("{calls} tool calls"));
    }
    for (tool, calls) in &limits.max_calls_per_tool {
        words.push(format!("{calls} of {tool}"));
    }
    if let Some(times) = limits.identical_tool_calls() {
        words.push(format!("{times} identical tool calls in a row"));
    }
    if let Some(memory) = limits.max_memory {
        words.push(format!("{} bytes of messages", memory.0));
    }
    format!("a run: at most {}", words.join(", "))
}

/// Describes when a compaction fires, with the calculation.
fn fires(context: &ContextConfig) -> String {
    let thresholds = context.thresholds(Tokens::ZERO, None);
    let (above, ends) = (grouped(thresholds.fires_above), grouped(thresholds.ends_at));
    let compaction = &context.compaction;
    match thresholds.counts {
        Counts::All => {
            format!("compacts above {above} tokens of the whole request, and ends at {ends}")
        }
        Counts::AllButSystem => format!(
            "compacts above {above} tokens without the system prompt: {} · ({} − {}) − {}, or \
             earlier if the system prompt or the answer takes more; ends at {ends}",
            grouped(context.max_context_tokens),
            fraction(compaction.compact_at_pct.0),
            fraction(compaction.compact_budget_threshold_pct.0),
            grouped(context.system_prompt_tokens),
        ),
    }
}

fn scope(context: &ContextConfig) -> String {
    match context.compaction.compaction_scope {
        plimsoll::context::CompactionScope::FixedCount(0) => "none".to_owned(),
        plimsoll::context::CompactionScope::FixedCount(1) => "the newest".to_owned(),
        plimsoll::context::CompactionScope::FixedCount(count) => format!("the newest {count}"),
        plimsoll::context::CompactionScope::TokenBudget => {
            "as many of the newest as fit into the target".to_owned()
        }
    }
}

fn fraction(ppm: u64) -> f64 {
    ppm as f64 / 1e6
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
