//! [`McpServer`]: a server of tools as `[[mcp]]` names it. Not the client; this build has none yet.

use std::time::Duration;

use plimsoll_providers::Secret;

use super::fault::Faults;
use super::fields::{Field, FieldKind, Fields};

/// How long a server is waited for where nothing is said.
pub const MCP_TIMEOUT: Duration = Duration::from_secs(30);

/// What `[[mcp]]` may say.
pub const MCP_FIELDS: &[Field] = &[
    Field {
        name: "name",
        kind: FieldKind::Text,
        doc: "The server's name, before those of its tools. Required.",
    },
    Field {
        name: "command",
        kind: FieldKind::Text,
        doc: "The program that is the server; this or `url`.",
    },
    Field {
        name: "args",
        kind: FieldKind::Texts,
        doc: "Its arguments.",
    },
    Field {
        name: "env",
        kind: FieldKind::Map,
        doc: "Variables of its environment; never printed.",
    },
    Field {
        name: "url",
        kind: FieldKind::Text,
        doc: "The address of a server that runs elsewhere.",
    },
    Field {
        name: "headers",
        kind: FieldKind::Map,
        doc: "Headers of requests to it; never printed.",
    },
    Field {
        name: "timeout",
        kind: FieldKind::Time,
        doc: "How long one of its answers is waited for; 30 unless set.",
    },
    Field {
        name: "lazy",
        kind: FieldKind::Flag,
        doc: "Start it only when one of its tools is first called; false unless set.",
    },
];

/// A server of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub reach: McpReach,
    /// How long one of its answers is waited for.
    pub timeout: Duration,
    /// When it is started.
    pub start: McpStart,
    /// The line that it stands on.
    pub line: usize,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpReach {
    /// As a child, by its standard input and output.
    Command {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment.
        env: Vec<(String, Secret)>,
    },
    /// At an address.
    Url {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, Secret)>,
    },
}

/// When a server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpStart {
    /// With the run.
    AtOnce,
    /// When one of its tools is first called.
    Lazy,
}

impl McpServer {
    pub(crate) fn of(fields: &Fields, faults: &mut Faults) -> Option<Self> {
        let line = fields.line;
        let name = fields.text("name");
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        match &name {
            None if fields.failed("name") => {}
            None => faults.at(line, "[[mcp]] needs a `name`"),
            Some(name) if !name.chars().all(good) => {
                let line = fields.line_of("name");
                let text =
                    format!("`{name}` cannot name a server; use letters, digits, `_` or `-`");
                faults.at(line, text);
            }
            Some(_) => {}
        }
        let secret = |map: Vec<(String, String)>| {
            let secrets = map
                .into_iter()
                .map(|(name, value)| (name, Secret::new(&value)));
            secrets.collect::<Vec<_>>()
        };
        let reach = match (fields.text("command"), fields.text("url")) {
            (Some(command), None) => McpReach::Command {
                command,
                args: fields.texts("args").unwrap_or_default(),
                env: secret(fields.map("env")),
            },
            (None, Some(url)) => {
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    let text = format!("`url` is {url:?}; begin it with http:// or https://");
                    faults.at(fields.line_of("url"), text);
                }
                McpReach::Url {
                    url,
                    headers: secret(fields.map("headers")),
                }
            }
            (Some(_), Some(_)) => {
                let line = fields.line_of("url");
                faults.at(
                    line,
                    "a server has a `command` or a `url`; keep the one you mean",
                );
                return None;
            }
            (None, None) if fields.failed("command") || fields.failed("url") => return None,
            (None, None) => {
                faults.at(
                    line,
                    "[[mcp]] needs a `command` to start, or the `url` of a server",
                );
                return None;
            }
        };
        let stray: &[&str] = match reach {
            McpReach::Command { .. } => &["headers"],
            McpReach::Url { .. } => &["args", "env"],
        };
        for name in stray.iter().filter(|name| fields.has(name)) {
            let text = match reach {
                McpReach::Command { .. } => format!("`{name}` is of a server with a `url`"),
                McpReach::Url { .. } => format!("`{name}` is of a server with a `command`"),
            };
            faults.at(fields.line_of(name), text);
        }
        Some(Self {
            name: name?,
            reach,
            timeout: fields.time("timeout").unwrap_or(MCP_TIMEOUT),
            start: match fields.flag("lazy") {
                Some(true) => McpStart::Lazy,
                _ => McpStart::AtOnce,
            },
            line,
        })
    }
}
