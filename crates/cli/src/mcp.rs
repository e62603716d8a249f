//! The MCP servers (`[[mcp]]`) of a command: connected before the first run, reported, refreshed
//! between runs, and closed with the command.

use std::sync::{Arc, Mutex};

use plimsoll::Tool;
use plimsoll::config::{AgentConfig, McpServer};
use plimsoll::tools::mcp::{McpError, McpServers, McpState, McpStatus};

use crate::error::CliError;
use crate::lock;
use crate::terminal::Verbosity;
use crate::terminal::text::one_line;

/// The servers of a command; `None` if none are configured.
#[derive(Clone, Default)]
pub(crate) struct Mcp(Option<Arc<McpServers>>);

impl Mcp {
    /// Connects to the servers of an agent and of its sub-agents.
    pub(crate) async fn connect(agent: &AgentConfig, said: Verbosity) -> Result<Self, CliError> {
        let told = |status: &McpStatus| {
            if said == Verbosity::Everything {
                for line in lines(status) {
                    crate::say(&line);
                }
            }
        };
        connect(agent, &agent.mcp(), told).await
    }

    /// Returns the tools of an agent's servers, with names that differ from those of its other
    /// tools.
    pub(crate) fn tools(
        &self,
        agent: &AgentConfig,
        others: &[Arc<dyn Tool>],
    ) -> Vec<Arc<dyn Tool>> {
        let Self(Some(servers)) = self else {
            return Vec::new();
        };
        servers.tools_of(|name| agent.uses_mcp(name), others)
    }

    /// Refreshes the servers between two runs. Returns `true` if the tools have changed.
    pub(crate) async fn has_changed(&self) -> bool {
        match self {
            Self(Some(servers)) => servers.refresh().await,
            Self(None) => false,
        }
    }

    /// Closes the connections.
    pub(crate) async fn close(&self) {
        if let Self(Some(servers)) = self {
            servers.close().await;
        }
    }
}

/// Connects to servers as an agent would. Returns lines about each, and whether all of them are
/// available.
pub(crate) async fn check(agent: &AgentConfig, servers: &[McpServer]) -> (Vec<String>, bool) {
    connected(agent, servers, |_| Vec::new()).await
}

/// Like [`check`], with a line for each tool.
pub(crate) async fn check_tools(agent: &AgentConfig, servers: &[McpServer]) -> (Vec<String>, bool) {
    let tools = |servers: &McpServers| {
        let tools = servers.tools(&[]);
        tools.iter().map(|tool| described(&**tool)).collect()
    };
    connected(agent, servers, tools).await
}

async fn connected(
    agent: &AgentConfig,
    servers: &[McpServer],
    about: impl Fn(&McpServers) -> Vec<String>,
) -> (Vec<String>, bool) {
    let (mut told, mut all_there) = (Vec::new(), true);
    for server in servers {
        let statuses = Mutex::new(Vec::new());
        let mcp = connect(agent, &[server], |status| {
            lock(&statuses).push(status.clone())
        })
        .await;
        for status in &*lock(&statuses) {
            all_there &= !matches!(status.state, McpState::Absent(_));
            told.extend(lines(status));
        }
        match mcp {
            Ok(mcp) => {
                told.extend(mcp.0.iter().flat_map(|servers| about(servers)));
                mcp.close().await;
            }
            Err(stop) => {
                all_there = false;
                told.push(stop.to_string());
            }
        }
    }
    (told, all_there)
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
) -> Result<Mcp, CliError> {
    if servers.is_empty() {
        return Ok(Mcp(None));
    }
    let variables = &plimsoll::providers::environment;
    let inherited = agent.inherited_variables(variables);
    let root = &agent.settings().root;
    let mut clients = Vec::new();
    for server in servers {
        match server.client(root, variables, &inherited) {
            Ok(client) => clients.push(client),
            Err(why) if server.required => {
                let cure = "set it, or remove the server from the configuration";
                return Err(CliError::usage(format!("{why}; {cure}")));
            }
            Err(why) => told(&McpStatus {
                name: server.name.clone(),
                state: McpState::Absent(McpError::Unset { why }),
                notes: Vec::new(),
            }),
        }
    }
    let servers = McpServers::connect(clients, told).await;
    Ok(Mcp(Some(Arc::new(servers.map_err(CliError::failed)?))))
}

/// Describes the state of a server, and the tools that were left out.
fn lines(status: &McpStatus) -> Vec<String> {
    let name = &status.name;
    let first = match &status.state {
        McpState::Ready(1) => format!("MCP server {name}: 1 tool"),
        McpState::Ready(tools) => format!("MCP server {name}: {tools} tools"),
        McpState::Absent(error) => format!("{error}; its tools are left out"),
    };
    let notes = status.notes.iter();
    let notes = notes.map(|note| format!("MCP server {name}: {note}"));
    std::iter::once(first).chain(notes).collect()
}
