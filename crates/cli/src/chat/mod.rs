//! `plimsoll chat`: reads lines, and runs tasks and commands in one session. [`parse`] parses the
//! lines, and [`EventPrinter`] shows the runs.

mod chat_gate;
pub(crate) mod commands;
mod completion;
mod editor;
mod input_event;
mod interrupts;
pub(crate) mod parse;
pub(crate) mod prompt;
mod replay;
mod run_input;
mod save;
pub(crate) mod templates;

use std::io::{self, IsTerminal};
use std::sync::Arc;

use plimsoll::providers::{ModelBook, VENDORS};
use plimsoll::store::SqliteStore;
use plimsoll::{
    AgentOutput, EndReason, Error, Gate, Observer, PermissionMode, Session, SessionId, SessionStore,
};

use tokio::sync::mpsc::channel;

use crate::agent::{self, PreparedAgent, ReadyAgent};
use crate::approvals::Approvals;
use crate::args::ChatArgs;
use crate::attach::Recipient;
use crate::chat::chat_gate::{ChatGate, QUESTIONS};
use crate::chat::completion::ChatCompleter;
use crate::chat::editor::LineEditor;
use crate::chat::input_event::{InputEvent, PRESSES, SharedInterrupts, keys};
use crate::chat::interrupts::Press;
use crate::chat::parse::{ChatLine, Command};
use crate::chat::prompt::{ChatActivity, Gauge};
use crate::chat::run_input::{ChatEvent, InputState, NextStep, RunInput};
use crate::chat::templates::Templates;
use crate::diff::Previews;
use crate::error::{self, CliError};
use crate::event_printer::EventPrinter;
use crate::outcome::{self, code_of, reason_text, stop_of};
use crate::paths;
use crate::resume;
use crate::settings::Sources;
use crate::terminal::style::colours;
use crate::terminal::text::{SEPARATOR, clean, counted};
use crate::terminal::{Terminal, Verbosity};
use crate::which_session;

/// The state of a chat.
struct Chat {
    /// The sources of settings, with the changes by `/model`.
    given: Sources,
    /// The same sources, with the settings of the session's last run.
    sources: Sources,
    /// The model that the chat began with, and the address at which it is reached.
    began: (String, Option<String>),
    ready: ReadyAgent,
    store: Arc<SqliteStore>,
    session: Session,
    gate: Arc<dyn Gate>,
    printer: Arc<EventPrinter>,
    talk: RunInput,
    gauge: Arc<Gauge>,
    terminal: Arc<Terminal>,
    words: Arc<ChatCompleter>,
    templates: Arc<Templates>,
    keys: SharedInterrupts,
    /// The exit code of the last run.
    code: u8,
    /// Whether the user has left the chat with Ctrl-C.
    pressed: bool,
}

/// Runs the command.
pub(crate) async fn run(args: &ChatArgs) -> Result<u8, CliError> {
    let said = Verbosity::of(args.quiet);
    let store = agent::store().await?;
    let id = which_session::of_run(&store, &args.session).await?;
    let mut given = args.sources.clone();
    given.consent(args.yes);
    let mut sources = given.clone();
    resume::restore(&store, &id, &mut sources).await?;
    let prepared = agent::prepare(&sources, said, store.clone(), None).await?;
    let mut chat = Chat::open(args, (given, sources), store, prepared, id).await?;
    let left = chat.talk(args.task.clone()).await;
    if let Err(stop) = chat.remember().await {
        chat.terminal.must(&format!("plimsoll: {stop}"));
    }
    chat.bye();
    chat.ready.mcp.close().await;
    agent::prune(&chat.store, chat.ready.config.retention(), args.quiet).await;
    left
}

