//! `plimsoll config`: checks, shows and trusts a configuration, creates a new one, imports that of
//! another system, and prints the schema. The library defines the settings.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use plimsoll::config::{self, AgentConfig, CONFIG_FILE, ConfigError, Import, Origin};
use plimsoll::context::{Counts, FALLBACK_WINDOW, Threshold, ViewLimits};
use plimsoll::providers::{ModelFacts, ModelRef};
use plimsoll::tokens::Calibration;
use plimsoll::{Agent, Tokens, Window};

use crate::args::ConfigCommand;
use crate::error::{CliError, DONE};
use crate::input;
use crate::model_choice::resolved_window;
use crate::paths;
use crate::settings::{Sources, users_file};
use crate::terminal::text::counted;
use crate::trust;

/// Runs `plimsoll config`.
pub(crate) fn run(command: &ConfigCommand) -> Result<u8, CliError> {
    match command {
        ConfigCommand::Check { file } => check(file.as_deref()),
        ConfigCommand::Trust { folder, revoke } => trust::run(folder.as_deref(), *revoke),
        ConfigCommand::Show {
            sources,
            origin,
            json,
        } => show(sources, *origin, *json),
        ConfigCommand::Init { file } => init(file.as_deref()),
        ConfigCommand::Import { file } => import(file),
        ConfigCommand::Schema => {
            out!("{:#}", config::schema());
            Ok(DONE)
        }
    }
}

/// Checks a configuration like `plimsoll run --config FILE`, and prints it. Without a file, checks the one
/// in the root, whether or not it is trusted.
fn check(file: Option<&Path>) -> Result<u8, CliError> {
    let mut sources = Sources {
        config: file.map(Path::to_owned),
        ..Sources::default()
    };
    let found = sources.found();
    let path = file.unwrap_or(&found);
    let users = users_file().filter(|users| users.exists());
    let is_users = users
        .as_ref()
        .is_some_and(|users| paths::is_same(users, &found));
    let project = paths::project(&sources.root()).found();
    if file.is_none() && found.is_file() && !is_users && !trust::is_trusted(&project) {
        if let Some(why) = project.left_out_config() {
            return Err(CliError::failed(format!(
                "{why}; a run ignores it unless you name it with --config"
            )));
        }
        let shown = found.display();
        say!("a run ignores {shown} until you trust it: read it, then run `plimsoll config trust`");
        sources.config = Some(found.clone());
    }
    if !path.exists() && (file.is_some() || users.is_none()) {
        return Err(CliError::usage(format!(
            "{} cannot be read: it does not exist; `plimsoll config init` writes one",
            path.display()
        )));
    }
    let config = sources.draft();
    let agents = config.check_runs();
    let agents = agents.map_err(|error| read_fault(path, error))?;
    for note in agents.first().map_or(&[][..], AgentConfig::warnings) {
        crate::say(&note.to_string());
    }
    let shown = config.path().or(users.as_deref());
    let mut lines = vec![format!("{} is good", shown.unwrap_or(path).display())];
    for agent in &agents {
        let name = agent.settings().name.iter();
        lines.extend(name.map(|name| format!("\nagent {name}")));
        lines.extend(described(agent)?);
    }
    out!("{}", lines.join("\n"));
    let models = agents.first().map_or(0, |all| all.own_models().len());
    if models > 0 {
        out!("models: {models} of your own");
    }
    for server in config.mcp() {
        out!("mcp: {}, {}", server.name, server.place());
    }
    Ok(DONE)
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
    let shown = path.display();
    let file = File::create_new(path);
    let written = file.and_then(|mut file| file.write_all(config::TEMPLATE.as_bytes()));
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => CliError::usage(format!(
            "{shown} is there already and stays as it is; name another file, or move it away"
        )),
        _ => CliError::failed(format!("{shown} cannot be written: {error}")),
    })?;
    say!("wrote {shown}; `plimsoll config show` lists every setting");
    Ok(DONE)
}

/// Prints the configuration of another system as a `plimsoll.toml`, and reports the untranslated
/// settings.
fn import(file: &Path) -> Result<u8, CliError> {
    let import = match file.to_str() {
        Some("-") => Import::of(&input::whole(input::open(None)?)?),
        _ => Import::read(file),
    };
    let import = import.map_err(|error| read_fault(file, error))?;
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

/// Describes an agent: the sizes that a run computes, its stages, and the settings that are not the
/// defaults.
fn described(agent: &AgentConfig) -> Result<Vec<String>, CliError> {
    let run = agent.trial().map_err(CliError::failed)?;
    let stages = run.policy().stages().iter();
    let stages: Vec<&str> = stages.map(|stage| stage.name()).collect();
    let mut lines = vec![
        timing(agent, &run),
        format!("stages: {}", stages.join(" → ")),
    ];
    let settings = agent.effective();
    let set = settings.filter(|setting| setting.origin != Origin::Default);
    lines.extend(set.map(|setting| setting.line()));
    Ok(lines)
}

/// Describes when the context is compacted.
fn timing(agent: &AgentConfig, run: &Agent) -> String {
    if let Some(context) = run.context_config() {
        let sizes = context.thresholds(Tokens::ZERO, None);
        let (above, ends) = (sizes.fires_above, sizes.ends_at);
        return match sizes.counts {
            Counts::All => whole(above, ends),
            Counts::AllButSystem => format!(
                "compacts above {above} tokens without the system prompt, or earlier if that or the \
                 answer takes more than is set aside; ends at {ends}"
            ),
        };
    }
    let window = window(agent);
    let sizes = |is_cold| {
        let limits = ViewLimits {
            window: Some(window),
            is_cold,
            ..run.view_limits()
        };
        let budget = limits.budget(Tokens::ZERO, Tokens::ZERO, Calibration::default());
        let budget = budget
            .ok()
            .filter(|_| limits.trigger != Threshold::Sent(Tokens::MAX));
        budget.map(|budget| (budget.trigger, budget.target))
    };
    let Some((above, ends)) = sizes(false) else {
        return "compacts only if the provider refuses a request".to_owned();
    };
    let cold = match sizes(true) {
        Some((cold, end)) if cold != above || end != ends => {
            format!("; above {cold} and at {end} if the provider's cache has expired")
        }
        _ => String::new(),
    };
    format!("{}, in a window of {window}{cold}", whole(above, ends))
}

fn whole(above: Tokens, ends: Tokens) -> String {
    format!("compacts above {above} tokens of the whole request and ends at {ends}")
}

/// Returns the window: as configured, that of the model, or the usual one.
fn window(agent: &AgentConfig) -> Tokens {
    let settings = agent.settings();
    let facts = match settings.model.as_deref().map(ModelRef::parse) {
        Some(Ok(model)) => agent.facts(&model),
        _ => ModelFacts::default(),
    };
    match resolved_window(settings.builder.window, None, &facts).0 {
        Window::Known(window) => window,
        _ => FALLBACK_WINDOW,
    }
}
