//! [`Rule`]: a permission rule of `permissions`. The agent applies it.

use plimsoll_agent::{Permission, PermissionRule};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::document::Located;
use super::fault::Faults;

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

    /// Reports the rules of a list that an earlier one leaves without a call. One with arguments may be for
    /// the paths of other tools, too, but for `bash`.
    pub(crate) fn check_order(rules: &Json, given: &Located, faults: &mut Faults) {
        let rules = Vec::<Self>::deserialize(rules).unwrap_or_default();
        for (at, rule) in rules.iter().enumerate() {
            let is_whole = rule.arguments.is_none() || rule.tool == "bash";
            let precedes = |other: &Self| {
                is_whole && other.arguments.is_none() && ["*", &rule.tool].contains(&&*other.tool)
            };
            if let Some(earlier) = rules.iter().take(at).position(precedes) {
                let origin = given.origin_of(&at.to_string());
                let earlier = given.origin_of(&earlier.to_string()).beside(origin);
                let text = format!(
                    "a permission rule has no effect, because an earlier one ({earlier}) decides all calls of `{}`; move it up, or remove it",
                    rule.tool
                );
                faults.push(origin, text);
            }
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
