//! [`OpenSession`]: an open session of a client, with one prompt at a time and a mode. Its agent is
//! built like those of `run` and `chat`.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::v1::schema::{
    self, AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ContentBlock,
    SessionUpdate, UnstructuredCommandInput,
};
use plimsoll::model::{Failure, StopReason};
use plimsoll::store::SqliteStore;
use plimsoll::{
    AgentOutput, EndReason, Error, Observer, Part, PermissionMode, Remote, Session, SessionId,
    SessionStore,
};
use tokio::sync::{Mutex, watch};
use tokio::time::timeout;

use super::calls::Calls;
use super::content;
use super::outbox::Outbox;
use super::permission::{Mode, Permission, mode_of};
use super::replay::replay;
use super::updates::{Updates, known};
use crate::agent::{self, PreparedAgent, ReadyAgent};
use crate::approvals::Approvals;
use crate::attach::Recipient;
use crate::chat::commands::{compacted, cost_lines, unused_focus};
use crate::chat::parse::{COMMANDS, ChatLine, Command};
use crate::chat::templates::Templates;
use crate::context_bar;
use crate::diff::Previews;
use crate::error::CliError;
use crate::lock;
use crate::outcome::{reason_text, stop_of};
use crate::paths;
use crate::resume;
use crate::settings::Sources;
use crate::terminal::Verbosity;
use crate::terminal::style::Colours;
use crate::terminal::text::fenced;

/// The chat commands that are offered. Editors have their own counterparts of the others.
const OFFERED: [Command; 4] = [
    Command::Compact,
    Command::Context,
    Command::Cost,
    Command::Go,
];

/// Maximum wait for a run to end and for MCP servers to close.
const CLOSING: Duration = Duration::from_secs(2);
/// Maximum wait for the log to be complete: longer than a store waits for its file.
const LOG_CLOSING: Duration = Duration::from_secs(30);

/// The resources of the process that a session uses.
pub(super) struct Surroundings {
    pub(super) store: Arc<SqliteStore>,
    pub(super) outbox: Outbox,
    /// Whether the client shows notices.
    pub(super) takes_notices: bool,
    /// Becomes true when the connection ends.
    pub(super) closing: watch::Receiver<bool>,
}

/// Whether the earlier messages are sent to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    New,
    Replayed,
    Known,
}

/// An open session of a client.
pub(super) struct OpenSession {
    outbox: Outbox,
    remote: Remote,
    mode: Mode,
    /// Changes with each cancel request.
    cancel: watch::Sender<()>,
    closing: watch::Receiver<bool>,
    templates: Templates,
    updates: Arc<Updates>,
    /// `None` after it was closed.
    work: Mutex<Option<Work>>,
}

/// The parts that a prompt uses.
struct Work {
    sources: Sources,
    store: Arc<SqliteStore>,
    session: Session,
    ready: ReadyAgent,
    gate: Permission,
    updates: Arc<Updates>,
}

/// A parsed prompt: a message for the model, or a command.
enum Prompt {
    Say(Vec<Part>),
    Command(Command, String),
}

impl OpenSession {
    /// Opens a session in a folder, with its settings.
    pub(super) async fn open(
        around: Surroundings,
        id: SessionId,
        mut sources: Sources,
        folder: &Path,
        history: History,
    ) -> Result<Arc<Self>, CliError> {
        let Surroundings { store, outbox, .. } = around;
        if history != History::New {
            resume::restore(&store, &id, &mut sources).await?;
        }
        let said = Verbosity::Everything;
        let prepared = agent::prepare(&sources, said, store.clone(), None).await?;
        let previews = Arc::new(Previews::new(folder));
        let approvals = Approvals::open(&paths::data()?, folder, Arc::clone(&previews));
        let calls = Arc::new(Calls::new(folder.to_owned(), previews));
        let updates = Updates::new(outbox.clone(), Arc::clone(&calls), around.takes_notices);
        let updates = Arc::new(updates);
        let mode = Mode::new(prepared.config.settings().permission_mode().into());
        let gate = Permission {
            outbox: outbox.clone(),
            calls: Arc::clone(&calls),
            approvals: Arc::new(approvals),
            mode: Arc::clone(&mode),
            is_below: false,
        };
        let ready = built(prepared, &gate, &updates)?;
        let session = ready.session(id).await?;
        if history == History::Replayed {
            let log = store.load(session.id()).await?;
            replay(&log, &outbox, &calls).await;
        }
        let work = Work {
            sources,
            store,
            ready,
            gate,
            updates: Arc::clone(&updates),
            session,
        };
        work.remember().await?;
        if history != History::New {
            work.show_usage();
        }
        Ok(Arc::new(Self {
            outbox,
            remote: work.session.remote(),
            mode,
            cancel: watch::Sender::new(()),
            closing: around.closing,
            templates: Templates::of(folder),
            updates,
            work: Mutex::new(Some(work)),
        }))
    }

