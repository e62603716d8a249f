//! [`McpTool`]: one tool of a server as offered to the model. Its definition does not change, even if
//! the server's does.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_context::ToolSpec;
use plimsoll_core::{Tool, ToolContext, ToolError, ToolOutput};
use serde_json::{Map, Value};

use crate::catalog::RemoteTool;
use crate::client::Client;

/// One tool of a server.
pub(crate) struct McpTool {
    spec: ToolSpec,
    remote: RemoteTool,
    client: Arc<Client>,
}

impl McpTool {
    pub(crate) fn new(name: String, remote: RemoteTool, client: Arc<Client>) -> Self {
        let spec = ToolSpec {
            name,
            description: remote.description.clone(),
            schema: remote.schema.clone(),
        };
        Self {
            spec,
            remote,
            client,
        }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn idempotent(&self) -> bool {
        self.remote.idempotent
    }

    fn asks(&self) -> bool {
        self.remote.asks
    }

    fn timeout(&self) -> Duration {
        self.client.server.timeout
    }

    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let arguments = match arguments {
            Value::Object(arguments) => arguments,
            _ => Map::new(),
        };
        self.client.call(&self.remote, &arguments, &cx).await
    }
}
