//! [`CommandHook`]: a program as a hook. It reads a JSON object and prints its answer. It is not
//! sandboxed and has all rights of its user.

use std::time::Duration;

use plimsoll_agent::{HookInput, HookPoint, Pattern, UserMessage};
use plimsoll_context::{Bytes, SettingFault, head_tail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::HookContext;
use super::reply::HookOutput;
use crate::process::{Command, InheritedVariables, ProcessEnd, ProcessLimits};

/// Maximum output of a hook that is read.
pub const MAX_HOOK_OUTPUT: Bytes = Bytes(64 * 1024);
/// Maximum length of the reason for a refusal.
const MAX_REASON: Bytes = Bytes(2_000);
/// The exit code that refuses.
const SAYS_NO: i32 = 2;

/// A program as a hook.
///
/// It reads one JSON object with `hook` (the hook point), `session_id`, `run` and, depending on the
/// hook point, `turn`, `usage`, `tool`, `call`, `arguments`, `text`, `result`, `is_error`, `answer`,
/// `error`, `outcome`, `messages` and `tokens` (after a compaction with the suffixes `_before` and
/// `_after`), `evicted`.
///
/// It may print one answer of a [`Hook`](super::Hook) as a JSON object, if the point has it:
/// `{"decision":"deny","reason":"…"}` or `{"decision":"allow"}`, `{"arguments":{…}}` before a tool
/// call, `{"result":"…"}` at `transform_tool_result`, `{"messages":["…"]}` at `steering` and
/// `follow_up`. No output changes nothing. At points that decide, exit code 2 also means deny; the
/// reason is then the standard error output. Anything else is a failure of the hook. A program cannot rewrite a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CommandHook {
    /// The hook point.
    pub on: HookPoint,
    /// The program and its arguments, without a shell.
    pub command: Vec<String>,
    /// Timeout. Default: the agent's hook timeout.
    #[serde(default)]
    pub timeout: Option<Duration>,
    /// The names of the tools that the hook is for; `*` matches any text. Empty means all tools.
    #[serde(default)]
    pub tools: Vec<String>,
}

/// The printed JSON object.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct PrintedAnswer {
    decision: Option<DecisionWord>,
    reason: String,
    arguments: Option<Map<String, Value>>,
    result: Option<String>,
    messages: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DecisionWord {
    Allow,
    Deny,
}

impl CommandHook {
    /// Creates a command hook for a hook point.
    #[must_use]
    pub fn new<S: Into<String>>(on: HookPoint, command: impl IntoIterator<Item = S>) -> Self {
        Self {
            on,
            command: command.into_iter().map(Into::into).collect(),
            timeout: None,
            tools: Vec::new(),
        }
    }

    /// Returns the fault of the settings, if there is one.
    pub(crate) fn fault(&self) -> Option<SettingFault> {
        let has_no_tool = !self.tools.is_empty() && !self.on.is_of_a_tool();
        let text = if self.command.first().is_none_or(String::is_empty) {
            "has no command; name a program"
        } else if self.timeout == Some(Duration::ZERO) {
            "has a timeout of 0; give it some time"
        } else if has_no_tool {
            "names tools, and no tool is called there; leave them out"
        } else if self.on == HookPoint::TransformContext {
            "rewrites requests, which only a hook in Rust can do"
        } else {
            return None;
        };
        let text = format!("the command hook at {} {text}", self.on.name());
        Some(SettingFault::new(&["hooks"], text))
    }

