//! [`Catalog`]: the tools of one server, sorted, within limits.

use plimsoll_context::{Bytes, head_tail};
use serde_json::{Map, Value};

use crate::schema;

/// Maximum number of tools of one server, which are sent with every request. Many providers accept no more.
pub const MCP_TOOLS: usize = 128;
/// Maximum size of a description, which is sent with every request.
pub const MCP_DESCRIPTION_MAX: Bytes = Bytes(4 * 1024);

/// The tools as a server lists them.
#[derive(Debug, Default)]
pub(crate) struct ToolListing {
    pub(crate) tools: Vec<Value>,
    /// Set if there are more.
    pub(crate) is_cut: bool,
}

/// The tools of a server.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Catalog {
    /// Sorted by name. A server may list them in another order each time, which would change every
    /// request.
    pub(crate) tools: Vec<RemoteTool>,
    /// One note for each omission.
    pub(crate) notes: Vec<String>,
}

/// One tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RemoteTool {
    /// The server's name for the tool.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
    pub(crate) idempotent: bool,
    pub(crate) asks: bool,
}

impl Catalog {
    pub(crate) fn new(listing: ToolListing, trusted: bool) -> Self {
        let mut notes = Vec::new();
        if listing.is_cut {
            notes.push(format!(
                "it has more than {MCP_TOOLS} tools; the rest is left out"
            ));
        }
        let count = listing.tools.len();
        let named = |tool: Value| Some((tool.get("name")?.as_str()?.to_owned(), tool));
        let mut listed: Vec<(String, Value)> =
            listing.tools.into_iter().filter_map(named).collect();
        let odd = count - listed.len();
        if odd > 0 {
            notes.push(format!("tools left out because they cannot be read: {odd}"));
        }
        listed.sort_by(|(one, _), (other, _)| one.cmp(other));
        listed.dedup_by(|(one, _), (kept, _)| {
            let is_same = one == kept;
            let note = format!("it lists `{kept}` more than once; the first is taken");
            if is_same && notes.last() != Some(&note) {
                notes.push(note);
            }
            is_same
        });
        let tools = listed.into_iter();
        let tools = tools.map(|(name, tool)| RemoteTool::new(name, &tool, trusted, &mut notes));
        Self {
            tools: tools.collect(),
            notes,
        }
    }

    pub(crate) fn find(&self, name: &str) -> Option<&RemoteTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }
}

impl RemoteTool {
    fn new(name: String, tool: &Value, trusted: bool, notes: &mut Vec<String>) -> Self {
        let empty = Map::new();
        let schema = tool.get("inputSchema").and_then(Value::as_object);
        let converted = schema::convert(schema.unwrap_or(&empty));
        let omitted = converted.notes.into_iter();
        notes.extend(omitted.map(|omitted| format!("the schema of `{name}` {omitted}")));
        let text = |key| tool.get(key).and_then(Value::as_str).map(str::trim);
        let description = text("description").filter(|text| !text.is_empty());
        let description = description.or(text("title")).unwrap_or_default();
        let shortened = head_tail(description, MCP_DESCRIPTION_MAX);
        let hint = |key| {
            let hints = tool.get("annotations").filter(|_| trusted);
            hints.and_then(|hints| hints.get(key)?.as_bool())
        };
        let only_reads = hint("readOnlyHint") == Some(true);
        Self {
            name,
            description: shortened.unwrap_or_else(|| description.to_owned()),
            schema: converted.schema,
            idempotent: only_reads || hint("idempotentHint") == Some(true),
            asks: !only_reads && hint("destructiveHint") != Some(false),
        }
    }
}
