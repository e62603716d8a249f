//! MCP servers that a client provides, converted as if they were listed in `[[mcp]]`. Their calls
//! need approval.

use agent_client_protocol::v1::schema::McpServer as Given;
use plimsoll::config::McpServer;
use plimsoll::providers::Secret;

use crate::error::CliError;

/// Converts the servers that a client provides.
pub(super) fn servers(given: Vec<Given>) -> Result<Vec<McpServer>, CliError> {
    given.into_iter().map(server).collect()
}

fn server(given: Given) -> Result<McpServer, CliError> {
    let secret = |value: String| Secret::new(&value);
    let mut server = McpServer::default();
    let name = match given {
        Given::Stdio(given) => {
            let env = given.env.into_iter();
            server.command = given.command.to_string_lossy().into_owned();
            server.args = given.args;
            server.env = env.map(|of| (of.name, secret(of.value))).collect();
            given.name
        }
        Given::Http(given) => {
            let headers = given.headers.into_iter();
            server.url = Some(given.url);
            server.headers = headers.map(|of| (of.name, secret(of.value))).collect();
            given.name
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
    server.name = if name.is_empty() {
        "client".to_owned()
    } else {
        name
    };
    Ok(server)
}
