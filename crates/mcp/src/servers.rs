//! [`McpServers`]: the servers of an agent, connected in parallel. The gate decides which of their
//! tools may run.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use plimsoll_core::Tool;
use tokio::task::JoinSet;

use crate::catalog::Catalog;
use crate::client::Client;
use crate::error::McpError;
use crate::lock;
use crate::names;
use crate::server::McpServer;
use crate::tool::McpTool;

/// A set of servers, including those that are currently unavailable. When the last of their tools is
/// dropped, their processes are killed.
pub struct McpServers {
    clients: Vec<Arc<Client>>,
    /// The tools that were last offered, for each server.
    offered: Mutex<Vec<Option<Arc<Catalog>>>>,
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
    /// Not available, for this reason.
    Absent(McpError),
}

impl McpServers {
    /// Connects to all servers in parallel. `report` receives the status of each as soon as it is known.
    /// Unavailable servers are left out.
    ///
    /// # Errors
    /// If a required server is unavailable; the others are closed.
    pub async fn connect(
        servers: impl IntoIterator<Item = McpServer>,
        report: impl Fn(&McpStatus) + Send + Sync,
    ) -> Result<Self, McpError> {
        let clients = servers
            .into_iter()
            .map(|server| Arc::new(Client::new(server)));
        let clients: Vec<Arc<Client>> = clients.collect();
        let offered = Mutex::new(vec![None; clients.len()]);
        let servers = Self { clients, offered };
        let mut reading = servers.each(|client| async move {
            client.connect().await;
            client
        });
        let mut missing = None;
        while let Some(done) = reading.join_next().await {
            let Ok(client) = done else { continue };
            match (client.server.required, client.absent()) {
                // The error is returned instead.
                (true, Some(error)) => missing = missing.or(Some(error)),
                _ => report(&status(&client)),
            }
        }
        let Some(error) = missing else {
            return Ok(servers);
        };
        servers.close().await;
        Err(error)
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
        for (client, offered) in self.clients.iter().zip(lock(&self.offered).iter_mut()) {
            let server = &client.server.name;
            if (client.absent().is_some() && offered.is_none()) || !wants(server) {
                continue;
            }
            let catalog = client.catalog();
            for remote in &catalog.tools {
                let name = names::name(server, &remote.name, &mut taken);
                let tool = McpTool::new(name, remote.clone(), Arc::clone(client));
                tools.push(Arc::new(tool));
            }
            *offered = Some(catalog);
        }
        tools
    }

    /// Reads the tools again from the servers that have reported a change. Call it between runs; within
    /// a run the tools stay the same. Returns `true` if [`tools`](Self::tools) now returns different
    /// tools.
    pub async fn refresh(&self) -> bool {
        let reading = self.each(|client| async move { client.reread().await });
        reading.join_all().await;
        let offered = lock(&self.offered);
        let mut pairs = self.clients.iter().zip(offered.iter());
        pairs.any(|(client, offered)| {
            let offered = offered.as_ref();
            offered.is_some_and(|offered| client.catalog().tools != offered.tools)
        })
    }

    /// Returns the status of each server, in order.
    #[must_use]
    pub fn status(&self) -> Vec<McpStatus> {
        self.clients.iter().map(|client| status(client)).collect()
    }

    /// Closes all connections. Without it, the processes are killed when the last of their tools is
    /// dropped.
    pub async fn close(&self) {
        let closing = self.each(|client| async move { client.close().await });
        closing.join_all().await;
    }

    /// Starts something with each server, in parallel.
    fn each<F>(&self, start: impl Fn(Arc<Client>) -> F) -> JoinSet<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.clients.iter().cloned().map(start).collect()
    }
}

fn status(client: &Client) -> McpStatus {
    let catalog = client.catalog();
    let ready = McpState::Ready(catalog.tools.len());
    McpStatus {
        name: client.server.name.clone(),
        state: client.absent().map_or(ready, McpState::Absent),
        notes: catalog.notes.clone(),
    }
}
