//! `plimsoll-mock`: runs a strict mock server until Ctrl-C, for developers of clients.

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![warn(clippy::indexing_slicing, clippy::string_slice)]
#![warn(clippy::print_stdout, clippy::print_stderr)]

use std::fmt;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Parser, ValueEnum, value_parser};
use plimsoll_mock::{Mock, RecordedRequest, RequestTotals, Script, Server};
use plimsoll_providers::responses_profile;
use plimsoll_wire::openai_chat::Dialect;
use serde_json::json;

/// The exit code for a failure.
const FAILED: u8 = 1;
/// The exit code for wrong usage.
const USAGE: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  plimsoll-mock --script turns.jsonl --window 8192
  plimsoll-mock --dialect llama.cpp --port 8080 --script - < turns.jsonl
  plimsoll-mock --protocol anthropic --script turns.jsonl --model claude-sonnet-4-5
  plimsoll-mock --protocol gemini --script turns.jsonl --model gemini-2.5-pro
  plimsoll-mock --protocol openai-responses --script turns.jsonl --record requests/
  plimsoll run --base-url http://127.0.0.1:8080/v1 --model compatible/mock \"Try it\"

The script has one turn a line:
  {\"think\": \"…\", \"say\": \"Let me look.\", \"call\": [{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}]}
  {\"fail\": 429, \"message\": \"Rate limit reached\", \"retry_after\": 1}
  {\"say\": \"It begins well\", \"fail_in_stream\": 529}
  {\"say\": \"It breaks off\", \"cut\": true}
  {\"say\": \"And so on\", \"slow_ms\": 20, \"repeat\": true}

The server refuses what the real API refuses, with the same words, and reports the usage of a \
prompt cache. The first line on standard output is its address; at the end it prints a summary of \
the requests. docs/mock.md describes all keys.";

/// Start a strict mock server of a model API, to test any client.
#[derive(Debug, Parser)]
#[command(name = "plimsoll-mock", version, after_help = EXAMPLES, max_term_width = 100)]
struct MockArgs {
    /// The API to speak
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    protocol: Protocol,
    /// With --protocol openai: the server to imitate, such as openai, llama.cpp, vllm or mistral
    #[arg(long, value_name = "NAME", value_parser = dialects(), hide_possible_values = true)]
    dialect: Option<String>,
    /// A model to list; may be repeated. Requests may name any model
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// File with the answers, one turn per line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Context window in tokens; longer requests are refused
    #[arg(long, value_name = "TOKENS", value_parser = value_parser!(u64).range(1..))]
    window: Option<u64>,
    /// Silently cut requests that exceed the window, as some local servers do
    #[arg(long, requires = "window")]
    silent: bool,
    /// Report a full window within the stream, if the API can do that
    #[arg(long, requires = "window", conflicts_with = "silent")]
    in_stream: bool,
    /// Refuse larger requests with the API's tokens-per-minute error
    #[arg(long, value_name = "TOKENS", value_parser = value_parser!(u64).range(1..))]
    tokens_per_minute: Option<u64>,
    /// Refuse every Nth request with error 429
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    busy_every: Option<u64>,
    /// Port on the loopback interface [default: a free port]
    #[arg(
        long,
        default_value_t = 0,
        hide_default_value = true,
        value_name = "PORT"
    )]
    port: u16,
    /// Print the requests as JSON lines at the end
    #[arg(long)]
    json: bool,
    /// Write the exact body of each request into this folder at the end. The bodies contain
    /// whatever the client sent, including secrets
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
}

/// An API, by its prefix in model names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Protocol {
    /// Chat Completions, in any dialect
    #[default]
    Openai,
    /// OpenAI Responses
    OpenaiResponses,
    /// Anthropic Messages
    Anthropic,
    /// Gemini's generateContent
    Gemini,
}

/// The error that ends the program: its exit code and one sentence.
type Fault = (u8, String);

#[tokio::main]
async fn main() -> ExitCode {
    match serve(&MockArgs::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, text)) => {
            note(format_args!("plimsoll-mock: {text}"));
            ExitCode::from(code)
        }
    }
}

