//! `plimsoll compact`: compacts a chat to a budget, on any of the three protocols. It needs no
//! model and no network, and its output is deterministic.

mod compact_chat;
pub(crate) mod filter;

use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, ScopedJoinHandle, available_parallelism};

use clap::Args;
use clap::builder::PossibleValuesParser;
use plimsoll::config::COUNTERS;
use plimsoll::foreign::Target;
use plimsoll::tokens::TokenCounter;

use crate::chat_file;
use crate::error::{CliError, DONE, FAILED};
use crate::input::{self, InputChat};

use compact_chat::{CompactedChat, compact};

/// The arguments of `plimsoll compact`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/compact.txt").trim_ascii_end())]
pub(crate) struct CompactArgs {
    /// The chat; `-` is standard input [default: standard input]
    pub(crate) file: Option<PathBuf>,
    /// Maximum size of the chat in tokens, such as 8000 or 100k; `budget_tokens` beside the
    /// messages overrides it
    #[arg(long, visible_alias = "max-tokens", value_name = "TOKENS", value_parser = crate::args::tokens, allow_hyphen_values = true)]
    pub(crate) budget: Option<u64>,
    /// How to compact; extract evicts messages and quotes their most important parts in a summary, without a model
    #[arg(long, default_value = "extract", value_name = "NAME", value_parser = PossibleValuesParser::new(filter::names()))]
    pub(crate) policy: String,
    /// The protocol [default: detected]
    #[arg(long, value_name = "NAME", value_parser = Target::PROTOCOLS, conflicts_with = "model")]
    pub(crate) protocol: Option<String>,
    /// Apply the rules of this model's API, as PROVIDER/NAME
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Token counter
    #[arg(long, default_value = "o200k", value_name = "NAME", value_parser = COUNTERS)]
    pub(crate) counter: String,
    /// Read one chat per line and print one per line; for a line that fails, print {"error": …} and
    /// continue
    #[arg(long)]
    pub(crate) lines: bool,
    /// Print nothing to stderr
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Runs the filter.
pub(crate) fn run(args: &CompactArgs) -> Result<u8, CliError> {
    let counter = chat_file::counter(&args.counter)?;
    if args.lines {
        return lines(args, &counter, input::open(args.file.as_deref())?);
    }
    let given = input::chat(args.file.as_deref())?;
    let compacted = compact(args, &counter, given)?;
    compacted.report("");
    crate::stdout::exactly(&compacted.json)?;
    Ok(DONE)
}

/// Compacts one request per line on all cores, and prints the answers in the order of the lines. If a
/// line fails, its answer is the error, and the other lines are still compacted.
fn lines(
    args: &CompactArgs,
    counter: &Arc<dyn TokenCounter>,
    mut input: Box<dyn BufRead>,
) -> Result<u8, CliError> {
    let lines = std::iter::from_fn(|| input::line(&mut input));
    thread::scope(|scope| {
        // Each line has a thread of its own. The bound limits their number.
        let (order, answers) = sync_channel(available_parallelism().map_or(1, usize::from));
        let printer = scope.spawn(move || print(answers));
        for line in lines {
            let answer = scope.spawn(move || compact(args, counter, InputChat::of_body(line?)));
            // If nobody reads the output, the printer has ended.
            if order.send(answer).is_err() {
                break;
            }
        }
        drop(order);
        printer.join().unwrap_or_else(|_| Err(panicked()))
    })
}

/// Prints the answers in their order. Returns the exit code.
fn print(
    answers: Receiver<ScopedJoinHandle<'_, Result<CompactedChat, CliError>>>,
) -> Result<u8, CliError> {
    let mut code = DONE;
    for (number, answer) in (1..).zip(answers) {
        let answer = match answer.join().map_err(|_| panicked())? {
            Ok(compacted) => {
                compacted.report(&format!("line {number}: "));
                compacted.json.trim().to_owned()
            }
            Err(stop) => {
                code = FAILED;
                serde_json::json!({ "error": stop.text }).to_string()
            }
        };
        out!("{answer}");
    }
    Ok(code)
}

fn panicked() -> CliError {
    CliError::failed("a line could not be compacted")
}
