//! Validates all settings and reports all faults at once.

use std::collections::HashSet;
use std::time::Duration;

use plimsoll_agent::{CallTarget, MAX_PARALLEL_TOOLS};
use plimsoll_context::{LEAST_SUMMARY, Ppm, SessionPruneConfig, SettingFault, Threshold, Tokens};
use serde_json::{Value, json};

use super::AgentBuilder;
use crate::agent::RECALL_TOOLS;
use crate::tool::{MAX_TOOL_RETRIES, Tool};
use crate::window::Window;

impl AgentBuilder {
    pub(super) fn faults(&self) -> Vec<SettingFault> {
        let settings = &self.settings;
        let mut faults = self.context_faults();
        let mut fault = |bad: bool, settings: &'static [&'static str], text: String| {
            if bad {
                faults.push(SettingFault::new(settings, text));
            }
        };
        let by_strategy = settings.tool_execution.map(|how| how.max_parallel_tools());
        if let Some(Err(why)) = &by_strategy {
            fault(true, &["tool_execution"], why.clone());
        }
        if let (Some(Ok(at_once)), Some(max)) = (by_strategy, settings.max_parallel_tools) {
            fault(
                at_once != max,
                &["tool_execution", "max_parallel_tools"],
                format!(
                    "tool_execution runs {at_once} tool calls at once and max_parallel_tools {max}; keep the one you mean"
                ),
            );
        }
        let parallel = settings.max_parallel_tools.unwrap_or(1);
        fault(
            parallel == 0 || parallel > MAX_PARALLEL_TOOLS,
            &["max_parallel_tools"],
            format!("max_parallel_tools is {parallel}; choose 1 to {MAX_PARALLEL_TOOLS}"),
        );
        let retries = settings.driver.tool_retries;
        fault(
            retries > MAX_TOOL_RETRIES,
            &["tool_retries"],
            format!("tool_retries is {retries}; choose 0 to {MAX_TOOL_RETRIES}"),
        );
        let summary = settings.summary.max_summary_tokens;
        fault(
            summary < LEAST_SUMMARY,
            &["summary.max_summary_tokens"],
            format!(
                "max_summary_tokens is {summary}; allow at least {LEAST_SUMMARY}, of which the frame of a summary takes 38"
            ),
        );
        let least = SessionPruneConfig::LEAST_BYTES;
        let prune = settings.session_prune.unwrap_or_default();
        let pruned = prune.pruned_tool_result_max_bytes;
        fault(
            pruned < least,
            &["session_prune.pruned_tool_result_max_bytes"],
            format!(
                "pruned_tool_result_max_bytes is {pruned}; allow at least {least}: the marker in a pruned result takes up to 48 of them"
            ),
        );
        let trigger = self.strategy().line(settings.view_limits()).trigger;
        let is_above = match (trigger, settings.target) {
            (Threshold::Sent(trigger), Some(Threshold::Sent(target))) => target > trigger,
            (Threshold::Share(trigger), Some(Threshold::Share(target))) => target > trigger,
            // A target alone raises the default trigger.
            _ => false,
        };
        fault(
            is_above,
            &["trigger", "target"],
            "the target is above the trigger; a plan must end below it".into(),
        );
        let names = self.tools.iter().map(|tool| tool.spec().name.as_str());
        // The session adds these tools later, if at all.
        let names = names.chain(RECALL_TOOLS.iter().copied());
        let hosted_tools = &settings.hosted_tools;
        let has_argument = |name: &str, argument: &str| {
            let mut tools = self.tools.iter().filter(|tool| tool.spec().name == name);
            // The arguments of tools that a session adds are not known here.
            tools
                .next()
                .is_none_or(|tool| may_have(tool.as_ref(), argument))
        };
        let permissions = &self.permissions;
        let without_effect = permissions.faults(names, hosted_tools, &has_argument);
        let mut names = HashSet::new();
        for tool in &self.tools {
            let name = &tool.spec().name;
            let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            fault(
                name.is_empty() || name.len() > 64 || !name.chars().all(good),
                &["tools", "sub_agents"],
                format!("`{name}` cannot name a tool: use 1 to 64 letters, digits, `_` or `-`"),
            );
            fault(
                !names.insert(name.as_str()),
                &["tools", "sub_agents"],
                format!("two tools are named `{name}`; rename one"),
            );
        }
        faults.extend(without_effect);
        faults.extend(self.zeros());
        faults.extend(self.hosted_faults(names));
        faults
    }

    /// Returns the faults of settings that must not be 0.
    fn zeros(&self) -> impl Iterator<Item = SettingFault> {
        let (settings, driver) = (&self.settings, &self.settings.driver);
        let (no_time, none) = (Some(Duration::ZERO), Some(Tokens::ZERO));
        let messages = settings.max_history_messages;
        let trigger = self.strategy().line(settings.view_limits()).trigger;
        let is_always_due = [Threshold::Share(Ppm(0)), Threshold::Sent(Tokens::ZERO)];
        let no_window = Window::Known(Tokens::ZERO);
        SettingFault::zeros([
            (&["max_step_result_size"], driver.max_step_result.0 == 0),
            (&["summary.timeout"], driver.summary_timeout == no_time),
            (&["gate_timeout"], driver.gate_timeout == no_time),
            (&["max_result"], settings.max_result == none),
            (&["keep_recent"], settings.keep_recent == 0),
            (&["max_history_messages"], messages == Some(0)),
            (&["window"], settings.window == no_window),
            (&["trigger"], is_always_due.contains(&trigger)),
        ])
    }
}

/// Checks whether a call of a tool may have an argument of this name.
fn may_have(tool: &dyn Tool, argument: &str) -> bool {
    let properties = tool.spec().schema.get("properties");
    let Some(properties) = properties.and_then(Value::as_object) else {
        return true;
    };
    // A tool may accept an argument by other names as well.
    let fields = match tool.target(&json!({ argument: "" })) {
        CallTarget::Path(path) => path.fields,
        CallTarget::Command(command) => command.fields,
        CallTarget::Arguments => &[],
    };
    properties.contains_key(argument) || fields.contains(&argument)
}
