//! [`HookSetting`]: a command that is asked or told at a moment of a run, as `hooks` has it. Not its
//! running; see `command.rs`.

use std::fmt;
use std::time::Duration;

use super::fault::Faults;
use super::fields::{Field, FieldKind, Fields};
use super::kind::quoted;

/// The moments at which a command can be asked or told, by the names of the builder's methods.
pub const MOMENTS: [&str; 15] = [
    "before_task",
    "after_task",
    "before_loop",
    "after_loop",
    "before_turn",
    "after_turn",
    "before_tool_execution",
    "after_tool_execution",
    "before_tool_execution_update",
    "after_tool_execution_update",
    "before_compaction_start",
    "after_compaction_end",
    "on_error",
    "on_evict",
    "get_steering_messages",
];

/// What one of `hooks` may say.
pub const HOOK_FIELDS: &[Field] = &[
    Field {
        name: "on",
        kind: FieldKind::Choice(&MOMENTS),
        doc: "The moment. Required.",
    },
    Field {
        name: "command",
        kind: FieldKind::Texts,
        doc: "The program and its arguments. Required.",
    },
    Field {
        name: "timeout",
        kind: FieldKind::Time,
        doc: "How long it may take; `hook_timeout` unless set.",
    },
];

/// A command that is asked or told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookSetting {
    /// The moment, one of [`MOMENTS`].
    pub on: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How long it may take.
    pub timeout: Option<Duration>,
}

impl HookSetting {
    pub(crate) fn of(fields: &Fields, faults: &mut Faults) -> Option<Self> {
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
            faults.at(
                line,
                "`command` is empty; name the program, and then its arguments",
            );
            return None;
        }
        Some(Self {
            on: on?,
            command,
            timeout: fields.time("timeout"),
        })
    }
}

impl fmt::Display for HookSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command: Vec<String> = self.command.iter().map(|word| quoted(word)).collect();
        write!(
            f,
            "{{ on = {}, command = [{}]",
            quoted(&self.on),
            command.join(", ")
        )?;
        if let Some(timeout) = self.timeout {
            write!(f, ", timeout = {:?}", timeout.as_secs_f64())?;
        }
        f.write_str(" }")
    }
}
