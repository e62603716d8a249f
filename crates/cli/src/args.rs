//! The command-line arguments, as parsed by clap. Other modules resolve them to settings.

use std::path::PathBuf;

use clap::{Arg, Args, Parser, Subcommand};
use clap_complete::Shell;
use plimsoll::config::COUNTERS;

use crate::sessions::SessionsArgs;
use crate::settings::Sources;
use crate::which_session::SessionChoice;

/// Parses a number of tokens: 8000, 8_000, 8k or 1m.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    plimsoll::config::parse_tokens(text)
        .ok_or_else(|| "give a whole number of tokens, such as 8000 or 100k".to_owned())
}

/// Parses a number of tokens that is at least 1.
pub(crate) fn some_tokens(text: &str) -> Result<u64, String> {
    match tokens(text)? {
        0 => Err("give 1 token or more, such as 8000 or 100k".to_owned()),
        tokens => Ok(tokens),
    }
}

/// Run LLM agents inside hard limits without losing anything.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, after_help = include_str!("../help/exit-codes.txt").trim_ascii_end(), max_term_width = 100)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give an agent a task and let it work until it is done
    Run(Box<RunArgs>),
    /// Chat with an agent; type while it works to steer it
    Chat(Box<ChatArgs>),
    /// Serve as the agent of an editor (Agent Client Protocol, over standard input and output)
    #[command(after_help = include_str!("../help/acp.txt").trim_ascii_end(), mut_args = without_root)]
    Acp(Box<Sources>),
    /// Repair and compact a dead session of Claude Code, Codex, opencode, pi or Gemini CLI
    Rescue(crate::rescue::RescueArgs),
    /// Make a chat fit a token budget, without a model
    Compact(crate::compact::CompactArgs),
    /// Count the tokens of a chat, message by message
    Count(CountArgs),
    /// Repair a chat that the model's API refuses, without a model
    Repair(crate::repair::RepairArgs),
    /// List, search, show, undo, fork, delete, export and import sessions; recall evicted messages
    Sessions(SessionsArgs),
    /// Show what sessions have used and cost, by day, model, folder or session
    Usage(crate::usage::UsageArgs),
    /// Download, list and remove local models
    #[command(subcommand, after_help = include_str!("../help/model.txt").trim_ascii_end())]
    Model(ModelCommand),
    /// Show context windows, prices and capabilities of models, and their sources
    Models(Box<ModelsArgs>),
    /// Create, check, show and trust a configuration
    #[command(subcommand, after_help = include_str!("../help/config.txt").trim_ascii_end())]
    Config(ConfigCommand),
    /// Add and test MCP servers
    #[command(subcommand, after_help = include_str!("../help/mcp.txt").trim_ascii_end())]
    Mcp(crate::mcp_command::McpCommand),
    /// Check providers, API keys and local servers; explain what is sent to a model
    Doctor(Box<DoctorArgs>),
    /// Work for Restate: run sessions that are kept in PostgreSQL, each step once
    #[cfg(feature = "restate")]
    Worker(Box<crate::durable::worker::WorkerArgs>),
    /// Steer, interrupt or answer a run that workers run
    #[cfg(feature = "restate")]
    Send(crate::durable::send::SendArgs),
    /// Names the feature that a build without workers lacks
    #[cfg(not(feature = "restate"))]
    #[command(hide = true, disable_help_flag = true, aliases = ["send"])]
    Worker(NotBuiltArgs),
    /// Restrict this process and run a command; started for commands in a sandbox
    #[command(hide = true)]
    Sandbox(crate::sandbox::SandboxArgs),
    /// Print a script that completes commands and flags in a shell
    #[command(after_help = include_str!("../help/completions.txt").trim_ascii_end())]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the JSON Schema of the events that `run --json` prints
    Schema,
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/run.txt").trim_ascii_end())]
pub(crate) struct RunArgs {
    /// The task, to which piped input is appended; `-` reads the whole task from standard input.
    /// Without a task, the session's last run continues
    pub(crate) task: Option<String>,
    /// Send an image with the task (PNG, JPEG, GIF or WebP, up to 20 MiB); can be repeated
    #[arg(long = "image", short = 'i', value_name = "FILE", requires = "task")]
    pub(crate) images: Vec<PathBuf>,
    /// Require an answer in JSON that matches this JSON Schema (a file, or the schema itself)
    #[arg(long, value_name = "FILE|JSON", requires = "task")]
    pub(crate) json_schema: Option<PathBuf>,
    /// Where its settings come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Which session it continues.
    #[command(flatten)]
    pub(crate) session: SessionChoice,
    /// Hand the task to the workers of a server of Restate, as in restate://127.0.0.1:8080
    #[arg(long, value_name = "URL", hide = cfg!(not(feature = "restate")))]
    pub(crate) on: Option<String>,
    /// Print events as JSON lines
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Print only the answer
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

impl RunArgs {
    /// Returns `true` if only the answer or the events are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.json || self.quiet
    }
}

