//! [`McpServers`]: the servers of an agent, connected in parallel. The gate decides which of their
//! tools may run.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use plimsoll_core::Tool;
use tokio::task::JoinSet;

use super::catalog::{Catalog, MCP_TOOLS_SENT};
use super::error::McpError;
use super::lazy;
use super::lock;
use super::names;
use super::reconnecting::ReconnectingClient;
use super::server::McpServer;
use super::tool::McpTool;

/// A set of servers, including those that are currently unavailable. When the last of their tools is
/// dropped, their processes are killed.
pub struct McpServers {
    clients: Vec<Arc<ReconnectingClient>>,
    seen: Mutex<Vec<KnownServer>>,
}

/// The status of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpStatus {
    /// The server's name.
    pub name: String,
    /// Its state.
    pub state: McpState,
    /// A sentence for each part of its tools that was omitted.
    pub notes: Vec<String>,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum McpState {
    /// Available, with this number of tools.
    Ready(usize),
    /// Available, with this number of tools behind the three lazy ones.
    Lazy(usize),
    /// Not available, for this reason.
    Absent(McpError),
}

/// The known state of a server: the tools that were last offered, and the error if it is unavailable.
#[derive(Default)]
struct KnownServer {
    offered: Option<Arc<Catalog>>,
    absent: Option<McpError>,
}

impl McpServers {
    /// Connects to all servers in parallel. `told` receives the status of each as soon as it is known.
    /// Unavailable servers are left out.
    ///
    /// # Errors
    /// If a required server is unavailable; the others are closed.
    pub async fn connect(
        servers: impl IntoIterator<Item = McpServer>,
        told: impl Fn(&McpStatus) + Send + Sync,
    ) -> Result<Self, McpError> {
        let clients: Vec<Arc<ReconnectingClient>> = servers
            .into_iter()
            .map(|server| Arc::new(ReconnectingClient::new(server)))
            .collect();
        let mut seen = Vec::new();
        seen.resize_with(clients.len(), KnownServer::default);
        let servers = Self {
            clients,
            seen: Mutex::new(seen),
        };
        match servers.read(&told).await {
            Some(error) => {
                servers.close().await;
                Err(error)
            }
            None => Ok(servers),
        }
    }

    /// Returns the tools, in the order of the servers and then of the names. Their names differ from
    /// those in `others`.
    #[must_use]
    pub fn tools(&self, others: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        self.tools_of(|_| true, others)
    }

    /// Returns the tools of the servers whose name `wants` accepts.
    #[must_use]
    pub fn tools_of(
        &self,
        wants: impl Fn(&str) -> bool,
        others: &[Arc<dyn Tool>],
    ) -> Vec<Arc<dyn Tool>> {
        let names = others.iter().map(|tool| tool.spec().name.clone());
        let mut taken: HashSet<String> = names.collect();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (client, seen) in self.clients.iter().zip(lock(&self.seen).iter_mut()) {
            let is_missed = seen.absent.is_some() && seen.offered.is_none();
            if is_missed || !wants(&client.server.name) {
                continue;
            }
            let catalog = client.catalog();
            let server = &client.server.name;
            if client.server.lazy {
                for tool in lazy::tools(client, |tool| names::name(server, tool, &mut taken)) {
                    tools.push(Arc::new(tool));
                }
            } else {
                for remote in catalog.tools.iter().take(MCP_TOOLS_SENT) {
                    let name = names::name(server, &remote.name, &mut taken);
                    let tool = McpTool::new(name, remote.clone(), Arc::clone(client));
                    tools.push(Arc::new(tool));
                }
            }
            seen.offered = Some(catalog);
        }
        tools
    }

    /// Reads the tools again from the servers that have reported a change. Call it between runs; within
    /// a run the tools stay the same. Returns `true` if [`tools`](Self::tools) now returns different
    /// tools.
    pub async fn refresh(&self) -> bool {
        let mut reading = JoinSet::new();
        for client in &self.clients {
            let client = Arc::clone(client);
            reading.spawn(async move { client.reread().await });
        }
        reading.join_all().await;
        let seen = lock(&self.seen);
        let mut pairs = self.clients.iter().zip(seen.iter());
        pairs.any(|(client, seen)| {
            let offered = seen.offered.as_ref();
            offered.is_some_and(|offered| !is_same(client, offered))
        })
    }

    /// Returns the status of each server, in order.
    #[must_use]
    pub fn status(&self) -> Vec<McpStatus> {
        let seen = lock(&self.seen);
        let pairs = self.clients.iter().zip(seen.iter());
        pairs
            .map(|(client, seen)| status(client, seen.absent.clone()))
            .collect()
    }

    /// Closes all connections. Without it, the processes are killed when the last of their tools is
    /// dropped.
    pub async fn close(&self) {
        let mut closing = JoinSet::new();
        for client in &self.clients {
            let client = Arc::clone(client);
            closing.spawn(async move { client.close().await });
        }
        closing.join_all().await;
    }

    /// Reads the tools of all servers in parallel. Returns the error of the first required server that
    /// is unavailable.
    async fn read(&self, told: &(dyn Fn(&McpStatus) + Sync)) -> Option<McpError> {
        let mut reading = JoinSet::new();
        for (at, client) in self.clients.iter().enumerate() {
            let client = Arc::clone(client);
            reading.spawn(async move { (at, client.read().await.err()) });
        }
        let mut missed: Option<McpError> = None;
        while let Some(done) = reading.join_next().await {
            let Ok((at, absent)) = done else { continue };
            let Some(client) = self.clients.get(at) else {
                continue;
            };
            // For a required server, the error is returned instead.
            match (client.server.required, &absent) {
                (true, Some(error)) => missed = missed.or_else(|| Some(error.clone())),
                _ => told(&status(client, absent.clone())),
            }
            if let Some(seen) = lock(&self.seen).get_mut(at) {
                seen.absent = absent;
            }
        }
        missed
    }
}

fn status(client: &ReconnectingClient, absent: Option<McpError>) -> McpStatus {
    let catalog = client.catalog();
    let mut notes = catalog.notes.clone();
    let count = catalog.tools.len();
    let state = match (absent, client.server.lazy) {
        (Some(error), _) => McpState::Absent(error),
        (None, true) => McpState::Lazy(count),
        (None, false) => {
            if count > MCP_TOOLS_SENT {
                notes.push(format!(
                    "only {MCP_TOOLS_SENT} of its {count} tools are offered; set `lazy = true` to have all"
                ));
            }
            McpState::Ready(count.min(MCP_TOOLS_SENT))
        }
    };
    McpStatus {
        name: client.server.name.clone(),
        state,
        notes,
    }
}

/// Checks whether the model would be offered the same tools.
fn is_same(client: &ReconnectingClient, offered: &Catalog) -> bool {
    let now = client.catalog();
    if !client.server.lazy {
        return now.tools == offered.tools;
    }
    // The approval of calls depends on all tools; the rest is read on request.
    let asks = |catalog: &Catalog| catalog.tools.iter().any(|tool| tool.asks);
    now.about == offered.about && asks(&now) == asks(offered)
}