    /// Starts the program for its answer, unless it is for other tools.
    ///
    /// # Errors
    /// The failure, as the end of a sentence that begins with the program's name.
    pub(super) async fn answer(
        &self,
        input: &HookInput,
        cx: &HookContext,
        timeout: Duration,
        variables: &InheritedVariables,
    ) -> Result<HookOutput, String> {
        let mut tools = self.tools.iter();
        let is_for = |tool: &str| tools.any(|name| Pattern::new(name).fits(tool));
        if !self.tools.is_empty() && !input.tool().is_none_or(is_for) {
            return Ok(HookOutput::Nothing);
        }
        let Some((program, args)) = self.command.split_first() else {
            return Err("has no command".to_owned());
        };
        let limits = ProcessLimits {
            timeout: self.timeout.unwrap_or(timeout),
            max_output: MAX_HOOK_OUTPUT,
        };
        let command = Command::new(program)
            .args(args)
            .inherit(variables)
            .input(line_for_program(input, cx));
        let ran = command.run(limits, CancellationToken::new()).await;
        let output = ran.map_err(|error| format!("was not run: {error}"))?;
        let short = |text: &str| head_tail(text.trim(), MAX_REASON).unwrap_or(text.trim().into());
        let errors = short(&output.errors.head);
        match output.ended {
            ProcessEnd::Exited(0) if output.output.missing > Bytes(0) => Err(format!(
                "printed more than {MAX_HOOK_OUTPUT} bytes, which is the most that is read"
            )),
            ProcessEnd::Exited(0) => match read(&output.output.head)? {
                HookOutput::Deny(why) => Ok(HookOutput::Deny(short(&why))),
                other => Ok(other),
            },
            ProcessEnd::Exited(SAYS_NO) if self.on.decides() => Ok(HookOutput::Deny(errors)),
            ProcessEnd::Exited(code) if errors.is_empty() => {
                Err(format!("ended with exit code {code} and printed no error"))
            }
            ProcessEnd::Exited(code) => Err(format!("ended with exit code {code}: {errors}")),
            ProcessEnd::Signalled(signal) => Err(format!("was ended by signal {signal}")),
            ProcessEnd::TimedOut => {
                let timeout = limits.timeout.as_secs_f32();
                Err(format!("did not end within {timeout} s"))
            }
            ProcessEnd::Cancelled => Err("was stopped".to_owned()),
        }
    }
}

/// Parses the output of a successful program.
fn read(text: &str) -> Result<HookOutput, String> {
    if text.trim().is_empty() {
        return Ok(HookOutput::Nothing);
    }
    let object = serde_json::from_str::<Map<String, Value>>(text);
    let printed = object.and_then(|object| serde_json::from_value(object.into()));
    let printed: PrintedAnswer = printed.map_err(|error| {
        format!(
            "printed no verdict ({error}); it may print {{\"decision\":\"allow\"}}, deny with a reason, or nothing"
        )
    })?;
    if matches!(printed.decision, Some(DecisionWord::Deny)) {
        return Ok(HookOutput::Deny(printed.reason));
    }
    let messages = printed.messages.into_iter().map(UserMessage::from);
    let messages: Vec<UserMessage> = messages.collect();
    Ok(match (printed.arguments, printed.result, &*messages) {
        (None, None, []) => HookOutput::Nothing,
        (Some(new), None, []) => HookOutput::Arguments(new.into()),
        (None, Some(new), []) => HookOutput::Result(new),
        (None, None, _) => HookOutput::Send(messages),
        _ => {
            let fault =
                "printed several answers; one of arguments, result and messages has an effect";
            return Err(fault.to_owned());
        }
    })
}

/// Returns the line that a program reads: a JSON object.
fn line_for_program(input: &HookInput, cx: &HookContext) -> String {
    let mut input = serde_json::to_value(input).unwrap_or_default();
    if let Value::Object(fields) = &mut input {
        let id = cx.state.session_id.as_str();
        fields.insert("session_id".to_owned(), id.into());
        fields.insert("run".to_owned(), cx.run.into());
    }
    format!("{input}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers() {
        let deny = |why: &str| Ok(HookOutput::Deny(why.to_owned()));
        let nothing = Ok(HookOutput::Nothing);
        assert_eq!(read(" \n"), nothing);
        assert_eq!(read("{}"), nothing);
        assert_eq!(read(r#"{"decision":"allow","reason":"fine"}"#), nothing);
        assert_eq!(read(r#"{"decision":"deny","reason":"no"}"#), deny("no"));
        assert_eq!(read(r#"{"decision":"deny"}"#), deny(""));
        assert_eq!(
            read(r#"{"messages":["more"]}"#),
            Ok(HookOutput::Send(vec!["more".into()]))
        );
        assert_eq!(
            read(r#"{"decision":"allow","arguments":{"path":"a"}}"#),
            Ok(HookOutput::Arguments(serde_json::json!({"path": "a"})))
        );
        assert_eq!(
            read(r#"{"result":"short"}"#),
            Ok(HookOutput::Result("short".to_owned()))
        );
        for bad in [
            "yes",
            r#"{"decision":"maybe"}"#,
            r#"{"desicion":"deny"}"#,
            r#"{"arguments":"all"}"#,
            r#"{"arguments":{},"result":"both"}"#,
            "[]",
            "{\"decision\":",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
