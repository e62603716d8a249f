//! [`RunScreen`]: the output of `plimsoll run`, whether this process or a worker runs the agent:
//! its events, its questions, and its end.

use std::path::Path;
use std::sync::Arc;

use plimsoll::config::AgentSettings;
use plimsoll::{AgentOutput, Observer, PermissionMode, SessionEvent};

use crate::agent::UserSide;
use crate::answer_schema::AnswerSchema;
use crate::args::RunArgs;
use crate::ask::Ask;
use crate::error::{self, CliError};
use crate::event_printer::EventPrinter;
use crate::outcome::{code_of, reason_text, summary};
use crate::terminal::Terminal;
use crate::terminal::style::{DIM, paint};

/// The output of one run.
pub(crate) struct RunScreen {
    terminal: Arc<Terminal>,
    /// Shows the events of the run, and asks at the terminal.
    pub(crate) user: UserSide,
    /// Whether only the answer, or the events as JSON, are printed.
    is_quiet: bool,
    /// Whether events are printed as JSON lines.
    is_json: bool,
}

impl RunScreen {
    /// Creates the screen of a run in `root`.
    pub(crate) fn new(
        args: &RunArgs,
        root: &Path,
        mode: PermissionMode,
        schema: Option<AnswerSchema>,
    ) -> Result<Self, CliError> {
        let is_quiet = args.is_quiet();
        let terminal = Arc::new(Terminal::direct(is_quiet));
        let printer = Arc::new(EventPrinter::new(Arc::clone(&terminal), root, None));
        let gate = Ask::new(root, mode, Arc::clone(&printer) as _)?;
        let observer: Arc<dyn Observer> = if args.json {
            let terminal = Arc::clone(&terminal);
            Arc::new(move |event: &SessionEvent| {
                let line = serde_json::to_string(event);
                terminal.say_styled(&line.unwrap_or_default());
            })
        } else {
            printer
        };
        let user = UserSide {
            gate: Arc::new(gate),
            observer,
            schema,
        };
        Ok(Self {
            terminal,
            user,
            is_quiet,
            is_json: args.json,
        })
    }

    /// Shows the headline of the run.
    pub(crate) fn begin(&self, headline: &str) {
        self.terminal.note(&paint(DIM, headline));
    }

    /// Prints the answer, or the reason why the run has none, and the usage. Returns the exit code.
    pub(crate) fn end(
        &self,
        settings: &AgentSettings,
        output: &AgentOutput,
        hint: Option<String>,
    ) -> Result<u8, CliError> {
        let terminal = &self.terminal;
        if let Some(stop) = terminal.failed() {
            return Err(stop);
        }
        let answer = match &self.user.schema {
            // A text that does not match is only possible if a limit was reached.
            Some(schema) => schema.check(&output.text).ok(),
            None => Some(output.text.as_str()),
        };
        let code = code_of(&output.reason);
        if !matches!(code, error::DONE | error::LIMIT) {
            crate::say(&reason_text(settings, &output.reason));
        } else if let Some(answer) = answer
            && !self.is_json
            && !terminal.is_live()
        {
            out!("{answer}");
        }
        if !self.is_quiet {
            terminal.note(&paint(DIM, &summary(output)));
            terminal.flush();
            hint.iter().for_each(|hint| crate::note(hint));
        }
        Ok(code)
    }

    /// Removes the status line when the run has ended.
    pub(crate) fn rest(&self) {
        self.terminal.status(None);
        self.terminal.flush();
    }
}
