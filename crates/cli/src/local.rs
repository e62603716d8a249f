//! The local model on the command line: `plimsoll model`, and starting the model for a run. The
//! providers crate fetches and serves it.

use std::sync::Arc;

use plimsoll::config::{AgentConfig, AgentModel};
use plimsoll::providers::local::{Download, DownloadableModel, LocalError, LocalModels, Progress};
use plimsoll::providers::{ModelClient, ModelRef, ServerLocation};
use plimsoll::tokens::Bytes;
use plimsoll::wire::openai_chat::{Dialect, ToolStyle};
use plimsoll::{Tokens, Window};

use crate::args::ModelCommand;
use crate::ask;
use crate::error::{CliError, DONE, INTERRUPTED};
use crate::listing::{self, size};
use crate::model_choice::ModelChoice;
use crate::paths;
use crate::terminal::{Terminal, text::clean};

/// The default window in tokens: enough for real tasks, in half a gigabyte of memory.
const WINDOW: u64 = 8192;
/// The window of the server in tokens if the run has to learn it from refusals.
const UNKNOWN_WINDOW: u64 = 4096;
/// Maximum length of an answer, unless the user sets it. It stops a small model that has lost its way.
pub(crate) const MAX_TOKENS: Tokens = Tokens(512);
/// Maximum number of identical tool calls in a row, unless the user sets it. Small models tend to
/// repeat calls.
pub(crate) const MAX_IDENTICAL: u64 = 3;

/// Describes whether a model has been downloaded.
pub(crate) fn state(model: &DownloadableModel) -> &'static str {
    match (model.fetched, model.default) {
        (true, _) => "downloaded",
        (false, true) => "not downloaded; `plimsoll model pull` downloads it",
        (false, false) => "not downloaded",
    }
}

/// Returns the local models.
pub(crate) fn list() -> Result<Vec<DownloadableModel>, CliError> {
    Ok(models()?.list())
}

pub(crate) async fn run(command: &ModelCommand) -> Result<u8, CliError> {
    match command {
        ModelCommand::Pull { name, quiet } => pull(name.as_deref(), *quiet).await,
        ModelCommand::List { json } => {
            let heading = ["model", ">size", "state", "path"];
            listing::print(&list()?, *json, heading, |model| {
                let mark = if model.default { " (default)" } else { "" };
                [
                    format!("{}{mark}", model.name),
                    size(Bytes(model.bytes)),
                    state(model).to_owned(),
                    model.path.display().to_string(),
                ]
            })?;
            Ok(DONE)
        }
        ModelCommand::Rm { name } => {
            models()?.remove(name)?;
            say!("{name} is not on this machine any more");
            Ok(DONE)
        }
    }
}

async fn pull(name: Option<&str>, is_quiet: bool) -> Result<u8, CliError> {
    let models = models()?;
    let terminal = Terminal::direct(is_quiet);
    let watch = progress(&terminal);
    let fetch = async {
        let path = models.pull(name, &watch).await?;
        models.pull_server(&watch).await?;
        Ok(path)
    };
    let path = interruptible(&terminal, fetch).await?;
    if !is_quiet {
        say!("ready: {}", path.display());
    }
    Ok(DONE)
}