impl Chat {
    async fn open(
        args: &ChatArgs,
        (given, sources): (Sources, Sources),
        store: Arc<SqliteStore>,
        prepared: PreparedAgent,
        id: SessionId,
    ) -> Result<Self, CliError> {
        let keys = SharedInterrupts::default();
        let root = &prepared.config.settings().root;
        let templates = Arc::new(Templates::of(root));
        let words = Arc::new(ChatCompleter::new(Arc::clone(&templates), root));
        let verbosity = Verbosity::of(args.quiet);
        let gauge = Arc::new(Gauge::new(colours()));
        let has_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        let data = paths::data()?;
        let line_editor = has_terminal
            .then(|| LineEditor::open(Some(&data), Arc::clone(&gauge), Arc::clone(&words)))
            .flatten();
        let settings = prepared.config.settings();
        let previews = Arc::new(Previews::new(&settings.root));
        let approvals = Approvals::open(&data, &settings.root, Arc::clone(&previews));
        let approvals = Arc::new(approvals);
        let (asks, questions) = channel(QUESTIONS);
        let gate: Arc<dyn Gate> = match settings.permission_mode() {
            PermissionMode::Yes => Arc::new(plimsoll::permissions::AllowAll),
            _ => Arc::new(ChatGate {
                questions: asks,
                approvals: Arc::clone(&approvals),
            }),
        };
        let (terminal, line_editor) = match line_editor {
            Some((line_editor, printer)) => {
                let above = Terminal::above(printer, colours(), verbosity);
                (Arc::new(above), Some(line_editor))
            }
            None => (Arc::new(Terminal::plain(verbosity)), None),
        };
        let printer = Arc::new(EventPrinter::new(
            Arc::clone(&terminal),
            Some(Arc::clone(&gauge)),
            Arc::clone(&previews),
        ));
        let observer = Arc::clone(&printer) as Arc<dyn Observer>;
        let ready = prepared.build(Arc::clone(&gate), [observer])?;
        let session = ready.session(id).await?;
        resume::save(&store, &session, &sources, &ready.choice).await?;
        let is_live = line_editor.is_some();
        let now = session.window_use();
        gauge.set(now.used, now.trigger, now.window);
        let (press, presses) = channel(PRESSES);
        let idle = if is_live { Press::Warn } else { Press::Leave };
        input_event::signals(press.clone(), Arc::clone(&keys), idle)
            .map_err(|error| CliError::failed(format!("Ctrl-C cannot be handled: {error}")))?;
        let headline = agent::headline(ready.config.settings(), &ready.choice, &session);
        terminal.note(&terminal.dim(&headline));
        if args.session.is_made() && session.view().transcript().items().is_empty() {
            terminal.note(&terminal.dim("this session is new"));
        }
        if is_live {
            greet(&terminal, &session);
            // Output before the first prompt appears above it.
            terminal.flush();
        }
        let lines = match line_editor {
            Some(editor) => editor.read(Arc::clone(&keys), Arc::clone(&terminal), press),
            None => input_event::piped(),
        };
        let model = ready.choice.model.provider.model().to_owned();
        let address = sources.flags.text("base_url").map(str::to_owned);
        let chat = Self {
            began: (model, address),
            given,
            sources,
            ready,
            store,
            session,
            gate,
            printer,
            talk: RunInput {
                lines,
                presses,
                questions,
                terminal: Arc::clone(&terminal),
                gauge: Arc::clone(&gauge),
                previews,
                approvals,
                templates: Arc::clone(&templates),
                state: InputState::default(),
            },
            templates,
            gauge,
            terminal,
            words,
            keys,
            code: error::DONE,
            pressed: false,
        };
        if is_live {
            chat.learn_words().await;
        }
        Ok(chat)
    }

    /// Handles lines until the user leaves the chat.
    async fn talk(&mut self, first: Option<String>) -> Result<u8, CliError> {
        if let Some(first) = &first
            && self.terminal.is_live()
        {
            self.terminal.note(&format!("> {}", clean(first)));
        }
        if let Some(first) = first
            && self.work(Some(first)).await? == NextStep::Leave
        {
            return Ok(self.left());
        }
        loop {
            let next = match self.talk.next().await {
                ChatEvent::Typed(InputEvent::Line(line)) => self.line(&line).await?,
                ChatEvent::Press(Press::Leave) => {
                    self.pressed = true;
                    NextStep::Leave
                }
                ChatEvent::Press(Press::Warn) => {
                    self.terminal.must("Ctrl-C again or Ctrl-D exits");
                    NextStep::Line
                }
                // The run or question that they were meant for has ended.
                ChatEvent::Press(Press::Stop) | ChatEvent::Question(_) => NextStep::Line,
                ChatEvent::Typed(InputEvent::Bad(text)) => self.complain(&CliError::failed(text)),
                ChatEvent::Typed(InputEvent::End) => NextStep::Leave,
            };
            if let Some(stop) = self.terminal.failed() {
                return Err(stop);
            }
            if next == NextStep::Leave {
                return Ok(self.left());
            }
        }
    }

    async fn line(&mut self, line: &str) -> Result<NextStep, CliError> {
        let done = match self.templates.order(line) {
            ChatLine::Nothing => return Ok(NextStep::Line),
            // Without an active run, the message starts one.
            ChatLine::Say(text) | ChatLine::Command(Command::Steer | Command::Later, text) => {
                return self.work(Some(text)).await;
            }
            ChatLine::Command(Command::Go, _) => return self.work(None).await,
            ChatLine::Command(command, text) => self.act(command, text).await,
            ChatLine::Unknown(text) => Err(CliError::usage(text)),
        };
        self.measure();
        Ok(done.unwrap_or_else(|stop| self.complain(&stop)))
    }

