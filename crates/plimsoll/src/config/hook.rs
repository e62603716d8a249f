//! Parses `hooks`: commands that are run on events of a run.

use plimsoll_agent::HookPoint;
use plimsoll_core::CommandHook;
use schemars::JsonSchema;
use serde::Deserialize;

use super::document::Located;
use super::fault::Faults;
use super::fields::Fields;
use super::form::{Choice, Choices, Seconds, Set, Texts};

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
    /// The moment. Required.
    on: Set<Choice<HookPoint>>,
    /// The program and its arguments, which no shell reads. Required.
    command: Set<Texts>,
    /// How long it may take; `hook_timeout` unless set.
    timeout: Set<Seconds>,
    /// Only for these tools, `*` standing for anything; for all unless set.
    tools: Set<Texts>,
}

impl HookTable {
    /// Reports the faults of a table as a whole.
    pub(crate) fn check(given: &Located, faults: &mut Faults) {
        let fields = Fields::<Self>::read("[[hooks]]", given, faults);
        fields.require("a hook", &["on", "command"], faults);
        let command = fields.value.command.0.as_ref();
        let program = command.map(|command| command.first().map_or("", |word| word.trim()));
        if program == Some("") {
            let text = "`command` is empty; name the program, and then its arguments";
            faults.push(fields.place_of("command"), text);
        }
    }

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
