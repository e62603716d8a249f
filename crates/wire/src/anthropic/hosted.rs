//! The tools that the API defines: their families, who runs them, and the beta headers that they need.

use plimsoll_context::HostedTool;

use crate::hosted;

/// The families of tools that the provider runs. The type of a tool is its family's name with a date.
const HOSTED: [&str; 6] = [
    "web_search",
    "web_fetch",
    "code_execution",
    "advisor",
    "tool_search_tool_regex",
    "tool_search_tool_bm25",
];
/// The families of tools that the client runs.
const CLIENTS: [&str; 4] = ["memory", "bash", "text_editor", "computer"];

/// Types that are, or were at their release, not part of the API, with their beta headers. An
/// `mcp_toolset` has the tools of servers that are named by another key of the body.
const ANNOUNCED: [(&str, &str); 3] = [
    ("advisor_20260301", "advisor-tool-2026-03-01"),
    ("code_execution_20250522", "code-execution-2025-05-22"),
    ("mcp_toolset", "mcp-client-2025-11-20"),
];

/// Returns the families of tools that the provider runs.
#[must_use]
pub fn hosted_kinds() -> Vec<&'static str> {
    HOSTED.to_vec()
}

/// Returns the reason why a tool is not a hosted tool: the client runs it. Other faults are reported by
/// `validate` of the crate `mock`.
#[must_use]
pub fn not_hosted(tool: &HostedTool) -> Option<String> {
    let kind = tool.kind();
    let why = match family_of(kind) {
        _ if kind == "custom" => "is a definition of the client's own",
        Some(family) if CLIENTS.contains(&family) => "runs at the client, not at the provider",
        _ => return None,
    };
    Some(hosted::not_hosted(kind, why, &hosted_kinds()))
}

/// Returns the beta header that a tool needs. `None` if the API has the tool without one.
pub fn beta_of(kind: &str) -> Option<&'static str> {
    let announced = ANNOUNCED.iter().find(|(of, _)| *of == kind);
    announced.map(|(_, beta)| *beta)
}

/// Returns the family of a tool's type.
pub fn family_of(kind: &str) -> Option<&'static str> {
    let (family, date) = kind.rsplit_once('_')?;
    let is_date = date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit());
    let mut families = HOSTED.into_iter().chain(CLIENTS);
    families.find(|known| is_date && *known == family)
}
