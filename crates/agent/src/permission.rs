//! [`Permissions`]: which tool calls may run, by rules that are written down beforehand.
//!
//! It decides and asks nobody; a person is asked by the gate. It is not a sandbox: it judges a call
//! before it runs, by what the tool says that the call acts on.

use std::borrow::Cow;
use std::str::FromStr;

use plimsoll_context::HostedTool;
use serde_json::Value;

use crate::call_target::{CallTarget, PathTarget, ToolTarget};
use crate::pattern::Pattern;
use crate::permission_mode::PermissionMode;

/// Rules of one run, at most.
pub const MAX_RULES: usize = 1_000;

/// What a rule says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// It runs, and nobody is asked.
    Allow,
    /// It does not run, and the model is told so.
    Deny,
    /// A person is asked.
    Ask,
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    tool: Pattern,
    argument: Option<ArgumentPattern>,
    permission: Permission,
}

/// Rules, of which the first that matches a call decides. If none does, the [mode](PermissionMode)
/// decides.
///
/// ```
/// use plimsoll_agent::{CallTarget, Permission, PermissionRule, Permissions};
/// use serde_json::json;
/// let rules = Permissions::new([
///     PermissionRule::new("bash", Permission::Deny).with_argument("*rm -rf*"),
///     PermissionRule::new("bash", Permission::Allow).with_argument("command=git status"),
///     PermissionRule::new("fs_*", Permission::Ask),
/// ]);
/// let says = |tool, arguments| rules.decide(tool, &arguments, &CallTarget::Arguments);
/// assert_eq!(says("bash", json!({"command": "rm -rf /"})), Some(Permission::Deny));
/// assert_eq!(says("bash", json!({"command": "git status"})), Some(Permission::Allow));
/// assert_eq!(says("fs_write", json!({})), Some(Permission::Ask));
/// assert_eq!(says("read", json!({})), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Permissions {
    rules: Vec<PermissionRule>,
    mode: PermissionMode,
}

/// It is none of `allow`, `deny` and `ask`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no permission; write allow, deny or ask")]
pub struct NoPermission(String);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ArgumentPattern {
    /// The field in which it is looked for, as `a.b`; everywhere where there is none.
    field: Option<String>,
    text: Pattern,
}

impl FromStr for Permission {
    type Err = NoPermission;

    fn from_str(word: &str) -> Result<Self, NoPermission> {
        match word {
            "allow" => Ok(Self::Allow),
            "deny" => Ok(Self::Deny),
            "ask" => Ok(Self::Ask),
            other => Err(NoPermission(other.to_owned())),
        }
    }
}

impl Permission {
    /// As a configuration writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

impl PermissionRule {
    /// A rule for the tools whose name fits; `*` in it stands for anything.
    #[must_use]
    pub fn new(tool: &str, permission: Permission) -> Self {
        Self {
            tool: Pattern::new(tool),
            argument: None,
            permission,
        }
    }

    /// Only for calls whose arguments fit. `field=pattern` looks at the texts, numbers and truth
    /// values in that field, `a.b` being a field within a field; a pattern without a field at every
    /// text of the arguments. `*` stands for anything.
    ///
    /// To deny or to ask, one fitting text is enough; to allow, all of them must fit: otherwise a call
    /// could be let through by a text that does nothing.
    ///
    /// If the tool says what a call acts on, see [`CallTarget`], the pattern is compared with that in
    /// place of the argument's text: with the path that an argument leads to, or with the commands that
    /// a shell would run.
    #[must_use]
    pub fn with_argument(mut self, pattern: &str) -> Self {
        let is_field = |field: &str| {
            let letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
            !field.is_empty() && field.chars().all(letter)
        };
        let (field, text) = match pattern.split_once('=') {
            Some((field, text)) if is_field(field) => (Some(field.to_owned()), text),
            _ => (None, pattern),
        };
        self.argument = Some(ArgumentPattern {
            field,
            text: Pattern::new(text),
        });
        self
    }

