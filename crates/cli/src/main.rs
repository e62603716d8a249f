//! The binary `plimsoll`: arguments in, exit code out. Every decision is made below this floor.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a command line does")]

mod args;
mod chat_file;
mod compact;
mod count;
mod exit;
mod input;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let code = match &cli.command {
        Command::Compact(args) => compact::run(args),
        Command::Count(args) => count::run(args),
        _ => Err(exit::Stop::failed("not yet")),
    };
    match code {
        Ok(code) => ExitCode::from(code),
        Err(stop) => {
            eprintln!("plimsoll: {stop}");
            ExitCode::from(stop.code)
        }
    }
}

/// Says something to the person, never to the pipe.
fn say(text: &str) {
    eprintln!("plimsoll: {text}");
}
