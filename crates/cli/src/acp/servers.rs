//! MCP servers that a client provides, converted as if they were listed in `[[mcp]]`. Their calls
//! need approval.

use agent_client_protocol::v1::schema::McpServer as Given;
use plimsoll::config::{MCP_TIMEOUT, McpReach, McpServer};
use plimsoll::providers::Secret;

use crate::error::CliError;

/// Converts the servers that a client provides.
pub(super) fn servers(given: Vec<Given>) -> Result<Vec<McpServer>, CliError> {
    given.into_iter().map(server).collect()
}

fn server(given: Given) -> Result<McpServer, CliError> {
    let secret = |value: String| Secret::new(&value);
    let (name, reach) = match given {
        Given::Stdio(server) => {
            let env = server.env.into_iter();
            let reach = McpReach::Command {
                command: server.command.to_string_lossy().into_owned(),
                args: server.args,
                env: env.map(|of| (of.name, secret(of.value))).collect(),
            };
            (server.name, reach)
        }
        Given::Http(server) => {
            let headers = server.headers.into_iter();
            let reach = McpReach::Url {
                url: server.url,
                headers: headers.map(|of| (of.name, secret(of.value))).collect(),
            };
            (server.name, reach)
        }
        _ => {
            return Err(CliError::usage(
                "an MCP server uses a transport that is not supported; use a command or an \
                 address for HTTP",
            ));
        }
    };
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name = name.trim().replace(|c| !is_good(c), "_");
    Ok(McpServer {
        name: if name.is_empty() {
            "client".to_owned()
        } else {
            name
        },
        reach,
        timeout: MCP_TIMEOUT,
        bearer_env: None,
        trusted: false,
        required: false,
    })
}
