//! `plimsoll mcp`: adds and tries MCP servers of a configuration. The module `mcp` connects
//! to them.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use plimsoll::Tool;
use plimsoll::config::{CONFIG_FILE, Config, ConfigError, McpServer};
use plimsoll::tools::mcp::McpState;

use crate::error::{CliError, DONE, FAILED};
use crate::mcp;
use crate::settings::{Sources, users_file};
use crate::terminal::text::{clean, one_line};

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Add a server to a configuration
    Add(AddArgs),
    /// Connect to the servers and list their tools; exit code 1 if one cannot be reached
    Test {
        /// Only this server
        name: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct AddArgs {
    /// Its name
    name: String,
    /// The program and its arguments, after `--`
    #[arg(last = true, required_unless_present = "url", conflicts_with = "url")]
    command: Vec<String>,
    /// The address of a server that runs elsewhere
    #[arg(long)]
    url: Option<String>,
    /// The environment variable that contains its token
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    bearer_env: Option<String>,
    /// Add it to plimsoll.toml in this directory
    #[arg(long)]
    project: bool,
}

/// Runs the command.
pub(crate) async fn run(command: &McpCommand) -> Result<u8, CliError> {
    match command {
        McpCommand::Add(args) => add(args),
        McpCommand::Test { name } => test(name.as_deref()).await,
    }
}

/// Returns the text of a configuration, which need not exist.
fn read(path: &Path) -> Result<String, CliError> {
    match std::fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        text => text.map_err(|error| {
            CliError::failed(format!("{} cannot be read: {error}", path.display()))
        }),
    }
}

/// Adds a text to a file, which need not exist.
fn append(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(text.as_bytes())
}

fn add(args: &AddArgs) -> Result<u8, CliError> {
    let path = if args.project {
        Some(PathBuf::from(CONFIG_FILE))
    } else {
        users_file()
    };
    let path = path.ok_or_else(|| {
        CliError::usage(
            "there is no directory for your own configuration; set PLIMSOLL_HOME, or use --project",
        )
    })?;
    let shown = path.display();
    let text = read(&path)?;
    Config::parse(&text).map_err(|error| CliError::failed(format!("{shown}: {error}")))?;
    let separator = match text.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let table = format!("{separator}{}", table(args));
    // The new content is validated before anything is written.
    Config::parse(&format!("{text}{table}"))
        .map_err(|error| CliError::usage(format!("nothing was added: {}", faults(&error))))?;
    append(&path, &table)
        .map_err(|error| CliError::failed(format!("{shown} cannot be written: {error}")))?;
    let name = &args.name;
    let trust = if args.project {
        "trust it with `plimsoll config trust`, then "
    } else {
        ""
    };
    say!("added {name} to {shown}; {trust}`plimsoll mcp test {name}` tries it");
    Ok(DONE)
}

/// Returns the faults of a text, without their places in it.
fn faults(error: &ConfigError) -> String {
    let texts = error.faults.iter().map(|fault| fault.text.as_str());
    texts.collect::<Vec<_>>().join("; ")
}

/// Returns the server as a table of a configuration.
fn table(args: &AddArgs) -> String {
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let mut lines = vec![
        "[[mcp]]".to_owned(),
        format!("name = {}", quoted(&args.name)),
    ];
    if let [command, rest @ ..] = args.command.as_slice() {
        lines.push(format!("command = {}", quoted(command)));
        if !rest.is_empty() {
            let rest: Vec<String> = rest.iter().map(|word| quoted(word)).collect();
            lines.push(format!("args = [{}]", rest.join(", ")));
        }
    }
    let named = [("url", &args.url), ("bearer_env", &args.bearer_env)];
    for (key, value) in named {
        let value = value.as_ref();
        lines.extend(value.map(|value| format!("{key} = {}", quoted(value))));
    }
    lines.join("\n") + "\n"
}

/// Connects to the servers as a run would, and lists their tools.
async fn test(name: Option<&str>) -> Result<u8, CliError> {
    let config = Sources::default().read()?;
    let servers = config.mcp().iter();
    let servers = servers.filter(|server| name.is_none_or(|name| server.name == name));
    let servers: Vec<&McpServer> = servers.collect();
    if servers.is_empty() {
        return Err(CliError::usage(match name {
            Some(name) => {
                format!("there is no server {name}; `plimsoll mcp test` tries all of them")
            }
            None => "no MCP servers are configured; `plimsoll mcp add` adds one".to_owned(),
        }));
    }
    let connected = mcp::connect(&config.defaults()?, &servers, false).await?;
    for tool in connected.tools(&[]) {
        out!("{}", clean(&described(&*tool)));
    }
    let states = connected.status().into_iter();
    let available = states.filter(|of| matches!(of.state, McpState::Ready(_)));
    let is_complete = available.count() == servers.len();
    connected.close().await;
    Ok(if is_complete { DONE } else { FAILED })
}

/// Describes a tool in one line.
fn described(tool: &dyn Tool) -> String {
    let spec = tool.spec();
    let asks = if tool.asks() { " (asks)" } else { "" };
    let line = format!("{}{asks}  {}", spec.name, one_line(&spec.description));
    line.trim_end().to_owned()
}
