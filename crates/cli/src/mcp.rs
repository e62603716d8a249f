//! The MCP servers (`[[mcp]]`) of a command: connected before the first run, and reported.

use std::time::Duration;

use plimsoll::config::{AgentConfig, McpServer};
use plimsoll::tools::mcp::{McpServers, McpState, McpStatus};

use crate::error::CliError;
use crate::terminal::text::counted;

/// Connects to servers, and reports the state of each unless `is_quiet`. No server takes longer than a run may.
pub(crate) async fn connect(
    agent: &AgentConfig,
    servers: &[&McpServer],
    is_quiet: bool,
) -> Result<McpServers, CliError> {
    let report = |status: &McpStatus| {
        if !is_quiet {
            lines(status).iter().for_each(|line| crate::say(line));
        }
    };
    let variables = &plimsoll::providers::environment;
    let inherited = agent.inherited_variables(variables);
    let root = &agent.settings().root;
    let limit = agent.settings().builder.limits.max_duration;
    let limit = limit.unwrap_or(Duration::MAX);
    let mut clients = Vec::new();
    for server in servers {
        match server.client(root, variables, &inherited) {
            Ok(client) => clients.push(client.timeout(server.timeout.min(limit))),
            Err(error) if server.required => {
                let cure = "set it, or remove the server from the configuration";
                return Err(CliError::usage(format!("{error}; {cure}")));
            }
            Err(error) => report(&McpStatus {
                name: server.name.clone(),
                state: McpState::Absent(error),
                notes: Vec::new(),
            }),
        }
    }
    Ok(McpServers::connect(clients, report).await?)
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
