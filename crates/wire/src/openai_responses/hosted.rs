//! Tools of OpenAI's own: which there are, who runs them, and what each has to say. Not what they do.

use plimsoll_context::HostedTool;
use serde_json::Value;

/// A kind of tool.
#[derive(Debug)]
pub struct Tool {
    /// Its `type`.
    pub kind: &'static str,
    /// Keys that it has to have.
    pub needs: &'static [&'static str],
    runs: Runs,
}

/// Who runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    Provider,
    Client,
    /// The provider, and what it makes is too large to go back with every request.
    Pictures,
}

/// All kinds.
pub const TOOLS: [Tool; 18] = [
    tool("function", &[], Runs::Client),
    tool("custom", &[], Runs::Client),
    tool("namespace", &[], Runs::Client),
    tool("web_search", &[], Runs::Provider),
    tool("web_search_2025_08_26", &[], Runs::Provider),
    tool("web_search_preview", &[], Runs::Provider),
    tool("web_search_preview_2025_03_11", &[], Runs::Provider),
    tool("file_search", &["vector_store_ids"], Runs::Provider),
    tool("code_interpreter", &["container"], Runs::Provider),
    tool("mcp", &["server_label"], Runs::Provider),
    tool("image_generation", &[], Runs::Pictures),
    tool("tool_search", &[], Runs::Client),
    tool("computer", &[], Runs::Client),
    tool("computer_use_preview", &[], Runs::Client),
    tool("local_shell", &[], Runs::Client),
    tool("shell", &[], Runs::Client),
    tool("apply_patch", &[], Runs::Client),
    tool("programmatic_tool_calling", &[], Runs::Client),
];

const fn tool(kind: &'static str, needs: &'static [&'static str], runs: Runs) -> Tool {
    Tool { kind, needs, runs }
}

/// The tools that the provider runs, for those who want to know what there is.
pub fn hosted_kinds() -> impl Iterator<Item = &'static str> {
    let hosted = TOOLS.iter().filter(|tool| tool.runs == Runs::Provider);
    hosted.map(|tool| tool.kind)
}

/// Why a tool cannot be asked for as one that the provider runs: the client has a part in it. What
/// else is wrong with it, `validate` of the crate `judge` reports.
#[must_use]
pub fn not_hosted(tool: &HostedTool) -> Option<String> {
    let kind = tool.kind();
    let runs = TOOLS.iter().find(|known| known.kind == kind)?.runs;
    let never = tool.0.get("require_approval") == Some(&Value::from("never"));
    let why = match runs {
        Runs::Client => "is run by the client, not by the provider",
        Runs::Pictures => "makes pictures, which are too large to go back with every request",
        Runs::Provider if kind == "mcp" && !never => {
            return Some(format!(
                "`{}` asks before each call, and nobody is there to answer; say `require_approval = \
                 \"never\"`, or connect to it with [[mcp]]",
                tool.name()
            ));
        }
        Runs::Provider => return None,
    };
    Some(format!(
        "`{kind}` {why}, so that it is none of hosted_tools; there are: {}",
        hosted_kinds().collect::<Vec<_>>().join(", ")
    ))
}
