//! The tools that the API defines: their families, who runs them, and the beta headers that they need.

use plimsoll_context::HostedTool;

/// The beta header for an `mcp_toolset` and its servers.
const MCP: &str = "mcp-client-2025-11-20";
/// Tools of servers that are named by other keys of the body.
pub const MCP_TOOLSET: &str = "mcp_toolset";

/// A family of tools. A version is the family's name with a date.
#[derive(Debug)]
pub struct Family {
    /// The name without the date.
    pub kind: &'static str,
    /// The required tool name. `None` if several names are allowed.
    pub name: Option<&'static str>,
    runs: ToolHost,
}

/// The side that runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolHost {
    Provider,
    Client,
}

/// All families.
pub const FAMILIES: [Family; 10] = [
    family("web_search", Some("web_search"), ToolHost::Provider),
    family("web_fetch", Some("web_fetch"), ToolHost::Provider),
    family("code_execution", Some("code_execution"), ToolHost::Provider),
    family("advisor", Some("advisor"), ToolHost::Provider),
    family(
        "tool_search_tool_regex",
        Some("tool_search_tool_regex"),
        ToolHost::Provider,
    ),
    family(
        "tool_search_tool_bm25",
        Some("tool_search_tool_bm25"),
        ToolHost::Provider,
    ),
    family("memory", Some("memory"), ToolHost::Client),
    family("bash", Some("bash"), ToolHost::Client),
    family("text_editor", None, ToolHost::Client),
    family("computer", Some("computer"), ToolHost::Client),
];

/// Versions that are, or were at their release, not part of the API, with their beta headers.
const ANNOUNCED: [(&str, &str); 3] = [
    ("advisor_20260301", "advisor-tool-2026-03-01"),
    ("code_execution_20250522", "code-execution-2025-05-22"),
    (MCP_TOOLSET, MCP),
];

const fn family(kind: &'static str, name: Option<&'static str>, runs: ToolHost) -> Family {
    Family { kind, name, runs }
}

/// Returns the families of tools that the provider runs.
pub fn hosted_kinds() -> impl Iterator<Item = &'static str> {
    let families = FAMILIES.iter();
    let hosted = families.filter(|family| family.runs == ToolHost::Provider);
    hosted.map(|family| family.kind)
}

/// Returns the reason why a tool is not a hosted tool: the client runs it. Other faults are reported by
/// `validate` of the crate `mock`.
#[must_use]
pub fn not_hosted(tool: &HostedTool) -> Option<String> {
    let kind = tool.kind();
    let clients = family_of(kind).is_some_and(|family| family.runs == ToolHost::Client);
    let why = match kind {
        "custom" => "is a definition of the client's own",
        _ if clients => "runs at the client, not at the provider",
        _ => return None,
    };
    Some(format!(
        "`{kind}` {why}, so that it is none of hosted_tools; there are: {}",
        hosted_kinds().collect::<Vec<_>>().join(", ")
    ))
}

/// Returns the beta header that a tool needs. `None` if the API has the tool without one.
pub fn beta_of(kind: &str) -> Option<&'static str> {
    let announced = ANNOUNCED.iter().find(|(of, _)| *of == kind);
    announced.map(|(_, beta)| *beta)
}

/// Returns the family of a tool's type, which is the family's name with a date.
pub fn family_of(kind: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| {
        let version = kind.strip_prefix(family.kind);
        let date = version.and_then(|version| version.strip_prefix('_'));
        date.is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
    })
}
