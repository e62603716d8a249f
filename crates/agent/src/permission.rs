//! [`Permissions`]: the rules that decide which tool calls may run.
//!
//! The rules never ask the user; the gate does. They are not a sandbox: a call is judged before it
//! runs, by the target that the tool reports.

use std::borrow::Cow;
use std::sync::Arc;

use plimsoll_context::{HostedTool, SettingFault};
use serde::Deserialize;
use serde_json::Value;
use strum::{Display, EnumString, IntoStaticStr};

use crate::call_target::{CallTarget, PatternMatch};
use crate::pattern::Pattern;

/// Maximum number of rules of one run.
pub const MAX_RULES: usize = 1_000;

/// The decision of a rule about a call. The strictest one is the largest value.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Display,
    EnumString,
    IntoStaticStr,
    Deserialize,
)]
#[strum(serialize_all = "snake_case")]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// The call runs without approval.
    Allow,
    /// The call needs approval.
    Ask,
    /// The call does not run, and its result tells the model so.
    Deny,
}

/// One rule for tool calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionRule {
    tool: Pattern,
    argument: Option<ArgumentPattern>,
    permission: Permission,
}

/// A list of rules. The first rule that matches a call decides. If none matches, the
/// [mode](PermissionMode) decides.
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
    /// Tools that other agents may have.
    others: Vec<String>,
    /// The permissions of the agent that calls this one, if that is read-only.
    caller: Option<Arc<Self>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ArgumentPattern {
    /// The field that the pattern applies to, as `a.b`; `None` for all fields.
    field: Option<String>,
    text: Pattern,
}

/// The tool calls that may run without approval if no [rule](crate::Permissions) matches. The strictest
/// mode is the smallest value.
///
/// | mode | reads | changes files | anything else that asks |
/// |---|---|---|---|
/// | `read-only` | runs | refused | refused |
/// | `ask` | runs | asks | asks |
/// | `auto-edit` | runs | runs | asks |
/// | `yes` | runs | runs | runs |
///
/// A rule that allows or denies a call takes precedence over the mode. A call that needs approval
/// because of a rule or a protected file is refused in `read-only` and runs in `yes`.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Display,
    EnumString,
    IntoStaticStr,
    Deserialize,
)]
#[strum(serialize_all = "kebab-case")]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Only calls without side effects run.
    ReadOnly,
    /// Changes to files need approval, and so do other calls that ask.
    Ask,
    /// Files of the workspace are changed without approval. The default.
    #[default]
    AutoEdit,
    /// No call needs approval.
    Yes,
}

