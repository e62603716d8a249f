//! The local model at the command line: `plimsoll model`, and starting it for a run. Fetching and
//! serving are in the providers.

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll::config::{AgentConfig, WindowSetting};
use plimsoll::providers::local::{Fetched, Kept, LocalError, LocalModels, Progress, Running};
use plimsoll::providers::{ModelRef, OpenAiChat, Place};
use plimsoll::wire::openai_chat::{Dialect, ToolStyle};
use plimsoll::{Tokens, Window};
use serde::Serialize;

use crate::args::{ModelArgs, ModelCommand};
use crate::choice::{Choice, Said};
use crate::exit::{DONE, INTERRUPTED, Stop};
use crate::known;
use crate::out::out;
use crate::paths;

/// The window where none is asked for: enough for real tasks, in half a gigabyte.
pub(crate) const WINDOW: u64 = 8192;
/// The server's window where the run is to learn it.
const UNKNOWN_WINDOW: u64 = 4096;
/// Tokens of one answer: a small model that has lost its way ends here.
const MAX_TOKENS: u64 = 512;
/// The same tool calls in a row, at most: small models fall into them.
const MAX_IDENTICAL: u64 = 3;
/// Lines of progress a file where there is no terminal.
const LINES: u64 = 10;

/// Our own server while a run needs it.
pub(crate) struct Server {
    _running: Running,
}

/// A local model as `doctor` and `model list` show it.
#[derive(Debug, Serialize)]
pub(crate) struct LocalState {
    pub(crate) name: String,
    bytes: u64,
    fetched: bool,
    default: bool,
    licence: String,
    path: PathBuf,
    #[serde(skip)]
    kept: Fetched,
}

impl LocalState {
    pub(crate) fn state(&self) -> &'static str {
        match (self.kept, self.default) {
            (Fetched::Whole, _) => "fetched",
            (Fetched::Part, _) => "fetched in part; `plimsoll model pull` goes on",
            (Fetched::Nothing, true) => "not fetched; the first run fetches it",
            (Fetched::Nothing, false) => "not fetched",
        }
    }

    fn of(kept: Kept, default: &str) -> Self {
        Self {
            default: kept.name == default,
            fetched: kept.fetched == Fetched::Whole,
            kept: kept.fetched,
            name: kept.name,
            bytes: kept.bytes,
            licence: kept.licence,
            path: kept.path,
        }
    }
}

pub(crate) fn state() -> Result<Vec<LocalState>, Stop> {
    let models = models()?;
    let states = models.list().into_iter();
    Ok(states
        .map(|kept| LocalState::of(kept, models.default_name()))
        .collect())
}

pub(crate) async fn run(args: &ModelArgs) -> Result<u8, Stop> {
    match &args.command {
        ModelCommand::Pull {
            name,
            mirror,
            quiet,
        } => pull(name.as_deref(), mirror, shown(*quiet)).await,
        ModelCommand::List { json } => {
            let states = state()?;
            if *json {
                let text = serde_json::to_string(&states).map_err(Stop::failed)?;
                out!("{text}");
                return Ok(DONE);
            }
            for state in states {
                let mark = if state.default { " (default)" } else { "" };
                out!(
                    "{:<20} {:>8}  {}{mark}  {}",
                    state.name,
                    megabytes(state.bytes),
                    state.state(),
                    state.path.display()
                );
            }
            Ok(DONE)
        }
        ModelCommand::Rm { name } => {
            match models()?.remove(name).map_err(|error| stop_of(&error))? {
                Fetched::Nothing => crate::say(&format!("{name} is not fetched")),
                Fetched::Whole | Fetched::Part => crate::say(&format!("{name} is removed")),
            }
            Ok(DONE)
        }
    }
}

async fn pull(name: Option<&str>, mirror: &str, shown: Shown) -> Result<u8, Stop> {
    let source = mirror.parse().map_err(|error| stop_of(&error))?;
    let models = models()?;
    let watch = |progress: Progress<'_>| shown.show(progress);
    let fetch = async {
        let path = models.pull(name, source, &watch).await?;
        models.pull_server(&watch).await?;
        Ok(path)
    };
    let path = interruptible(fetch).await?;
    shown.close();
    if shown.kind != Kind::Quiet {
        crate::say(&format!("ready: {}", path.display()));
    }
    Ok(DONE)
}

