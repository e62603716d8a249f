//! [`Client`]: one server over its whole life. It is started, and restarted by the next call after it
//! ended.
//!
//! Only idempotent calls are repeated.

use std::sync::{Arc, Mutex as Lock};
use std::time::{Duration, Instant};

use plimsoll_context::nearest;
use plimsoll_core::{ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::catalog::{Catalog, RemoteTool};
use crate::connection::{Connection, Failure};
use crate::error::McpError;
use crate::lock;
use crate::result;
use crate::server::McpServer;

/// A server with its current state.
pub(crate) struct Client {
    pub(crate) server: McpServer,
    connection: Mutex<Option<Arc<Connection>>>,
    catalog: Lock<Arc<Catalog>>,
    /// The error of the first start.
    absent: Lock<Option<McpError>>,
}

impl Client {
    pub(crate) fn new(server: McpServer) -> Self {
        Self {
            server,
            connection: Mutex::default(),
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

    /// Starts the server and reads its tools, both together within the server's timeout.
    pub(crate) async fn connect(&self) {
        let began = Instant::now();
        let absent = match self.connection().await {
            Ok(connection) => {
                let left = self.server.timeout.saturating_sub(began.elapsed());
                self.update(&connection, left).await.err()
            }
            Err(error) => Some(error),
        };
        *lock(&self.absent) = absent;
    }

    /// Reads the tools again if the server is running and has reported a change.
    pub(crate) async fn reread(&self) {
        let connection = self.connection.lock().await.clone();
        if let Some(connection) = connection.filter(|connection| connection.is_open()) {
            // On failure the tools stay as they were, and the next call reports the error.
            let _ = self.update(&connection, self.server.timeout).await;
        }
    }

    /// Calls a tool. The call is repeated at most once: if the server had lost the session, or if it
    /// ended and the tool is idempotent.
    pub(crate) async fn call(
        &self,
        tool: &RemoteTool,
        arguments: &Map<String, Value>,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let name = &self.server.name;
        let mut is_repeated = false;
        loop {
            let connection = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => return Err(ToolError::new("cancelled")),
                connection = self.connection() => connection.map_err(ToolError::new)?,
            };
            let updated = self.update(&connection, self.server.timeout).await;
            updated.map_err(ToolError::new)?;
            if self.catalog().find(&tool.name).is_none() {
                return Err(self.vanished(&tool.name));
            }
            match connection.call(&tool.name, arguments.clone(), cx).await {
                Ok(result) => {
                    return match result::convert(&result) {
                        Ok(output) => Ok(self.server.without_token(output)),
                        Err(error) => Err(ToolError(self.server.strike_out(error.0))),
                    };
                }
                Err(Failure::NoSession(_)) if !is_repeated => self.leave(&connection).await,
                Err(Failure::Refused(text) | Failure::NoSession(text)) => {
                    let text = self.server.strike_out(text);
                    return Err(ToolError(format!("`{name}` refuses: {text}")));
                }
                Err(Failure::Cancelled) => return Err(ToolError::new("cancelled")),
                Err(Failure::Broken(why)) => {
                    let why = self.server.strike_out(why);
                    if !connection.outlives_failures() {
                        self.leave(&connection).await;
                    }
                    if is_repeated || !tool.idempotent {
                        return Err(self.no_answer(tool, &why));
                    }
                    cx.update(format!("the MCP server `{name}` is asked again: {why}"));
                }
            }
            is_repeated = true;
        }
    }

    /// Closes the connection.
    pub(crate) async fn close(&self) {
        let connection = self.connection.lock().await.take();
        // A waiting call keeps the connection, which ends with its run.
        if let Some(Ok(connection)) = connection.map(Arc::try_unwrap) {
            connection.close().await;
        }
    }

    /// Returns the current connection, or opens a new one.
    async fn connection(&self) -> Result<Arc<Connection>, McpError> {
        let mut connection = self.connection.lock().await;
        if let Some(open) = connection.as_ref().filter(|open| open.is_open())
            && open.is_alive(self.server.timeout).await
        {
            return Ok(Arc::clone(open));
        }
        // The old process ends before the new one starts.
        drop(connection.take());
        let new = Arc::new(Connection::open(&self.server).await?);
        // The server's tools may have changed.
        new.handler().set_changed(true);
        Ok(Arc::clone(connection.insert(new)))
    }

    /// Reads the tools if they have changed. Waits for at most `limit`.
    async fn update(&self, connection: &Connection, limit: Duration) -> Result<(), McpError> {
        if !connection.handler().has_changed() {
            return Ok(());
        }
        // Before reading, so that a change in the meantime is not lost.
        connection.handler().set_changed(false);
        let server = &self.server;
        let absent = match timeout(limit, connection.list()).await {
            Ok(Ok(listing)) => {
                *lock(&self.catalog) = Arc::new(Catalog::new(listing, server.trusted));
                return Ok(());
            }
            Ok(Err(Failure::Broken(text))) => server.absent(text),
            Ok(Err(Failure::Refused(text))) => server.absent(format!("it lists no tools: {text}")),
            Ok(Err(Failure::NoSession(text))) => {
                self.leave(connection).await;
                server.absent(text)
            }
            Ok(Err(Failure::Cancelled)) => server.absent("it lists no tools".to_owned()),
            Err(_) => server.late("no list of tools", ""),
        };
        connection.handler().set_changed(true);
        Err(absent)
    }

    /// Drops this connection, so that the next call opens another one.
    async fn leave(&self, connection: &Connection) {
        let mut current = self.connection.lock().await;
        current.take_if(|current| std::ptr::eq(Arc::as_ptr(current), connection));
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
