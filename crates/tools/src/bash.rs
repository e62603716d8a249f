//! `bash`: runs one shell command with limits on time and output, and ends all processes that it
//! started.
//!
//! Only a [`Sandbox`] restricts it to the workspace root, so each call needs approval.

use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use plimsoll_agent::CallTarget;
use plimsoll_context::{Bytes, ToolSpec};
use plimsoll_core::process::{
    CapturedOutput, Command, ProcessEnd, ProcessError, ProcessLimits, ProcessOutput,
};
use plimsoll_core::{Tool, ToolContext, ToolError, ToolOutput, parse_arguments};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::input;
use crate::sandbox::{SHELLS, Sandbox};
use crate::shell_parser;

/// The environment variable with the idempotency key of the call.
const CALL_KEY: &str = "PLIMSOLL_CALL_KEY";
/// Default timeout of a command.
pub const BASH_TIMEOUT: Duration = Duration::from_secs(120);
/// Upper bound for the requested timeout.
pub const BASH_TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// Maximum size of the stored output. It is much more than one result shows, so that recall is useful,
/// but small enough for a log.
pub const BASH_OUTPUT_MAX: Bytes = Bytes(256 * 1024);
/// Time for stopping and reaping the processes after the timeout.
const STOPPING: Duration = Duration::from_secs(30);
/// The argument names for the command.
const FIELDS: [&str; 3] = ["command", "cmd", "script"];
/// The description of the tool for the model.
const DESCRIPTION: &str =
    "Runs a bash command in the workspace root. Background processes end with it.";

#[derive(Deserialize, JsonSchema)]
struct BashInput {
    #[serde(alias = "cmd", alias = "script")]
    command: String,
    /// Default 120, at most 600
    #[serde(default, alias = "timeout", deserialize_with = "input::number")]
    #[schemars(with = "u64")]
    timeout_seconds: Option<u64>,
}

/// The tool.
pub(crate) struct Bash {
    spec: ToolSpec,
    cwd: PathBuf,
    sandbox: Option<Sandbox>,
}

impl Bash {
    pub(crate) fn new(cwd: PathBuf, sandbox: Option<Sandbox>) -> Self {
        let told = sandbox.as_ref().map_or("", |it| it.mode().description());
        let spec = ToolSpec {
            name: "bash".to_owned(),
            description: format!("{DESCRIPTION}{told}"),
            schema: input::schema::<BashInput>(),
        };
        Self { spec, cwd, sandbox }
    }

    /// Runs the command in bash, or in `sh` if there is no bash.
    async fn run(
        &self,
        command: &str,
        timeout: Duration,
        cx: &ToolContext,
    ) -> Result<ProcessOutput, ProcessError> {
        let limits = ProcessLimits {
            timeout,
            max_output: BASH_OUTPUT_MAX,
        };
        let set_up = |shell: Command| {
            let shell = shell
                .cwd(&self.cwd)
                .inherit(&cx.variables)
                // Prompts cannot be answered, and colours are not displayed.
                .env("GIT_TERMINAL_PROMPT", "0")
                .env("TERM", "dumb");
            match cx.key() {
                Some(key) => shell.env(CALL_KEY, key.to_string()),
                None => shell,
            }
        };
        let sandbox = self.sandbox.as_ref();
        if let Some(launcher) = sandbox.and_then(|it| it.command(&self.cwd, command)) {
            return set_up(launcher).run(limits, cx.cancel.clone()).await;
        }
        let [bash, sh] = SHELLS.map(|name| set_up(Command::new(name).args(["-c", command])));
        match bash.run(limits, cx.cancel.clone()).await {
            Err(ProcessError::Start { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                sh.run(limits, cx.cancel.clone()).await
            }
            result => result,
        }
    }
}

#[async_trait]
impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn asks(&self) -> bool {
        true
    }

    fn timeout(&self) -> Duration {
        BASH_TIMEOUT_MAX + STOPPING
    }

    fn target(&self, arguments: &Value) -> CallTarget {
        let mut fields = FIELDS.iter();
        let command = fields.find_map(|field| arguments.get(field)?.as_str());
        command.map_or(CallTarget::Arguments, |command| {
            CallTarget::Command(shell_parser::target(&FIELDS, command))
        })
    }

    async fn call(&self, arguments: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let input: BashInput = parse_arguments(&self.spec, arguments)?;
        if input.command.trim().is_empty() || input.command.contains('\0') {
            let why = "`command` is empty or has a NUL in it; give one to run";
            return Err(ToolError::new(why));
        }
        let timeout = input.timeout_seconds.filter(|seconds| *seconds > 0);
        let timeout = timeout.map_or(BASH_TIMEOUT, Duration::from_secs);
        let timeout = timeout.min(BASH_TIMEOUT_MAX);
        let got = self.run(&input.command, timeout, &cx).await;
        let got = got.map_err(|error| match error {
            ProcessError::Unsupported => {
                ToolError::new("bash is not supported on Windows; use the other tools")
            }
            error => ToolError::new(error),
        })?;
        command_result(&got, timeout)
    }
}

