//! [`RunScreen`]: the output of `plimsoll run`, whether this process or a worker runs the agent:
//! its events, its questions, and its end.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll::config::AgentSettings;
use plimsoll::{AgentOutput, Gate, Observer, PermissionMode, SessionEvent};

use crate::agent::UserSide;
use crate::args::RunArgs;
use crate::ask::{self, Ask, AtTerminal, Nobody, Person};
use crate::diff::Previews;
use crate::error::{self, CliError};
use crate::event_printer::EventPrinter;
use crate::lock;
use crate::outcome::{code_of, reason_text, summary};
use crate::stdout;
use crate::terminal::Terminal;

/// The output of one run.
pub(crate) struct RunScreen {
    pub(crate) terminal: Arc<Terminal>,
    /// Shows the events of the run.
    pub(crate) observer: Arc<dyn Observer>,
    /// Whether only the answer, or the events as JSON, are printed.
    pub(crate) is_quiet: bool,
    previews: Arc<Previews>,
    /// The events as JSON lines, if these are printed.
    lines: Option<Arc<JsonLines>>,
}

impl RunScreen {
    pub(crate) fn new(args: &RunArgs, root: &Path) -> Self {
        let is_quiet = args.is_quiet();
        let previews = Arc::new(Previews::new(root));
        let terminal = Arc::new(Terminal::direct(is_quiet));
        let lines = args.json.then(Arc::<JsonLines>::default);
        let observer: Arc<dyn Observer> = match &lines {
            Some(lines) => Arc::clone(lines) as _,
            None if is_quiet => Arc::new(|_: &SessionEvent| {}),
            None => {
                let (terminal, previews) = (Arc::clone(&terminal), Arc::clone(&previews));
                Arc::new(EventPrinter::new(terminal, None, previews))
            }
        };
        Self {
            terminal,
            observer,
            is_quiet,
            previews,
            lines,
        }
    }

    /// Returns the side of the session that faces the user.
    pub(crate) fn user(&self, mode: PermissionMode, root: &Path) -> Result<UserSide, CliError> {
        let gate = self.gate(mode, root)?;
        Ok(UserSide {
            gate_of_sub_agents: Arc::clone(&gate),
            gate,
            observer: Arc::clone(&self.observer),
        })
    }

    /// Returns the gate that asks the user, if there is a terminal.
    pub(crate) fn gate(
        &self,
        mode: PermissionMode,
        root: &Path,
    ) -> Result<Arc<dyn Gate>, CliError> {
        let (terminal, previews) = (Arc::clone(&self.terminal), Arc::clone(&self.previews));
        let person: Arc<dyn Person> = if ask::can_ask() {
            Arc::new(AtTerminal {
                terminal,
                previews,
                chat: None,
            })
        } else {
            Arc::new(Nobody(terminal))
        };
        Ok(Arc::new(Ask::new(root, mode, &self.previews, person)?))
    }

    /// Removes the status line when the run has ended.
    pub(crate) fn rest(&self) {
        self.terminal.status(None);
        self.terminal.flush();
    }

    /// Returns an error if an event could not be printed.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        let failed = self.lines.as_ref().and_then(|lines| lines.failed());
        failed.map_or(Ok(()), |error| Err(stdout::failed(&error)))
    }

    /// Prints the answer, or the reason why there is none unless it `is_told` already, and the usage.
    /// Without an `answer`, that of the run is not printed.
    pub(crate) fn close(
        &self,
        settings: &AgentSettings,
        output: &AgentOutput,
        answer: Option<&str>,
        is_told: bool,
    ) -> Result<(), CliError> {
        let terminal = &self.terminal;
        if !matches!(code_of(&output.reason), error::DONE | error::LIMIT) {
            if !is_told {
                crate::say(&reason_text(settings, &output.reason));
            }
        } else if let (Some(answer), None) = (answer, &self.lines)
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

/// Prints events as JSON lines on standard output.
#[derive(Default)]
struct JsonLines {
    failed: Mutex<Option<io::Error>>,
}

impl JsonLines {
    fn failed(&self) -> Option<io::Error> {
        lock(&self.failed).take()
    }
}

impl Observer for JsonLines {
    fn see(&self, seen: &SessionEvent) {
        let mut failed = lock(&self.failed);
        if failed.is_some() {
            return;
        }
        let line = serde_json::to_string(seen).map_err(io::Error::from);
        let written = line.and_then(|line| stdout::write(&mut io::stdout().lock(), &(line + "\n")));
        *failed = written.err();
    }
}
