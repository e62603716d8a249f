//! All checks and chores of the workspace, as `cargo xtask NAME`. None of this is shipped to users.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]

mod api;
mod bench;
mod chaos;
mod ci;
mod clients;
mod command;
mod deny;
mod dependencies;
mod dist;
mod error;
mod features;
mod fresh;
mod fuzz;
mod light;
mod mcp;
mod postgres;
mod prices;
mod research;
mod restate;
mod sdk;
mod soak;
mod steps;
mod test;
mod tidy;
mod tools;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::Error;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Every check and chore of the workspace")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that must hold before a change lands: lock file, format, tidy, deny, clippy, builds without features, tests, a few kills, docs
    Ci,
    /// All tests, and the examples in the docs
    Test,
    /// The rules of the house: file heads, sizes, layers, links; and warnings of puzzling prose
    Tidy,
    /// The lines of code of each crate beside its budget, and the largest sum that is allowed
    Sizes {
        /// Lower the allowed sum to the present one
        #[arg(long)]
        lower: bool,
    },
    /// The public API beside its checked-in listing, crates/plimsoll/api.txt; PLIMSOLL_BLESS=1 renews it
    Api,
    /// The benchmarks, optimised, and one table of what is required
    Bench {
        /// Put the table in BENCHMARKS.md
        #[arg(long, conflicts_with = "filter")]
        save: bool,
        /// Handed to the benchmarks as it is, for example a part of a name
        filter: Vec<String>,
    },
    /// The property tests over random histories, in release mode and with 10,000 cases each
    Soak {
        /// Part of the names of other tests to run instead
        filter: Option<String>,
    },
    /// The targets in fuzz/, each for some minutes; the first crash is kept and told
    Fuzz {
        /// One target; without it all, one after the other
        target: Option<String>,
        /// How long each runs
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// Take what was found into the corpus, as little as covers the same
        #[arg(long)]
        keep: bool,
    },
    /// The README's task on the local model, once a seed; minutes a seed
    Light {
        /// Seeds 1 to this
        #[arg(long, default_value_t = 10)]
        seeds: u64,
    },
    /// The tools of the MCP project's own server, over both transports; needs npm
    Mcp,
    /// Builds the library and the program with each feature alone, in minutes
    Features,
    /// The store in PostgreSQL, with the server that is installed and with a newer one; needs pip
    Postgres,
    /// Durable runs on a server of Restate, with workers that are killed; needs npm and PostgreSQL
    Restate,
    /// Runs whose processes, database and server are killed and stopped at random; nothing may be lost or done twice
    Chaos {
        /// Decides what the sessions do and what is hit when; without it the time
        #[arg(long)]
        seed: Option<u64>,
        /// Durable runs; they need npm and PostgreSQL
        #[arg(long, default_value_t = 200)]
        sessions: u64,
        /// Kills of runs on this machine
        #[arg(long, default_value_t = 1_000)]
        kills: u64,
        /// How long each of the two scenarios may take before it is ended
        #[arg(long, default_value_t = 30)]
        minutes: u64,
        /// Only one of them: `local` or `durable`
        #[arg(long)]
        only: Option<String>,
        /// Print the figures as one JSON value
        #[arg(long)]
        json: bool,
    },
    /// What a summary without a model keeps of real sessions, beside its rivals
    #[command(disable_help_flag = true)]
    Judge {
        /// Handed to bench/research as they are; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// The official Python SDKs, in strict validation, against the mock servers
    Sdk {
        /// Part of the names of the checks to run
        part: Option<String>,
    },
    /// What real clients (Claude Code, Codex, opencode, pi) send: recorded, and cut in every way; needs npm
    Clients {
        /// Part of the names of the clients to record
        part: Option<String>,
    },
    /// What recorded sessions would have cost under our ways, under others', and at best
    #[command(disable_help_flag = true)]
    Money {
        /// Handed to bench/research as they are; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// What yoagent's compaction costs and keeps beside ours, on the sessions of `money`; fetches yoagent
    Rivals {
        /// Folder of sessions (`.jsonl`, `.jsonl.gz`); without it ../shared/data/normalized
        #[arg(long)]
        data: Option<PathBuf>,
    },
    /// Renew the prices of the built-in models from a file: LiteLLM's table of models
    Prices {
        /// LiteLLM's model_prices_and_context_window.json
        table: PathBuf,
        /// The name, version and date of the table, for readers
        #[arg(long)]
        source: String,
    },
    /// Crates and compile time of the library beside three others, each built from nothing
    Dependencies,
    /// Package the program for npm, PyPI, Homebrew and the install script, into target/dist
    Dist {
        /// The system, such as x86_64-unknown-linux-gnu; without it, this one
        #[arg(long)]
        target: Option<String>,
        /// Package this binary instead of building one
        #[arg(long)]
        binary: Option<PathBuf>,
        /// Install the packages into empty folders, and run what was installed
        #[arg(long)]
        check: bool,
        /// Only write the Homebrew formula, from the archives of all systems
        #[arg(long, conflicts_with_all = ["target", "binary", "check"])]
        formula: bool,
    },
    /// What the README tells a newcomer to do, in a fresh clone of the last commit
    Fresh {
        /// Start with empty caches, so that a model is fetched too
        #[arg(long)]
        cold: bool,
    },
}

fn main() -> ExitCode {
    if let Some(code) = api::as_rustdoc() {
        return code;
    }
    let chore = Arguments::parse().chore;
    match root().and_then(|root| act(chore, &root)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn act(chore: Chore, root: &Path) -> Result<(), Error> {
    match chore {
        Chore::Ci => ci::run(root),
        Chore::Test => test::run(root),
        Chore::Tidy => tidy::run(root),
        Chore::Sizes { lower } => tidy::print_sizes(root, lower),
        Chore::Api => api::run(root).map(|note| println!("{note}")),
        Chore::Bench { save: true, .. } => bench::run(root, &[], bench::Table::Saved),
        Chore::Bench { filter, .. } => bench::run(root, &filter, bench::Table::Printed),
        Chore::Soak { filter } => soak::run(root, filter.as_deref()),
        Chore::Fuzz {
            target,
            seconds,
            keep,
        } => {
            let found = if keep {
                fuzz::NewInputs::Kept
            } else {
                fuzz::NewInputs::Aside
            };
            fuzz::run(root, target.as_deref(), seconds, found)
        }
        Chore::Prices { table, source } => prices::run(root, &table, &source),
        Chore::Sdk { part } => sdk::run(root, part.as_deref()),
        Chore::Clients { part } => clients::run(root, part.as_deref()),
        Chore::Light { seeds } => light::run(root, seeds),
        Chore::Mcp => mcp::run(root),
        Chore::Features => features::run(root),
        Chore::Postgres => postgres::run(root),
        Chore::Restate => restate::run(root),
        Chore::Chaos {
            seed,
            sessions,
            kills,
            minutes,
            only,
            json,
        } => {
            let options = chaos::Options {
                seed,
                sessions,
                kills,
                minutes,
                only,
                json,
            };
            chaos::run(root, &options)
        }
        Chore::Judge { arguments } => research::run(root, "judge", &arguments),
        Chore::Money { arguments } => research::run(root, "money", &arguments),
        Chore::Rivals { data } => research::rivals(root, data.as_deref()),
        Chore::Dependencies => dependencies::run(root),
        Chore::Dist { formula: true, .. } => dist::formula(root),
        Chore::Dist {
            target,
            binary,
            check,
            ..
        } => {
            let options = dist::Options {
                triple: target,
                binary,
                trial: check,
            };
            dist::run(root, &options)
        }
        Chore::Fresh { cold: true } => fresh::run(root, fresh::Caches::Empty),
        Chore::Fresh { cold: false } => fresh::run(root, fresh::Caches::Kept),
    }
}

/// Returns the root of the workspace, for any current directory in it.
fn root() -> Result<PathBuf, Error> {
    let here = std::env::current_dir().map_err(Error::file("."))?;
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map_or(here, PathBuf::from);
    let workspace = manifest
        .ancestors()
        .find(|folder| folder.join("Cargo.lock").is_file());
    workspace.map(Path::to_path_buf).ok_or_else(|| {
        Error::Missing("no workspace here: call `cargo xtask` inside the repository".to_owned())
    })
}
