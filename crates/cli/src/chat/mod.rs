//! `plimsoll chat`: reads lines, and runs tasks and commands in one session. [`parse`] parses the
//! lines, and [`EventPrinter`] shows the runs.

pub(crate) mod commands;
mod completion;
mod editor;
mod input_event;
pub(crate) mod parse;
pub(crate) mod prompt;
mod replay;
mod run_input;
pub(crate) mod templates;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use plimsoll::{AgentOutput, EndReason, Session};
use tokio::sync::mpsc::channel;

use crate::agent::{self, UserSide};
use crate::args::ChatArgs;
use crate::ask::Ask;
use crate::chat::completion::ChatCompleter;
use crate::chat::editor::LineEditor;
use crate::chat::input_event::PRESSES;
use crate::chat::parse::{ChatLine, Command};
use crate::chat::prompt::{ChatActivity, Gauge, Press};
use crate::chat::run_input::{ChatEvent, RunInput};
use crate::chat::templates::Templates;
use crate::error::{self, CliError};
use crate::event_printer::EventPrinter;
use crate::outcome::{self, code_of, reason_text};
use crate::paths;
use crate::resume;
use crate::session_host::SessionHost;
use crate::sessions::open_store;
use crate::settings::Sources;
use crate::terminal::Terminal;
use crate::terminal::style::{DIM, paint};
use crate::terminal::text::{SEPARATOR, clean, counted};
use crate::which_session;

/// The state of a chat.
struct Chat {
    host: SessionHost,
    /// The model and the settings that this chat began with.
    began: (String, Sources),
    input: RunInput,
    terminal: Arc<Terminal>,
    /// The exit code of the last run.
    code: u8,
}

/// Runs the command.
pub(crate) async fn run(args: &ChatArgs) -> Result<u8, CliError> {
    let mut chat = Chat::open(args).await?;
    let left = chat.talk(args.task.clone()).await;
    if chat.host.session.view().runs() > 0 {
        let id = chat.host.session.id();
        chat.terminal
            .note(&format!("continue with: plimsoll chat --session {id}"));
    }
    chat.terminal.flush();
    chat.host.close(args.quiet).await;
    left
}

impl Chat {
    async fn open(args: &ChatArgs) -> Result<Self, CliError> {
        let store = Arc::new(open_store::local().await?);
        let id = which_session::of_run(&store, &args.session).await?;
        let mut sources = args.sources.clone();
        resume::restore(&store, &id, &mut sources).await?;
        let config = agent::resolve(&sources, args.quiet).await?;
        let settings = config.settings();
        let root = &settings.root;
        let templates = Arc::new(Templates::of(root));
        let gauge = Arc::new(Gauge::default());
        let data = paths::data()?;
        let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let open = || {
            let completer = ChatCompleter::new(Arc::clone(&templates));
            LineEditor::open(&data, Arc::clone(&gauge), completer)
        };
        let (line_editor, printer) = has_terminal.then(open).flatten().unzip();
        let terminal = Arc::new(match printer {
            Some(printer) => Terminal::above(printer, args.quiet),
            None => Terminal::plain(args.quiet),
        });
        let (asks, questions) = channel(1);
        let of_chat = Some((Arc::clone(&gauge), asks));
        let printer = Arc::new(EventPrinter::new(Arc::clone(&terminal), root, of_chat));
        let mode = settings.permission_mode();
        let user = UserSide {
            gate: Arc::new(Ask::new(root, mode, Arc::clone(&printer) as _)?),
            observer: printer,
            schema: None,
        };
        let host = SessionHost::open(config, sources, user, args.quiet, store, id).await?;
        let (press, presses) = channel(PRESSES);
        input_event::signals(press.clone(), Arc::clone(&gauge));
        terminal.note(&paint(DIM, &host.headline()));
        let view = host.session.view();
        if args.session.is_made() && view.runs() == 0 && view.transcript().items().is_empty() {
            terminal.note(&paint(DIM, "this session is new"));
        }
        if terminal.is_live() {
            greet(&terminal, &host.session);
            // Output before the first prompt appears above it.
            terminal.flush();
        }
        // The thread that reads draws the first prompt.
        show_window_use(&gauge, &host.session);
        let lines = match line_editor {
            Some(editor) => editor.read(Arc::clone(&terminal), press),
            None => input_event::piped(),
        };
        Ok(Self {
            began: (host.model().to_owned(), host.sources.clone()),
            host,
            input: RunInput {
                lines,
                presses,
                questions,
                terminal: Arc::clone(&terminal),
                gauge,
                templates,
                asked: None,
                held: Default::default(),
                leaving: false,
                pressed: false,
            },
            terminal,
            code: error::DONE,
        })
    }

