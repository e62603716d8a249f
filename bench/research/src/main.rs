//! Measurements on recorded sessions: `judge` compares summaries without a model, and `money` the
//! costs of policies. `cargo xtask judge` and `cargo xtask money` run it in the root of the
//! workspace. Not part of the product: nothing depends on it.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]

mod error;
mod judge;
mod money;
mod recordings;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Measurements on recorded sessions")]
struct Arguments {
    #[command(subcommand)]
    measurement: Measurement,
}

#[derive(Subcommand)]
enum Measurement {
    /// Measure how much of real sessions a summary without a model keeps, beside its rivals
    Judge(judge::JudgeOptions),
    /// Compute the cost of recorded sessions under our policies, under others', and at best
    Money {
        /// Folder of sessions (`.jsonl`, `.jsonl.gz`); without it ../shared/data/normalized
        #[arg(long)]
        data: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
    let root = Path::new(".");
    let result = match Arguments::parse().measurement {
        Measurement::Judge(options) => judge::run(root, &options),
        Measurement::Money { data } => money::run(root, data.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