/// Serves until Ctrl-C, then reports the requests.
async fn serve(args: &MockArgs) -> Result<(), Fault> {
    let mock = mock(args)?;
    let speaks = match mock.protocol() {
        "openai" => format!("openai ({})", dialect(args)),
        other => other.to_owned(),
    };
    let server = Server::start(mock).await.map_err(usage)?;
    print(format_args!("{}", server.base_url()))?;
    let window = args
        .window
        .map_or("none".to_owned(), |size| size.to_string());
    let turns = counted(server.turns_left() as u64, "turn");
    note(format_args!(
        "{speaks} │ window {window} │ {turns} │ Ctrl-C stops it"
    ));
    tokio::signal::ctrl_c().await.map_err(failed)?;
    let requests = server.requests();
    if let Some(folder) = &args.record {
        write_bodies(folder, &requests)?;
    }
    for request in requests.iter().filter(|_| args.json) {
        let fault = request.fault.as_ref().map(ToString::to_string);
        let (path, status, tokens) = (&request.path, request.status, request.tokens);
        let line = json!({"path": path, "status": status, "tokens": tokens, "fault": fault, "body": request.body});
        print(format_args!("{line}"))?;
    }
    let RequestTotals { asked, refused } = server.tally();
    note(format_args!(
        "{}, {refused} of them refused, {} left",
        counted(asked, "request"),
        counted(server.turns_left() as u64, "turn")
    ));
    Ok(())
}

/// Writes each body to a file such as `0001-v1-messages.json`.
fn write_bodies(folder: &Path, requests: &[RecordedRequest]) -> Result<(), Fault> {
    let unwritable = |path: &Path, error| {
        failed(format_args!(
            "{} cannot be written: {error}; choose another folder for --record",
            path.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    let with_body = requests.iter().filter(|request| !request.raw.is_empty());
    for (number, request) in (1..).zip(with_body) {
        let name = request.path.trim_matches('/').replace('/', "-");
        let path = folder.join(format!("{number:04}-{name}.json"));
        std::fs::write(&path, &request.raw).map_err(|error| unwritable(&path, error))?;
    }
    Ok(())
}

/// Returns the names of the dialects.
fn dialects() -> PossibleValuesParser {
    Dialect::names().collect::<Vec<_>>().into()
}

fn dialect(args: &MockArgs) -> &str {
    args.dialect.as_deref().unwrap_or("openai")
}

fn mock(args: &MockArgs) -> Result<Mock, Fault> {
    let mut mock = match (args.protocol, &args.dialect) {
        (Protocol::Openai, _) => Mock::chat(dialect(args)).map_err(usage)?,
        (_, Some(dialect)) => {
            return Err(usage(format_args!(
                "`--dialect {dialect}` is for `--protocol openai`; leave one of them out"
            )));
        }
        (Protocol::OpenaiResponses, None) => Mock::responses_by(responses_profile),
        (Protocol::Anthropic, None) => Mock::messages(),
        (Protocol::Gemini, None) => Mock::gemini(),
    };
    if !args.model.is_empty() {
        mock = mock.models(args.model.iter().cloned());
    }
    if let Some(path) = &args.script {
        mock = mock.script(Script::parse(&read(path)?).map_err(usage)?);
    }
    if let Some(window) = args.window {
        mock = mock.window(window);
    }
    if args.silent {
        mock = mock.cuts_silently();
    }
    if args.in_stream {
        mock = mock.overflows_in_stream();
    }
    if let Some(tokens) = args.tokens_per_minute {
        mock = mock.tokens_per_minute(tokens);
    }
    if let Some(requests) = args.busy_every {
        mock = mock.busy_every(requests);
    }
    Ok(mock.address(SocketAddr::from((Ipv4Addr::LOCALHOST, args.port))))
}

/// Reads a script, or standard input for `-`.
fn read(path: &Path) -> Result<String, Fault> {
    let text = if path.as_os_str() == "-" {
        io::read_to_string(io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    text.map_err(|error| usage(format_args!("{} cannot be read: {error}", path.display())))
}

/// Returns a number with its noun, for example "1 turn" or "2 turns".
fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// Writes one line to standard output.
fn print(line: fmt::Arguments<'_>) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .map_err(|error| failed(format_args!("the output cannot be written: {error}")))
}

/// Writes one line to standard error. Nobody may be reading it, which does not matter.
fn note(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

fn usage(text: impl fmt::Display) -> Fault {
    (USAGE, text.to_string())
}

fn failed(text: impl fmt::Display) -> Fault {
    (FAILED, text.to_string())
}
