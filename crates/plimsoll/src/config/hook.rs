//! Parses `hooks`: commands that are run on events of a run.

use plimsoll_agent::HookPoint;
use plimsoll_core::CommandHook;

use super::fault::Faults;
use super::fields::FieldKind::*;
use super::fields::{Field, Fields, field};
use super::kind::quoted;

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

/// The fields of one of `hooks`.
pub const HOOK_FIELDS: &[Field] = &[
    field("on", Choice(&MOMENTS), "The moment. Required."),
    field(
        "command",
        Texts,
        "The program and its arguments, which no shell reads. Required.",
    ),
    field(
        "timeout",
        Time,
        "How long it may take; `hook_timeout` unless set.",
    ),
    field(
        "tools",
        Texts,
        "Only for these tools, `*` standing for anything; for all unless set.",
    ),
];

/// Parses one hook. Reports a fault and returns `None` if it is invalid.
pub(crate) fn read(fields: &Fields, faults: &mut Faults) -> Option<CommandHook> {
    let (on, command) = (fields.text("on"), fields.texts("command"));
    for (name, is_there) in [("on", on.is_some()), ("command", command.is_some())] {
        if !is_there && !fields.failed(name) {
            faults.at(fields.line, format!("a hook needs `{name}`"));
        }
    }
    let command = command?;
    if command
        .first()
        .is_none_or(|program| program.trim().is_empty())
    {
        let line = fields.line_of("command");
        let text = "`command` is empty; name the program, and then its arguments";
        faults.at(line, text);
        return None;
    }
    Some(CommandHook {
        on: moment(&on?)?,
        command,
        timeout: fields.time("timeout"),
        tools: fields.texts("tools").unwrap_or_default(),
    })
}

/// Formats a hook as TOML.
pub(crate) fn written(hook: &CommandHook) -> String {
    let list = |texts: &[String]| {
        let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
        format!("[{}]", texts.join(", "))
    };
    let (on, command) = (quoted(hook.on.name()), list(&hook.command));
    let mut text = format!("{{ on = {on}, command = {command}");
    if let Some(timeout) = hook.timeout {
        text += &format!(", timeout = {:?}", timeout.as_secs_f64());
    }
    if !hook.tools.is_empty() {
        text += &format!(", tools = {}", list(&hook.tools));
    }
    text + " }"
}

fn moment(name: &str) -> Option<HookPoint> {
    serde_json::from_value(name.into()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_moment_is_one() {
        for name in MOMENTS {
            assert_eq!(moment(name).map(HookPoint::name), Some(name));
        }
    }
}
