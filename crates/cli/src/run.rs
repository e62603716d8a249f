//! `plimsoll run`: settings resolved once, one run driven, its outcome said. The run itself is in
//! the library.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll::store::SqliteStore;
use plimsoll::tools::{Root, Toolbox};
use plimsoll::{
    Agent, AgentOutput, Archive, ContextStrategy, Economy, EndReason, Error, Event,
    RECALL_LEAST_WINDOW, Remote, Session, SessionId, SummaryConfig, Tokens, Window, new_session_id,
    pin_tool,
};

use crate::args::RunArgs;
use crate::ask::{self, Consent};
use crate::choice::{self, Choice, RunRates};
use crate::config::Config;
use crate::exit::{self, Stop};
use crate::out::{self, out};
use crate::paths;
use crate::screen::Screen;

/// The built-in system prompt.
const SYSTEM: &str = include_str!("../prompts/system.md");
/// A task or a system prompt, at most: a mistake such as a disk image ends here.
const TEXT_LIMIT: u64 = 16 * 1024 * 1024;
/// What the tools that recall take of a window, at most, a test says.
const RECALL_TOOLS: u64 = 600;
/// How long a summary may take on this machine, where reading alone takes a minute.
const LOCAL_SUMMARY: Duration = Duration::from_secs(300);
/// What opens and closes a pinned passage of AGENTS.md.
const PIN: &str = "<!-- pin -->";
const UNPIN: &str = "<!-- /pin -->";
/// Of AGENTS.md, at most; it is sent with every request.
const AGENTS_LIMIT: plimsoll::Bytes = plimsoll::Bytes(32 * 1024);

