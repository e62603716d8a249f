//! [`RunScreen`]: the output of `plimsoll run`, whether this process or a worker runs the agent:
//! its events, its questions, and its end.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll::config::AgentSettings;
use plimsoll::{AgentOutput, Gate, Observer, PermissionMode, SessionEvent};

use crate::approvals::Approvals;
use crate::args::RunArgs;
use crate::ask;
use crate::diff::Previews;
use crate::error::{self, CliError};
use crate::event_printer::EventPrinter;
use crate::lock;
use crate::outcome::{code_of, reason_text, summary};
use crate::paths;
use crate::stdout;
use crate::terminal::style::colours;
use crate::terminal::{Terminal, Verbosity};

/// The output of one run.
pub(crate) struct RunScreen {
    pub(crate) terminal: Arc<Terminal>,
    /// The observers of the run.
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    /// How much is printed besides the answer or the events as JSON.
    pub(crate) verbosity: Verbosity,
    previews: Arc<Previews>,
    /// The events as JSON lines, if these are printed.
    lines: Option<Arc<JsonLines>>,
}

impl RunScreen {
    pub(crate) fn new(args: &RunArgs, root: &Path) -> Self {
        let verbosity = Verbosity::of(args.json || args.quiet);
        let previews = Arc::new(Previews::new(root));
        let mut observers: Vec<Arc<dyn Observer>> = Vec::new();
        let terminal = Arc::new(match verbosity {
            Verbosity::Everything => Terminal::direct(colours()),
            Verbosity::Answers => Terminal::plain(verbosity),
        });
        if verbosity == Verbosity::Everything {
            let (terminal, previews) = (Arc::clone(&terminal), Arc::clone(&previews));
            observers.push(Arc::new(EventPrinter::new(terminal, None, previews)));
        }
        let lines = args.json.then(Arc::<JsonLines>::default);
        if let Some(lines) = &lines {
            observers.push(Arc::clone(lines) as Arc<dyn Observer>);
        }
        Self {
            terminal,
            observers,
            verbosity,
            previews,
            lines,
        }
    }

    /// Returns the gate that asks the user.
    pub(crate) fn gate(
        &self,
        mode: PermissionMode,
        root: &Path,
    ) -> Result<Arc<dyn Gate>, CliError> {
        let (terminal, previews) = (Arc::clone(&self.terminal), Arc::clone(&self.previews));
        let approvals = Approvals::open(&paths::data()?, root, Arc::clone(&previews));
        Ok(ask::gate(mode, terminal, previews, approvals))
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

    /// Prints the answer, or the reason why there is none, and the usage. Without an `answer`, that
    /// of the run is not printed.
    pub(crate) fn close(
        &self,
        settings: &AgentSettings,
        output: &AgentOutput,
        answer: Option<&str>,
    ) -> Result<(), CliError> {
        let terminal = &self.terminal;
        if !matches!(code_of(&output.reason), error::DONE | error::LIMIT) {
            crate::say(&reason_text(settings, &output.reason));
        } else if let (Some(answer), None) = (answer, &self.lines)
            // A streamed answer is on the terminal already.
            && !terminal.is_live()
        {
            out!("{answer}");
        }
        if self.verbosity == Verbosity::Everything {
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