    /// Whether it allows exactly this path, without a star.
    fn names(&self, target: &CallTarget) -> bool {
        let argument = self.argument.as_ref().map(|argument| &argument.text);
        self.permission == Permission::Allow
            && argument.is_some_and(|text| text.is_literal() && target.fits(text))
    }

    fn matches(&self, tool: &str, arguments: &Value, target: &CallTarget) -> bool {
        if !self.tool.fits(tool) {
            return false;
        }
        let Some(argument) = &self.argument else {
            return true;
        };
        let fields = target.fields();
        let is_field = |field: &str| fields.contains(&field);
        let sees_target = !fields.is_empty() && argument.field.as_deref().is_none_or(is_field);
        let mut leaves = Vec::new();
        match &argument.field {
            Some(_) if sees_target => {}
            _ => argument.leaves(arguments, fields, &mut leaves),
        }
        let mut fitting = leaves.iter().map(|leaf| argument.text.fits(leaf));
        match self.permission {
            Permission::Allow => {
                (sees_target || !leaves.is_empty())
                    && (!sees_target || target.fits(&argument.text))
                    && fitting.all(|fits| fits)
            }
            Permission::Deny | Permission::Ask => {
                (sees_target && target.may_fit(&argument.text)) || fitting.any(|fits| fits)
            }
        }
    }
}

impl Permissions {
    /// From rules in the order in which they are asked.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = PermissionRule>) -> Self {
        Self {
            rules: rules.into_iter().collect(),
            mode: PermissionMode::default(),
        }
    }

    /// Sets what happens to calls that no rule decides about. Default: [`PermissionMode::AutoEdit`].
    #[must_use]
    pub fn with_mode(mut self, mode: PermissionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Returns what happens to calls that no rule decides about.
    #[must_use]
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// Whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// What is wrong with them, one sentence each: rules that can never match one of these tools, a
    /// tool whose name begins with one of `beginnings`, or a tool that the provider runs; and too many
    /// rules.
    #[must_use]
    pub fn faults<'a>(
        &self,
        tools: impl IntoIterator<Item = &'a str>,
        beginnings: &[&str],
        hosted: &[HostedTool],
    ) -> Vec<String> {
        let tools: Vec<&str> = tools.into_iter().collect();
        // Which tools a server has is not known here.
        let servers = hosted.iter().filter_map(HostedTool::server);
        let servers: Vec<String> = servers.map(beginning).collect();
        let idle = self.rules.iter().zip(1..).filter_map(|(rule, number)| {
            let own = hosted.iter().flat_map(HostedTool::names);
            let fits = tools
                .iter()
                .copied()
                .chain(own)
                .any(|tool| rule.tool.fits(tool))
                || beginnings.iter().any(|first| rule.tool.may_fit(first))
                || servers.iter().any(|server| rule.tool.begins(server));
            (!fits).then(|| {
                let pattern = rule.tool.to_string();
                format!("permission rule {number} is for `{pattern}`, and there is no such tool")
            })
        });
        let mut faults: Vec<String> = idle.collect();
        if self.rules.len() > MAX_RULES {
            let rules = self.rules.len();
            faults.push(format!(
                "there are {rules} permission rules; {MAX_RULES} are allowed"
            ));
        }
        faults
    }

