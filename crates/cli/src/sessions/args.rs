//! The arguments of `plimsoll sessions`.

use clap::{Args, Subcommand};

use super::open_store::PlaceArgs;

#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/sessions.txt").trim_ascii_end())]
pub(crate) struct SessionsArgs {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: SessionsCommand,
    /// Where they are.
    #[command(flatten)]
    pub(crate) place: PlaceArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    #[command(flatten)]
    Any(AnyStoreCommand),
    /// Restore the view from before the last run; the log keeps everything
    Undo(super::runs::UndoArgs),
    /// List the files that the session changed, or restore them
    Files(crate::sessions::files::FilesArgs),
    /// Take in an export, or start a session from another client's history; prints the names
    Import(crate::sessions::import::ImportArgs),
    /// Read every session and report those that are damaged
    Check {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Copy the readable sessions of a damaged store into a new one
    Salvage(super::salvage::SalvageArgs),
}

/// The commands that also work on the database of workers.
#[derive(Debug, Subcommand)]
pub(crate) enum AnyStoreCommand {
    /// List all sessions, newest first, with their size; `usage` has the cost; times are UTC
    List {
        /// List only sessions that were last run in this folder
        #[arg(long)]
        here: bool,
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// List the sessions with an entry that contains all given words, and these entries
    Search(super::search::SearchArgs),
    /// Change the title of a session; its name stays
    Rename {
        /// The session
        id: String,
        /// The title: one line of at most 120 characters
        title: String,
    },
    /// Delete sessions for good, with the kept contents of files
    Delete(super::removal::DeleteArgs),
    /// Delete old sessions for good
    Prune(super::removal::PruneArgs),
    /// Show what the model would see now; `ledger` lists what was evicted
    Show {
        /// The session
        id: String,
        /// Print the view as a chat in OpenAI's format
        #[arg(long)]
        json: bool,
        /// Show what fills the context, by kind and by tool
        #[arg(long, conflicts_with = "json")]
        context: bool,
    },
    /// Print sessions as JSON lines, for `import`: title, forks and whole logs
    Export(super::export::ExportArgs),
    /// List the runs: task, result, usage and log entries of each
    Runs(OneSession),
    /// Start a new session from the first entries of this one and print its name
    Fork {
        /// The session
        id: String,
        /// Last entry to share, as numbered by `runs` and `export` [default: the newest]
        #[arg(long, value_name = "ENTRY", allow_negative_numbers = true)]
        at: Option<u64>,
        /// Name of the new session [default: generated]
        #[arg(long, value_name = "NEW")]
        to: Option<String>,
    },
    /// List what was evicted: when, why, its size, and where it can be recalled from
    Ledger(OneSession),
    /// Remove a pin, so that the message may be evicted or shortened
    Unpin {
        /// The session
        id: String,
        /// The item that `show` lists as pinned (such as m3)
        item: String,
    },
    /// Print the exact bytes of an evicted item
    Recall(crate::sessions::recall::RecallArgs),
}

/// The arguments of a list about one session.
#[derive(Debug, Args)]
pub(crate) struct OneSession {
    /// The session
    pub(crate) id: String,
    /// Print JSON lines
    #[arg(long)]
    pub(crate) json: bool,
}

impl SessionsCommand {
    /// Returns `true` if the command requires the files of this machine. Only they know the folders of
    /// sessions.
    pub(crate) fn needs_files(&self) -> bool {
        match self {
            Self::Any(AnyStoreCommand::List { here, .. }) => *here,
            Self::Any(AnyStoreCommand::Search(args)) => args.here,
            Self::Any(_) => false,
            _ => true,
        }
    }
}
