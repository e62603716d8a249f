//! Parses a page of a server's list of tools leniently: an invalid tool does not affect the others.

use rmcp::model::{ServerResult, Tool as Described};
use serde_json::{Value, json};

/// A page.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ToolsPage {
    pub(super) tools: Vec<Described>,
    pub(super) next: Option<String>,
    /// Number of tools that cannot be parsed.
    pub(super) odd: usize,
}

/// Parses a server's answer as a page; `None` if it is not one.
pub(super) fn page(result: ServerResult) -> Option<ToolsPage> {
    if let ServerResult::ListToolsResult(page) = result {
        return Some(ToolsPage {
            tools: page.tools,
            next: page.next_cursor,
            odd: 0,
        });
    }
    let mut result = serde_json::to_value(result).ok()?;
    let next = result.get("nextCursor").and_then(Value::as_str);
    let next = next.map(str::to_owned);
    let Some(Value::Array(all)) = result.get_mut("tools").map(Value::take) else {
        return None;
    };
    let count = all.len();
    let tools: Vec<Described> = all.into_iter().filter_map(tool).collect();
    let odd = count - tools.len();
    Some(ToolsPage { tools, next, odd })
}

/// Parses one tool as far as possible. Only its name is required.
fn tool(mut tool: Value) -> Option<Described> {
    let name = tool.get("name")?.as_str()?.to_owned();
    if !tool.get("inputSchema").is_some_and(Value::is_object) {
        tool.as_object_mut()?
            .insert("inputSchema".to_owned(), json!({}));
    }
    if let Ok(tool) = serde_json::from_value(tool.clone()) {
        return Some(tool);
    }
    let about = tool.get("description").and_then(Value::as_str);
    let bare = json!({ "name": name, "description": about.unwrap_or(""), "inputSchema": tool.get("inputSchema") });
    serde_json::from_value(bare).ok()
}

#[cfg(test)]
mod tests {
    use rmcp::model::CustomResult;

    use super::*;

    #[test]
    fn one_crooked_tool_does_not_take_the_others_away() {
        let result = json!({ "nextCursor": "2", "tools": [
            { "name": "plain", "inputSchema": { "type": "object" } },
            { "name": "bare" }, { "name": "null", "inputSchema": null },
            { "name": "bent", "description": "Bends.", "inputSchema": { "properties": {} }, "annotations": "yes", "icons": 7 },
            { "name": 7 }, "odd", null,
        ] });
        let page = page(ServerResult::CustomResult(CustomResult(result))).unwrap();
        let names: Vec<&str> = page.tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["plain", "bare", "null", "bent"]);
        assert_eq!((page.odd, page.next.as_deref()), (3, Some("2")));
        assert_eq!(page.tools[3].description.as_deref(), Some("Bends."));
        for none in [json!({}), json!({ "tools": "none" }), json!(7)] {
            let result = ServerResult::CustomResult(CustomResult(none));
            assert_eq!(super::page(result), None);
        }
    }
}
