//! The fields of `hooks`: commands that are run on events of a run.

use super::keys;
use super::kind::SettingKind::{Choice, Texts, Time, Words};

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
    "", "[[hooks]]" {
        /// The moment.
        on: Choice(&MOMENTS), is_required = true;
        /// The program and its arguments, which no shell reads.
        command: Words, is_required = true;
        /// How long it may take. Default: that of `hook_timeout`.
        timeout: Time;
        /// Only for these tools, `*` standing for anything. Default: all.
        tools: Texts;
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_agent::HookPoint;

    use super::*;

    #[test]
    fn every_moment_is_one() {
        for name in MOMENTS {
            let point: HookPoint = serde_json::from_value(name.into()).unwrap();
            assert_eq!(point.name(), name);
        }
    }
}
