//! [`Worker`]: serves sessions to Restate.

use std::future::Future;
use std::net::SocketAddr;
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
use crate::mailbox::Arrivals;
use crate::service::Sessions;
use crate::tls;

/// How long a registration may take: Restate asks the worker what it serves.
const REGISTER: Duration = Duration::from_secs(30);
/// Connections that wait to be taken, at most.
const BACKLOG: u32 = 128;

/// Serves sessions to Restate. Several processes of one user may listen at one address of a machine: what one
/// leaves behind, another finishes.
pub struct Worker {
    listener: TcpListener,
    sessions: Sessions,
}

impl Worker {
    /// A worker whose agent keeps its sessions in `store`. It may be asked for work once this returns.
    ///
    /// # Errors
    /// If the address cannot be listened at.
    pub fn bind(
        agent: Agent,
        store: PostgresStore,
        address: SocketAddr,
    ) -> Result<Self, RestateError> {
        let listener = listen(address).map_err(|error| RestateError::Listen {
            place: address.to_string(),
            why: error.to_string(),
        })?;
        Ok(Self {
            listener,
            sessions: Sessions {
                agent,
                arrivals: Arrivals::new(store.clone()),
                store,
                stop: CancellationToken::new(),
            },
        })
    }

    /// Works until `stop` ends; runs that are under way then are cut off, and finished by another worker.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let cut_off = self.sessions.stop.clone();
        let endpoint = Endpoint::builder().bind(self.sessions).build();
        let stop = async move {
            stop.await;
            cut_off.cancel();
        };
        HttpServer::new(endpoint)
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
