//! [`HostedTool`]: a tool that runs at the provider, such as web search.
//!
//! Tools that the host runs are described by a [`ToolSpec`](crate::ToolSpec). `wire` knows which
//! providers accept which hosted tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A hosted tool, in the JSON form that is sent to the provider.
///
/// ```
/// use plimsoll_context::HostedTool;
/// use serde_json::json;
/// let search = HostedTool(json!({"type": "web_search_20250305", "name": "web_search"}));
/// assert_eq!(search.name(), "web_search");
/// let search = HostedTool(json!({"type": "web_search"}));
/// assert_eq!(search.name(), "web_search");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HostedTool(pub Value);

impl HostedTool {
    /// Returns the tool's type in the provider's terms. Empty if there is none.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.text("type")
    }

    /// Returns the tool's name, or its type if it has no name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names().next().unwrap_or_default()
    }

    /// Returns all names of the tool, its own name first. Permission rules match any of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let names = ["name", "server_label", "mcp_server_name", "type"].map(|key| self.text(key));
        names.into_iter().filter(|name| !name.is_empty())
    }

    /// Returns the MCP server whose tools this entry makes available, or `None` for a single tool.
    #[must_use]
    pub fn server(&self) -> Option<&str> {
        let label = match self.kind() {
            "mcp" => self.text("server_label"),
            "mcp_toolset" => self.text("mcp_server_name"),
            _ => return None,
        };
        Some(label)
    }

    /// Returns the JSON that is sent to the provider.
    #[must_use]
    pub fn json(&self) -> String {
        self.0.to_string()
    }

    fn text(&self, key: &str) -> &str {
        let text = self.0.get(key).and_then(Value::as_str);
        text.unwrap_or_default()
    }
}
