//! [`Worker`]: serves sessions to Restate.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_core::Agent;
use plimsoll_providers::tls;
use plimsoll_store::PostgresStore;
use restate_sdk::endpoint::Endpoint;
use restate_sdk::http_server::HttpServer;
use serde_json::json;
use tokio::net::{TcpListener, TcpSocket};
use tokio_util::sync::CancellationToken;

use crate::client::reply_text;
use crate::error::RestateError;
use crate::mailbox::Arrivals;
use crate::outage::{OnDatabase, Outages};
use crate::request_signature;
use crate::service::Sessions;

/// The timeout of a registration, during which Restate queries the worker.
const REGISTER: Duration = Duration::from_secs(30);
/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 128;

/// The options of a worker.
#[derive(Default)]
pub struct WorkerOptions {
    /// Public keys of Restate, such as `publickeyv1_…`. If there are any, requests that were not
    /// signed with one of them are refused. Otherwise every client that reaches the worker can use the
    /// agent.
    pub identity_keys: Vec<String>,
    /// Called when the database fails, and every 30 seconds while it does.
    pub on_database: Option<OnDatabase>,
}

/// Serves sessions to Restate. Several processes of one user may listen at the same address of a
/// machine. If one stops, another finishes its runs.
pub struct Worker {
    listener: TcpListener,
    endpoint: Endpoint,
    /// Interrupts the active runs.
    stop: CancellationToken,
}

impl Worker {
    /// Binds a worker whose agent keeps its sessions in `store`. It accepts requests when this
    /// returns.
    ///
    /// # Errors
    /// If the worker cannot listen at the address, or a key is invalid.
    pub fn bind(
        agent: Agent,
        store: PostgresStore,
        address: SocketAddr,
        options: WorkerOptions,
    ) -> Result<Self, RestateError> {
        let stop = CancellationToken::new();
        let outages = Arc::new(Outages::new(options.on_database));
        let mut endpoint = Endpoint::builder().bind(Sessions {
            agent,
            arrivals: Arrivals::new(store.clone(), Arc::clone(&outages)),
            outages,
            store,
            stop: stop.clone(),
        });
        if !options.identity_keys.is_empty() {
            request_signature::install();
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

    /// Serves until `stop` completes. Active runs are then interrupted, and finished by another
    /// worker.
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
    // Accepted connections inherit it. Without it a step waits 40 ms for a delayed acknowledgement.
    socket.set_nodelay(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Registers the worker at `worker` with Restate's admin API at `admin`. Repeating it is not an
/// error.
///
/// # Errors
/// If the API cannot be reached, or cannot reach the worker.
pub async fn register(admin: &str, worker: &str) -> Result<(), RestateError> {
    let place = admin.trim_end_matches('/').to_owned();
    let unreachable = |error: reqwest::Error| RestateError::Unreachable {
        place: place.clone(),
        why: crate::client::cause(&error),
    };
    let client = tls::client().map_err(|error| RestateError::Unreachable {
        place: place.clone(),
        why: error.to_string(),
    })?;
    let client = client.timeout(REGISTER).build().map_err(unreachable)?;
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
    let why = reply_text(reply).await.map_err(unreachable)?;
    Err(RestateError::Refused {
        status: status.as_u16(),
        why: format!("Restate at {place} does not take the worker at {worker}: {why}"),
    })
}