/// Returns the tool result of a command: its output, followed by its exit status in brackets.
fn command_result(got: &ProcessOutput, timeout: Duration) -> Result<ToolOutput, ToolError> {
    let mut text = shown(&got.output);
    let mut notes = vec![match got.ended {
        ProcessEnd::Exited(code) => format!("exit {code}"),
        ProcessEnd::Signalled(signal) => format!("killed by signal {signal}"),
        ProcessEnd::TimedOut => format!(
            "stopped after {} s; set timeout_seconds, {} at most, or do less at once",
            timeout.as_secs(),
            BASH_TIMEOUT_MAX.as_secs()
        ),
        ProcessEnd::Cancelled => "cancelled".to_owned(),
    }];
    if text.is_empty() {
        notes.push("no output".to_owned());
    }
    if got.killed_background {
        notes.push("background processes were ended".to_owned());
    }
    if text.contains(char::REPLACEMENT_CHARACTER) {
        notes.push("\u{fffd} stands for bytes that are not text".to_owned());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = write!(text, "[{}]", notes.join("; "));
    match got.ended {
        ProcessEnd::TimedOut | ProcessEnd::Cancelled => Err(ToolError(text)),
        ProcessEnd::Exited(_) | ProcessEnd::Signalled(_) => Ok(text.into()),
    }
}

/// Returns the output as text. Its marker is the same as in every shortened text. If the text is
/// shortened again, the two cuts are merged and the number stays exact.
fn shown(output: &CapturedOutput) -> String {
    let CapturedOutput {
        head,
        tail,
        missing,
    } = output;
    if *missing == Bytes(0) {
        return head.clone();
    }
    format!("{head}\n[pruned: {missing} bytes]\n{tail}")
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::time::Instant;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::testing::{Workspace as Files, context};

    fn bash(command: &str) -> Result<String, String> {
        let arguments = serde_json::json!({ "command": command });
        Files::new().call("bash", &arguments.to_string())
    }

    #[test]
    fn output_and_end_are_told() {
        for (command, told) in [
            ("printf hello", "hello\n[exit 0]"),
            ("echo out; echo err >&2; exit 3", "out\nerr\n[exit 3]"),
            ("true", "[exit 0; no output]"),
            ("[[ bash == b* ]] && echo yes", "yes\n[exit 0]"),
            ("kill -9 $$", "[killed by signal 9; no output]"),
            (
                "printf 'caf\\351\\n'",
                "caf\u{fffd}\n[exit 0; \u{fffd} stands for bytes that are not text]",
            ),
            (
                "head -c 3 /dev/zero",
                "\u{fffd}\u{fffd}\u{fffd}\n[exit 0; \u{fffd} stands for bytes that are not text]",
            ),
            (
                "sleep 1000 & echo begun",
                "begun\n[exit 0; background processes were ended]",
            ),
            // Input cannot be entered.
            ("read -r answer || echo nobody", "nobody\n[exit 0]"),
        ] {
            assert_eq!(bash(command).as_deref(), Ok(told), "{command}");
        }
        let unknown = bash("no-such-command").unwrap();
        assert!(unknown.ends_with("[exit 127]"), "{unknown}");
    }

    #[test]
    fn it_begins_in_the_root() {
        let files = Files::new();
        files.put("file", "x");
        let got = files.call("bash", r#"{"cmd":"ls; cd ..; pwd"}"#).unwrap();
        assert!(got.starts_with("file\n/"), "{got}");
    }

    #[test]
    fn what_takes_too_long_is_stopped_and_what_it_printed_is_told() {
        let begun = Instant::now();
        let files = Files::new();
        let got = files.call(
            "bash",
            r#"{"command":"echo begun; sleep 1000","timeout_seconds":1}"#,
        );
        let told =
            "begun\n[stopped after 1 s; set timeout_seconds, 600 at most, or do less at once]";
        assert_eq!(got, Err(told.to_owned()));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }

    #[tokio::test]
    async fn cancelled_it_ends() {
        let files = Files::new();
        let tool = Bash::new(files.root().path().to_owned(), None);
        let mut cx = context();
        cx.cancel = CancellationToken::new();
        cx.cancel.cancel();
        let got = tool
            .call(serde_json::json!({ "command": "sleep 1000" }), cx)
            .await;
        assert_eq!(got, Err(ToolError("[cancelled; no output]".into())));
    }

    #[test]
    fn bad_input_is_said() {
        for command in ["", " \n", "a\0b"] {
            let told = "`command` is empty or has a NUL in it; give one to run";
            assert_eq!(bash(command), Err(told.to_owned()), "{command:?}");
        }
        // Longer than the system accepts.
        let error = bash(&"x".repeat(10 << 20)).unwrap_err();
        assert!(error.starts_with("cannot start `bash`"), "{error}");
        let error = Files::new().call("bash", r#"{"timeout":5}"#).unwrap_err();
        assert!(error.contains("missing field `command`"), "{error}");
        // The root may be removed while a session is open.
        let tool = Bash::new("/no/such/root".into(), None);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let call = tool.call(serde_json::json!({ "command": "true" }), context());
        let error = runtime.block_on(call).unwrap_err().0;
        assert_eq!(
            error,
            "cannot start `bash` in /no/such/root: no such folder"
        );
    }

    #[test]
    fn no_time_beyond_the_bound_is_given() {
        let output = ProcessOutput {
            ended: ProcessEnd::TimedOut,
            output: CapturedOutput::default(),
            errors: CapturedOutput::default(),
            killed_background: false,
        };
        assert!(command_result(&output, BASH_TIMEOUT_MAX).is_err());
        let got = Files::new().call(
            "bash",
            r#"{"command":"echo 1","timeout":18446744073709551615}"#,
        );
        assert_eq!(got.as_deref(), Ok("1\n[exit 0]"));
        // The schema has another name for it, so the machine leaves a string as it is.
        for timeout in ["\"5\"", "\" 5 \"", "null"] {
            let got = Files::new().call(
                "bash",
                &format!(r#"{{"command":"echo 1","timeout":{timeout}}}"#),
            );
            assert_eq!(got.as_deref(), Ok("1\n[exit 0]"), "{timeout}");
        }
        let got = Files::new().call("bash", r#"{"command":"echo 1","timeout":"soon"}"#);
        assert!(got.is_err(), "{got:?}");
    }
}
