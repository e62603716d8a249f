//! [`Rule`]: a permission rule of `permissions`. The agent applies it.

use std::fmt;
use std::str::FromStr;

use plimsoll_agent::{Permission, PermissionRule};

use super::fault::Faults;
use super::fields::FieldKind::*;
use super::fields::{Field, Fields, field};
use super::kind::quoted;

const PERMISSIONS: [&str; 3] = ["allow", "deny", "ask"];

/// The fields of one of `permissions`.
pub const PERMISSION_FIELDS: &[Field] = &[
    field("tool", Text, "The tool; `*` stands for anything. Required."),
    field(
        "arguments",
        Text,
        "Only calls with such arguments: a pattern of every text in them, or FIELD=PATTERN.",
    ),
    field(
        "then",
        Choice(&PERMISSIONS),
        "What happens to the call. Required.",
    ),
];

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

    pub(crate) fn of(fields: &Fields, faults: &mut Faults) -> Option<Self> {
        let (tool, then) = (fields.text("tool"), fields.text("then"));
        for (name, is_there) in [("tool", tool.is_some()), ("then", then.is_some())] {
            if !is_there && !fields.failed(name) {
                faults.at(
                    fields.line,
                    format!("a rule of `permissions` needs `{name}`"),
                );
            }
        }
        Some(Self {
            tool: tool?,
            arguments: fields.text("arguments"),
            then: Permission::from_str(&then?).ok()?,
        })
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

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ tool = {}, ", quoted(&self.tool))?;
        if let Some(pattern) = &self.arguments {
            write!(f, "arguments = {}, ", quoted(pattern))?;
        }
        write!(f, "then = {} }}", quoted(self.then.name()))
    }
}