    pub(super) fn id(&self) -> &schema::SessionId {
        &self.outbox.session
    }

    pub(super) fn mode(&self) -> PermissionMode {
        mode_of(&self.mode)
    }

    /// Sets the permission mode. It applies to later questions at once, and otherwise from the next
    /// prompt.
    pub(super) fn set_mode(&self, mode: PermissionMode) {
        *lock(&self.mode) = mode;
    }

    /// Sends the available commands to the client: ours, and the user's prompt templates.
    pub(super) fn offer_commands(&self) {
        let input =
            |hint: &str| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint));
        let ours = COMMANDS.iter().filter(|of| OFFERED.contains(&of.command));
        let ours = ours.map(|command| {
            let takes = command.argument().map(input);
            AvailableCommand::new(command.name, command.does).input(takes)
        });
        let written = self.templates.names().into_iter().map(|name| {
            let does = format!("the prompt {name}.md");
            AvailableCommand::new(name, does).input(input("TEXT"))
        });
        let offered = AvailableCommandsUpdate::new(ours.chain(written).collect());
        self.outbox
            .send(SessionUpdate::AvailableCommandsUpdate(offered));
    }

    /// Parses a prompt. An unknown command is a message for the model.
    fn parse(&self, parts: Vec<Part>) -> Prompt {
        let text = match parts.as_slice() {
            [Part::Text { text }] => text.trim().to_owned(),
            _ => return Prompt::Say(parts),
        };
        let Some(command) = text.strip_prefix('/') else {
            return Prompt::Say(parts);
        };
        match self.templates.order(&text) {
            ChatLine::Say(said) if !command.starts_with('/') => Prompt::Say(vec![Part::text(said)]),
            ChatLine::Command(command, text) if OFFERED.contains(&command) => {
                Prompt::Command(command, text)
            }
            _ => Prompt::Say(parts),
        }
    }

    /// Returns a receiver of cancel requests from now on.
    pub(super) fn cancels(&self) -> watch::Receiver<()> {
        self.cancel.subscribe()
    }

    /// Cancels the current prompt.
    pub(super) fn cancel(&self) {
        self.cancel.send_replace(());
    }

    /// Runs a prompt to its end.
    pub(super) async fn prompt(
        &self,
        prompt: Vec<ContentBlock>,
        mut cancels: watch::Receiver<()>,
    ) -> Result<schema::StopReason, CliError> {
        let Ok(mut work) = self.work.try_lock() else {
            return Err(CliError::usage(
                "a prompt is in progress in this session; wait for its end, or cancel it",
            ));
        };
        let Some(work) = work.as_mut() else {
            return Err(CliError::usage("this session is closed; load it first"));
        };
        let parts = content::parts(prompt)?;
        let root = &work.ready.config.settings().root;
        Recipient::new(&work.ready.choice, root).check(&parts)?;
        let asked = self.parse(parts);
        work.renew(self.mode()).await?;
        if cancels.has_changed().unwrap_or(true) {
            return Ok(schema::StopReason::Cancelled);
        }
        let mut closing = self.closing.clone();
        let ending = async move {
            let _ = closing.wait_for(|closing| *closing).await;
        };
        work.updates.begin(work.session.cost());
        let output = {
            let mut run = pin!(work.run(asked));
            let mut ending = pin!(ending);
            loop {
                tokio::select! {
                    biased;
                    output = &mut run => break Some(output),
                    () = &mut ending => break None,
                    _ = cancels.changed() => {
                        // A run that takes no messages yet is dropped, which ends it as well.
                        if !self.remote.interrupt().await {
                            break None;
                        }
                    }
                }
            }
        };
        self.updates.end_calls();
        work.ended().await;
        match output {
            None => Ok(schema::StopReason::Cancelled),
            Some(Ok(Some(output))) => work.outcome(&output),
            Some(Ok(None)) => Ok(schema::StopReason::EndTurn),
            Some(Err(stop)) => Err(stop),
        }
    }

    /// Closes the session, so that others can open it. Waits until its log is complete.
    pub(super) async fn close(&self) {
        let Ok(mut work) = timeout(CLOSING, self.work.lock()).await else {
            return;
        };
        let Some(work) = work.take() else { return };
        match timeout(LOG_CLOSING, work.session.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => say!("{}", stop_of(&error)),
            Err(_) => {
                say!("the store did not answer; the newest messages may be missing from the log")
            }
        }
        let _ = timeout(CLOSING, work.ready.mcp.close()).await;
        agent::prune(&work.store, work.ready.config.retention(), true).await;
    }
}