/// Fetches what is missing, starts the server and gives its model to the run.
pub(crate) async fn start(agent: &AgentConfig, said: Said) -> Result<Choice, Stop> {
    let models = models()?;
    // `local` is the default model, `local/NAME` another one.
    let settings = agent.settings();
    let name = settings
        .model
        .as_deref()
        .and_then(|model| model.split_once('/'));
    let name = name.map(|(_, name)| name);
    let model = models.model(name).map_err(|error| stop_of(&error))?;
    let (serve, window, window_from) = match settings.window {
        WindowSetting::Ask => (WINDOW, Window::Known(Tokens(WINDOW)), "as started"),
        WindowSetting::Unknown => (UNKNOWN_WINDOW, Window::Unknown, "learned from refusals"),
        WindowSetting::Tokens(tokens) if tokens.0 > model.window => {
            return Err(Stop::usage(format!(
                "--max-context is {tokens}, but {} has a window of {} tokens",
                model.name, model.window
            )));
        }
        WindowSetting::Tokens(tokens) => (tokens.0, Window::Known(tokens), "as given"),
    };
    let style = settings.tool_style.unwrap_or(ToolStyle::JsonSchema);
    let shown = shown(said == Said::Nothing);
    let watch = |progress: Progress<'_>| shown.show(progress);
    let running = interruptible(models.start(name, serve, &watch)).await?;
    shown.close();
    let model = ModelRef::parse(&format!("local/{}", running.model)).map_err(Stop::model)?;
    let prices = known::facts(&model, agent.own_models())?.sheet();
    let dialect = Dialect {
        tools: style,
        ..model.vendor().dialect()
    };
    let provider = OpenAiChat::builder(model.clone())
        .base_url(&running.base_url)
        .timeouts(agent.timeouts())
        .dialect(dialect)
        .extra(sampling())
        .build()
        .map_err(Stop::model)?;
    Ok(Choice {
        provider: Arc::new(provider),
        window,
        window_from,
        prices,
        one_at_a_time: true,
        max_tokens: Some(MAX_TOKENS),
        max_identical_tool_calls: Some(MAX_IDENTICAL),
        _server: Some(Server { _running: running }),
    })
}

/// How the models' makers advise to sample them, besides the temperature. Their penalty on
/// repetition is left out: a path has to be repeated to be right.
fn sampling() -> serde_json::Map<String, serde_json::Value> {
    let sampling = serde_json::json!({ "top_k": 20, "top_p": 0.8 });
    sampling.as_object().cloned().unwrap_or_default()
}

/// A model's name with that of our default model where `local` alone is said, and why there is no
/// such model of ours.
pub(crate) fn meant(name: String) -> Result<(String, Option<String>), Stop> {
    let ours = ModelRef::parse(&name).ok();
    let Some(ours) = ours.filter(|model| model.vendor().place == Place::Ours) else {
        return Ok((name, None));
    };
    let given = name.split_once('/').map(|(_, name)| name.trim());
    match models()?.model(given) {
        Ok(model) => Ok((format!("{}/{}", ours.vendor().name, model.name), None)),
        Err(error) => Ok((ours.to_string(), Some(error.to_string()))),
    }
}

fn models() -> Result<LocalModels, Stop> {
    Ok(LocalModels::new(paths::cache()?))
}

/// Until Ctrl-C, which ends it cleanly: what is fetched so far stays.
async fn interruptible<T>(work: impl Future<Output = Result<T, LocalError>>) -> Result<T, Stop> {
    tokio::select! {
        done = work => done.map_err(|error| stop_of(&error)),
        Ok(()) = tokio::signal::ctrl_c() => Err(Stop {
            code: INTERRUPTED,
            text: "interrupted; what is fetched so far is kept, run it again to go on".to_owned(),
        }),
    }
}

fn stop_of(error: &LocalError) -> Stop {
    match error {
        LocalError::UnknownModel { .. } | LocalError::UnknownSource { .. } => Stop::usage(error),
        LocalError::DiskFull { .. } | LocalError::File { .. } => Stop::failed(error),
        _ => Stop::model(error),
    }
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Quiet,
    Lines,
    Bar,
}

/// Progress on standard error: a bar on a terminal, else a few lines.
struct Shown {
    kind: Kind,
    bars: Mutex<HashMap<String, (ProgressBar, u64)>>,
}

fn shown(quiet: bool) -> Shown {
    let kind = match quiet {
        true => Kind::Quiet,
        false if io::stderr().is_terminal() => Kind::Bar,
        false => Kind::Lines,
    };
    Shown {
        kind,
        bars: Mutex::default(),
    }
}

impl Shown {
    fn show(&self, progress: Progress<'_>) {
        if self.kind == Kind::Quiet {
            return;
        }
        match progress {
            Progress::Said(text) => {
                self.close();
                crate::say(text);
            }
            Progress::At { label, done, total } => self.at(label, done, total),
        }
    }

    fn at(&self, label: &str, done: u64, total: u64) {
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = bars.entry(label.to_owned());
        let (bar, line) = entry.or_insert_with(|| (bar(self.kind, label, total), 0));
        bar.set_position(done);
        let now = done.saturating_mul(LINES) / total.max(1);
        if self.kind == Kind::Lines && now > *line {
            *line = now;
            let (done, total) = (megabytes(done), megabytes(total));
            crate::say(&format!("{label}: {done} of {total}"));
        }
        if done >= total {
            bar.finish_and_clear();
        }
    }

    /// Takes the bars off the screen.
    fn close(&self) {
        let mut bars = self.bars.lock().unwrap_or_else(PoisonError::into_inner);
        for (bar, _) in bars.values() {
            bar.finish_and_clear();
        }
        if self.kind == Kind::Bar {
            bars.clear();
        }
    }
}

fn bar(kind: Kind, label: &str, total: u64) -> ProgressBar {
    let target = match kind {
        Kind::Bar => ProgressDrawTarget::stderr(),
        Kind::Lines | Kind::Quiet => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(total), target).with_message(label.to_owned());
    let style = "{msg} {bar:30} {bytes} of {total_bytes}, {eta} left";
    match ProgressStyle::with_template(style) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes / 1_000_000)
}
