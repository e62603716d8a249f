//! [`Rule`]: a permission rule of `permissions`. The agent applies it.

use plimsoll_agent::{Permission, PermissionRule};
use serde::Deserialize;
use serde_json::{Value as Json, json};

/// A permission rule. The first matching rule decides.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Rule {
    /// A pattern for the tool's name; `*` matches anything.
    pub tool: String,
    /// A pattern for the arguments. `None` matches any.
    pub arguments: Option<String>,
    /// The decision about the call.
    pub then: Permission,
}

impl Rule {
    /// Converts the rule to that of the agent.
    #[must_use]
    pub fn rule(&self) -> PermissionRule {
        let rule = PermissionRule::new(&self.tool, self.then);
        match &self.arguments {
            Some(pattern) => rule.with_argument(pattern),
            None => rule,
        }
    }

    /// Parses rules of the form `allow TOOL:PATTERN`, one per line, to tables as in a file.
    pub(crate) fn tables_of(text: &str) -> Option<Json> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let rules = lines.map(|line| {
            let (then, rest) = line.trim().split_once(' ')?;
            let (tool, pattern) = rest.split_once(':').unwrap_or((rest, ""));
            let pattern = Some(pattern.trim()).filter(|pattern| !pattern.is_empty());
            let mut rule = json!({ "then": then, "tool": tool.trim(), "arguments": pattern });
            rule.as_object_mut()?.retain(|_, value| !value.is_null());
            Some(rule)
        });
        rules.collect::<Option<Json>>()
    }
}