/// Fetches missing files, starts the server and returns its model for the run.
pub(crate) async fn start(
    agent: &AgentConfig,
    is_quiet: bool,
    is_default: bool,
) -> Result<ModelChoice, CliError> {
    let models = models()?;
    // `local` is the default model, `local/NAME` another one.
    let settings = agent.settings();
    let name = settings
        .model
        .as_deref()
        .and_then(|model| model.split_once('/'));
    let name = name.map(|(_, name)| name);
    let model = models.model(name)?;
    let (serve, window, window_from) = match settings.builder.window {
        Window::Discover => (WINDOW, Window::Known(Tokens(WINDOW)), "as started"),
        Window::Unknown => (UNKNOWN_WINDOW, Window::Unknown, "learned from refusals"),
        Window::Known(tokens) if tokens.0 > model.window => {
            return Err(CliError::usage(format!(
                "--max-context is {tokens}, but {} has a window of {} tokens",
                model.name, model.window
            )));
        }
        Window::Known(tokens) => (tokens.0, Window::Known(tokens), "as given"),
    };
    let style = settings.tool_style.unwrap_or(ToolStyle::JsonSchema);
    let missing = models.missing(name)?;
    if !missing.is_empty() {
        consent(name, &missing, is_default).await?;
    }
    let terminal = Terminal::direct(is_quiet);
    let watch = progress(&terminal);
    let running = interruptible(&terminal, models.start(name, serve, &watch)).await?;
    let model = ModelRef::parse(&format!("local/{}", running.model)).map_err(CliError::model)?;
    let prices = agent.prices(&model);
    let dialect = Dialect {
        tools: style,
        ..model.vendor().dialect()
    };
    let provider = ModelClient::builder(model.clone())
        .base_url(&running.base_url)
        .timeouts(agent.settings().timeouts)
        .dialect(dialect)
        .extra(sampling())
        .build()
        .map_err(CliError::model)?;
    Ok(ModelChoice {
        name: model.to_string(),
        base_url: None,
        model: AgentModel {
            provider: Arc::new(provider),
            window,
            prices,
        },
        window_from,
        place: ServerLocation::Ours,
        _server: Some(running),
    })
}

/// Describes the missing files and asks whether to download them. Without a terminal, they are an
/// error.
async fn consent(
    name: Option<&str>,
    missing: &[Download],
    is_default: bool,
) -> Result<(), CliError> {
    if is_default {
        crate::note("no model is named, and no model server runs on this machine");
    }
    note!(
        "The local model is downloaded once, to {}:",
        paths::cache()?.display()
    );
    for file in missing {
        let size = size(Bytes(file.bytes));
        let (name, origin, licence) = (&file.name, &file.origin, &file.licence);
        note!("  {name} ({size})\n    from {origin}\n    licence: {licence}");
    }
    let name = name.map_or_else(String::new, |name| format!(" {name}"));
    let refusal = format!(
        "nothing was downloaded; download it with `plimsoll model pull{name}`, or name a model with \
         --model"
    );
    let question = "Checksums are verified. Download it now?";
    if ask::confirm(question, &refusal).await? {
        Ok(())
    } else {
        Err(CliError::usage(refusal))
    }
}

/// Returns the sampling settings that the makers of the models advise, except for the temperature.
/// Their repetition penalty is left out: a path has to be repeated exactly.
fn sampling() -> serde_json::Map<String, serde_json::Value> {
    let sampling = serde_json::json!({ "top_k": 20, "top_p": 0.8 });
    sampling.as_object().cloned().unwrap_or_default()
}

fn models() -> Result<LocalModels, CliError> {
    Ok(LocalModels::new(paths::cache()?))
}

/// Shows the progress of a fetch, as a status line on a terminal.
fn progress(terminal: &Terminal) -> impl Fn(Progress<'_>) {
    |progress| match progress {
        Progress::Said(text) => {
            terminal.status(None);
            terminal.note(&clean(&format!("plimsoll: {text}")));
        }
        Progress::At { label, done, total } => {
            let of = format!("{label}: {} of {}", size(Bytes(done)), size(Bytes(total)));
            terminal.status((done < total).then_some(of.as_str()));
        }
    }
}

/// Runs until the work is done or Ctrl-C is pressed, and removes the progress. Partly fetched files are
/// kept.
async fn interruptible<T>(
    terminal: &Terminal,
    work: impl Future<Output = Result<T, LocalError>>,
) -> Result<T, CliError> {
    let done = tokio::select! {
        done = work => done.map_err(CliError::from),
        Ok(()) = tokio::signal::ctrl_c() => Err(CliError {
            code: INTERRUPTED,
            text: "interrupted; run it again to resume the download".to_owned(),
        }),
    };
    terminal.status(None);
    terminal.flush();
    done
}