    /// Whether a tool of the provider's own may be asked for: [`Permission::Allow`] or
    /// [`Permission::Deny`]. The provider runs it without asking, so that rules hold for it as a whole
    /// or not at all. One that allows it for some arguments only does not allow it.
    ///
    /// ```
    /// use plimsoll_agent::{Permission, PermissionRule, Permissions};
    /// use plimsoll_context::HostedTool;
    /// use serde_json::json;
    /// let search = HostedTool(json!({"type": "web_search_20250305", "name": "web_search"}));
    /// let says = |tool, permission| Permissions::new([PermissionRule::new(tool, permission)]).hosted(&search);
    /// assert_eq!(says("bash", Permission::Deny), Ok(Permission::Allow));
    /// assert_eq!(says("web_*", Permission::Deny), Ok(Permission::Deny));
    /// assert!(says("web_search", Permission::Ask).unwrap_err().contains("allow or deny it"));
    /// ```
    ///
    /// The tools of an MCP server are known by the server's label and `_` before their name. Rules that
    /// deny them, or ask, are kept by an `allowed_tools` that leaves them out.
    ///
    /// # Errors
    /// A sentence for a rule that cannot be kept: one that wants a person to be asked, or that looks at
    /// arguments, which nobody sees beforehand, or one for tools of an MCP server that may run.
    pub fn hosted(&self, tool: &HostedTool) -> Result<Permission, String> {
        let name = tool.name();
        let mut whole = Permission::Allow;
        for (rule, number) in self.rules.iter().zip(1..) {
            if !tool.names().any(|name| rule.tool.fits(name)) {
                continue;
            }
            let why = match (rule.permission, &rule.argument) {
                (Permission::Allow, Some(_)) => continue,
                (Permission::Ask, None) => "wants a person to be asked before",
                (_, Some(_)) => "looks at what is given to",
                (known, None) => {
                    whole = known;
                    break;
                }
            };
            return Err(format!(
                "permission rule {number} {why} `{name}`, which the provider runs by itself without \
                 asking; allow or deny it as a whole, before that rule"
            ));
        }
        match tool.server() {
            Some(server) if whole != Permission::Deny => self.server_tools(tool, server)?,
            _ => {}
        }
        Ok(whole)
    }

    /// Whether what these rules say of the tools of an MCP server is so where the provider runs them.
    fn server_tools(&self, tool: &HostedTool, server: &str) -> Result<(), String> {
        let Some(allowed) = tool.allowed_tools() else {
            return match self.held(tool, server, None) {
                None => Ok(()),
                Some(number) => Err(format!(
                    "permission rule {number} may be for tools of `{server}`, which the provider runs \
                     without asking; which of them run cannot be kept from here: say `allowed_tools`, \
                     without those, or connect to it with [[mcp]]"
                )),
            };
        };
        for one in allowed {
            if let Some(number) = self.held(tool, server, Some(one)) {
                return Err(format!(
                    "permission rule {number} is for `{one}` of `{server}`, which the provider runs \
                     without asking; leave it out of `allowed_tools`"
                ));
            }
        }
        Ok(())
    }

    /// The number of the first rule that holds that tool of a server back; any of its tools where
    /// `one` is `None`.
    fn held(&self, tool: &HostedTool, server: &str, one: Option<&str>) -> Option<usize> {
        let beginning = beginning(server);
        let full = one.map(|one| format!("{beginning}{one}"));
        let mut is_allowed = false;
        for (rule, number) in self.rules.iter().zip(1..) {
            let pattern = &rule.tool;
            let is_one = [one, full.as_deref()]
                .into_iter()
                .flatten()
                .any(|name| pattern.fits(name));
            if rule.permission == Permission::Allow {
                if rule.argument.is_none() {
                    if is_one || pattern.fits_all(&beginning) {
                        return None;
                    }
                    is_allowed |= tool.names().any(|name| pattern.fits(name));
                }
                continue;
            }
            let is_meant = is_one || (one.is_none() && pattern.may_fit(&beginning));
            // Who allows the server as a whole may still deny what has its label.
            if is_meant && (!is_allowed || pattern.begins(&beginning)) {
                return Some(number);
            }
        }
        None
    }

    /// Decides about a call that acts on `target`: the first rule that matches holds. Returns `None` if
    /// no rule matches.
    ///
    /// - Rules with a path for [tools that do the same](PathTarget::same_as) hold too; the strictest
    ///   decision counts.
    /// - If the path is [protected](PathTarget::is_protected), only a rule that allows exactly this
    ///   path, without `*`, spares the question.
    /// - If the call runs another tool, rules match by the name and the arguments of either. A rule that
    ///   allows the tool that is called does not lift a rule for the tool that runs.
    #[must_use]
    pub fn decide(&self, tool: &str, arguments: &Value, target: &CallTarget) -> Option<Permission> {
        match target {
            CallTarget::Path(path) => self.decide_path(tool, arguments, path, target),
            CallTarget::Tool(runs) => self.decide_tool(tool, arguments, runs),
            CallTarget::Arguments | CallTarget::Command(_) => {
                let mut rules = self.rules.iter();
                let rule = rules.find(|rule| rule.matches(tool, arguments, target));
                rule.map(|rule| rule.permission)
            }
        }
    }