/// Runs the command.
pub(crate) async fn run(args: &RunArgs) -> Result<u8, Stop> {
    let task = task(args)?;
    let root = Root::new(&args.root).map_err(Stop::usage)?;
    let tools = Toolbox::new(root)
        .select(&args.tools)
        .map_err(Stop::usage)?;
    let has_tools = !tools.is_empty();
    let (system, mut pins) = system(args)?;
    pins.extend(args.pin.iter().cloned());
    let economy = args.economy.as_deref().map(|name| {
        Economy::named(name).ok_or_else(|| {
            let names = Economy::NAMES.join(", ");
            Stop::usage(format!("there is no economy `{name}`; there is: {names}"))
        })
    });
    let economy = economy.transpose()?;
    let summarizer = choice::summarizer(args)?;
    let strategy = strategy(args)?;
    let id = match &args.session {
        Some(id) => SessionId::new(id).map_err(Stop::usage)?,
        None => new_session_id(),
    };
    let store = SqliteStore::open(paths::data()?)
        .await
        .map_err(Stop::failed)?;
    if args.session.is_some()
        && task.is_none()
        && store.info(&id).await.map_err(Stop::failed)?.is_none()
    {
        return Err(Stop::usage(format!(
            "there is no session {id} to go on with; `plimsoll sessions list` lists them"
        )));
    }
    let config = match &args.config {
        Some(path) => Config::read(path).map_err(|stop| Stop::usage(stop.text))?,
        None => Config::default(),
    };
    for warning in &config.warnings {
        crate::say(warning);
    }
    let mut choice = choice::choose(args).await?;
    if let Some(sheet) = config.sheet(choice.provider.model()) {
        choice.prices = Some(sheet);
    }
    let rates = choice.rates(summarizer.as_ref());
    let screen = (!args.json && !args.quiet).then(|| Arc::new(Screen::new(rates)));
    if let Some(screen) = &screen {
        let window = match choice.window {
            Window::Known(tokens) | Window::Assumed(tokens) => {
                format!("{tokens} tokens, {}", choice.window_from)
            }
            _ => choice.window_from.to_owned(),
        };
        screen.say(&format!(
            "{} in {} │ window {window} │ session {id}",
            choice.provider.model(),
            args.root.display()
        ));
    }
    let consent = if args.yes {
        Consent::Given
    } else {
        Consent::Asked
    };
    let mut builder = Agent::builder_shared(Arc::clone(&choice.provider))
        .system(system)
        .tools(tools)
        .window(choice.window)
        .context_strategy(strategy)
        .max_turns(args.max_turns)
        .max_parallel_tools(args.max_parallel_tools)
        .store(Arc::new(store))
        .shared_gate(ask::gate(consent, screen.clone()));
    if let Some(economy) = economy {
        builder = builder.economy(economy);
    }
    if let Some(sheet) = choice.prices {
        builder = builder.prices(sheet);
    }
    // A server that answers one call at a time would be held up by a summary beside the run.
    let beside = summarizer.is_some() || !choice.one_at_a_time;
    let soft_mark = SummaryConfig::default().soft_mark.filter(|_| beside);
    match summarizer {
        Some(summarizer) => builder = builder.summarizer(summarizer.provider),
        None if choice.one_at_a_time => {
            builder = builder.summary_timeout(LOCAL_SUMMARY);
        }
        None => {}
    }
    if let Some(path) = &args.summary_prompt {
        builder = builder.summary_prompt(required_text(path, "a summary prompt")?);
    }
    if args.no_archive {
        builder = builder.archive(Archive::Off);
    }
    for pin in pins {
        builder = builder.pin(pin);
    }
    if has_tools && has_room(choice.window) {
        builder = builder.tools([pin_tool()]);
    }
    if let Some(calls) = args.max_tool_calls {
        builder = builder.max_tool_calls(calls);
    }
    if let Some(times) = args
        .max_identical_tool_calls
        .or(choice.max_identical_tool_calls)
    {
        builder = builder.max_identical_tool_calls(times);
    }
    if let Some(tokens) = args.max_tokens.or(choice.max_tokens) {
        builder = builder.max_tokens(Tokens(tokens));
    }
    if let Some(temperature) = args.temperature {
        builder = builder.temperature(temperature);
    }
    if let Some(seed) = args.seed {
        builder = builder.seed(seed);
    }
    if let Some(screen) = &screen {
        builder = builder.shared_observer(Arc::clone(screen) as Arc<dyn plimsoll::Observer>);
    }
    builder = config.apply(builder, soft_mark);
    let lines = Arc::new(Lines::default());
    if args.json {
        builder = builder.shared_observer(Arc::clone(&lines) as Arc<dyn plimsoll::Observer>);
    }
    let agent = builder.build().map_err(Stop::usage)?;
    let mut session = agent.session(id).await.map_err(|error| stop_of(&error))?;
    let interrupts = tokio::spawn(interrupt(session.remote()));
    let output = drive(&mut session, task.as_deref()).await;
    interrupts.abort();
    if let Some(screen) = &screen {
        screen.close();
    }
    let output = output.map_err(|error| stop_of(&error))?;
    if let Some(error) = lines.failed() {
        return Err(out::failed(&error));
    }
    close(args, &choice, rates, screen.as_deref(), &output)
}

async fn drive(session: &mut Session, task: Option<&str>) -> Result<AgentOutput, Error> {
    match task {
        Some(task) => session.run(task).await,
        None => session.carry_on().await,
    }
}

/// Says how it ended.
fn close(
    args: &RunArgs,
    choice: &Choice,
    rates: RunRates,
    screen: Option<&Screen>,
    output: &AgentOutput,
) -> Result<u8, Stop> {
    let code = code_of(&output.reason);
    let answered = matches!(code, exit::DONE | exit::LIMIT);
    if args.json {
        if !answered {
            crate::say(&reason_text(args, choice, &output.reason));
        }
        return Ok(code);
    }
    // What streamed to a terminal is there already.
    if answered && !screen.is_some_and(Screen::has_streamed) {
        out!("{}", output.text);
    }
    if !answered {
        crate::say(&reason_text(args, choice, &output.reason));
    }
    if screen.is_some() {
        crate::note(&summary(rates, output));
    }
    if code != exit::DONE && !args.quiet {
        crate::note(&format!(
            "carry on with: plimsoll run --session {}",
            output.session_id
        ));
    }
    Ok(code)
}