    /// Handles lines until the user leaves the chat. Returns the exit code. For scripts, it is that
    /// of the last run.
    async fn talk(&mut self, first: Option<String>) -> Result<u8, CliError> {
        if let Some(first) = first {
            if self.terminal.is_live() {
                self.terminal.note(&format!("> {}", clean(&first)));
            }
            self.work(Some(first)).await?;
        }
        while !self.input.leaving {
            match self.input.next().await {
                ChatEvent::Typed(Some(Ok(line))) => self.line(&line).await?,
                ChatEvent::Typed(Some(Err(stop))) => self.complain(&stop),
                ChatEvent::Typed(None) => self.input.leaving = true,
                ChatEvent::Press(Press::Warn) if self.terminal.is_live() => {
                    self.terminal.must("Ctrl-C again or Ctrl-D exits");
                }
                // The run that it was meant for has ended.
                ChatEvent::Press(Press::Stop) => {}
                ChatEvent::Press(_) => self.input.leave(),
            }
            if let Some(stop) = self.terminal.failed() {
                return Err(stop);
            }
        }
        Ok(match (self.input.pressed, self.terminal.is_live()) {
            (true, _) => error::INTERRUPTED,
            (false, true) => error::DONE,
            (false, false) => self.code,
        })
    }

    async fn line(&mut self, line: &str) -> Result<(), CliError> {
        let done = match self.input.templates.order(line) {
            ChatLine::Nothing => Ok(()),
            // Without an active run, the message starts one.
            ChatLine::Say(text) | ChatLine::Command(Command::Later, text) => {
                return self.work(Some(text)).await;
            }
            ChatLine::Command(Command::Go, _) => return self.work(None).await,
            ChatLine::Command(command, text) => self.act(command, text).await,
            ChatLine::Unknown(text) => Err(CliError::usage(text)),
        };
        show_window_use(&self.input.gauge, &self.host.session);
        if let Err(stop) = done {
            self.complain(&stop);
        }
        Ok(())
    }

    /// Reports an error that does not end the chat.
    fn complain(&mut self, stop: &CliError) {
        self.terminal.complain(stop);
        self.code = stop.code;
    }

    /// Drives one run, and handles the input in the meantime.
    async fn work(&mut self, text: Option<String>) -> Result<(), CliError> {
        let recipient = self.host.recipient();
        let message = match text.map(|text| recipient.message(text)).transpose() {
            Ok(message) => message,
            Err(stop) => {
                self.complain(&stop);
                return Ok(());
            }
        };
        self.begin();
        let remote = self.host.session.remote();
        let ended = tokio::select! {
            biased;
            output = self.host.run(message) => Some(output),
            () = self.input.attend(&remote, &recipient) => None,
        };
        self.end();
        ended.map_or(Ok(()), |output| self.ended(output))
    }

    /// Marks the beginning of work that Ctrl-C ends.
    fn begin(&self) {
        self.input.gauge.doing(ChatActivity::Working);
    }

    fn end(&mut self) {
        self.input.gauge.doing(ChatActivity::Idle);
        self.input.rest();
        show_window_use(&self.input.gauge, &self.host.session);
    }

    /// Reports the outcome of a run.
    fn ended(&mut self, output: Result<AgentOutput, CliError>) -> Result<(), CliError> {
        let output = match output {
            Ok(output) => output,
            // Without a user to retry, an unwritable log ends the chat.
            Err(stop) if stop.code != error::USAGE && !self.terminal.is_live() => return Err(stop),
            Err(stop) => {
                self.complain(&stop);
                return Ok(());
            }
        };
        self.code = code_of(&output.reason);
        match &output.reason {
            EndReason::Answered => {}
            EndReason::Interrupted => self.terminal.must("interrupted; /go continues"),
            reason if reason.is_limit() => self.terminal.must(&format!(
                "stopped by a limit ({}): the task may be unfinished; /go continues",
                reason.word()
            )),
            reason => {
                let settings = self.host.ready.config.settings();
                self.terminal.complain(reason_text(settings, reason));
            }
        }
        if output.turns > 0 {
            let used = outcome::used_by(&output).join(SEPARATOR);
            self.terminal.note(&paint(DIM, &used));
        }
        Ok(())
    }
}

/// Shows the fill level of the window in the prompt.
fn show_window_use(gauge: &Gauge, session: &Session) {
    let now = session.window_use();
    gauge.set(now.used, now.trigger, now.window);
}

/// Shows the last messages of a session, and a hint about commands.
fn greet(terminal: &Terminal, session: &Session) {
    let runs = session.view().runs();
    if runs > 0 {
        replay::replay(terminal, session.view());
        terminal.note(&paint(DIM, &format!("{} so far", counted(runs, "run"))));
    }
    terminal.note(&paint(
        DIM,
        "/help lists commands; Ctrl-C stops a run, Ctrl-D exits",
    ));
}
