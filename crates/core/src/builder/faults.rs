//! Validates all settings and reports all faults at once.

use std::collections::HashSet;
use std::time::Duration;

use plimsoll_agent::{CallTarget, MAX_FILTERS, MAX_PARALLEL_TOOLS};
use plimsoll_context::{
    Bytes, LEAST_SUMMARY, Ppm, SessionPruneConfig, SettingFault, Threshold, Tokens,
};
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
        let strategy = settings.tool_execution.unwrap_or_default();
        let by_strategy = strategy.max_parallel_tools();
        match (&by_strategy, settings.max_parallel_tools) {
            (Err(why), _) => fault(true, &["tool_execution"], why.clone()),
            (Ok(at_once), Some(max)) => fault(
                settings.tool_execution.is_some() && *at_once != max,
                &["tool_execution", "max_parallel_tools"],
                format!(
                    "tool_execution runs {at_once} tool calls at once and max_parallel_tools {max}; keep the one you mean"
                ),
            ),
            (Ok(_), None) => {}
        }
        let parallel = settings.max_parallel_tools.unwrap_or(1);
        fault(
            parallel == 0 || parallel > MAX_PARALLEL_TOOLS,
            &["max_parallel_tools"],
            format!("max_parallel_tools is {parallel}; choose 1 to {MAX_PARALLEL_TOOLS}"),
        );
        fault(
            settings.driver.tool_retries > MAX_TOOL_RETRIES,
            &["tool_retries"],
            format!(
                "tool_retries is {}; choose 0 to {MAX_TOOL_RETRIES}",
                settings.driver.tool_retries
            ),
        );
        fault(
            settings.driver.max_step_result == Bytes(0),
            &["max_step_result_size"],
            "max_step_result_size is 0; allow at least 1 byte".into(),
        );
        fault(
            self.parts.input_filters.len() > MAX_FILTERS,
            &[],
            format!(
                "there are {} input filters; at most {MAX_FILTERS} are asked",
                self.parts.input_filters.len()
            ),
        );
        fault(
            settings.driver.summary_timeout == Some(Duration::ZERO),
            &["summary.timeout"],
            "summary_timeout is 0; give the summary some time".into(),
        );
        fault(
            settings.max_result == Some(Tokens::ZERO),
            &["max_result"],
            "max_result is 0; allow at least 1 token".into(),
        );
        fault(
            settings.keep_recent == 0,
            &["keep_recent"],
            "keep_recent is 0; keep at least 1 exchange".into(),
        );
        fault(
            settings.driver.gate_timeout == Some(Duration::ZERO),
            &["gate_timeout"],
            "gate_timeout is 0; give the gate some time, or no limit".into(),
        );
        fault(
            settings.summary.max_summary_tokens < LEAST_SUMMARY,
            &["summary.max_summary_tokens"],
            format!(
                "max_summary_tokens is {}; allow at least {LEAST_SUMMARY}, of which the frame of a summary takes 38",
                settings.summary.max_summary_tokens
            ),
        );
        let least = SessionPruneConfig::LEAST_BYTES;
        let pruned = settings
            .session_prune
            .map(|prune| prune.pruned_tool_result_max_bytes);
        fault(
            pruned.is_some_and(|bytes| bytes < least),
            &["session_prune.pruned_tool_result_max_bytes"],
            format!(
                "pruned_tool_result_max_bytes is {}; allow at least {least}: the marker in a pruned result takes up to 48 of them",
                pruned.unwrap_or_default()
            ),
        );
        fault(
            settings.window == Window::Known(Tokens::ZERO),
            &["window"],
            "the window is 0 tokens; give its real size".into(),
        );
        let trigger = self.strategy().line(settings.view_limits()).trigger;
        fault(
            matches!(
                trigger,
                Threshold::Share(Ppm(0)) | Threshold::Sent(Tokens::ZERO)
            ),
            &["trigger"],
            "the trigger is 0, so that a plan would be due before every call; choose one above 0"
                .into(),
        );
        let percent = |share: Ppm| format!("{} %", share.0 as f64 / 1e4);
        let above = match (trigger, settings.target) {
            (Threshold::Sent(trigger), Some(Threshold::Sent(target))) => {
                (target > trigger).then(|| (target.to_string(), trigger.to_string()))
            }
            (Threshold::Share(trigger), Some(Threshold::Share(target))) => {
                (target > trigger).then(|| (percent(target), percent(trigger)))
            }
            // A target alone raises the default trigger.
            _ => None,
        };
        if let Some((target, trigger)) = above {
            let text = format!(
                "the target ({target}) is above the trigger ({trigger}); a plan must end below it"
            );
            fault(true, &["trigger", "target"], text);
        }
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
        let idle = permissions.faults(names, hosted_tools, &has_argument);
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
                !names.insert(name),
                &["tools", "sub_agents"],
                format!("two tools are named `{name}`; rename one"),
            );
        }
        faults.extend(idle);
        faults.extend(self.hosted_faults(&names));
        faults
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