/// answered │ 7 turns, 6 tool calls │ read 9,120 (71 % cached), wrote 310 │ 2 plans freed 1,804 │ $0.0000 │ session …
fn summary(rates: RunRates, output: &AgentOutput) -> String {
    let used = output.tokens_used;
    let money = rates.cost(used, output.summary_usage);
    let money = money.map_or("price unknown".to_owned(), |money| money.to_string());
    format!(
        "{} │ {} turns, {} tool calls │ read {} ({:.0} % cached), wrote {} │ {} plans freed {} │ {money} │ session {}",
        output.reason.word(),
        output.turns,
        output.tool_calls,
        used.processed(),
        used.cache_hit_rate() * 100.0,
        used.output,
        output.plans,
        output.freed,
        output.session_id,
    )
}

/// The first Ctrl-C ends the run cleanly, the second at once.
async fn interrupt(remote: Remote) {
    if tokio::signal::ctrl_c().await.is_err() {
        return;
    }
    remote.interrupt().await;
    if tokio::signal::ctrl_c().await.is_ok() {
        std::process::exit(i32::from(exit::INTERRUPTED));
    }
}

fn code_of(reason: &EndReason) -> u8 {
    match reason {
        EndReason::Answered => exit::DONE,
        EndReason::MaxTurns { .. } | EndReason::ToolLimit { .. } | EndReason::DoomLoop { .. } => {
            exit::LIMIT
        }
        EndReason::CannotFit { .. } => exit::CANNOT_FIT,
        EndReason::Failed {
            failure: plimsoll::Failure::Overflow { .. } | plimsoll::Failure::BodyTooLarge { .. },
        } => exit::CANNOT_FIT,
        EndReason::Failed { .. } => exit::MODEL,
        EndReason::Interrupted => exit::INTERRUPTED,
        _ => exit::FAILED,
    }
}

fn reason_text(args: &RunArgs, choice: &Choice, reason: &EndReason) -> String {
    match reason {
        EndReason::Failed { failure } => failure.to_string(),
        // What is allowed is the window less the answer; what is asked for is a window.
        EndReason::CannotFit { cannot_fit } if args.trigger.is_none() => {
            let minimum = cannot_fit.minimum.0;
            let reserve = args.max_tokens.or(choice.max_tokens);
            let reserve = reserve.unwrap_or(plimsoll::OUTPUT_RESERVE.0);
            let window = (minimum + reserve).min(minimum.div_ceil(3) * 4);
            // From this size on the tools that recall are sent as well.
            let window = match window >= RECALL_LEAST_WINDOW.0 {
                true => window + RECALL_TOOLS,
                false => window,
            };
            format!(
                "{cannot_fit}; with room for the answer that takes a window of at least {window}, as in --max-context {window}"
            )
        }
        EndReason::CannotFit { cannot_fit } => cannot_fit.to_string(),
        EndReason::Interrupted => "interrupted".to_owned(),
        other => other.word().to_owned(),
    }
}

fn stop_of(error: &Error) -> Stop {
    match error {
        Error::EmptyTask | Error::Build(_) => Stop::usage(error),
        _ => Stop::failed(error),
    }
}

/// The task: an argument, standard input, or none where a session goes on.
fn task(args: &RunArgs) -> Result<Option<String>, Stop> {
    let task = match args.task.as_deref() {
        Some("-") => {
            let mut text = String::new();
            let read = io::stdin()
                .lock()
                .take(TEXT_LIMIT + 1)
                .read_to_string(&mut text);
            read.map_err(|error| {
                Stop::usage(format!(
                    "the task cannot be read from standard input: {}",
                    unreadable(&error)
                ))
            })?;
            if text.len() as u64 > TEXT_LIMIT {
                return Err(Stop::usage(
                    "the task on standard input is larger than 16 MiB; put it in a file and let the agent read it",
                ));
            }
            text
        }
        Some(task) => task.to_owned(),
        None if args.session.is_some() => return Ok(None),
        None => {
            return Err(Stop::usage(
                "no task: say what the agent is to do, as in plimsoll run \"Read README.md and sum it up\"",
            ));
        }
    };
    if task.trim().is_empty() {
        return Err(Stop::usage(
            "the task is empty; say what the agent is to do",
        ));
    }
    Ok(Some(task))
}

/// Whether a window can spare what the pin tool takes of it.
fn has_room(window: Window) -> bool {
    match window {
        Window::Known(tokens) | Window::Assumed(tokens) => tokens >= RECALL_LEAST_WINDOW,
        Window::Discover => true,
        // It may be as small as any.
        Window::Unknown => false,
    }
}