impl PermissionMode {
    /// All names as used in configuration files.
    pub const NAMES: [&'static str; 4] = ["ask", "auto-edit", "yes", "read-only"];

    /// Returns the name as used in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Permission {
    /// Returns the name as used in configuration files.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl PermissionRule {
    /// Creates a rule for the tools with a matching name; `*` matches any text.
    #[must_use]
    pub fn new(tool: &str, permission: Permission) -> Self {
        Self {
            tool: Pattern::new(tool),
            argument: None,
            permission,
        }
    }

    /// Restricts the rule to calls with matching arguments.
    ///
    /// `field=pattern` is compared with the texts, numbers and booleans in that field; `a.b` is a field
    /// within a field. A pattern without a field is compared with every text of the arguments. `*`
    /// matches any text.
    ///
    /// A rule that denies or asks matches if one text matches. A rule that allows matches only if all
    /// texts match; otherwise an irrelevant text could let a call through.
    ///
    /// If the tool reports a [`CallTarget`], the pattern is compared with the target instead of the
    /// argument's text: with the path that an argument leads to, or with the commands that a shell
    /// would run.
    ///
    /// ```
    /// use plimsoll_agent::{Permission, PermissionRule};
    /// let rule = PermissionRule::new("bash", Permission::Deny).with_argument("command=rm *");
    /// ```
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

    /// Checks whether the rule allows exactly this path, without `*`.
    fn names(&self, target: &CallTarget) -> bool {
        let argument = self.argument.as_ref().map(|argument| &argument.text);
        self.permission == Permission::Allow
            && argument.is_some_and(|text| text.is_literal() && target.fits(text))
    }

    fn matches(&self, tool: &str, arguments: &Value, target: &CallTarget) -> bool {
        self.compare(tool, arguments, target) != PatternMatch::No
    }

    fn compare(&self, tool: &str, arguments: &Value, target: &CallTarget) -> PatternMatch {
        if !self.tool.fits(tool) {
            return PatternMatch::No;
        }
        let Some(argument) = &self.argument else {
            return PatternMatch::Yes;
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
            Permission::Allow => PatternMatch::of(
                (sees_target || !leaves.is_empty())
                    && (!sees_target || target.fits(&argument.text))
                    && fitting.all(|fits| fits),
            ),
            Permission::Deny | Permission::Ask => match fitting.any(|fits| fits) {
                true => PatternMatch::Yes,
                false if sees_target => target.compare(&argument.text),
                false => PatternMatch::No,
            },
        }
    }
}

impl Permissions {
    /// Creates permissions from an ordered list of rules.
    #[must_use]
    pub fn new(rules: impl IntoIterator<Item = PermissionRule>) -> Self {
        Self {
            rules: rules.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Names tools that other agents with the same rules may have, so that a rule for one of them is no
    /// [fault](Self::faults). A name that ends with `_` stands for all names that begin with it.
    ///
    /// ```
    /// use plimsoll_agent::{Permission, PermissionRule, Permissions};
    /// let rules = Permissions::new([PermissionRule::new("files_read", Permission::Allow)]);
    /// assert_eq!(rules.faults(["bash"], &[], &|_, _| true).len(), 1);
    /// let rules = rules.with_other_tools(["files_".to_owned()]);
    /// assert!(rules.faults(["bash"], &[], &|_, _| true).is_empty());
    /// ```
    #[must_use]
    pub fn with_other_tools(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.others = names.into_iter().collect();
        self
    }

    /// Sets the mode for calls that no rule matches. Default: [`PermissionMode::AutoEdit`].
    ///
    /// ```
    /// use plimsoll_agent::{PermissionMode, Permissions};
    /// let permissions = Permissions::new([]).with_mode(PermissionMode::ReadOnly);
    /// ```
    #[must_use]
    pub fn with_mode(mut self, mode: PermissionMode) -> Self {
        self.mode = mode;
        self
    }

    /// Returns these permissions for an agent that another one calls. Below a read-only caller, the agent is
    /// read-only as well, and its rules allow only calls that the caller's rules allow, too.
    ///
    /// ```
    /// use plimsoll_agent::{CallTarget, Permission, PermissionMode, PermissionRule, Permissions};
    /// let own = Permissions::new([PermissionRule::new("bash", Permission::Allow)]);
    /// let caller = Permissions::default().with_mode(PermissionMode::ReadOnly);
    /// let own = own.below(&caller);
    /// assert_eq!(own.mode(), PermissionMode::ReadOnly);
    /// assert_eq!(own.decide("bash", &serde_json::json!({}), &CallTarget::Arguments), None);
    /// ```
    #[must_use]
    pub fn below(&self, caller: &Self) -> Self {
        let mut own = self.clone();
        if caller.mode == PermissionMode::ReadOnly {
            own.mode = PermissionMode::ReadOnly;
            own.caller = Some(Arc::new(caller.clone()));
        }
        own
    }

    /// Returns the mode for calls that no rule matches.
    #[must_use]
    pub fn mode(&self) -> PermissionMode {
        self.mode
    }

    /// Returns `true` if there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns all errors in the rules, one sentence each: too many rules, and rules that cannot match
    /// any tool or any argument. Tools are those in `tools` and those that the provider runs. `has_argument` tells whether a tool may have an
    /// argument of this name.
    #[must_use]
    pub fn faults<'a>(
        &self,
        tools: impl IntoIterator<Item = &'a str>,
        hosted: &[HostedTool],
        has_argument: &dyn Fn(&str, &str) -> bool,
    ) -> Vec<SettingFault> {
        let tools: Vec<&str> = tools.into_iter().collect();
        // The tools of a server are not known here.
        let servers = hosted.iter().filter_map(HostedTool::server);
        let servers: Vec<String> = servers.map(beginning).collect();
        let idle = self.rules.iter().enumerate().filter_map(|(at, rule)| {
            let pattern = &rule.tool;
            let may_be_for = |name: &str| {
                pattern.fits(name) || name.ends_with('_') && pattern.begins(name)
            };
            let provided = hosted.iter().flat_map(HostedTool::names);
            let mut provided = provided.chain(servers.iter().map(String::as_str));
            if provided.any(may_be_for) {
                return None;
            }
            let mut fitting = tools.iter().filter(|tool| pattern.fits(tool)).peekable();
            let text = if fitting.peek().is_none() {
                if self.others.iter().any(|other| may_be_for(other)) {
                    return None;
                }
                format!("a permission rule is for `{pattern}`, and there is no such tool")
            } else {
                let field = rule.argument.as_ref()?.field.as_deref()?;
                let name = field.split('.').next().unwrap_or(field);
                if fitting.any(|tool| has_argument(tool, name)) {
                    return None;
                }
                format!(
                    "a permission rule is for the argument `{name}` of `{pattern}`, which has none of this name"
                )
            };
            Some(SettingFault::new(&["permissions"], text).item(at))
        });
        let mut faults: Vec<SettingFault> = idle.collect();
        if self.rules.len() > MAX_RULES {
            let rules = self.rules.len();
            let text = format!("there are {rules} permission rules; {MAX_RULES} are allowed");
            faults.push(SettingFault::new(&["permissions"], text));
        }
        faults
    }

    /// Decides whether a request may declare a tool that the provider runs: [`Permission::Allow`] or
    /// [`Permission::Deny`].
    ///
    /// The provider runs such a tool without asking, so a rule applies to the whole tool or not at all.
    /// A rule that allows it for some arguments only does not allow it.
    ///
    /// ```
    /// use plimsoll_agent::{Permission, PermissionRule, Permissions};
    /// use plimsoll_context::HostedTool;
    /// use serde_json::json;
    /// let search = HostedTool(json!({"type": "web_search_20250305", "name": "web_search"}));
    /// let says = |tool, permission| Permissions::new([PermissionRule::new(tool, permission)]).hosted(&search);
    /// assert_eq!(says("bash", Permission::Deny), Ok(Permission::Allow));
    /// assert_eq!(says("web_*", Permission::Deny), Ok(Permission::Deny));
    /// assert!(says("web_search", Permission::Ask).unwrap_err().contains("without asking"));
    /// ```
    ///
    /// The full name of an MCP server's tool is the server's label, `_` and the tool's name.
    ///
    /// # Errors
    /// A sentence for a rule that cannot be enforced: a rule that asks for approval, a rule with an
    /// argument pattern (the arguments are not known in advance), or a rule for some tools of an MCP server.
    pub fn hosted(&self, tool: &HostedTool) -> Result<Permission, String> {
        let name = tool.name();
        let server = tool.server().map(beginning);
        let server = server.as_deref();
        let mut is_allowed = false;
        for rule in &self.rules {
            let (pattern, has_argument) = (&rule.tool, rule.argument.is_some());
            let is_named = tool.names().any(|name| pattern.fits(name));
            let is_whole = server.map_or(is_named, |server| pattern.fits_all(server));
            let concerns = is_named || server.is_some_and(|server| pattern.may_fit(server));
            match rule.permission {
                Permission::Allow if has_argument => {}
                Permission::Allow if is_whole => break,
                Permission::Allow => is_allowed |= is_named,
                Permission::Deny if is_named && !has_argument && !is_allowed => {
                    return Ok(Permission::Deny);
                }
                Permission::Deny | Permission::Ask if concerns => {
                    let all = server.map_or_else(|| name.to_owned(), |server| format!("{server}*"));
                    return Err(format!(
                        "a permission rule is for calls of `{all}`, which the provider runs by \
                         itself without asking; allow `{all}` before that rule, or deny `{name}`"
                    ));
                }
                Permission::Deny | Permission::Ask => {}
            }
        }
        Ok(Permission::Allow)
    }

    /// Decides about a call that acts on `target`: the first matching rule applies. Returns `None` if
    /// no rule matches, or if a rule allows a call that a read-only caller does [not allow](Self::below).
    ///
    /// - Rules with a path for [tools that do the same](crate::PathTarget::same_as) apply too; the strictest
    ///   decision counts.
    /// - If the path is [protected](crate::PathTarget::is_protected), the call needs approval unless a rule
    ///   allows exactly this path, without `*`.
    /// - If it is unclear whether a shell command does what a rule denies, a later rule decides only
    ///   if it denies the call; otherwise the call needs approval, and is denied in
    ///   [`PermissionMode::Yes`].
    #[must_use]
    pub fn decide(&self, tool: &str, arguments: &Value, target: &CallTarget) -> Option<Permission> {
        let of_caller = || self.caller.as_ref()?.decide(tool, arguments, target);
        let is_free = || self.caller.is_none() || of_caller() == Some(Permission::Allow);
        let own = self.by_own_rules(tool, arguments, target);
        own.filter(|own| *own != Permission::Allow || is_free())
    }

    fn by_own_rules(
        &self,
        tool: &str,
        arguments: &Value,
        target: &CallTarget,
    ) -> Option<Permission> {
        let mut is_unclear = false;
        let own = self.rules.iter().find(|rule| {
            let fits = rule.compare(tool, arguments, target);
            let is_unclear_deny =
                fits == PatternMatch::Unclear && rule.permission == Permission::Deny;
            is_unclear |= is_unclear_deny;
            fits != PatternMatch::No && !is_unclear_deny
        });
        // In that mode, nobody would be asked.
        let unclear = match self.mode {
            PermissionMode::Yes => Permission::Deny,
            _ => Permission::Ask,
        };
        let unclear = is_unclear.then_some(unclear);
        let decision = own.map(|rule| rule.permission).max(unclear);
        let CallTarget::Path(path) = target else {
            return decision;
        };
        let restricts = |other: &&str| {
            let mut rules = self.rules.iter().filter(|rule| rule.argument.is_some());
            let rule = rules.find(|rule| rule.matches(other, &Value::Null, target))?;
            (rule.permission != Permission::Allow).then_some(rule.permission)
        };
        let others = path.same_as.iter().filter_map(restricts);
        let is_named = own.is_some_and(|rule| rule.names(target));
        let asks = (path.is_protected && !is_named).then_some(Permission::Ask);
        others.chain(asks).chain(decision).max()
    }
}

impl ArgumentPattern {
    /// Collects the texts that the pattern is compared with, except for those in the fields `without`.
    fn leaves<'a>(&self, arguments: &'a Value, without: &[&str], leaves: &mut Vec<Cow<'a, str>>) {
        match (&self.field, arguments) {
            (None, Value::Object(fields)) => {
                let fields = fields.iter();
                let others = fields.filter(|(name, _)| !without.contains(&name.as_str()));
                others.for_each(|(_, value)| texts(value, false, leaves));
            }
            (None, arguments) => texts(arguments, false, leaves),
            (Some(field), arguments) => {
                // A field's own name may contain dots.
                let found = arguments.get(field).or_else(|| {
                    let mut steps = field.split('.');
                    steps.try_fold(arguments, |value, step| value.get(step))
                });
                if let Some(value) = found {
                    texts(value, true, leaves);
                }
            }
        }
    }
}

/// Returns the prefix of the names of a server's tools.
fn beginning(server: &str) -> String {
    format!("{server}_")
}

/// Collects the texts in a value, and its numbers and booleans if `scalars` is set. JSON from a
/// model has at most 128 levels, because the parser rejects more.
fn texts<'a>(value: &'a Value, scalars: bool, leaves: &mut Vec<Cow<'a, str>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts(item, scalars, leaves)),
        Value::Object(fields) => fields
            .values()
            .for_each(|field| texts(field, scalars, leaves)),
        Value::String(text) => leaves.push(Cow::Borrowed(text)),
        Value::Number(_) | Value::Bool(_) if scalars => leaves.push(Cow::Owned(value.to_string())),
        _ => {}
    }
}