impl Work {
    /// Rebuilds the agent if its configuration has changed.
    async fn renew(&mut self, mode: PermissionMode) -> Result<(), CliError> {
        let is_other = mode != self.ready.config.settings().permission_mode();
        if !is_other && !self.ready.mcp.has_changed().await {
            return Ok(());
        }
        let mut sources = self.sources.clone();
        if is_other {
            sources
                .flags
                .set("--permission-mode", "permission_mode", mode.name());
        }
        let mcp = Some(self.ready.mcp.clone());
        let store = self.store.clone();
        let prepared = agent::prepare(&sources, Verbosity::Answers, store, mcp).await?;
        let ready = built(prepared, &self.gate, &self.updates)?;
        let switched = self.session.switch(&ready.agent).await;
        switched.map_err(|error| stop_of(&error))?;
        (self.sources, self.ready) = (sources, ready);
        Ok(())
    }

    /// Executes a prompt. Returns the output if it was a run.
    async fn run(&mut self, asked: Prompt) -> Result<Option<AgentOutput>, CliError> {
        let said = match asked {
            Prompt::Say(parts) => return ended(self.session.run_parts(parts).await),
            Prompt::Command(Command::Compact, focus) => {
                let focus = Some(focus).filter(|focus| !focus.is_empty());
                let done = self.session.compact(focus.as_deref()).await;
                let done = done.map_err(|error| stop_of(&error))?;
                let note = unused_focus(done.as_ref(), focus.as_deref());
                let said = compacted(&self.session, done.as_ref());
                [Some(said.as_str()), note]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join("\n\n")
            }
            Prompt::Command(Command::Context, _) => {
                let bar = context_bar::of_session(&self.store, &self.session, Colours::None);
                fenced(&bar.await?.join("\n"))
            }
            Prompt::Command(Command::Cost, _) => cost_lines(&self.session).join("\n\n"),
            Prompt::Command(..) => return ended(self.session.carry_on().await),
        };
        self.updates.say(&said);
        Ok(None)
    }

    /// Sends the fill level of the window and the cost of the session.
    fn show_usage(&self) {
        let cost = self.session.cost();
        let now = self.session.window_use();
        self.updates.usage(now.used, now.window, known(cost));
    }

    /// Completes a run, whatever its outcome.
    async fn ended(&self) {
        self.show_usage();
        // The run keeps its outcome even if this fails.
        if let Err(stop) = self.remember().await {
            say!("{stop}");
        }
    }

    /// Stores the settings of the session, for when it is continued.
    async fn remember(&self) -> Result<(), CliError> {
        let choice = &self.ready.choice;
        resume::save(&self.store, &self.session, &self.sources, choice).await
    }

    /// Returns the protocol's reason why the agent stopped. A failure is an error.
    fn outcome(&self, output: &AgentOutput) -> Result<schema::StopReason, CliError> {
        use schema::StopReason as Reason;
        let settings = self.ready.config.settings();
        Ok(match &output.reason {
            EndReason::Answered => match self.updates.stop() {
                Some(StopReason::Length | StopReason::Window) => Reason::MaxTokens,
                _ => Reason::EndTurn,
            },
            EndReason::Interrupted => Reason::Cancelled,
            EndReason::MaxTokens { .. } => Reason::MaxTokens,
            reason if reason.is_limit() => Reason::MaxTurnRequests,
            EndReason::Refused { .. }
            | EndReason::Failed {
                failure: Failure::ContentFilter,
            } => {
                let why = reason_text(settings, &output.reason);
                self.updates.say(&format!("\n\n[{why}]"));
                Reason::Refusal
            }
            reason => return Err(CliError::failed(reason_text(settings, reason))),
        })
    }
}

fn ended(output: Result<AgentOutput, Error>) -> Result<Option<AgentOutput>, CliError> {
    let output = output.or_else(Error::into_output);
    output.map(Some).map_err(|error| stop_of(&error))
}

/// Builds the agent with its gate and its observer.
fn built(
    prepared: PreparedAgent,
    gate: &Permission,
    updates: &Arc<Updates>,
) -> Result<ReadyAgent, CliError> {
    prepared.asked.set(Arc::new(gate.below()));
    let updates = Arc::clone(updates) as Arc<dyn Observer>;
    prepared.build(Arc::new(gate.clone()), [updates])
}
