//! [`OpenSession`]: an open session of a client, with one prompt at a time and a mode. Its agent is
//! built like those of `run` and `chat`.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{self, ContentBlock, SessionNotification, SessionUpdate};
use plimsoll::model::{Failure, StopReason};
use plimsoll::store::SqliteStore;
use plimsoll::{
    AgentOutput, EndReason, Error, Observer, PermissionMode, Remote, Session, SessionId,
    SessionStore,
};
use tokio::sync::{Mutex, OwnedSemaphorePermit, watch};
use tokio::time::timeout;

use super::calls::Calls;
use super::commands::{Commands, PromptCommand};
use super::content;
use super::permission::{Mode, Permission, mode_of};
use super::replay::replay;
use super::transport::Outbox;
use super::updates::Updates;
use crate::agent::{self, PreparedAgent, ReadyAgent};
use crate::approvals::Approvals;
use crate::attach::Recipient;
use crate::chat::commands::{NO_FOCUS, cost_lines, has_summary, nothing_to_do};
use crate::context_bar;
use crate::diff::Previews;
use crate::error::CliError;
use crate::lock;
use crate::outcome::{plan_text, reason_text, stop_of};
use crate::paths;
use crate::resume;
use crate::settings::Sources;
use crate::terminal::Verbosity;
use crate::terminal::style::Colours;
use crate::terminal::text::fenced;

/// Maximum wait for a run to end and for MCP servers to close.
const CLOSING: Duration = Duration::from_secs(2);
/// Maximum wait for the log to be complete: longer than a store waits for its file.
const LOG_CLOSING: Duration = Duration::from_secs(30);

/// The resources of the process that a session uses.
pub(super) struct Surroundings {
    pub(super) store: Arc<SqliteStore>,
    pub(super) outbox: Arc<Outbox>,
    pub(super) client: ConnectionTo<Client>,
    /// Whether the client shows notices.
    pub(super) takes_notices: bool,
    /// Becomes true when the connection ends.
    pub(super) closing: watch::Receiver<bool>,
    /// A permit from the limit of open sessions.
    pub(super) place: OwnedSemaphorePermit,
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
    id: schema::SessionId,
    remote: Remote,
    mode: Mode,
    /// Changes with each cancel request.
    cancel: watch::Sender<()>,
    closing: watch::Receiver<bool>,
    client: ConnectionTo<Client>,
    commands: Commands,
    updates: Arc<Updates>,
    /// `None` after it was closed.
    work: Mutex<Option<Work>>,
    _place: OwnedSemaphorePermit,
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

impl OpenSession {
    /// Opens a session in a folder, with its settings.
    pub(super) async fn open(
        around: Surroundings,
        id: SessionId,
        mut sources: Sources,
        folder: &Path,
        history: History,
    ) -> Result<Arc<Self>, CliError> {
        let Surroundings { store, outbox, .. } = &around;
        if history != History::New {
            resume::restore(store, &id, &mut sources).await?;
        }
        let prepared = agent::prepare(&sources, Verbosity::Everything, store.clone(), None).await?;
        let previews = Arc::new(Previews::new(folder));
        let approvals = Approvals::open(&paths::data()?, folder, Arc::clone(&previews));
        let calls = Arc::new(Calls::new(folder.to_owned(), previews));
        let name = schema::SessionId::new(id.as_str());
        let updates = Arc::new(Updates::new(
            name.clone(),
            Arc::clone(outbox),
            Arc::clone(&calls),
            around.takes_notices,
        ));
        let mode = Mode::new(prepared.config.settings().permission_mode().into());
        let gate = Permission {
            session: name.clone(),
            client: around.client.clone(),
            updates: Arc::clone(&updates),
            calls: Arc::clone(&calls),
            approvals: Arc::new(approvals),
            mode: Arc::clone(&mode),
            is_below: false,
        };
        let ready = built(prepared, &gate, &updates)?;
        let session = ready.session(id).await?;
        if history == History::Replayed {
            let log = store.load(session.id()).await?;
            replay(&log, &name, outbox, &calls).await;
        }
        let work = Work {
            sources,
            store: Arc::clone(store),
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
            id: name,
            remote: work.session.remote(),
            mode,
            cancel: watch::Sender::new(()),
            closing: around.closing,
            client: around.client,
            commands: Commands::new(folder),
            updates,
            work: Mutex::new(Some(work)),
            _place: around.place,
        }))
    }

    pub(super) fn id(&self) -> &schema::SessionId {
        &self.id
    }

    pub(super) fn mode(&self) -> PermissionMode {
        mode_of(&self.mode)
    }

    /// Sets the permission mode. It applies to later questions at once, and otherwise from the next
    /// prompt.
    pub(super) fn set_mode(&self, mode: PermissionMode) {
        *lock(&self.mode) = mode;
    }

    /// Sends the available commands to the client.
    pub(super) fn offer_commands(&self) -> Result<(), agent_client_protocol::Error> {
        let offered = SessionUpdate::AvailableCommandsUpdate(self.commands.offered());
        let id = self.id.clone();
        self.client
            .send_notification(SessionNotification::new(id, offered))
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
        let asked = self.commands.parse_prompt(parts);
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
    async fn run(&mut self, asked: PromptCommand) -> Result<Option<AgentOutput>, CliError> {
        let output = match asked {
            PromptCommand::Say(parts) => self.session.run_parts(parts).await,
            PromptCommand::GoOn => self.session.carry_on().await,
            PromptCommand::Compact(focus) => {
                let said = self.compact(focus.as_deref()).await?;
                self.updates.say(&said);
                return Ok(None);
            }
            PromptCommand::Context => {
                let lines =
                    context_bar::of_session(&self.store, &self.session, Colours::None).await?;
                self.updates.say(&fenced(&lines.join("\n")));
                return Ok(None);
            }
            PromptCommand::Cost => {
                self.updates.say(&cost_lines(&self.session).join("\n\n"));
                return Ok(None);
            }
        };
        let output = output.or_else(Error::into_output);
        output.map(Some).map_err(|error| stop_of(&error))
    }

    /// Compacts the session now. Describes the result.
    async fn compact(&mut self, focus: Option<&str>) -> Result<String, CliError> {
        let done = self.session.compact(focus).await;
        let Some(done) = done.map_err(|error| stop_of(&error))? else {
            return Ok(nothing_to_do(&self.session.window_use()));
        };
        let said = plan_text(&done);
        Ok(if focus.is_some() && !has_summary(&done.plan) {
            format!("{said}\n\n{NO_FOCUS}")
        } else {
            said
        })
    }

    /// Sends the fill level of the window and the cost of the session.
    fn show_usage(&self) {
        let cost = self.session.cost();
        let now = self.session.window_use();
        let known = (cost.unpriced == 0 && cost.known.0 > 0).then_some(cost.known);
        self.updates.usage(now.used, now.window, known);
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
