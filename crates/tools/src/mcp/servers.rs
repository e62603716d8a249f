//! [`McpServers`]: the servers of an agent, connected side by side. Which of their tools may run is
//! the gate's to say.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plimsoll_core::Tool;
use tokio::task::JoinSet;

use super::catalog::{Catalog, MCP_TOOLS_SENT};
use super::error::McpError;
use super::lazy;
use super::link::Link;
use super::names;
use super::server::{McpServer, Need, Offer};
use super::tool::McpTool;

/// Servers that are there, or will be when they can. Dropped with the last of their tools, their
/// children are killed.
pub struct McpServers {
    links: Vec<Arc<Link>>,
    seen: Mutex<Vec<Seen>>,
}

/// How a server does.
#[derive(Debug, Clone, PartialEq)]
pub struct McpStatus {
    /// Its name.
    pub name: String,
    /// How it does.
    pub state: McpState,
    /// What was left out of what it offers, each in a sentence.
    pub notes: Vec<String>,
}

/// How a server does.
#[derive(Debug, Clone, PartialEq)]
pub enum McpState {
    /// It is there, with this many tools.
    Ready(usize),
    /// It is there, with this many tools, for which three stand.
    Lazy(usize),
    /// It is not there: why.
    Absent(McpError),
}

/// What is known of a server: what was last offered of it, and whether it is missed.
#[derive(Default)]
struct Seen {
    offered: Option<Arc<Catalog>>,
    absent: Option<McpError>,
}

impl McpServers {
    /// Connects to all side by side; `told` hears of each as soon as it is known. A server that
    /// cannot be had is left out.
    ///
    /// # Errors
    /// One that is required cannot be had; the others are ended.
    pub async fn connect(
        servers: impl IntoIterator<Item = McpServer>,
        told: impl Fn(&McpStatus) + Send + Sync,
    ) -> Result<Self, McpError> {
        let links: Vec<Arc<Link>> = servers
            .into_iter()
            .map(|server| Arc::new(Link::new(server)))
            .collect();
        let mut seen = Vec::new();
        seen.resize_with(links.len(), Seen::default);
        let servers = Self {
            links,
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

    /// Their tools, in the order of the servers and then of the names; named unlike any of `others`.
    #[must_use]
    pub fn tools(&self, others: &[Arc<dyn Tool>]) -> Vec<Arc<dyn Tool>> {
        self.tools_of(|_| true, others)
    }

    /// The same of those servers alone whose name `wants`.
    #[must_use]
    pub fn tools_of(
        &self,
        wants: impl Fn(&str) -> bool,
        others: &[Arc<dyn Tool>],
    ) -> Vec<Arc<dyn Tool>> {
        let names = others.iter().map(|tool| tool.spec().name.clone());
        let mut taken: HashSet<String> = names.collect();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for (link, seen) in self.links.iter().zip(self.lock().iter_mut()) {
            let is_missed = seen.absent.is_some() && seen.offered.is_none();
            if is_missed || !wants(&link.server.name) {
                continue;
            }
            let catalog = link.catalog();
            let server = &link.server.name;
            match link.server.offer {
                Offer::Lazy => {
                    let three = lazy::tools(link, |tool| names::name(server, tool, &mut taken));
                    tools.extend(
                        three
                            .into_iter()
                            .map(|tool| Arc::new(tool) as Arc<dyn Tool>),
                    );
                }
                Offer::Whole => {
                    for remote in catalog.tools.iter().take(MCP_TOOLS_SENT) {
                        let name = names::name(server, &remote.name, &mut taken);
                        tools.push(Arc::new(McpTool::new(
                            name,
                            remote.clone(),
                            Arc::clone(link),
                        )));
                    }
                }
            }
            seen.offered = Some(catalog);
        }
        tools
    }

    /// Reads the tools anew of those who say that theirs have changed. To be called between runs:
    /// within one, tools stay as they were offered. Whether [`tools`](Self::tools) now gives others
    /// than before.
    pub async fn refresh(&self) -> bool {
        let mut reading = JoinSet::new();
        for link in &self.links {
            let link = Arc::clone(link);
            reading.spawn(async move { link.reread().await });
        }
        reading.join_all().await;
        let seen = self.lock();
        let mut pairs = self.links.iter().zip(seen.iter());
        pairs.any(|(link, seen)| {
            let offered = seen.offered.as_ref();
            offered.is_some_and(|offered| !is_same(link, offered))
        })
    }

    /// How each does, in their order.
    #[must_use]
    pub fn status(&self) -> Vec<McpStatus> {
        let seen = self.lock();
        let pairs = self.links.iter().zip(seen.iter());
        pairs
            .map(|(link, seen)| status(link, seen.absent.clone()))
            .collect()
    }

    /// Ends all of them politely. Otherwise they are killed when the last of their tools is dropped.
    pub async fn close(&self) {
        let mut closing = JoinSet::new();
        for link in &self.links {
            let link = Arc::clone(link);
            closing.spawn(async move { link.close().await });
        }
        closing.join_all().await;
    }

    /// Reads all side by side. The first that is required and not there.
    async fn read(&self, told: &(dyn Fn(&McpStatus) + Sync)) -> Option<McpError> {
        let mut reading = JoinSet::new();
        for (at, link) in self.links.iter().enumerate() {
            let link = Arc::clone(link);
            reading.spawn(async move { (at, link.read().await.err()) });
        }
        let mut missed: Option<McpError> = None;
        while let Some(done) = reading.join_next().await {
            let Ok((at, absent)) = done else { continue };
            let Some(link) = self.links.get(at) else {
                continue;
            };
            // Of one that is required, the error tells.
            match (link.server.need, &absent) {
                (Need::Required, Some(error)) => missed = missed.or_else(|| Some(error.clone())),
                _ => told(&status(link, absent.clone())),
            }
            if let Some(seen) = self.lock().get_mut(at) {
                seen.absent = absent;
            }
        }
        missed
    }

    /// Nothing that panics is done under the lock.
    fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn status(link: &Link, absent: Option<McpError>) -> McpStatus {
    let catalog = link.catalog();
    let mut notes = catalog.notes.clone();
    let count = catalog.tools.len();
    let state = match (absent, link.server.offer) {
        (Some(error), _) => McpState::Absent(error),
        (None, Offer::Lazy) => McpState::Lazy(count),
        (None, Offer::Whole) => {
            if count > MCP_TOOLS_SENT {
                notes.push(format!(
                    "only {MCP_TOOLS_SENT} of its {count} tools are offered; set `lazy = true` to have all"
                ));
            }
            McpState::Ready(count.min(MCP_TOOLS_SENT))
        }
    };
    McpStatus {
        name: link.server.name.clone(),
        state,
        notes,
    }
}

/// Whether a model would be offered the same.
fn is_same(link: &Link, offered: &Catalog) -> bool {
    let now = link.catalog();
    match link.server.offer {
        Offer::Whole => now.tools == offered.tools,
        // Whether calls ask depends on all tools; the rest is told when it is asked for.
        Offer::Lazy => {
            let asks = |catalog: &Catalog| catalog.tools.iter().any(|tool| tool.asks);
            now.about == offered.about && asks(&now) == asks(offered)
        }
    }
}
