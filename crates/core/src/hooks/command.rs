//! [`CommandHook`]: a program as a hook. It reads a JSON object and prints its decision. It is not
//! sandboxed and has all rights of its user.

use std::time::Duration;

use plimsoll_agent::{Decision, HookPoint, Pattern};
use plimsoll_context::{Bytes, head_tail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{HookAnswer, HookInput};
use crate::process::{Command, InheritedVariables, ProcessEnd, ProcessLimits};
use crate::remote::UserMessage;

/// Maximum output of a hook that is read.
pub const MAX_HOOK_OUTPUT: Bytes = Bytes(64 * 1024);
/// Maximum number of command hooks of an agent.
pub const MAX_COMMAND_HOOKS: usize = 64;
/// Maximum length of the reason for a refusal.
const MAX_REASON: Bytes = Bytes(2_000);
/// The exit code that refuses.
const SAYS_NO: i32 = 2;

/// A program as a hook.
///
/// It reads one JSON object with `hook` (the hook point), `session_id`, `run` and, depending on the
/// hook point, `turn`, `usage`, `tool`, `call`, `arguments`, `is_error`, `error`, `outcome`,
/// `messages` and `tokens` (after a compaction with the suffixes `_before` and `_after`),
/// `evicted`.
///
/// If the hook point allows a decision, the program may print `{"decision":"deny","reason":"…"}` or
/// `{"decision":"allow"}`. No output means allow. Exit code 2 also means deny; the reason is then
/// the standard error output. At `follow_up`, the program may print `{"messages":["…"]}`. Anything
/// else is a failure of the hook.
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

/// All command hooks of an agent, in the order in which they are called.
#[derive(Debug, Clone, Default)]
pub(crate) struct Commands {
    pub(crate) hooks: Vec<CommandHook>,
    /// The environment variables that they get.
    pub(crate) variables: InheritedVariables,
}

/// The input of a program.
#[derive(Debug)]
pub(crate) struct About {
    point: HookPoint,
    tool: Option<String>,
    facts: Map<String, Value>,
}

/// The decision of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct ProgramDecision {
    /// The reason, if it refuses.
    no: Option<String>,
    /// Messages to add.
    messages: Vec<String>,
}

/// The printed JSON object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PrintedDecision {
    #[serde(default)]
    decision: Option<DecisionWord>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    messages: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum DecisionWord {
    Allow,
    Deny,
}

impl Commands {
    /// Returns the points of all command hooks.
    pub(crate) fn points(&self) -> impl Iterator<Item = HookPoint> + '_ {
        self.hooks.iter().map(|hook| hook.on)
    }

    /// Returns the basic input at this point, if it has command hooks.
    pub(crate) fn about(&self, point: HookPoint, seen: &HookInput) -> Option<About> {
        let is_there = self.points().any(|on| on == point);
        is_there.then(|| {
            let about = About {
                point,
                tool: None,
                facts: Map::new(),
            };
            about
                .with("hook", point.name())
                .with("session_id", seen.state.session_id.as_str())
                .with("run", seen.run)
        })
    }

    /// Calls the programs until one refuses.
    pub(crate) async fn ask(
        &self,
        about: Option<About>,
        timeout: Duration,
    ) -> HookAnswer<Decision> {
        let (says, faults) = self.call(about, timeout).await;
        let no = says.into_iter().find_map(|says| says.no);
        HookAnswer {
            says: no.map_or(Decision::Go, |why| Decision::No { why }),
            faults,
        }
    }

    /// Calls all programs. Returns their failures.
    pub(crate) async fn tell(&self, about: Option<About>, timeout: Duration) -> Vec<String> {
        self.call(about, timeout).await.1
    }

    /// Returns the messages from the programs.
    pub(crate) async fn messages(
        &self,
        about: Option<About>,
        timeout: Duration,
    ) -> HookAnswer<Vec<UserMessage>> {
        let (says, faults) = self.call(about, timeout).await;
        let messages = says.into_iter().flat_map(|says| says.messages);
        HookAnswer {
            says: messages.map(UserMessage::from).collect(),
            faults,
        }
    }

    /// Calls the programs in order, until one refuses.
    async fn call(
        &self,
        about: Option<About>,
        timeout: Duration,
    ) -> (Vec<ProgramDecision>, Vec<String>) {
        let (mut all, mut faults) = (Vec::new(), Vec::new());
        let Some(about) = about else {
            return (all, faults);
        };
        let (point, input) = (about.point, about.input());
        let is_meant = |hook: &&CommandHook| hook.on == point && hook.is_for(about.tool.as_deref());
        for hook in self.hooks.iter().filter(is_meant) {
            let timeout = hook.timeout.unwrap_or(timeout);
            match hook.run(&input, timeout, &self.variables).await {
                Ok(says) => {
                    let ends = says.no.is_some() && point.decides();
                    all.push(says);
                    if ends {
                        break;
                    }
                }
                Err(fault) => {
                    let program = hook.command.first().map_or("", String::as_str);
                    faults.push(format!("{}: `{program}` {fault}", point.name()));
                }
            }
        }
        (all, faults)
    }
}

