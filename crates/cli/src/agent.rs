//! An agent as the arguments describe it, for every command that runs one. Who is asked and who
//! watches, the command adds; nothing is driven here.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll::store::SqliteStore;
use plimsoll::tools::{Root, Toolbox};
use plimsoll::{
    Agent, AgentBuilder, Archive, ContextStrategy, Economy, RECALL_LEAST_WINDOW, SessionId,
    SessionStore, SummaryConfig, Tokens, Window, pin_tool,
};

use crate::args::RunArgs;
use crate::choice::{self, Choice, RunRates};
use crate::config::Config;
use crate::exit::Stop;
use crate::paths;

/// The built-in system prompt.
const SYSTEM: &str = include_str!("../prompts/system.md");
/// A task or a system prompt, at most: a mistake such as a disk image ends here.
pub(crate) const TEXT_LIMIT: u64 = 16 * 1024 * 1024;
/// How long a summary may take on this machine, where reading alone takes a minute.
const LOCAL_SUMMARY: Duration = Duration::from_secs(300);
/// What opens and closes a pinned passage of AGENTS.md.
const PIN: &str = "<!-- pin -->";
const UNPIN: &str = "<!-- /pin -->";
/// Of AGENTS.md, at most; it is sent with every request.
const AGENTS_LIMIT: plimsoll::Bytes = plimsoll::Bytes(32 * 1024);

/// An agent that lacks only those who are asked and those who watch.
pub(crate) struct Prepared {
    pub(crate) builder: AgentBuilder,
    pub(crate) choice: Choice,
    pub(crate) rates: RunRates,
    pub(crate) store: Arc<SqliteStore>,
}

/// Resolves the arguments and finds the model. `goes_on` names a session that has to be there.
pub(crate) async fn prepare(args: &RunArgs, goes_on: Option<&SessionId>) -> Result<Prepared, Stop> {
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
    let store = SqliteStore::open(paths::data()?)
        .await
        .map_err(Stop::failed)?;
    let store = Arc::new(store);
    if let Some(id) = goes_on
        && store.info(id).await.map_err(Stop::failed)?.is_none()
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
    let mut builder = Agent::builder_shared(Arc::clone(&choice.provider))
        .system(system)
        .tools(tools)
        .window(choice.window)
        .context_strategy(strategy)
        .max_turns(args.max_turns)
        .max_parallel_tools(args.max_parallel_tools)
        .store(Arc::clone(&store) as Arc<dyn SessionStore>);
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
    Ok(Prepared {
        builder: config.apply(builder, soft_mark),
        choice,
        rates,
        store,
    })
}

/// m in DIR │ window 8192 tokens, as the server says │ session …
pub(crate) fn headline(args: &RunArgs, choice: &Choice, id: &SessionId) -> String {
    let window = match choice.window {
        Window::Known(tokens) | Window::Assumed(tokens) => {
            format!("{tokens} tokens, {}", choice.window_from)
        }
        _ => choice.window_from.to_owned(),
    };
    format!(
        "{} in {} │ window {window} │ session {id}",
        choice.provider.model(),
        args.root.display()
    )
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
pub(crate) fn unreadable(error: &io::Error) -> String {
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
