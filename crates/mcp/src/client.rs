//! [`Client`]: one server over its whole life. It is started, restarted by the next call after it
//! ended, and paused if it ends repeatedly.
//!
//! Only idempotent calls are repeated.

use std::sync::{Arc, Mutex as Lock};
use std::time::Duration;

use plimsoll_context::nearest;
use plimsoll_core::{ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::catalog::{Catalog, RemoteTool};
use crate::connection::{Connection, Failure};
use crate::error::McpError;
use crate::lock;
use crate::result;
use crate::server::McpServer;

/// Pause after a server was started twice without answering a call; doubled each time.
pub const MCP_BACKOFF: Duration = Duration::from_secs(1);
/// Upper bound of this pause.
pub const MCP_BACKOFF_MAX: Duration = Duration::from_secs(60);

/// The cause of the end of a server that was stopped because it did not answer.
const SILENT: &str = "it did not answer in time";

/// A server with its current state.
pub(crate) struct Client {
    pub(crate) server: McpServer,
    state: Mutex<ClientState>,
    catalog: Lock<Arc<Catalog>>,
    /// The error of the first start.
    absent: Lock<Option<McpError>>,
}

#[derive(Default)]
struct ClientState {
    connection: Option<Arc<Connection>>,
    /// Number of starts since the last answered call.
    starts: u32,
    not_before: Option<Instant>,
    /// The cause of the last failure.
    why: String,
}

impl Client {
    pub(crate) fn new(server: McpServer) -> Self {
        Self {
            server,
            state: Mutex::default(),
            catalog: Lock::default(),
            absent: Lock::default(),
        }
    }

    /// Returns the tools as last read.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&lock(&self.catalog))
    }

    /// Returns the error of [`connect`](Self::connect), if it failed.
    pub(crate) fn absent(&self) -> Option<McpError> {
        lock(&self.absent).clone()
    }

    /// Starts the server, and reads its tools.
    pub(crate) async fn connect(&self) {
        let absent = match self.connection().await {
            Ok(connection) => self.update(&connection).await.err(),
            Err(error) => Some(error),
        };
        *lock(&self.absent) = absent;
    }

    /// Reads the tools again if the server is running and has reported a change.
    pub(crate) async fn reread(&self) {
        let connection = self.state.lock().await.connection.clone();
        if let Some(connection) = connection.filter(|connection| connection.is_open()) {
            // On failure the tools stay as they were, and the next call reports the error.
            let _ = self.update(&connection).await;
        }
    }

    /// Calls a tool. The call is repeated once if the server had lost the session, or if it ended and
    /// the tool is idempotent.
    pub(crate) async fn call(
        &self,
        tool: &RemoteTool,
        arguments: &Map<String, Value>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let name = &self.server.name;
        let arguments = tool.arguments(arguments);
        let (mut may_repeat, mut may_begin_session) = (tool.idempotent, true);
        loop {
            let connection = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(ToolError::new("cancelled")),
                connection = self.connection() => connection.map_err(ToolError::new)?,
            };
            self.update(&connection).await.map_err(ToolError::new)?;
            if self.catalog().find(&tool.name).is_none() {
                return Err(self.vanished(&tool.name));
            }
            match connection.call(&tool.name, arguments.clone(), cx).await {
                Ok(result) => {
                    self.answered().await;
                    return match result::convert(&result) {
                        Ok(output) => Ok(self.server.without_token(output)),
                        Err(error) => Err(ToolError(self.server.strike_out(error.0))),
                    };
                }
                Err(Failure::NoSession(why)) if may_begin_session => {
                    may_begin_session = false;
                    self.leave(&connection, &why).await;
                }
                Err(Failure::Refused(text) | Failure::NoSession(text)) => {
                    self.answered().await;
                    let text = self.server.strike_out(text);
                    return Err(ToolError(format!("`{name}` refuses: {text}")));
                }
                Err(Failure::Cancelled) => return Err(ToolError::new("cancelled")),
                Err(Failure::Broken(why)) => {
                    let why = self.server.strike_out(why);
                    if connection.outlives_failures() {
                        self.state.lock().await.why.clone_from(&why);
                    } else {
                        self.leave(&connection, &why).await;
                    }
                    if !may_repeat {
                        return Err(self.no_answer(tool, &why));
                    }
                    may_repeat = false;
                    cx.update(format!("the MCP server `{name}` is asked again: {why}"));
                }
            }
        }
    }

    /// Closes the connection.
    pub(crate) async fn close(&self) {
        let connection = self.state.lock().await.connection.take();
        // A waiting call keeps the connection, which ends with its run.
        if let Some(Ok(connection)) = connection.map(Arc::try_unwrap) {
            connection.close().await;
        }
    }

    /// Returns the current connection, or opens a new one if a start is allowed.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = state.connection.take_if(|connection| !connection.is_open()) {
            drop(connection);
        } else if let Some(connection) = state.connection.clone() {
            if connection.is_alive().await {
                return Ok(connection);
            }
            state.connection = None;
            SILENT.clone_into(&mut state.why);
        }
        let pause = state.not_before.map(|at| at.duration_since(Instant::now()));
        if let Some(pause) = pause.filter(|pause| !pause.is_zero()) {
            return Err(McpError::Resting {
                server: self.server.name.clone(),
                times: state.starts,
                secs: pause.as_secs() + 1,
                why: state.why.clone(),
            });
        }
        // Counted before, because the start may be cancelled halfway.
        state.starts = state.starts.saturating_add(1);
        state.not_before = Some(Instant::now() + pause_after(state.starts));
        match Connection::open(&self.server).await {
            Ok(connection) => {
                // The server's tools may have changed.
                connection.handler().set_changed(true);
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                // The time set before the start may have passed already.
                state.not_before = Some(Instant::now() + pause_after(state.starts));
                state.why = error.to_string();
                Err(error)
            }
        }
    }

    /// Reads the tools if they have changed.
    async fn update(&self, connection: &Connection) -> Result<(), McpError> {
        if !connection.handler().has_changed() {
            return Ok(());
        }
        // Before reading, so that a change in the meantime is not lost.
        connection.handler().set_changed(false);
        let why = match connection.list(self.server.timeout).await {
            Ok(listing) => {
                *lock(&self.catalog) = Arc::new(Catalog::new(listing, self.server.trusted));
                return Ok(());
            }
            Err(Failure::Broken(text)) => text,
            Err(Failure::Refused(text)) => format!("it lists no tools: {text}"),
            Err(Failure::NoSession(text)) => {
                self.leave(connection, &text).await;
                text
            }
            Err(Failure::Cancelled) => "it lists no tools".to_owned(),
        };
        connection.handler().set_changed(true);
        Err(McpError::Absent {
            server: self.server.name.clone(),
            why: self.server.strike_out(why),
        })
    }

    /// Records that the server answers: it may be started again at once.
    async fn answered(&self) {
        let mut state = self.state.lock().await;
        state.starts = 0;
        state.not_before = None;
    }

    /// Drops this connection, so that the next call opens another one.
    async fn leave(&self, connection: &Connection, why: &str) {
        let mut state = self.state.lock().await;
        let is_it = |other: &Arc<Connection>| std::ptr::eq(Arc::as_ptr(other), connection);
        if state.connection.as_ref().is_some_and(is_it) {
            state.connection = None;
        }
        state.why = self.server.strike_out(why.to_owned());
    }

    fn vanished(&self, name: &str) -> ToolError {
        let catalog = self.catalog();
        let near = nearest(name, catalog.names());
        let near = near.map_or(String::new(), |near| format!("; the nearest is `{near}`"));
        ToolError(format!(
            "the MCP server `{}` has no tool `{name}` any more{near}",
            self.server.name
        ))
    }

    fn no_answer(&self, tool: &RemoteTool, why: &str) -> ToolError {
        let effect = if tool.idempotent {
            ""
        } else {
            "; whether the call had an effect is not known, look before you call it again"
        };
        ToolError(format!(
            "the MCP server `{}` gave no answer: {why}{effect}",
            self.server.name
        ))
    }
}

/// Returns the pause after this many starts: 0, 0, 1 s, 2 s, 4 s …
fn pause_after(starts: u32) -> Duration {
    match starts.checked_sub(2) {
        None => Duration::ZERO,
        Some(doubled) => MCP_BACKOFF
            .saturating_mul(2_u32.saturating_pow(doubled))
            .min(MCP_BACKOFF_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_doubles_up_to_a_minute() {
        let secs: Vec<u64> = (0..10)
            .map(|starts| pause_after(starts).as_secs())
            .collect();
        assert_eq!(secs, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(pause_after(u32::MAX), MCP_BACKOFF_MAX);
    }
}