/// The system prompt, with the root's AGENTS.md behind it; and what that file pins.
fn system(args: &RunArgs) -> Result<(String, Vec<String>), Stop> {
    let mut system = match &args.system {
        Some(path) => required_text(path, "the system prompt")?,
        None => SYSTEM.to_owned(),
    };
    let mut pins = Vec::new();
    if let Some(text) = read_text(&args.root.join("AGENTS.md"))? {
        let agents;
        (agents, pins) = pinned(&text);
        let agents = plimsoll::head_tail(&agents, AGENTS_LIMIT).unwrap_or(agents);
        system = format!(
            "{}\n\nAGENTS.md of this directory:\n\n{}",
            system.trim_end(),
            agents.trim()
        );
    }
    Ok((system.trim_end().to_owned(), pins))
}

/// The text without what it pins, and what it pins: all between `<!-- pin -->` and `<!-- /pin -->`.
/// A pin that is never closed goes to the end.
fn pinned(text: &str) -> (String, Vec<String>) {
    let (mut rest, mut pins) = (String::new(), Vec::new());
    let mut left = text;
    while let Some((before, after)) = left.split_once(PIN) {
        rest.push_str(before);
        let (pin, behind) = after.split_once(UNPIN).unwrap_or((after, ""));
        if !pin.trim().is_empty() {
            pins.push(pin.trim().to_owned());
        }
        left = behind;
    }
    rest.push_str(left);
    (rest, pins)
}

/// A text file that has to be there.
fn required_text(path: &Path, what: &str) -> Result<String, Stop> {
    read_text(path)?.ok_or_else(|| {
        Stop::usage(format!(
            "{} does not exist; name a file with {what}",
            path.display()
        ))
    })
}

/// A text file; `None` where there is none.
fn read_text(path: &Path) -> Result<Option<String>, Stop> {
    let bad = |error: &io::Error| {
        let why = unreadable(error);
        Stop::usage(format!("{} cannot be read: {why}", path.display()))
    };
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(bad(&error)),
    };
    let mut text = String::new();
    file.take(TEXT_LIMIT)
        .read_to_string(&mut text)
        .map_err(|error| bad(&error))?;
    Ok(Some(text))
}

/// What is wrong with a text, and what helps.
fn unreadable(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData => "it is not UTF-8; save it as UTF-8 text".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory; name a file".to_owned(),
        _ => error.to_string(),
    }
}

fn strategy(args: &RunArgs) -> Result<ContextStrategy, Stop> {
    if args.trigger == Some(0) {
        return Err(Stop::usage(
            "--trigger is 0; give the tokens at which a plan is due",
        ));
    }
    ContextStrategy::named(&args.policy, args.trigger.map(Tokens)).ok_or_else(|| {
        let names = ContextStrategy::NAMES.join(", ");
        Stop::usage(format!(
            "there is no policy `{}`; there is: {names}",
            args.policy
        ))
    })
}

/// Events as JSON lines on standard output.
#[derive(Default)]
struct Lines {
    failed: Mutex<Option<io::Error>>,
}

impl Lines {
    fn failed(&self) -> Option<io::Error> {
        self.failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl plimsoll::Observer for Lines {
    fn see(&self, event: &Event) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some() {
            return;
        }
        let mut out = io::stdout().lock();
        let line = serde_json::to_string(event).map_err(io::Error::from);
        let written = line
            .and_then(|line| writeln!(out, "{line}"))
            .and_then(|()| out.flush());
        *failed = written.err();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_pins_is_taken_out_of_it_whole() {
        for (text, rest, pins) in [
            ("plain", "plain", vec![]),
            ("a<!-- pin -->\n b \n<!-- /pin -->c", "ac", vec!["b"]),
            (
                "<!-- pin -->x<!-- /pin --><!-- pin -->y",
                "",
                vec!["x", "y"],
            ),
            (
                "<!-- pin --> <!-- /pin -->z<!-- /pin -->",
                "z<!-- /pin -->",
                vec![],
            ),
        ] {
            let (left, found) = pinned(text);
            assert_eq!(
                (left.as_str(), found),
                (rest, pins.iter().map(|pin| (*pin).to_owned()).collect())
            );
        }
    }
}
