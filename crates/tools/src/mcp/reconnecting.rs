//! [`ReconnectingClient`]: a server over its whole life. It is started, restarted by the next call after it ended,
//! and paused if it ends repeatedly.
//!
//! Only idempotent calls are repeated.

use std::sync::{Arc, Mutex as Lock};
use std::time::Duration;

use plimsoll_context::nearest;
use plimsoll_core::{ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::catalog::{Catalog, Remote};
use super::connection::{Connection, Failure};
use super::error::McpError;
use super::lock;
use super::output;
use super::server::McpServer;

/// Maximum number of repetitions of an idempotent call after its server ended.
pub const MCP_REPEATS: u32 = 1;
/// Maximum number of repetitions of a call whose server does not know the session any more: it has not
/// processed the call.
pub const MCP_SESSIONS: u32 = 1;
/// Pause after a server was started twice without answering a call; doubled each time.
pub const MCP_BACKOFF: Duration = Duration::from_secs(1);
/// Upper bound of this pause.
pub const MCP_BACKOFF_MAX: Duration = Duration::from_secs(60);

/// The description of a server that was stopped because it did not answer.
const SILENT: &str = "it did not answer in time";

/// A server with its current state.
pub(super) struct ReconnectingClient {
    pub(super) server: McpServer,
    state: Mutex<ClientState>,
    catalog: Lock<Arc<Catalog>>,
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

impl ReconnectingClient {
    pub(super) fn new(server: McpServer) -> Self {
        Self {
            server,
            state: Mutex::default(),
            catalog: Lock::default(),
        }
    }

    /// Returns the tools as last read.
    pub(super) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&lock(&self.catalog))
    }

    /// Returns the tools. They are read if they were not read before, or if the server has reported a
    /// change.
    pub(super) async fn read(&self) -> Result<Arc<Catalog>, McpError> {
        let connection = self.connection().await?;
        self.current(&connection).await
    }

    /// Reads the tools again if the server is running; does not start it.
    pub(super) async fn reread(&self) {
        let connection = self.state.lock().await.connection.clone();
        if let Some(connection) = connection.filter(|connection| connection.is_open()) {
            // On failure the tools stay as they were, and the next call reports the error.
            let _ = self.current(&connection).await;
        }
    }

    /// Calls a tool. The call is repeated if its server ended and the tool is idempotent.
    pub(super) async fn call(
        &self,
        tool: &Remote,
        arguments: &Map<String, Value>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let mut repeats = if tool.idempotent { MCP_REPEATS } else { 0 };
        let mut sessions = MCP_SESSIONS;
        let arguments = tool.arguments(arguments);
        loop {
            let connection = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(ToolError::new("cancelled")),
                connection = self.connection() => connection.map_err(ToolError::new)?,
            };
            if connection.activity().has_changed() {
                let catalog = self.current(&connection).await.map_err(ToolError::new)?;
                if catalog.find(&tool.name).is_none() {
                    return Err(self.vanished(&tool.name, &catalog));
                }
            }
            let limit = self.server.timeout;
            let answer = connection.call(&tool.name, arguments.clone(), limit, cx);
            match answer.await {
                Ok(result) => {
                    self.answered().await;
                    return match output::of(&result) {
                        Ok(output) => Ok(self.server.without_token(output)),
                        Err(error) => Err(ToolError(self.server.strike_out(error.0))),
                    };
                }
                Err(Failure::NoSession(why)) if sessions > 0 => {
                    sessions -= 1;
                    self.leave(&connection, why).await;
                }
                Err(
                    Failure::Refused(text) | Failure::NoMethod(text) | Failure::NoSession(text),
                ) => {
                    self.answered().await;
                    let text = self.server.strike_out(text);
                    return Err(ToolError(format!("`{}` refuses: {text}", self.server.name)));
                }
                Err(Failure::Odd(text)) => {
                    return Err(ToolError(format!("`{}`: {text}", self.server.name)));
                }
                Err(Failure::Cancelled) => return Err(ToolError::new("cancelled")),
                Err(Failure::Broken(why)) => {
                    let why = self.broken(&connection, why).await;
                    if repeats == 0 {
                        return Err(self.unknown_end(tool, &why));
                    }
                    repeats -= 1;
                    cx.update(format!(
                        "the MCP server `{}` is asked again: {why}",
                        self.server.name
                    ));
                }
            }
        }
    }

    /// Closes the connection.
    pub(super) async fn close(&self) {
        let connection = self.state.lock().await.connection.take();
        // A waiting call keeps the connection, which ends with its run.
        if let Some(Ok(connection)) = connection.map(Arc::try_unwrap) {
            connection.close().await;
        }
    }

    /// Returns the current connection, or opens a new one if a start is allowed.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let mut state = self.state.lock().await;
        if let Some(connection) = &state.connection
            && connection.is_open()
        {
            if connection.is_silent() {
                SILENT.clone_into(&mut state.why)
            } else {
                return Ok(Arc::clone(connection));
            }
        }
        state.connection = None;
        let now = Instant::now();
        if let Some(left) = state
            .not_before
            .and_then(|at| at.checked_duration_since(now))
            && !left.is_zero()
        {
            return Err(McpError::Resting {
                server: self.server.name.clone(),
                times: state.starts,
                secs: left.as_secs() + 1,
                why: state.why.clone(),
            });
        }
        // Counted before, because the start may be cancelled halfway.
        state.starts = state.starts.saturating_add(1);
        state.not_before = Some(now + rest(state.starts));
        match Connection::open(&self.server).await {
            Ok(connection) => {
                // The server's tools may have changed.
                connection.activity().set_changed(true);
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(error) => {
                // The time set before the start may have passed already.
                state.not_before = Some(Instant::now() + rest(state.starts));
                state.why = error.to_string();
                Err(error)
            }
        }
    }

    async fn current(&self, connection: &Connection) -> Result<Arc<Catalog>, McpError> {
        if !connection.activity().has_changed() {
            return Ok(self.catalog());
        }
        // Before reading, so that a change in the meantime is not lost.
        connection.activity().set_changed(false);
        match connection.list(self.server.timeout).await {
            Ok(listed) => {
                let about = connection.instructions();
                let catalog = Arc::new(Catalog::of(listed, about, self.server.trusted));
                *lock(&self.catalog) = Arc::clone(&catalog);
                Ok(catalog)
            }
            Err(failure) => {
                connection.activity().set_changed(true);
                let why = match failure {
                    Failure::Broken(text) | Failure::Odd(text) => text,
                    Failure::Refused(text) | Failure::NoMethod(text) => {
                        format!("it lists no tools: {text}")
                    }
                    Failure::NoSession(text) => {
                        self.leave(connection, text.clone()).await;
                        text
                    }
                    Failure::Cancelled => "it lists no tools".to_owned(),
                };
                Err(McpError::Absent {
                    server: self.server.name.clone(),
                    why: self.server.strike_out(why),
                })
            }
        }
    }

    async fn answered(&self) {
        let mut state = self.state.lock().await;
        state.starts = 0;
        state.not_before = None;
    }

    /// Handles a broken connection.
    async fn broken(&self, connection: &Connection, why: String) -> String {
        let why = self.server.strike_out(why);
        if connection.outlives_failures() {
            self.state.lock().await.why.clone_from(&why)
        } else {
            self.leave(connection, why.clone()).await
        }
        why
    }

    /// Drops this connection, so that the next call opens another one.
    async fn leave(&self, connection: &Connection, why: String) {
        let mut state = self.state.lock().await;
        let is_it = |other: &Arc<Connection>| std::ptr::eq(Arc::as_ptr(other), connection);
        if state.connection.as_ref().is_some_and(is_it) {
            state.connection = None;
        }
        state.why = self.server.strike_out(why);
    }

    fn vanished(&self, name: &str, catalog: &Catalog) -> ToolError {
        let near = nearest(name, catalog.names());
        let near = near.map_or(String::new(), |near| format!("; the nearest is `{near}`"));
        ToolError(format!(
            "the MCP server `{}` has no tool `{name}` any more{near}",
            self.server.name
        ))
    }

    fn unknown_end(&self, tool: &Remote, why: &str) -> ToolError {
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

/// Returns the pause after this many starts: 0, 1 s, 2 s, 4 s …
fn rest(starts: u32) -> Duration {
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
    fn it_rests_longer_each_time_and_never_for_ever() {
        let secs: Vec<u64> = (0..10).map(|starts| rest(starts).as_secs()).collect();
        assert_eq!(secs, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(rest(u32::MAX), MCP_BACKOFF_MAX);
    }
}
