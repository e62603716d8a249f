//! [`Catalog`]: the tools of one server, sorted, within limits.

use std::borrow::Cow;
use std::fmt::Write;

use plimsoll_context::{Bytes, head_tail};
use rmcp::model::ToolAnnotations;
use serde_json::{Map, Value};

use super::connection::ToolListing;
use super::schema::{self, ConvertedSchema, MCP_SCHEMA_MAX, SchemaRemainder};

/// Maximum number of tools of one server; further ones are ignored.
pub const MCP_TOOLS: usize = 1_000;
/// Maximum number of these tools that are sent in full with every request; no provider accepts more. A
/// lazy server offers all its tools.
pub const MCP_TOOLS_SENT: usize = 128;
/// Maximum number of pages of the list of tools.
pub const MCP_PAGES: usize = 100;
/// Maximum size of a description, which is sent with every request.
pub const MCP_DESCRIPTION_MAX: Bytes = Bytes(4 * 1024);

/// The tools of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Catalog {
    /// Sorted by name. A server may list them in another order each time, which would change every
    /// request.
    pub(super) tools: Vec<Remote>,
    /// The server's instructions.
    pub(super) about: Option<String>,
    /// One note for each omission.
    pub(super) notes: Vec<String>,
}

/// One tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Remote {
    /// The server's name for the tool.
    pub(super) name: String,
    pub(super) description: String,
    pub(super) schema: Value,
    /// The names of renamed arguments: in the schema, and on the server.
    renamed: Vec<(String, String)>,
    pub(super) idempotent: bool,
    pub(super) asks: bool,
}

impl Catalog {
    pub(super) fn of(listed: ToolListing, about: Option<String>, trusted: bool) -> Self {
        let mut notes = Vec::new();
        if listed.cut {
            notes.push(format!(
                "it has more than {MCP_TOOLS} tools, or lists them on more than {MCP_PAGES} pages; \
                 the rest is left out"
            ));
        }
        match listed.odd {
            0 => {}
            1 => notes.push("one of its tools cannot be read and is left out".to_owned()),
            odd => notes.push(format!(
                "{odd} of its tools cannot be read and are left out"
            )),
        }
        let mut listed = listed.tools;
        listed.sort_by(|one, other| one.name.cmp(&other.name));
        let mut twice = Cow::Borrowed("");
        listed.dedup_by(|one, kept| {
            let is_same = one.name == kept.name;
            if is_same && twice != kept.name {
                notes.push(format!(
                    "it lists `{}` more than once; the first is taken",
                    kept.name
                ));
                kept.name.clone_into(&mut twice);
            }
            is_same
        });
        let mut tools = Vec::new();
        for tool in listed {
            let ConvertedSchema {
                schema,
                left,
                renamed,
                forms,
            } = schema::shown(&tool.input_schema);
            let mut description = tool.description.as_deref().unwrap_or("").trim().to_owned();
            if description.is_empty() {
                description = tool.title.unwrap_or_default();
            }
            description = head_tail(&description, MCP_DESCRIPTION_MAX).unwrap_or(description);
            if let Some(forms) = forms {
                // Writing to a String cannot fail.
                let _ = write!(description, "\n({forms})");
            }
            let name = tool.name.into_owned();
            match left {
                SchemaRemainder::Whole => {}
                SchemaRemainder::WithoutWords => notes.push(format!(
                    "the schema of `{name}` takes more than {MCP_SCHEMA_MAX} bytes and is sent without descriptions"
                )),
                SchemaRemainder::Nothing => {
                    notes.push(format!(
                        "the schema of `{name}` takes more than {MCP_SCHEMA_MAX} bytes and is not sent"
                    ));
                    // Writing to a String cannot fail.
                    let _ = write!(description, "\n(Its input schema is too large to be shown.)");
                }
            }
            let hints = tool.annotations.filter(|_| trusted);
            tools.push(Remote {
                name,
                description,
                schema,
                renamed,
                idempotent: hints.as_ref().is_some_and(is_idempotent),
                asks: !hints.as_ref().is_some_and(is_harmless),
            });
        }
        Self {
            tools,
            about: about.map(|text| head_tail(&text, MCP_DESCRIPTION_MAX).unwrap_or(text)),
            notes,
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<&Remote> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }
}

impl Remote {
    /// Returns the arguments with the server's names.
    pub(super) fn arguments(&self, arguments: &Map<String, Value>) -> Map<String, Value> {
        let real = |shown: &String| {
            let names = self.renamed.iter().find(|(name, _)| name == shown);
            names.map_or(shown, |(_, real)| real).clone()
        };
        let arguments = arguments.iter();
        arguments
            .map(|(shown, value)| (real(shown), value.clone()))
            .collect()
    }
}

fn is_idempotent(hints: &ToolAnnotations) -> bool {
    hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
}

fn is_harmless(hints: &ToolAnnotations) -> bool {
    hints.read_only_hint == Some(true) || hints.destructive_hint == Some(false)
}
