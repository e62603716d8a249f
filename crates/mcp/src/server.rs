//! [`McpServer`]: the configuration of a server: its address or command, and how far it is trusted.

use std::fmt;
use std::time::Duration;

use plimsoll_context::Part;
use plimsoll_core::process::Command;
use plimsoll_core::{Secret, ToolOutput};

use crate::error::McpError;

/// Default timeout of a server, for its start with the list of its tools, and for each of its answers.
pub const MCP_TIMEOUT: Duration = Duration::from_secs(30);
/// The name of a server's own address in texts, in place of the address.
const ADDRESS: &str = "address";

/// The configuration of an MCP server. Its `Debug` output contains no headers and no variables.
#[derive(Clone)]
pub struct McpServer {
    pub(crate) name: String,
    pub(crate) reach: Reach,
    /// For each request, if the server has an address.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) bearer: Option<Secret>,
    pub(crate) timeout: Duration,
    pub(crate) trusted: bool,
    pub(crate) required: bool,
    /// The server's address among them: some addresses contain a key in the path.
    secrets: Vec<Secret>,
}

/// The way to reach a server.
#[derive(Clone)]
pub(crate) enum Reach {
    Command(Command),
    Url(String),
}

impl McpServer {
    /// Creates a server that runs as a child process and communicates over standard input and output.
    pub fn command(name: impl Into<String>, command: Command) -> Self {
        Self::new(name.into(), Reach::Command(command))
    }

    /// Creates a server with an address, for streamable HTTP.
    pub fn url(name: impl Into<String>, url: impl Into<String>) -> Self {
        let url = url.into();
        let secrets = secrets_of(&url);
        Self {
            secrets,
            ..Self::new(name.into(), Reach::Url(url))
        }
    }

    /// Adds a header to each request, if the server has an address. Its value is never shown.
    ///
    /// ```
    /// use plimsoll_mcp::McpServer;
    /// let server = McpServer::url("charts", "https://charts.example/mcp").header("X-Team", "harbour");
    /// ```
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = value.into();
        self.secrets.push(Secret::new(&value));
        self.headers.push((name.into(), value));
        self
    }

    /// Sets the token for the `Authorization: Bearer` header, if the server has an address. It is never
    /// shown.
    ///
    /// ```
    /// use plimsoll_mcp::McpServer;
    /// let server = McpServer::url("charts", "https://charts.example/mcp").bearer("t0k3n");
    /// ```
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        let token = Secret::new(&token.into());
        self.secrets.push(token.clone());
        self.bearer = Some(token);
        self
    }

    /// Adds a secret that is removed from the server's errors, for example the value of an environment
    /// variable of its command.
    ///
    /// ```
    /// use plimsoll_mcp::McpServer;
    /// let server = McpServer::url("charts", "https://charts.example/mcp").secret("t0k3n");
    /// ```
    #[must_use]
    pub fn secret(mut self, value: impl Into<String>) -> Self {
        self.secrets.push(Secret::new(&value.into()));
        self
    }

    /// Sets the timeout. Default: [`MCP_TIMEOUT`].
    ///
    /// ```
    /// use plimsoll_mcp::McpServer;
    /// let server = McpServer::url("charts", "https://charts.example/mcp").timeout(std::time::Duration::from_secs(20));
    /// ```
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Trusts the server's hints about its tools: read-only tools run without approval, and are called
    /// again after a crash. Default: hints are ignored, and each call needs approval.
    ///
    /// ```
    /// use plimsoll_mcp::McpServer;
    /// let server = McpServer::url("charts", "https://charts.example/mcp").trusted();
    /// ```
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.trusted = true;
        self
    }

    /// Makes the server mandatory for a run. Default: a warning, and the run continues without its
    /// tools.
    ///
    /// ```
    /// use plimsoll_mcp::McpServer;
    /// let server = McpServer::url("charts", "https://charts.example/mcp").required();
    /// ```
    #[must_use]
    pub fn required(mut self) -> Self {
        self.required = true;
        self
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the error for this reason, without secrets.
    pub(crate) fn absent(&self, why: String) -> McpError {
        McpError {
            server: self.name.clone(),
            why: self.strike_out(why),
        }
    }

    /// Returns the error of a server that has not done this within its timeout. `words` follow.
    pub(crate) fn late(&self, what: &str, words: &str) -> McpError {
        let secs = self.timeout.as_secs_f32();
        self.absent(format!(
            "{what} within {secs} s{words}; set `timeout`, or a longer `max_duration`, to wait longer"
        ))
    }

    /// Removes all secrets of this server from a text.
    pub(crate) fn strike_out(&self, text: String) -> String {
        let secrets = self.secrets.iter();
        secrets.fold(text, |text, secret| secret.strike_out(text))
    }

    /// Removes the server's token from a result.
    pub(crate) fn without_token(&self, mut output: ToolOutput) -> ToolOutput {
        if let Some(token) = &self.bearer {
            for part in &mut output.parts {
                if let Part::Text { text } = part {
                    *text = token.strike_out(std::mem::take(text));
                }
            }
        }
        output
    }

    fn new(name: String, reach: Reach) -> Self {
        Self {
            name,
            reach,
            timeout: MCP_TIMEOUT,
            trusted: false,
            required: false,
            headers: Vec::new(),
            bearer: None,
            secrets: Vec::new(),
        }
    }
}

/// Returns the parts of an address that may be a key, in the spellings that errors repeat: first the
/// address itself, the longest spelling first, then its query, user name and password.
fn secrets_of(url: &str) -> Vec<Secret> {
    let mut addresses = vec![url.to_owned()];
    let mut parts = Vec::from_iter(url.split_once('?').map(|(_, query)| Secret::new(query)));
    if let Ok(mut read) = reqwest::Url::parse(url) {
        let named = [Some(read.username()), read.password(), read.query()];
        parts.extend(named.into_iter().flatten().map(Secret::new));
        addresses.push(read.to_string());
        // Errors repeat it in this form after user name and password have become a header.
        if read.set_username("").is_ok() && read.set_password(None).is_ok() {
            addresses.push(read.to_string());
        }
    }
    addresses.sort_by_key(|address| std::cmp::Reverse(address.len()));
    let addresses = addresses.iter();
    let addresses = addresses.map(|address| Secret::new(address).named(ADDRESS));
    addresses.chain(parts).collect()
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .field("trusted", &self.trusted)
            .field("required", &self.required)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_an_address_is_repeated() {
        for (url, said, told) in [
            (
                "https://mcp.example.com/s/0123456789-hush/mcp",
                "error sending request for url (https://mcp.example.com/s/0123456789-hush/mcp): refused",
                "error sending request for url ([secret address]): refused",
            ),
            // In its parsed form, with escaped spaces.
            (
                "https://me:pass-hush-word@mcp.example.com/mcp?key=a hush&x={1}",
                "url (https://mcp.example.com/mcp?key=a%20hush&x={1})",
                "url ([secret address])",
            ),
            (
                "https://me:pass-hush-word@mcp.example.com/mcp?key=a hush&x={1}",
                "bad query key=a%20hush&x={1}, bad password pass-hush-word",
                "bad query [secret], bad password [secret]",
            ),
            (
                "no address at all?key=0123456789",
                "relative URL without a base: key=0123456789",
                "relative URL without a base: [secret]",
            ),
        ] {
            let server = McpServer::url("web", url);
            assert_eq!(server.strike_out(said.to_owned()), told, "{url}");
            assert!(!format!("{server:?}").contains("hush"));
        }
    }
}
