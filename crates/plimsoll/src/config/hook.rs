//! Parses `hooks`: commands that are run on events of a run.

use plimsoll_agent::HookPoint;
use plimsoll_core::CommandHook;
use schemars::JsonSchema;
use serde::Deserialize;

use super::form::{Choice, Choices, Seconds, Set, Texts, Words};

/// The events on which a command can be run.
pub const MOMENTS: [&str; 15] = [
    "before_task",
    "before_loop",
    "before_turn",
    "before_tool_execution",
    "transform_tool_result",
    "after_tool_execution",
    "before_compaction_start",
    "after_compaction_end",
    "on_evict",
    "after_turn",
    "check_answer",
    "follow_up",
    "on_error",
    "after_loop",
    "after_task",
];

/// One of `hooks`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false, "required" = ["on", "command"]))]
pub(crate) struct HookTable {
    /// The moment.
    on: Set<Choice<HookPoint>>,
    /// The program and its arguments, which no shell reads.
    command: Set<Words>,
    /// How long it may take. Default: `hook_timeout`.
    timeout: Set<Seconds>,
    /// Only for these tools, `*` standing for anything. Default: all.
    tools: Set<Texts>,
}

impl HookTable {
    /// Returns the hook. `None` if a required field is absent.
    pub(crate) fn hook(self) -> Option<CommandHook> {
        Some(CommandHook {
            on: self.on.0?,
            command: self.command.0?,
            timeout: self.timeout.0,
            tools: self.tools.0.unwrap_or_default(),
        })
    }
}

impl Choices for HookPoint {
    type Value = Self;
    const NAMES: &'static [&'static str] = &MOMENTS;

    fn named(name: &'static str) -> Option<Self> {
        serde_json::from_value(name.into()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_one() {
        for name in MOMENTS {
            assert_eq!(HookPoint::named(name).map(HookPoint::name), Some(name));
        }
    }
}