impl About {
    /// Adds a field.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.to_owned(), value.into());
        self
    }

    /// Adds a serialized field.
    pub(crate) fn with_all(self, name: &str, value: &impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or_default();
        self.with(name, value)
    }

    /// Adds the fields of a tool call.
    pub(crate) fn of(mut self, tool: &str, call: &str) -> Self {
        self.tool = Some(tool.to_owned());
        self.with("tool", tool).with("call", call)
    }

    fn input(&self) -> String {
        let mut text = serde_json::to_string(&self.facts).unwrap_or_default();
        text.push('\n');
        text
    }
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
    pub(crate) fn fault(&self) -> Option<String> {
        let name = self.on.name();
        let says = |text: &str| Some(format!("the command hook at {name} {text}"));
        match self {
            Self { command, .. } if command.first().is_none_or(String::is_empty) => {
                says("has no command; name a program")
            }
            Self {
                timeout: Some(Duration::ZERO),
                ..
            } => says("has a timeout of 0; give it some time"),
            Self { on, tools, .. } if !tools.is_empty() && !on.is_of_a_tool() => {
                says("names tools, and no tool is called there; leave them out")
            }
            _ => None,
        }
    }

    /// Checks whether the hook is for this tool.
    fn is_for(&self, tool: Option<&str>) -> bool {
        let Some(tool) = tool.filter(|_| !self.tools.is_empty()) else {
            return true;
        };
        let mut patterns = self.tools.iter().map(|tools| Pattern::new(tools));
        patterns.any(|pattern| pattern.fits(tool))
    }

    /// Runs the program.
    ///
    /// # Errors
    /// The failure, as the end of a sentence that begins with the program's name.
    async fn run(
        &self,
        input: &str,
        timeout: Duration,
        variables: &InheritedVariables,
    ) -> Result<ProgramDecision, String> {
        let Some((program, args)) = self.command.split_first() else {
            return Err("has no command".to_owned());
        };
        let limits = ProcessLimits {
            timeout,
            max_output: MAX_HOOK_OUTPUT,
        };
        let command = Command::new(program)
            .args(args)
            .inherit(variables)
            .input(input);
        let ran = command.run(limits, CancellationToken::new()).await;
        let output = ran.map_err(|error| format!("was not run: {error}"))?;
        let short = |text: String| {
            let text = text.trim().to_owned();
            head_tail(&text, MAX_REASON).unwrap_or(text)
        };
        let errors = short(output.errors.text().head);
        match output.ended {
            ProcessEnd::Exited(0) => {}
            ProcessEnd::Exited(SAYS_NO) => {
                return Ok(ProgramDecision {
                    no: Some(self.no(&errors)),
                    messages: Vec::new(),
                });
            }
            ProcessEnd::Exited(code) => {
                return Err(format!("ended with code {code}: {errors}"));
            }
            ProcessEnd::Signalled(signal) => return Err(format!("was ended by signal {signal}")),
            ProcessEnd::TimedOut => {
                return Err(format!("did not end within {} s", timeout.as_secs_f32()));
            }
            ProcessEnd::Cancelled => return Err("was stopped".to_owned()),
        }
        let printed = output.output.text();
        if printed.missing > Bytes(0) {
            return Err(format!("printed more than {MAX_HOOK_OUTPUT}"));
        }
        let (no, messages) = read(&printed.head)?;
        Ok(ProgramDecision {
            no: no.map(|why| self.no(&short(why))),
            messages,
        })
    }

    fn no(&self, why: &str) -> String {
        match why {
            "" => format!("{} refused", self.on.name()),
            why => format!("{} refused: {why}", self.on.name()),
        }
    }
}

/// Parses the output of a successful program: the reason if it denies, and the messages.
fn read(text: &str) -> Result<(Option<String>, Vec<String>), String> {
    if text.trim().is_empty() {
        return Ok((None, Vec::new()));
    }
    let object = serde_json::from_str::<Map<String, Value>>(text);
    let printed = object.and_then(|object| serde_json::from_value(object.into()));
    let printed: PrintedDecision = printed.map_err(|error| {
        format!(
            "printed no verdict ({error}); it may print {{\"decision\":\"allow\"}}, deny with a reason, or nothing"
        )
    })?;
    let denies = matches!(printed.decision, Some(DecisionWord::Deny));
    let no = denies.then(|| printed.reason.unwrap_or_default());
    Ok((no, printed.messages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts() {
        let no = |why: &str| Ok((Some(why.to_owned()), Vec::new()));
        let yes = Ok((None, Vec::new()));
        assert_eq!(read(" \n"), yes);
        assert_eq!(read("{}"), yes);
        assert_eq!(read(r#"{"decision":"allow","reason":"fine"}"#), yes);
        assert_eq!(read(r#"{"decision":"deny","reason":"no"}"#), no("no"));
        assert_eq!(read(r#"{"decision":"deny"}"#), no(""));
        let (_, said) = read(r#"{"messages":["more"]}"#).unwrap();
        assert_eq!(said, ["more"]);
        for bad in [
            "yes",
            r#"{"decision":"maybe"}"#,
            r#"{"desicion":"deny"}"#,
            "[]",
            "{\"decision\":",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
