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
use plimsoll::limits::LimitKind;
use plimsoll::model::{Failure, StopReason};
use plimsoll::store::SqliteStore;
use plimsoll::{AgentOutput, EndReason, Part, Remote, SessionId, SessionStore};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::timeout;

use super::content;
use super::outbox::Outbox;
use super::replay::replay;
use super::updates::Updates;
use crate::agent::{self, UserSide};
use crate::ask::Ask;
use crate::chat::parse::{ChatLine, Command};
use crate::chat::templates::Templates;
use crate::error::CliError;
use crate::outcome::reason_text;
use crate::resume;
use crate::session_host::SessionHost;
use crate::settings::Sources;
use crate::terminal::text::fenced;

/// The chat commands that are offered. Editors have their own counterparts of the others.
const OFFERED: [Command; 4] = [
    Command::Go,
    Command::Compact,
    Command::Context,
    Command::Cost,
];

/// Maximum time for closing a session: longer than a store waits for its file.
const CLOSING: Duration = Duration::from_secs(30);

/// A session that is reserved for a prompt. `None` if it was closed.
pub(super) type Claim = OwnedMutexGuard<Option<SessionHost>>;

/// An open session of a client.
pub(super) struct OpenSession {
    remote: Remote,
    /// Has the permission mode, which applies to later questions at once, and otherwise from the next
    /// prompt on.
    pub(super) gate: Arc<Ask>,
    /// Changes with each cancel request.
    pub(super) cancel: watch::Sender<()>,
    templates: Templates,
    updates: Arc<Updates>,
    /// `None` after it was closed.
    host: Arc<Mutex<Option<SessionHost>>>,
}

impl OpenSession {
    /// Opens a session in a folder, with its settings. Its messages are sent to the client.
    pub(super) async fn open(
        store: Arc<SqliteStore>,
        outbox: Outbox,
        id: SessionId,
        mut sources: Sources,
        folder: &Path,
    ) -> Result<Arc<Self>, CliError> {
        resume::restore(&store, &id, &mut sources).await?;
        let config = agent::resolve(&sources, false).await?;
        let updates = Arc::new(Updates::new(outbox, folder));
        let mode = config.settings().permission_mode();
        let gate = Arc::new(Ask::new(folder, mode, Arc::clone(&updates) as _)?);
        let user = UserSide {
            gate: Arc::clone(&gate) as _,
            observer: Arc::clone(&updates) as _,
            schema: None,
        };
        let host = SessionHost::open(config, sources, user, false, store, id).await?;
        if !host.session.view().transcript().items().is_empty() {
            let log = host.store.load(host.session.id()).await?;
            replay(&log, &updates).await;
            show_usage(&updates, &host);
        }
        Ok(Arc::new(Self {
            remote: host.session.remote(),
            gate,
            cancel: watch::Sender::new(()),
            templates: Templates::of(folder),
            updates,
            host: Arc::new(Mutex::new(Some(host))),
        }))
    }

    pub(super) fn id(&self) -> &schema::SessionId {
        &self.updates.outbox.session
    }

