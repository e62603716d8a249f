//! Tools that are defined by the API and not by whoever asks: which there are, who runs them, and what
//! has to be announced for them. Not what they do.

use plimsoll_context::HostedTool;

/// What an `mcp_toolset` and its servers are announced by.
const MCP: &str = "mcp-client-2025-11-20";
/// Tools of servers that further keys of the body name.
pub const MCP_TOOLSET: &str = "mcp_toolset";

/// A family of such tools. A version is its date, which stands behind the family's name.
#[derive(Debug)]
pub struct Family {
    /// Its name before the date.
    pub kind: &'static str,
    /// What the tool has to be called; any where there are several.
    pub name: Option<&'static str>,
    runs: Runs,
}

/// Who runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    Provider,
    Client,
}

/// All families.
pub const FAMILIES: [Family; 10] = [
    family("web_search", Some("web_search"), Runs::Provider),
    family("web_fetch", Some("web_fetch"), Runs::Provider),
    family("code_execution", Some("code_execution"), Runs::Provider),
    family("advisor", Some("advisor"), Runs::Provider),
    family(
        "tool_search_tool_regex",
        Some("tool_search_tool_regex"),
        Runs::Provider,
    ),
    family(
        "tool_search_tool_bm25",
        Some("tool_search_tool_bm25"),
        Runs::Provider,
    ),
    family("memory", Some("memory"), Runs::Client),
    family("bash", Some("bash"), Runs::Client),
    family("text_editor", None, Runs::Client),
    family("computer", Some("computer"), Runs::Client),
];

/// Versions that are not yet part of the API, or were not when they came, and what announces them.
const ANNOUNCED: [(&str, &str); 3] = [
    ("advisor_20260301", "advisor-tool-2026-03-01"),
    ("code_execution_20250522", "code-execution-2025-05-22"),
    (MCP_TOOLSET, MCP),
];

const fn family(kind: &'static str, name: Option<&'static str>, runs: Runs) -> Family {
    Family { kind, name, runs }
}

/// The families whose tools the provider runs, for those who want to know what there is.
pub fn hosted_kinds() -> impl Iterator<Item = &'static str> {
    let families = FAMILIES.iter();
    let hosted = families.filter(|family| family.runs == Runs::Provider);
    hosted.map(|family| family.kind)
}

/// Why a tool cannot be asked for as one that the provider runs: it is the client that runs it. What
/// else is wrong with it, `validate` of the crate `judge` reports.
#[must_use]
pub fn not_hosted(tool: &HostedTool) -> Option<String> {
    let kind = tool.kind();
    let clients = family_of(kind).is_some_and(|family| family.runs == Runs::Client);
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

/// What announces a tool; nothing where the API has it.
pub fn beta_of(kind: &str) -> Option<&'static str> {
    let announced = ANNOUNCED.iter().find(|(of, _)| *of == kind);
    announced.map(|(_, beta)| *beta)
}

/// The family of a kind: its name with a date behind it.
pub fn family_of(kind: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| {
        let version = kind.strip_prefix(family.kind);
        let date = version.and_then(|version| version.strip_prefix('_'));
        date.is_some_and(|date| date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()))
    })
}
