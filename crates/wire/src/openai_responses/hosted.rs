//! OpenAI's own tools, and whether the provider or the caller runs them.

use plimsoll_context::HostedTool;
use serde_json::Value;

use crate::hosted;

/// The types of the tools that the provider runs.
const HOSTED: [&str; 7] = [
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "web_search_preview_2025_03_11",
    "file_search",
    "code_interpreter",
    "mcp",
];
/// The types of the tools that the client runs.
const CLIENTS: [&str; 10] = [
    "function",
    "custom",
    "namespace",
    "tool_search",
    "computer",
    "computer_use_preview",
    "local_shell",
    "shell",
    "apply_patch",
    "programmatic_tool_calling",
];
/// A tool of the provider's whose output is too large to be sent back with every request.
const PICTURES: &str = "image_generation";

/// Returns the types of the tools that the provider runs.
#[must_use]
pub fn hosted_kinds() -> Vec<&'static str> {
    HOSTED.to_vec()
}

/// Returns the reason why a tool is not a hosted tool: the client takes part in it. Other faults are
/// reported by `validate` of the crate `mock`.
#[must_use]
pub fn not_hosted(tool: &HostedTool) -> Option<String> {
    let kind = tool.kind();
    let never = tool.0.get("require_approval") == Some(&Value::from("never"));
    let why = match kind {
        PICTURES => "makes pictures, which are too large to go back with every request",
        kind if CLIENTS.contains(&kind) => "is run by the client, not by the provider",
        "mcp" if !never => {
            return Some(format!(
                "`{}` asks before each call, and nobody is there to answer; say `require_approval = \
                 \"never\"`, or connect to it with [[mcp]]",
                tool.name()
            ));
        }
        _ => return None,
    };
    Some(hosted::not_hosted(kind, why, &HOSTED))
}
