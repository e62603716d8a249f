//! The MCP servers (`[[mcp]]`) of a command: connected before the first run, reported, refreshed
//! between runs, and closed with the command.

use std::sync::{Arc, Mutex};

use plimsoll::Tool;
use plimsoll::config::{AgentConfig, McpServer};
use plimsoll::tools::mcp::{McpServers, McpState, McpStatus};

use crate::error::CliError;
use crate::lock;
use crate::terminal::text::{counted, one_line};

/// Connects to the servers of an agent and of its sub-agents.
pub(crate) async fn start(
    agent: &AgentConfig,
    is_quiet: bool,
) -> Result<Arc<McpServers>, CliError> {
    let told = |status: &McpStatus| {
        if !is_quiet {
            for line in lines(status) {
                crate::say(&line);
            }
        }
    };
    Ok(Arc::new(connect(agent, &agent.mcp(), told).await?))
}

/// Connects to servers as an agent would. Returns lines about them and their tools, and whether all of
/// them are available.
pub(crate) async fn check(
    agent: &AgentConfig,
    servers: &[&McpServer],
) -> Result<(Vec<String>, bool), CliError> {
    let statuses = Mutex::new(Vec::new());
    let told = |status: &McpStatus| lock(&statuses).push(status.clone());
    let mcp = connect(agent, servers, told).await?;
    let tools = mcp.tools(&[]);
    mcp.close().await;
    let statuses = lock(&statuses);
    let all_there = !statuses
        .iter()
        .any(|status| matches!(status.state, McpState::Absent(_)));
    let servers = statuses.iter().flat_map(lines);
    let lines = servers.chain(tools.iter().map(|tool| described(&**tool)));
    Ok((lines.collect(), all_there))
}

/// Describes a tool in one line.
fn described(tool: &dyn Tool) -> String {
    let spec = tool.spec();
    let asks = if tool.asks() { " (asks)" } else { "" };
    let does = one_line(&spec.description);
    format!("  {}{asks}  {does}", spec.name)
        .trim_end()
        .to_owned()
}

/// Connects to servers. `told` receives the status of each.
async fn connect(
    agent: &AgentConfig,
    servers: &[&McpServer],
    told: impl Fn(&McpStatus) + Send + Sync,
) -> Result<McpServers, CliError> {
    let variables = &plimsoll::providers::environment;
    let inherited = agent.inherited_variables(variables);
    let root = &agent.settings().root;
    let mut clients = Vec::new();
    for server in servers {
        match server.client(root, variables, &inherited) {
            Ok(client) => clients.push(client),
            Err(error) if server.required => {
                let cure = "set it, or remove the server from the configuration";
                return Err(CliError::usage(format!("{error}; {cure}")));
            }
            Err(error) => told(&McpStatus {
                name: server.name.clone(),
                state: McpState::Absent(error),
                notes: Vec::new(),
            }),
        }
    }
    Ok(McpServers::connect(clients, told).await?)
}

/// Describes the state of a server, and the tools that were left out.
fn lines(status: &McpStatus) -> Vec<String> {
    let name = &status.name;
    let first = match &status.state {
        McpState::Ready(tools) => format!("MCP server {name}: {}", counted(*tools, "tool")),
        McpState::Absent(error) => format!("{error}; its tools are left out"),
    };
    let notes = status.notes.iter();
    let notes = notes.map(|note| format!("MCP server {name}: {note}"));
    std::iter::once(first).chain(notes).collect()
}
