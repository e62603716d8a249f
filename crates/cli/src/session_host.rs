//! [`SessionHost`]: an open session with the agent that runs it. Runs, chats and editors share it, and
//! the commands that need nothing else.

use std::sync::Arc;

use plimsoll::config::AgentConfig;
use plimsoll::store::SqliteStore;
use plimsoll::{AgentOutput, Error, Part, Session, SessionId, SessionStore, Window};

use crate::agent::{self, ReadyAgent, UserSide};
use crate::attach::Recipient;
use crate::chat::parse::Command;
use crate::context_use;
use crate::error::CliError;
use crate::outcome::plan_text;
use crate::resume;
use crate::settings::Sources;
use crate::terminal::text::{clean, counted, lines_of};

/// An open session with its agent and its settings.
pub(crate) struct SessionHost {
    pub(crate) sources: Sources,
    pub(crate) store: Arc<SqliteStore>,
    pub(crate) ready: ReadyAgent,
    pub(crate) session: Session,
    /// Whether a run was started. Before the first one, the tools of MCP servers have just been read.
    has_run: bool,
}

impl SessionHost {
    /// Builds the agent and opens a session.
    pub(crate) async fn open(
        config: AgentConfig,
        sources: Sources,
        user: UserSide,
        is_quiet: bool,
        store: Arc<SqliteStore>,
        id: SessionId,
    ) -> Result<Self, CliError> {
        let kept = store.clone();
        let ready = agent::build(config, &sources, user, is_quiet, kept, None).await?;
        let session = ready.agent.session(id).await?;
        Ok(Self {
            sources,
            store,
            ready,
            session,
            has_run: false,
        })
    }

    /// Returns the name of the model.
    pub(crate) fn model(&self) -> &str {
        self.ready.choice.model.provider.model()
    }

    /// Returns the model that messages are sent to.
    pub(crate) fn recipient(&self) -> Recipient {
        Recipient::new(&self.ready.choice, &self.ready.config.settings().root)
    }

    /// Formats the headline: `m in DIR │ window 8192 tokens, from the server │ session …`.
    pub(crate) fn headline(&self) -> String {
        let (choice, session) = (&self.ready.choice, &self.session);
        let window = match session.window() {
            Some(window) if session.view().learned_window() == Some(window) => {
                format!("{window} tokens, from an error of the provider")
            }
            // The note above gives the reason.
            Some(window) if choice.model.window != Window::Known(window) => {
                format!("{window} tokens")
            }
            Some(window) => format!("{window} tokens, {}", choice.window_from),
            None => choice.window_from.to_owned(),
        };
        let root = self.ready.config.settings().root.display();
        lines_of(&[
            format!("{} in {root}", self.model()),
            format!("window {window}"),
            format!("session {}", session.id()),
        ])
    }

    /// Continues the session with an agent of other settings, or of the same ones with the current
    /// tools of its MCP servers. If that fails, nothing changes.
    pub(crate) async fn rebuild(&mut self, sources: Sources) -> Result<(), CliError> {
        let mcp = Some(Arc::clone(&self.ready.mcp));
        let config = agent::resolve(&sources, true).await?;
        let (user, store) = (self.ready.user.clone(), self.store.clone());
        let ready = agent::build(config, &sources, user, true, store, mcp).await?;
        let switched = self.session.switch(&ready.agent).await;
        switched?;
        (self.sources, self.ready) = (sources, ready);
        self.remember().await
    }

    /// Stores the settings of the session, for when it is continued.
    pub(crate) async fn remember(&self) -> Result<(), CliError> {
        let choice = &self.ready.choice;
        resume::save(&self.store, &self.session, &self.sources, choice).await
    }

    /// Runs a message, or continues the last run. Stores the settings first, and takes over the tools of
    /// MCP servers that have changed.
    pub(crate) async fn run(
        &mut self,
        message: Option<Vec<Part>>,
    ) -> Result<AgentOutput, CliError> {
        let is_later = std::mem::replace(&mut self.has_run, true);
        if is_later && self.ready.mcp.refresh().await {
            self.rebuild(self.sources.clone()).await?;
        } else {
            self.remember().await?;
        }
        let is_continued = message.is_none();
        let output = match message {
            Some(message) => self.session.run_parts(message).await,
            None => self.session.carry_on().await,
        };
        output
            .or_else(Error::into_output)
            .map_err(|error| match error {
                Error::EmptyTask if is_continued => {
                    CliError::usage("there is no run to continue yet; give a task")
                }
                error => error.into(),
            })
    }

    /// Ends the connections to MCP servers, and deletes the sessions that the configuration does not
    /// keep.
    pub(crate) async fn close(&self, is_quiet: bool) {
        self.ready.mcp.close().await;
        agent::prune(
            &self.store,
            self.ready.config.settings().retention,
            is_quiet,
        )
        .await;
    }

    /// Executes a command. Returns its output, or `None` if the command needs more than a session.
    pub(crate) async fn perform(
        &mut self,
        command: Command,
        text: &str,
    ) -> Result<Option<String>, CliError> {
        Ok(Some(match command {
            Command::Compact => self.compact(text).await?,
            Command::Context => {
                let log = self.store.load(self.session.id()).await?;
                context_use::of_window(&self.session.window_use(), &log).join("\n")
            }
            Command::Cost => cost_text(&self.session),
            _ => return Ok(None),
        }))
    }

    /// Compacts the session now. Returns a description of the outcome.
    async fn compact(&mut self, focus: &str) -> Result<String, CliError> {
        let focus = Some(focus).filter(|focus| !focus.is_empty());
        let done = self.session.compact(focus).await?;
        let now = self.session.window_use();
        Ok(match (done, now.target) {
            (Some(done), _) => {
                let has_summary = done.plan.stages.iter().any(|stage| stage == "summarize");
                let note = if focus.is_some() && !has_summary {
                    "\nno model wrote a summary for this plan, so the focus had no effect"
                } else {
                    ""
                };
                format!("{}{note}", clean(&plan_text(&done)))
            }
            (None, None) => {
                "nothing to do: the context window is unknown; set it with --max-context".to_owned()
            }
            (None, Some(target)) => format!(
                "nothing was compacted: the request has {} tokens, at a target of {target}",
                now.used
            ),
        })
    }
}

/// Describes the usage of a session and of its last run.
fn cost_text(session: &Session) -> String {
    let state = session.view();
    let runs = state.runs();
    let all = format!(
        "{}: {}, {}",
        counted(runs, "run"),
        state.usage(),
        state.cost()
    );
    if runs == 0 {
        return all;
    }
    let used = session.tracker();
    format!(
        "{all}\nthe last run: {} of {}, {}",
        used.turns,
        counted(used.limits.max_turns(), "turn"),
        counted(used.tool_calls, "tool call")
    )
}