    /// Sends the available commands to the client: ours, and the user's prompt templates.
    pub(super) fn offer_commands(&self) {
        let input =
            |hint: &str| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint));
        let ours = OFFERED.map(|command| {
            let takes = command.argument().map(input);
            AvailableCommand::new(command.name(), command.does()).input(takes)
        });
        let written = self.templates.names().into_iter().map(|name| {
            let does = format!("the prompt {name}.md");
            AvailableCommand::new(name, does).input(input("TEXT"))
        });
        let offered = AvailableCommandsUpdate::new(ours.into_iter().chain(written).collect());
        self.updates
            .outbox
            .send(SessionUpdate::AvailableCommandsUpdate(offered));
    }

    /// Reserves the session for a prompt.
    pub(super) fn claim(&self) -> Result<Claim, CliError> {
        Arc::clone(&self.host).try_lock_owned().map_err(|_| {
            CliError::usage(
                "a prompt is in progress in this session; wait for its end, or cancel it",
            )
        })
    }

    /// Runs a prompt to its end.
    pub(super) async fn prompt(
        &self,
        mut host: Claim,
        prompt: Vec<ContentBlock>,
        mut cancels: watch::Receiver<()>,
    ) -> Result<schema::StopReason, CliError> {
        let Some(host) = host.as_mut() else {
            return Err(CliError::usage("this session is closed; load it first"));
        };
        let parts = content::parts(prompt)?;
        host.recipient().check(&parts)?;
        self.renew(host).await?;
        if cancels.has_changed().unwrap_or(true) {
            return Ok(schema::StopReason::Cancelled);
        }
        let ended = {
            let mut run = pin!(self.run(host, parts));
            loop {
                tokio::select! {
                    biased;
                    ended = &mut run => break ended,
                    _ = cancels.changed() => {
                        // A run that takes no messages yet is dropped, which ends it as well.
                        if !self.remote.interrupt().await {
                            break Ok(schema::StopReason::Cancelled);
                        }
                    }
                }
            }
        };
        self.updates.end_calls();
        show_usage(&self.updates, host);
        ended
    }

    /// Rebuilds the agent if its mode has changed.
    async fn renew(&self, host: &mut SessionHost) -> Result<(), CliError> {
        let mode = self.gate.mode();
        if mode == host.ready.config.settings().permission_mode() {
            return Ok(());
        }
        let mut sources = host.sources.clone();
        sources
            .flags
            .set("--permission-mode", "permission_mode", mode.name());
        host.rebuild(sources).await
    }

    /// Executes a prompt: a message for the model, or a command. An unknown command is a message.
    async fn run(
        &self,
        host: &mut SessionHost,
        parts: Vec<Part>,
    ) -> Result<schema::StopReason, CliError> {
        let line = match parts.as_slice() {
            [Part::Text { text }] if text.trim_start().starts_with('/') => {
                self.templates.order(text)
            }
            _ => ChatLine::Nothing,
        };
        let message = match line {
            ChatLine::Command(command, text) if OFFERED.contains(&command) => {
                if let Some(output) = host.perform(command, &text).await? {
                    self.updates.outbox.say(&fenced(&output));
                    return Ok(schema::StopReason::EndTurn);
                }
                None
            }
            // The text of a prompt template, or a message behind two slashes.
            ChatLine::Say(said) => Some(vec![Part::text(said)]),
            _ => Some(parts),
        };
        let output = host.run(message).await?;
        self.outcome(host, &output)
    }

    /// Returns the protocol's reason why the agent stopped. A failure is an error.
    fn outcome(
        &self,
        host: &SessionHost,
        output: &AgentOutput,
    ) -> Result<schema::StopReason, CliError> {
        use schema::StopReason as Reason;
        let settings = host.ready.config.settings();
        Ok(match &output.reason {
            EndReason::Answered => match self.updates.stop() {
                Some(StopReason::Length | StopReason::Window) => Reason::MaxTokens,
                _ => Reason::EndTurn,
            },
            EndReason::Interrupted => Reason::Cancelled,
            EndReason::Limit {
                kind: LimitKind::MaxTokens,
                ..
            } => Reason::MaxTokens,
            reason if reason.is_limit() => Reason::MaxTurnRequests,
            EndReason::Refused { .. }
            | EndReason::Failed {
                failure: Failure::ContentFilter,
            } => {
                let why = reason_text(settings, &output.reason);
                self.updates.outbox.say(&format!("\n\n[{why}]"));
                Reason::Refusal
            }
            reason => return Err(CliError::failed(reason_text(settings, reason))),
        })
    }

    /// Closes the session, so that others can open it. Waits until its log is complete.
    pub(super) async fn close(&self) {
        let closing = async {
            // A prompt that is in progress holds the lock until it has ended.
            let Some(host) = self.host.lock().await.take() else {
                return;
            };
            host.close(true).await;
            if let Err(error) = host.session.close().await {
                say!("{error}");
            }
        };
        if timeout(CLOSING, closing).await.is_err() {
            say!("a session did not close; its newest messages may be missing from the log");
        }
    }
}

/// Sends the fill level of the window and the cost of the session.
fn show_usage(updates: &Updates, host: &SessionHost) {
    let now = host.session.window_use();
    updates.usage(now.used, now.window, Some(host.session.cost()));
}
