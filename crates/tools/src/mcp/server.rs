//! [`McpServer`]: how a server of tools is reached, and how far it is trusted. Not a connection.

use std::fmt;
use std::time::Duration;

use plimsoll_context::Part;
use plimsoll_core::process::Command;
use plimsoll_core::{Secret, ToolOutput};

/// How long a server is waited for, where nothing is said: to be ready, and for each of its answers.
pub const MCP_TIMEOUT: Duration = Duration::from_secs(30);
/// What stands in a text in place of a server's own address.
const ADDRESS: &str = "its address";

/// A server of tools. Its `Debug` shows no header and no variable.
#[derive(Clone)]
pub struct McpServer {
    pub(super) name: String,
    pub(super) reach: Reach,
    pub(super) timeout: Duration,
    pub(super) trust: Trust,
    pub(super) need: Need,
    pub(super) offer: Offer,
    /// Its own address, as it was written and as errors repeat it: some have a key for a path.
    addresses: Vec<String>,
    secrets: Vec<Secret>,
}

/// How a server is reached.
#[derive(Clone)]
pub(super) enum Reach {
    Command(Command),
    Url {
        url: String,
        headers: Vec<(String, String)>,
        bearer: Option<Secret>,
    },
}

/// Whether a server's hints about its tools count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    Hints,
    Nothing,
}

/// Whether a run can do without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Required,
    Welcome,
}

/// How its tools are offered to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    Whole,
    Lazy,
}

impl McpServer {
    /// A server that is a child of this process, spoken with over its standard input and output.
    pub fn command(name: impl Into<String>, command: Command) -> Self {
        Self::new(name.into(), Reach::Command(command))
    }

    /// A server at an address, by streamable HTTP.
    pub fn url(name: impl Into<String>, url: impl Into<String>) -> Self {
        let url = url.into();
        let (addresses, secrets) = secrets_of(&url);
        let reach = Reach::Url {
            url,
            headers: Vec::new(),
            bearer: None,
        };
        let mut server = Self::new(name.into(), reach);
        server.addresses.extend(addresses);
        server
            .secrets
            .extend(secrets.iter().map(|secret| Secret::new(secret)));
        server
    }

    /// One more header of each request; only where it is at an address. Never shown.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = value.into();
        self.secrets.push(Secret::new(&value));
        if let Reach::Url { headers, .. } = &mut self.reach {
            headers.push((name.into(), value));
        }
        self
    }

    /// The token that it is shown as `Authorization: Bearer`; only where it is at an address. Never
    /// shown to anybody else.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        let token = Secret::new(&token.into());
        self.secrets.push(token.clone());
        if let Reach::Url { bearer, .. } = &mut self.reach {
            *bearer = Some(token);
        }
        self
    }

    /// A value that is struck out wherever the server repeats it in an error: that of a variable that
    /// its command was given, say.
    #[must_use]
    pub fn secret(mut self, value: impl Into<String>) -> Self {
        self.secrets.push(Secret::new(&value.into()));
        self
    }

    /// How long it is waited for. Default [`MCP_TIMEOUT`].
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What it says of its tools is true: those that only read run without asking, and are called
    /// again after a crash. Default: no hint counts, and each call is asked for.
    #[must_use]
    pub fn trusted(mut self) -> Self {
        self.trust = Trust::Hints;
        self
    }

    /// Without it there is no run. Default: a warning, and the run goes on without its tools.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.need = Need::Required;
        self
    }

    /// Three tools stand for it, which list, describe and call its tools. Default: each of its tools
    /// is offered with its whole schema.
    #[must_use]
    pub fn lazy(mut self) -> Self {
        self.offer = Offer::Lazy;
        self
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A text without any secret of this server.
    pub(super) fn strike_out(&self, mut text: String) -> String {
        for address in &self.addresses {
            if text.contains(address.as_str()) {
                text = text.replace(address.as_str(), ADDRESS);
            }
        }
        let secrets = self.secrets.iter();
        secrets.fold(text, |text, secret| secret.strike_out(text))
    }

    /// A result without the token that the server was shown.
    pub(super) fn without_token(&self, mut output: ToolOutput) -> ToolOutput {
        if let Reach::Url {
            bearer: Some(token),
            ..
        } = &self.reach
        {
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
            trust: Trust::Nothing,
            need: Need::Welcome,
            offer: Offer::Whole,
            addresses: Vec::new(),
            secrets: Vec::new(),
        }
    }
}

/// What of an address may be a key, as it was written and as errors repeat it: the address itself,
/// the longest first, and then what follows its `?`, and a name and a password.
fn secrets_of(url: &str) -> (Vec<String>, Vec<String>) {
    let query = url.split_once('?').map(|(_, query)| query);
    let place = url.split_once("://").map_or("", |(_, place)| place);
    let place = place.split(['/', '?']).next().unwrap_or_default();
    let user = place.rsplit_once('@').map(|(user, _)| user);
    let mut secrets: Vec<String> = [query, user]
        .into_iter()
        .flatten()
        .map(str::to_owned)
        .collect();
    let mut addresses = Vec::new();
    if let Ok(mut read) = reqwest::Url::parse(url) {
        secrets.extend(read.query().map(str::to_owned));
        secrets.extend(read.password().map(str::to_owned));
        addresses = vec![url.to_owned(), read.to_string()];
        // So it is repeated where a name and a password have become a header.
        if read.set_username("").is_ok() && read.set_password(None).is_ok() {
            addresses.push(read.to_string());
        }
        addresses.sort_by_key(|address| std::cmp::Reverse(address.len()));
    }
    (addresses, secrets)
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .field("trust", &self.trust)
            .field("need", &self.need)
            .field("offer", &self.offer)
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
                "error sending request for url (its address): refused",
            ),
            // As it is read, blanks and all.
            (
                "https://me:pass-hush-word@mcp.example.com/mcp?key=a hush&x={1}",
                "url (https://mcp.example.com/mcp?key=a%20hush&x={1})",
                "url (its address)",
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
