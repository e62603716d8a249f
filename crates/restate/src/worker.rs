//! [`Worker`]: serves sessions to Restate.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::Agent;
use plimsoll_store::PostgresStore;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::http_server::HttpServer;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use crate::client::said;
use crate::error::RestateError;
use crate::followed::Followed;
use crate::identity;
use crate::mailbox::Arrivals;
use crate::outage::{DatabaseNews, Outages};
use crate::service::Sessions;
use crate::tls;

/// How long a registration may take: Restate asks the worker what it serves.
const REGISTER: Duration = Duration::from_secs(30);
/// Connections that wait to be taken, at most.
const BACKLOG: u32 = 128;

/// What can be chosen when a worker is bound.
#[derive(Default)]
pub struct WorkerOptions {
    /// Public keys of Restate, as in `publickeyv1_…`. If there are any, a request that was not signed with one
    /// of them is refused; otherwise whoever reaches the worker can use the agent.
    pub identity_keys: Vec<String>,
    /// Is told that the database fails, and that it works again.
    pub on_database: Option<Box<dyn Fn(DatabaseNews) + Send + Sync>>,
}

/// Serves sessions to Restate. Several processes of one user may listen at one address of a machine: what one
/// leaves behind, another finishes.
pub struct Worker {
    listener: TcpListener,
    endpoint: Endpoint,
    /// Cuts off the runs that are under way.
    stop: CancellationToken,
}

impl Worker {
    /// A worker whose agent keeps its sessions in `store`. It may be asked for work once this returns.
    ///
    /// # Errors
    /// If the address cannot be listened at, or a key is none.
    pub fn bind(
        agent: Agent,
        store: PostgresStore,
        address: SocketAddr,
        options: WorkerOptions,
    ) -> Result<Self, RestateError> {
        let stop = CancellationToken::new();
        let outages = Arc::new(options.on_database.map(Outages::new).unwrap_or_default());
        let mut endpoint = Endpoint::builder().bind(Sessions {
            agent,
            arrivals: Arrivals::new(store.clone(), Arc::clone(&outages)),
            followed: Followed::new(store.clone()),
            outages,
            store,
            stop: stop.clone(),
        });
        if !options.identity_keys.is_empty() {
            identity::install();
        }
        for key in options.identity_keys {
            endpoint = endpoint.identity_key(&key).map_err(|error| {
                let why = error.to_string();
                RestateError::IdentityKey { key, why }
            })?;
        }
        let listener = listen(address).map_err(|error| RestateError::Listen {
            place: address.to_string(),
            why: error.to_string(),
        })?;
        Ok(Self {
            listener,
            endpoint: endpoint.build(),
            stop,
        })
    }

    /// Works until `stop` ends; runs that are under way then are cut off, and finished by another worker.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let cut_off = self.stop;
        let stop = async move {
            stop.await;
            cut_off.cancel();
        };
        HttpServer::new(self.endpoint)
            .serve_with_cancel(self.listener, stop)
            .await;
    }
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    #[cfg(unix)]
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Tells Restate's admin API at `admin` that a worker serves at `worker`. Telling it again is no error.
///
/// # Errors
/// If it cannot be reached, or does not reach the worker.
pub async fn register(admin: &str, worker: &str) -> Result<(), RestateError> {
    let place = admin.trim_end_matches('/').to_owned();
    let unreachable = |error: reqwest::Error| RestateError::Unreachable {
        place: place.clone(),
        why: crate::client::cause(&error),
    };
    let client = tls::client()
        .timeout(REGISTER)
        .build()
        .map_err(unreachable)?;
    let body = json!({"uri": worker, "force": true}).to_string();
    let reply = client
        .post(format!("{place}/deployments"))
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
        .map_err(unreachable)?;
    let status = reply.status();
    if status.is_success() {
        return Ok(());
    }
    let why = said(reply).await.map_err(unreachable)?;
    Err(RestateError::Refused {
        status: status.as_u16(),
        why: format!("Restate at {place} does not take the worker at {worker}: {why}"),
    })
}
