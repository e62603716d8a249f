//! `plimsoll mock`: runs a strict mock server until Ctrl-C. The server is implemented in
//! `plimsoll::mock`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, value_parser};
use plimsoll::mock::{Mock, RecordedRequest, RequestTotals, Script, Server};
use plimsoll::providers::responses_profile;
use plimsoll::wire::openai_chat::Dialect;
use serde_json::json;

use crate::error::{CliError, DONE};
use crate::input;
use crate::terminal::text::counted;

const EXAMPLES: &str = "\
Examples:
  plimsoll mock --script turns.jsonl --window 8192
  plimsoll mock --dialect llama.cpp --port 8080 --script - < turns.jsonl
  plimsoll mock --protocol anthropic --script turns.jsonl --model claude-sonnet-4-5
  plimsoll mock --protocol gemini --script turns.jsonl --model gemini-2.5-pro
  plimsoll mock --protocol openai-responses --script turns.jsonl --record requests/
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

/// The arguments of `plimsoll mock`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MockArgs {
    /// The API to speak
    #[arg(long, value_enum, default_value_t, value_name = "NAME")]
    protocol: Protocol,
    /// With --protocol openai: the server to imitate, such as openai, llama.cpp, vllm or mistral
    #[arg(long, value_name = "NAME")]
    dialect: Option<String>,
    /// A model to list; may be repeated. Requests may name any model
    #[arg(long, value_name = "NAME")]
    model: Vec<String>,
    /// File with the answers, one turn per line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Context window in tokens; longer requests are refused
    #[arg(long, value_name = "TOKENS", value_parser = crate::args::some_tokens, allow_hyphen_values = true)]
    window: Option<u64>,
    /// Silently cut requests that exceed the window, as some local servers do
    #[arg(long, requires = "window")]
    silent: bool,
    /// Report a full window within the stream, if the API can do that
    #[arg(long, requires = "window", conflicts_with = "silent")]
    in_stream: bool,
    /// Refuse larger requests with the API's tokens-per-minute error
    #[arg(long, value_name = "TOKENS", value_parser = crate::args::some_tokens, allow_hyphen_values = true)]
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

/// Runs the command.
pub(crate) async fn run(args: &MockArgs) -> Result<u8, CliError> {
    let mock = mock(args)?;
    let speaks = match mock.protocol() {
        "openai" => format!("openai ({})", dialect(args)),
        other => other.to_owned(),
    };
    let server = Server::start(mock).await.map_err(CliError::usage)?;
    out!("{}", server.base_url());
    note!(
        "{speaks} │ window {} │ {} │ Ctrl-C stops it",
        args.window
            .map_or("none".to_owned(), |window| window.to_string()),
        counted(server.turns_left(), "turn"),
    );
    tokio::signal::ctrl_c().await.map_err(CliError::failed)?;
    let asked = server.requests();
    if let Some(folder) = &args.record {
        write_bodies(folder, &asked)?;
    }
    for request in asked.iter().filter(|_| args.json) {
        let RecordedRequest {
            path,
            body,
            status,
            tokens,
            fault,
            ..
        } = request;
        let fault = fault.as_ref().map(ToString::to_string);
        out!(
            "{}",
            json!({"path": path, "status": status, "tokens": tokens, "fault": fault, "body": body})
        );
    }
    let RequestTotals { asked, refused } = server.tally();
    note!(
        "{}, {refused} of them refused, {} left",
        counted(asked, "request"),
        counted(server.turns_left(), "turn")
    );
    Ok(DONE)
}

/// Writes each body to a file such as `0001-v1-messages.json`.
fn write_bodies(folder: &Path, requests: &[RecordedRequest]) -> Result<(), CliError> {
    let failed = |path: &Path, error| {
        CliError::failed(format!(
            "{} cannot be written: {error}; choose another folder for --record",
            path.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let with_body = requests.iter().filter(|request| !request.raw.is_empty());
    for (number, request) in (1..).zip(with_body) {
        let name = request.path.trim_matches('/').replace('/', "-");
        let path = folder.join(format!("{number:04}-{name}.json"));
        std::fs::write(&path, &request.raw).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

fn dialect(args: &MockArgs) -> &str {
    args.dialect.as_deref().unwrap_or("openai")
}

fn mock(args: &MockArgs) -> Result<Mock, CliError> {
    let mut mock = match (args.protocol, &args.dialect) {
        (Protocol::Openai, _) => chat(dialect(args))?,
        (_, Some(dialect)) => {
            return Err(CliError::usage(format!(
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
        let path = (path.as_os_str() != "-").then_some(path.as_path());
        let text = input::whole(input::open(path)?)?;
        mock = mock.script(Script::parse(&text).map_err(CliError::usage)?);
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
    if !args.json && args.record.is_none() {
        mock = mock.keeps_outlines();
    }
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Ok(mock.address(SocketAddr::new(here, args.port)))
}

fn chat(dialect: &str) -> Result<Mock, CliError> {
    Mock::chat(dialect).map_err(|error| {
        CliError::usage(match plimsoll::context::nearest(dialect, Dialect::NAMES) {
            Some(near) => format!("{error}; did you mean `{near}`?"),
            None => error.to_string(),
        })
    })
}