/// The arguments of a command that is not part of this build.
#[cfg(not(feature = "restate"))]
#[derive(Debug, Args)]
pub(crate) struct NotBuiltArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _given: Vec<std::ffi::OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/chat.txt").trim_ascii_end())]
pub(crate) struct ChatArgs {
    /// The first message
    pub(crate) task: Option<String>,
    /// Where its settings come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Which session it continues.
    #[command(flatten)]
    pub(crate) session: SessionChoice,
    /// Print only answers and the output of commands
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration: print its settings per agent, or every error in it
    Check {
        /// The configuration file [default: the plimsoll.toml that `run` would use here]
        #[arg(env = "PLIMSOLL_CONFIG")]
        file: Option<PathBuf>,
    },
    /// Trust the plimsoll.toml, instructions, skills, agents and prompts of a folder as they are now
    Trust {
        /// The folder [default: the current one]
        folder: Option<PathBuf>,
        /// Stop trusting it
        #[arg(long)]
        revoke: bool,
    },
    /// Print every setting with the value that a run would use
    Show {
        /// Where settings come from.
        #[command(flatten)]
        sources: Box<Sources>,
        /// Print the source of each value
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a commented plimsoll.toml; never overwrites a file
    Init {
        /// The file to write [default: plimsoll.toml]
        file: Option<PathBuf>,
    },
    /// Translate a configuration of Heartbit or phi-core: print a plimsoll.toml with the same meaning
    #[command(after_help = include_str!("../help/config-import.txt").trim_ascii_end())]
    Import {
        /// The file (TOML, YAML or JSON); `-` reads standard input
        file: PathBuf,
    },
    /// Print a JSON Schema of plimsoll.toml, for editors
    Schema,
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/count.txt").trim_ascii_end())]
pub(crate) struct CountArgs {
    /// The chat [default: standard input]
    pub(crate) file: Option<PathBuf>,
    /// Token counter
    #[arg(long, default_value = "o200k", value_name = "NAME", value_parser = COUNTERS)]
    pub(crate) counter: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Download a model and the server that runs it; an interrupted download is resumed
    Pull {
        /// The model [default: the default model]
        name: Option<String>,
        /// Print only errors
        #[arg(long, short)]
        quiet: bool,
    },
    /// List available models and those that are downloaded
    List {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Remove a downloaded model
    Rm {
        /// The model
        name: String,
    },
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/models.txt").trim_ascii_end(), mut_args = without_settings)]
pub(crate) struct ModelsArgs {
    /// Show only models whose name contains this
    pub(crate) pattern: Option<String>,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// Hides `--root`: an editor names the folder of each session.
fn without_root(arg: Arg) -> Arg {
    let is_root = arg.get_id() == "root";
    arg.hide(is_root)
}

/// Hides the flags of settings, which change nothing in a table of models.
fn without_settings(arg: Arg) -> Arg {
    let is_setting = arg.get_help_heading().is_some();
    arg.hide(is_setting)
}

/// Leaves only flags that name the model in the short help. The others change what is sent to it.
fn with_model_only(arg: Arg) -> Arg {
    let is_setting = arg.get_help_heading().is_some();
    let names_model = ["model", "base-url"].contains(&arg.get_id().as_str());
    if is_setting && !names_model {
        arg.hide_short_help(true)
    } else {
        arg
    }
}

#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/doctor.txt").trim_ascii_end(), mut_args = with_model_only)]
pub(crate) struct DoctorArgs {
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Without --model: print JSON
    #[arg(long, conflicts_with = "model")]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the arguments of an example, without what follows for the shell.
    fn arguments(line: &str) -> Option<Vec<String>> {
        let (before, line) = line.split_once("plimsoll ")?;
        if !before.starts_with("  ") || before.contains('#') {
            return None;
        }
        let marks = [" | ", " > ", " >> ", " < ", " #"];
        let end = marks.iter().filter_map(|mark| line.find(mark)).min();
        let line = line.get(..end.unwrap_or(line.len()))?;
        let parts = line.split('"').enumerate();
        let words = parts.flat_map(|(number, part)| match number % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        Some(words.collect())
    }

    /// Returns the texts after the help of a command and of those below it.
    fn after_helps(command: &clap::Command) -> Vec<String> {
        let own = command.get_after_help().map(ToString::to_string);
        let below = command.get_subcommands().flat_map(after_helps);
        own.into_iter().chain(below).collect()
    }

    #[test]
    fn the_examples_of_the_help_are_valid() {
        let texts = after_helps(&<Cli as clap::CommandFactory>::command());
        let lines = texts.iter().flat_map(|text| text.lines());
        let examples: Vec<Vec<String>> = lines.filter_map(arguments).collect();
        assert!(examples.len() > 60, "{}", examples.len());
        for example in examples {
            let words = ["plimsoll".to_owned()].into_iter().chain(example);
            let mut words: Vec<String> = words.collect();
            if words.iter().any(|word| word == "worker") {
                // The example sets its variable.
                words.extend(["--store".to_owned(), "postgres://db/plimsoll".to_owned()]);
            }
            let parsed = Cli::try_parse_from(&words);
            assert!(parsed.is_ok(), "{words:?}: {:?}", parsed.err());
        }
    }
}
