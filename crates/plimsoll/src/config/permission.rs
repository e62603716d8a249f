//! [`Rule`]: a permission rule of `permissions`. The agent applies it.

use std::str::FromStr;

use plimsoll_agent::{Permission, PermissionRule};
use toml::Value;

use super::form::{Filled, Form, optional};
use super::keys;

keys::fields! {
    /// One of `permissions`.
    fields("", "[[permissions]]") {
        /// The tool; `*` stands for anything.
        tool: Filled, is_required = true;
        /// Only calls with such arguments: a pattern of every text in them, or FIELD=PATTERN. Default:
        /// all.
        arguments: Filled;
        /// What happens to the call.
        then: Permission, is_required = true;
    }
}

/// A permission rule. The first matching rule decides.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// Reads a rule. Returns `None` if its table has a fault.
    pub(crate) fn of(table: &Value) -> Option<Self> {
        Some(Self {
            tool: Filled::read(table.get("tool")?)?,
            arguments: optional::<Filled>(table, "arguments")?,
            then: Permission::read(table.get("then")?)?,
        })
    }

    /// Returns the rule as it stands in a file.
    pub(crate) fn table(&self) -> Value {
        let arguments = self
            .arguments
            .iter()
            .map(|pattern| ("arguments", pattern.as_str()));
        let fields = [("tool", self.tool.as_str()), ("then", self.then.name())];
        let fields = fields.into_iter().chain(arguments);
        let fields = fields.map(|(name, text)| (name.to_owned(), text.into()));
        Value::Table(fields.collect())
    }

    /// Parses rules of the form `allow TOOL:PATTERN`, one per line.
    pub(crate) fn all_of(text: &str) -> Option<Vec<Self>> {
        let rules = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .map(|line| {
                let (then, rest) = line.trim().split_once(' ')?;
                let (tool, arguments) = match rest.split_once(':') {
                    Some((tool, pattern)) => (tool, Some(pattern.trim().to_owned())),
                    None => (rest, None),
                };
                let tool = tool.trim();
                (!tool.is_empty()).then_some(())?;
                Some(Self {
                    tool: tool.to_owned(),
                    arguments,
                    then: Permission::from_str(then).ok()?,
                })
            });
        rules.collect()
    }
}
