//! [`RunScreen`]: the output of `plimsoll run`, whether this process or a worker runs the agent:
//! its events, its questions, and its end.

use std::path::Path;
use std::sync::Arc;

use plimsoll::config::AgentSettings;
use plimsoll::{AgentOutput, Gate, Observer, PermissionMode, SessionEvent};

use crate::agent::UserSide;
use crate::answer_schema::AnswerSchema;
use crate::args::RunArgs;
use crate::ask::{self, Ask};
use crate::diff::Previews;
use crate::error::{self, CliError};
use crate::event_printer::EventPrinter;
use crate::outcome::{code_of, reason_text, summary};
use crate::terminal::Terminal;

/// The output of one run.
pub(crate) struct RunScreen {
    pub(crate) terminal: Arc<Terminal>,
    /// Shows the events of the run.
    pub(crate) observer: Arc<dyn Observer>,
    /// Whether only the answer, or the events as JSON, are printed.
    pub(crate) is_quiet: bool,
    previews: Arc<Previews>,
    /// Whether events are printed as JSON lines.
    is_json: bool,
}

impl RunScreen {
    pub(crate) fn new(args: &RunArgs, root: &Path) -> Self {
        let is_quiet = args.is_quiet();
        let previews = Arc::new(Previews::new(root));
        let terminal = Arc::new(Terminal::direct(is_quiet));
        let observer: Arc<dyn Observer> = if args.json {
            let terminal = Arc::clone(&terminal);
            Arc::new(move |event: &SessionEvent| {
                let line = serde_json::to_string(event);
                terminal.say_styled(&line.unwrap_or_default());
            })
        } else if is_quiet {
            Arc::new(|_: &SessionEvent| {})
        } else {
            let (terminal, previews) = (Arc::clone(&terminal), Arc::clone(&previews));
            Arc::new(EventPrinter::new(terminal, None, previews))
        };
        Self {
            terminal,
            observer,
            is_quiet,
            previews,
            is_json: args.json,
        }
    }

    /// Returns the side of the session that faces the user.
    pub(crate) fn user(
        &self,
        settings: &AgentSettings,
        schema: Option<AnswerSchema>,
    ) -> Result<UserSide, CliError> {
        Ok(UserSide {
            gate: self.gate(settings.permission_mode(), &settings.root)?,
            observer: Arc::clone(&self.observer),
            schema,
        })
    }

    /// Returns the gate that asks the user, if there is a terminal.
    pub(crate) fn gate(
        &self,
        mode: PermissionMode,
        root: &Path,
    ) -> Result<Arc<dyn Gate>, CliError> {
        let person = ask::person(&self.terminal, &self.previews, ask::can_ask(), None);
        Ok(Arc::new(Ask::new(root, mode, &self.previews, person)?))
    }

    /// Removes the status line when the run has ended.
    pub(crate) fn rest(&self) {
        self.terminal.status(None);
        self.terminal.flush();
    }

    /// Returns an error if an event could not be printed.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        self.terminal.failed().map_or(Ok(()), Err)
    }

    /// Prints the answer if there is one, or the reason why the run has none, and the usage.
    pub(crate) fn close(
        &self,
        settings: &AgentSettings,
        output: &AgentOutput,
        answer: Option<&str>,
    ) -> Result<(), CliError> {
        let terminal = &self.terminal;
        if !matches!(code_of(&output.reason), error::DONE | error::LIMIT) {
            crate::say(&reason_text(settings, &output.reason));
        } else if let Some(answer) = answer
            && !self.is_json
            // A streamed answer is on the terminal already.
            && !terminal.is_live()
        {
            out!("{answer}");
        }
        if !self.is_quiet {
            terminal.note(&terminal.dim(&summary(output)));
            terminal.flush();
        }
        Ok(())
    }
}