    fn decide_path(
        &self,
        tool: &str,
        arguments: &Value,
        path: &PathTarget,
        target: &CallTarget,
    ) -> Option<Permission> {
        let mut rules = self.rules.iter();
        let own = rules.find(|rule| rule.matches(tool, arguments, target));
        let restricts = |other: &&str| {
            let mut rules = self.rules.iter().filter(|rule| rule.argument.is_some());
            let rule = rules.find(|rule| rule.matches(other, &Value::Null, target))?;
            (rule.permission != Permission::Allow).then_some(rule.permission)
        };
        let others = path.same_as.iter().filter_map(restricts);
        let decisions: Vec<Permission> = own
            .map(|rule| rule.permission)
            .into_iter()
            .chain(others)
            .collect();
        let is_named = own.is_some_and(|rule| rule.names(target));
        if decisions.contains(&Permission::Deny) {
            Some(Permission::Deny)
        } else if decisions.contains(&Permission::Ask) || (path.is_protected && !is_named) {
            Some(Permission::Ask)
        } else {
            decisions.first().copied()
        }
    }

    fn decide_tool(&self, tool: &str, arguments: &Value, runs: &ToolTarget) -> Option<Permission> {
        let mut is_allowed = false;
        for rule in &self.rules {
            let own = rule.matches(tool, arguments, &CallTarget::Arguments);
            let fits = |name: &String| rule.matches(name, &runs.arguments, &CallTarget::Arguments);
            let running = match rule.permission {
                Permission::Allow => !runs.names.is_empty() && runs.names.iter().all(fits),
                Permission::Deny | Permission::Ask => runs.names.iter().any(fits),
            };
            match (running, own) {
                (true, own) if !(is_allowed && own) => return Some(rule.permission),
                (false, true) if rule.permission == Permission::Allow => is_allowed = true,
                (false, true) if !is_allowed => return Some(rule.permission),
                _ => {}
            }
        }
        is_allowed.then_some(Permission::Allow)
    }
}

impl ArgumentPattern {
    /// The texts that the pattern is compared with, without those of the fields `without`.
    fn leaves<'a>(&self, arguments: &'a Value, without: &[&str], leaves: &mut Vec<Cow<'a, str>>) {
        match (&self.field, arguments) {
            (None, Value::Object(fields)) => {
                let fields = fields.iter();
                let others = fields.filter(|(name, _)| !without.contains(&name.as_str()));
                others.for_each(|(_, value)| texts(value, leaves));
            }
            (None, arguments) => texts(arguments, leaves),
            (Some(field), arguments) => {
                // A field may have dots in its own name.
                let found = arguments.get(field).or_else(|| {
                    let mut steps = field.split('.');
                    steps.try_fold(arguments, |value, step| value.get(step))
                });
                if let Some(value) = found {
                    scalars(value, leaves);
                }
            }
        }
    }
}

/// How the names of a server's tools begin.
fn beginning(server: &str) -> String {
    format!("{server}_")
}

fn texts<'a>(value: &'a Value, leaves: &mut Vec<Cow<'a, str>>) {
    walk(value, &mut |leaf| {
        if let Value::String(text) = leaf {
            leaves.push(Cow::Borrowed(text));
        }
    });
}

fn scalars<'a>(value: &'a Value, leaves: &mut Vec<Cow<'a, str>>) {
    walk(value, &mut |leaf| match leaf {
        Value::String(text) => leaves.push(Cow::Borrowed(text)),
        Value::Number(_) | Value::Bool(_) => leaves.push(Cow::Owned(leaf.to_string())),
        _ => {}
    });
}

/// Visits every leaf. JSON of a model nests 128 deep at most: the parser refuses more.
fn walk<'a>(value: &'a Value, leaf: &mut impl FnMut(&'a Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| walk(item, leaf)),
        Value::Object(object) => object.values().for_each(|value| walk(value, leaf)),
        other => leaf(other),
    }
}
