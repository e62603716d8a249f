//! `plimsoll mock`: a strict mock server until Ctrl-C, for tests of any client. What it is and says is
//! the library's.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use plimsoll::mock::{Mock, Recorded, Script, Server};
use plimsoll::wire::openai_chat::Dialect;
use serde_json::json;

use crate::exit::{DONE, Stop};
use crate::input;
use crate::out::out;

const EXAMPLES: &str = "\
Examples:
  plimsoll mock --script turns.jsonl --window 8192
  plimsoll mock --dialect llama.cpp --port 8080 --script - < turns.jsonl
  plimsoll run --base-url http://127.0.0.1:8080/v1 --model compatible/mock \"Try it\"

The script has one turn a line:
  {\"think\": \"…\", \"say\": \"Let me look.\", \"call\": [{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}]}
  {\"fail\": 429, \"message\": \"Rate limit reached\", \"retry_after\": 1}
  {\"say\": \"It breaks off\", \"cut\": true}
  {\"say\": \"And so on\", \"slow_ms\": 20, \"repeat\": true}

It judges each request as the real server would and refuses it in its words; it reports what a
prompt cache would have held. The first line on standard output is its address. At the end it says
what it was asked.";

/// The arguments of `plimsoll mock`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MockArgs {
    /// Whose rules and words: openai, llama.cpp, vllm, ollama, mistral, deepseek …
    #[arg(long, default_value = "openai", value_name = "NAME")]
    dialect: String,
    /// What it says, a turn a line; `-` is standard input
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Its window in tokens; what is longer is refused
    #[arg(long, value_name = "TOKENS")]
    window: Option<u64>,
    /// Cut what is over the window without a word, as some local servers do
    #[arg(long, requires = "window")]
    silent: bool,
    /// Refuse larger requests as too many tokens for a minute (413)
    #[arg(long, value_name = "TOKENS")]
    tokens_per_minute: Option<u64>,
    /// Refuse every Nth request as one too many (429)
    #[arg(long, value_name = "N")]
    busy_every: Option<u64>,
    /// Where it listens on this machine [default: a free port]
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    port: u16,
    /// Print what it was asked as JSON lines at the end
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) async fn run(args: &MockArgs) -> Result<u8, Stop> {
    let server = Server::start(mock(args)?).await.map_err(Stop::usage)?;
    out!("{}/v1", server.address());
    crate::note(&format!(
        "{} │ window {} │ {} turns │ Ctrl-C ends it",
        args.dialect,
        args.window
            .map_or("none".to_owned(), |window| window.to_string()),
        server.turns_left(),
    ));
    tokio::signal::ctrl_c().await.map_err(Stop::failed)?;
    let asked = server.requests();
    for request in asked.iter().filter(|_| args.json) {
        let Recorded {
            path,
            body,
            status,
            tokens,
            ..
        } = request;
        out!(
            "{}",
            json!({"path": path, "status": status, "tokens": tokens, "body": body})
        );
    }
    let refused = asked.iter().filter(|request| request.status != 200).count();
    crate::note(&format!(
        "{} requests, {refused} of them refused, {} turns left",
        asked.len(),
        server.turns_left()
    ));
    Ok(DONE)
}

fn mock(args: &MockArgs) -> Result<Mock, Stop> {
    let mut mock = Mock::chat(&args.dialect).map_err(|error| {
        Stop::usage(match plimsoll::nearest(&args.dialect, Dialect::NAMES) {
            Some(near) => format!("{error}; did you mean `{near}`?"),
            None => error.to_string(),
        })
    })?;
    if let Some(path) = &args.script {
        let path = (path.as_os_str() != "-").then_some(path.as_path());
        let text = input::whole(input::open(path)?)?;
        mock = mock.script(Script::parse(&text).map_err(Stop::usage)?);
    }
    if let Some(window) = args.window {
        mock = mock.window(window);
    }
    if args.silent {
        mock = mock.cuts_silently();
    }
    if let Some(tokens) = args.tokens_per_minute {
        mock = mock.tokens_per_minute(tokens);
    }
    if let Some(requests) = args.busy_every {
        mock = mock.busy_every(requests);
    }
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    Ok(mock.address(SocketAddr::new(here, args.port)))
}
