//! Parses `hooks`: commands that are run on events of a run.

use plimsoll_agent::HookPoint;
use plimsoll_core::CommandHook;
use toml::Value;

use super::form::{Form, Seconds, Texts, Words, optional};
use super::keys;

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

keys::fields! {
    /// One of `hooks`.
    fields("", "[[hooks]]") {
        /// The moment.
        on: HookPoint, is_required = true;
        /// The program and its arguments, which no shell reads.
        command: Words, is_required = true;
        /// How long it may take. Default: that of `hook_timeout`.
        timeout: Seconds;
        /// Only for these tools, `*` standing for anything. Default: all.
        tools: Texts;
    }
}

/// Reads a hook. Returns `None` if its table has a fault.
pub(crate) fn of(table: &Value) -> Option<CommandHook> {
    Some(CommandHook {
        on: HookPoint::read(table.get("on")?)?,
        command: Words::read(table.get("command")?)?,
        timeout: optional::<Seconds>(table, "timeout")?,
        tools: optional::<Texts>(table, "tools")?.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_one() {
        for name in MOMENTS {
            assert_eq!(
                HookPoint::read(&name.into()).map(HookPoint::name),
                Some(name)
            );
        }
    }
}
