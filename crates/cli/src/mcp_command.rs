//! `plimsoll mcp`: adds, lists and tries MCP servers of a configuration. The module `mcp` connects
//! to them.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use plimsoll::config::{CONFIG_FILE, Config, McpReach, McpServer};
use serde_json::json;

use crate::error::{CliError, DONE, FAILED};
use crate::mcp;
use crate::settings::{Sources, users_file};

const EXAMPLES: &str = "\
Examples:
  plimsoll mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  plimsoll mcp add tracker --url https://mcp.example.com/mcp --bearer-env TRACKER_TOKEN
  plimsoll mcp list
  plimsoll mcp test files
  plimsoll mcp remove files

A server is added to your own configuration, for all directories. With --project it is added to \
the plimsoll.toml of this directory, which must then be trusted again with `plimsoll config \
trust`.";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct McpArgs {
    /// What to do.
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Add a server to a configuration
    Add(AddArgs),
    /// Remove a server from a configuration
    Remove {
        /// Its name
        name: String,
        /// Remove it from plimsoll.toml in this directory
        #[arg(long)]
        project: bool,
    },
    /// List the servers that runs in this directory have, without connecting to them
    List {
        /// Print JSON lines
        #[arg(long)]
        json: bool,
    },
    /// Connect to the servers and list their tools; exit code 1 if one cannot be reached
    Test {
        /// Only this server
        name: Option<String>,
    },
}

#[derive(Debug, Args)]
struct AddArgs {
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
pub(crate) async fn run(args: &McpArgs) -> Result<u8, CliError> {
    match &args.command {
        McpCommand::Add(args) => add(args),
        McpCommand::Remove { name, project } => remove(name, *project),
        McpCommand::List { json } => list(*json),
        McpCommand::Test { name } => test(name.as_deref()).await,
    }
}

/// Returns the configuration of this directory, or the user's own.
fn file(project: bool) -> Result<PathBuf, CliError> {
    if project {
        return Ok(PathBuf::from(CONFIG_FILE));
    }
    users_file().ok_or_else(|| {
        CliError::usage(
            "there is no directory for your own configuration; set PLIMSOLL_HOME, or use --project",
        )
    })
}

fn remove(name: &str, project: bool) -> Result<u8, CliError> {
    let path = file(project)?;
    let shown = path.display();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(CliError::failed(format!("{shown} cannot be read: {error}"))),
    };
    let names = |text: &str| {
        let config =
            Config::parse(text).map_err(|error| CliError::failed(format!("{shown}: {error}")))?;
        Ok::<_, CliError>(
            config
                .mcp()
                .iter()
                .map(|server| server.name.clone())
                .collect::<Vec<_>>(),
        )
    };
    let mut left = names(&text)?;
    if !left.iter().any(|server| server == name) {
        return Err(CliError::usage(format!(
            "{shown} has no server {name}; `plimsoll mcp list` lists those of all configurations"
        )));
    }
    left.retain(|server| server != name);
    let rest = without(&text, name);
    // Only exactly this server may be missing.
    if names(&rest).ok() != Some(left) {
        return Err(CliError::failed(format!(
            "{name} cannot be taken out of {shown}; remove its [[mcp]] table by hand"
        )));
    }
    // Written in place, so that the file keeps its permissions.
    std::fs::write(&path, rest)
        .map_err(|error| CliError::failed(format!("{shown} cannot be written: {error}")))?;
    say!("removed {name} from {shown}");
    Ok(DONE)
}

/// Returns a configuration without the `[[mcp]]` table of this name and its inner tables.
fn without(text: &str, name: &str) -> String {
    let mut tables: Vec<String> = vec![String::new()];
    for line in text.split_inclusive('\n') {
        let begins = line.starts_with('[') && !line.starts_with("[mcp.");
        match tables.last_mut() {
            Some(table) if !begins => table.push_str(line),
            _ => tables.push(line.to_owned()),
        }
    }
    let is_it = |table: &String| {
        let server = Config::parse(table).ok();
        server.is_some_and(|config| config.mcp().iter().any(|server| server.name == name))
    };
    tables.retain(|table| !is_it(table));
    tables.concat()
}