    /// Reports an error that does not end the chat.
    fn complain(&mut self, stop: &CliError) -> NextStep {
        self.terminal.must(&format!("plimsoll: {stop}"));
        self.code = stop.code;
        NextStep::Line
    }

    /// Drives one run, and handles the input in the meantime.
    async fn work(&mut self, text: Option<String>) -> Result<NextStep, CliError> {
        let recipient = Recipient::new(&self.ready.choice, &self.ready.config.settings().root);
        let message = match text.map(|text| recipient.message(text)).transpose() {
            Ok(message) => message,
            Err(stop) => return Ok(self.complain(&stop)),
        };
        self.read_tools().await;
        self.begin();
        let remote = self.session.remote();
        let (session, talk) = (&mut self.session, &mut self.talk);
        let run = async {
            match message {
                Some(message) => session.run_parts(message).await,
                None => session.carry_on().await,
            }
        };
        let ended = tokio::select! {
            biased;
            output = run => Some(output),
            () = talk.attend(&remote, recipient) => None,
        };
        let went = self.end();
        match ended {
            Some(output) => self.ended(output)?,
            None => self.pressed = true,
        }
        self.list_sessions().await;
        Ok(went)
    }

    /// Marks the beginning of work that Ctrl-C ends.
    fn begin(&self) {
        keys(&self.keys).is_working = true;
        self.gauge.doing(ChatActivity::Working);
    }

    fn end(&mut self) -> NextStep {
        keys(&self.keys).is_working = false;
        self.gauge.doing(ChatActivity::Idle);
        self.measure();
        self.talk.rest()
    }

    /// Reports the outcome of a run.
    fn ended(&mut self, output: Result<AgentOutput, Error>) -> Result<(), CliError> {
        let output = match output.or_else(Error::into_output) {
            Ok(output) => output,
            Err(Error::EmptyTask) => {
                let why = "there is no run to continue yet; type a task";
                self.complain(&CliError::usage(why));
                return Ok(());
            }
            // Without a user to retry, an unwritable log ends the chat.
            Err(error) if !self.terminal.is_live() => return Err(stop_of(&error)),
            Err(error) => {
                self.complain(&CliError::failed(error));
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
                let text = reason_text(self.ready.config.settings(), reason);
                self.terminal.must(&format!("plimsoll: {}", clean(&text)));
            }
        }
        if output.turns > 0 {
            let used = outcome::used_by(&output).join(SEPARATOR);
            self.terminal.note(&self.terminal.dim(&used));
        }
        Ok(())
    }

    /// Shows the fill level of the window.
    fn measure(&self) {
        let now = self.session.window_use();
        self.gauge.set(now.used, now.trigger, now.window);
    }

    /// Adds the names of models and sessions to the completion.
    async fn learn_words(&self) {
        let vendors = VENDORS.iter().map(|vendor| format!("{}/", vendor.name));
        let current = [self.ready.choice.model.provider.model().to_owned()];
        self.words.add_models(current.into_iter().chain(vendors));
        let known = ModelBook::built_in().models();
        let known = known.filter(|(vendor, _)| VENDORS.iter().any(|of| of.name == *vendor));
        self.words
            .add_models(known.map(|(vendor, name)| format!("{vendor}/{name}")));
        self.list_sessions().await;
    }

    /// Adds the names of sessions to the completion.
    async fn list_sessions(&self) {
        if self.terminal.is_live()
            && let Ok(sessions) = self.store.list().await
        {
            self.words
                .set_sessions(sessions.into_iter().map(|session| session.id.to_string()));
        }
    }

    /// Returns the exit code. For scripts, it is that of the last run.
    fn left(&self) -> u8 {
        match (self.pressed, self.terminal.is_live()) {
            (true, _) => error::INTERRUPTED,
            (false, true) => error::DONE,
            (false, false) => self.code,
        }
    }

    fn bye(&self) {
        if self.session.view().runs() > 0 {
            let id = self.session.id();
            self.terminal
                .note(&format!("continue with: plimsoll chat --session {id}"));
        }
        self.terminal.flush();
    }
}

/// Shows the last messages of a session, and a hint about commands.
fn greet(terminal: &Terminal, session: &Session) {
    let runs = session.view().runs();
    if runs > 0 {
        replay::replay(terminal, session.view());
        terminal.note(&terminal.dim(&format!("{} so far", counted(runs, "run"))));
    }
    terminal.note(&terminal.dim("/help lists commands; Ctrl-C stops a run, Ctrl-D exits"));
}
