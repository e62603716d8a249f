//! `[[mcp]]` in a build without the feature `mcp`: configured servers are an error.

use std::sync::Arc;

use plimsoll::Tool;
use plimsoll::config::{AgentConfig, McpServer};

use crate::error::CliError;
use crate::terminal::Verbosity;

const WITHOUT: &str =
    "this build cannot connect to [[mcp]]; build it with the feature `mcp`, or take it out";

/// No servers.
#[derive(Clone, Default)]
pub(crate) struct Mcp;

impl Mcp {
    pub(crate) async fn connect(agent: &AgentConfig, _said: Verbosity) -> Result<Self, CliError> {
        if agent.mcp().is_empty() {
            Ok(Self)
        } else {
            Err(CliError::usage(WITHOUT))
        }
    }

    pub(crate) fn tools(
        &self,
        _agent: &AgentConfig,
        _others: &[Arc<dyn Tool>],
    ) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    pub(crate) async fn has_changed(&self) -> bool {
        false
    }

    pub(crate) async fn close(&self) {}
}

pub(crate) async fn check(_agent: &AgentConfig, servers: &[McpServer]) -> (Vec<String>, bool) {
    if servers.is_empty() {
        (Vec::new(), true)
    } else {
        (vec![WITHOUT.to_owned()], false)
    }
}

pub(crate) async fn check_tools(agent: &AgentConfig, servers: &[McpServer]) -> (Vec<String>, bool) {
    check(agent, servers).await
}