fn add(args: &AddArgs) -> Result<u8, CliError> {
    let path = file(args.project)?;
    let shown = path.display();
    let failed = |error| CliError::failed(format!("{shown} cannot be written: {error}"));
    if let Some(folder) = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(false);
    let mut file = options.open(&path).map_err(failed)?;
    let mut text = String::new();
    file.read_to_string(&mut text)
        .map_err(|error| match error.kind() {
            ErrorKind::InvalidData => CliError::failed(format!("{shown} is not UTF-8")),
            _ => failed(error),
        })?;
    let table = table(args);
    let separator = match text.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    // The new content is validated before anything is written.
    let whole = format!("{text}{separator}{table}");
    let had =
        Config::parse(&text).map_err(|error| CliError::failed(format!("{shown}: {error}")))?;
    if had.mcp().iter().any(|server| server.name == args.name) {
        let name = &args.name;
        return Err(CliError::usage(format!(
            "{shown} has a server {name} already; choose another name"
        )));
    }
    Config::parse(&whole)
        .map_err(|error| CliError::usage(format!("nothing was added: {error}")))?;
    let end = file.seek(SeekFrom::End(0)).map_err(failed)?;
    let added = file.write_all(format!("{separator}{table}").as_bytes());
    if let Err(error) = added.and_then(|()| file.sync_all()) {
        // Restore the previous content.
        let _ = file.set_len(end);
        return Err(failed(error));
    }
    say!(
        "added {} to {shown}; `plimsoll mcp test {}` tries it",
        args.name,
        args.name
    );
    Ok(DONE)
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
        lines.extend(
            value
                .as_ref()
                .map(|value| format!("{key} = {}", quoted(value))),
        );
    }
    lines.join("\n") + "\n"
}

fn list(as_json: bool) -> Result<u8, CliError> {
    let config = Sources::default().read().map_err(CliError::usage)?;
    if config.mcp().is_empty() && !as_json {
        crate::say("no MCP servers are configured; `plimsoll mcp add` adds one");
    }
    let width = config
        .mcp()
        .iter()
        .map(|server| server.name.chars().count());
    let width = width.max().unwrap_or(0);
    for server in config.mcp() {
        let reach = reach(server);
        if as_json {
            out!("{}", json!({ "name": server.name, "reach": reach }))
        } else {
            out!("{:<width$}  {reach}", server.name)
        }
    }
    Ok(DONE)
}

/// Returns the command or the address of a server, without environment variables and headers, which
/// may be secret.
fn reach(server: &McpServer) -> String {
    match &server.reach {
        McpReach::Command { command, args, .. } => {
            let words = std::iter::once(command).chain(args);
            words.cloned().collect::<Vec<_>>().join(" ")
        }
        McpReach::Url { url, .. } => url.clone(),
    }
}

async fn test(name: Option<&str>) -> Result<u8, CliError> {
    let sources = Sources::default();
    let config = sources.read().map_err(CliError::usage)?;
    let servers = config.mcp().iter();
    let servers = servers.filter(|server| name.is_none_or(|name| server.name == name));
    let servers: Vec<McpServer> = servers.cloned().collect();
    if servers.is_empty() {
        return Err(CliError::usage(match name {
            Some(name) => format!("there is no server {name}; `plimsoll mcp list` lists them"),
            None => "no MCP servers are configured; `plimsoll mcp add` adds one".to_owned(),
        }));
    }
    let agent = config.defaults().map_err(CliError::usage)?;
    let (told, all_there) = mcp::check(&agent, &servers).await;
    for line in told {
        out!("{line}");
    }
    Ok(if all_there { DONE } else { FAILED })
}
