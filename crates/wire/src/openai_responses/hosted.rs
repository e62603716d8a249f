//! OpenAI's own tools: their kinds, who runs them, and their required keys.

use plimsoll_context::HostedTool;
use serde_json::Value;

/// A kind of tool.
#[derive(Debug)]
pub struct Tool {
    /// The `type`.
    pub kind: &'static str,
    /// The required keys.
    pub needs: &'static [&'static str],
    runs: ToolHost,
}

/// The side that runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolHost {
    Provider,
    Client,
    /// The provider, but the output is too large to be sent back with every request.
    Pictures,
}

/// All kinds.
pub const TOOLS: [Tool; 18] = [
    tool("function", &[], ToolHost::Client),
    tool("custom", &[], ToolHost::Client),
    tool("namespace", &[], ToolHost::Client),
    tool("web_search", &[], ToolHost::Provider),
    tool("web_search_2025_08_26", &[], ToolHost::Provider),
    tool("web_search_preview", &[], ToolHost::Provider),
    tool("web_search_preview_2025_03_11", &[], ToolHost::Provider),
    tool("file_search", &["vector_store_ids"], ToolHost::Provider),
    tool("code_interpreter", &["container"], ToolHost::Provider),
    tool("mcp", &["server_label"], ToolHost::Provider),
    tool("image_generation", &[], ToolHost::Pictures),
    tool("tool_search", &[], ToolHost::Client),
    tool("computer", &[], ToolHost::Client),
    tool("computer_use_preview", &[], ToolHost::Client),
    tool("local_shell", &[], ToolHost::Client),
    tool("shell", &[], ToolHost::Client),
    tool("apply_patch", &[], ToolHost::Client),
    tool("programmatic_tool_calling", &[], ToolHost::Client),
];

const fn tool(kind: &'static str, needs: &'static [&'static str], runs: ToolHost) -> Tool {
    Tool { kind, needs, runs }
}

/// Returns the types of the tools that the provider runs.
pub fn hosted_kinds() -> impl Iterator<Item = &'static str> {
    let hosted = TOOLS.iter().filter(|tool| tool.runs == ToolHost::Provider);
    hosted.map(|tool| tool.kind)
}

/// Returns the reason why a tool is not a hosted tool: the client takes part in it. Other faults are
/// reported by `validate` of the crate `mock`.
#[must_use]
pub fn not_hosted(tool: &HostedTool) -> Option<String> {
    let kind = tool.kind();
    let runs = TOOLS.iter().find(|known| known.kind == kind)?.runs;
    let never = tool.0.get("require_approval") == Some(&Value::from("never"));
    let why = match runs {
        ToolHost::Client => "is run by the client, not by the provider",
        ToolHost::Pictures => "makes pictures, which are too large to go back with every request",
        ToolHost::Provider if kind == "mcp" && !never => {
            return Some(format!(
                "`{}` asks before each call, and nobody is there to answer; say `require_approval = \
                 \"never\"`, or connect to it with [[mcp]]",
                tool.name()
            ));
        }
        ToolHost::Provider => return None,
    };
    Some(format!(
        "`{kind}` {why}, so that it is none of hosted_tools; there are: {}",
        hosted_kinds().collect::<Vec<_>>().join(", ")
    ))
}
