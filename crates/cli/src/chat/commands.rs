//! Executes the commands of a chat between runs.

use std::path::PathBuf;
use std::sync::Arc;

use plimsoll::machine::State;
use plimsoll::providers::ModelRef;
use plimsoll::session::{AppliedPlan, new_session_id};
use plimsoll::store::StoreError;
use plimsoll::{Error, Message, Observer, Session, SessionId};

use super::parse::{COMMANDS, Command};
use super::run_input::NextStep;
use super::{Chat, save};
use crate::agent::{self, ReadyAgent};
use crate::ask::Reply;
use crate::context_bar;
use crate::error::CliError;
use crate::outcome::{plan_text, stop_of};
use crate::resume;
use crate::sessions::files::{self, RestoreSet};
use crate::settings::Sources;
use crate::terminal::Verbosity;
use crate::terminal::text::{counted, one_line};
use crate::which_session;

impl Chat {
    /// Executes a command.
    pub(super) async fn act(
        &mut self,
        command: Command,
        text: String,
    ) -> Result<NextStep, CliError> {
        let given = Some(text).filter(|text| !text.is_empty());
        match (command, given) {
            (Command::Quit, _) => return Ok(NextStep::Leave),
            (Command::Compact, focus) => return self.compact(focus.as_deref()).await,
            (Command::Undo, _) => return self.undo().await,
            (Command::Help, _) => self.help(),
            (Command::Context, _) => self.context().await?,
            (Command::Cost, _) => self.terminal.say(&cost_lines(&self.session).join("\n")),
            (Command::Diff, _) => self.diff().await?,
            (Command::Pins, _) => self.pins(),
            (Command::Pin, rule) => {
                let rule = rule.unwrap_or_default();
                let seq = self.session.pin_text(&rule).await;
                let id = seq.map_err(CliError::failed)?.recall_id();
                self.terminal.say(&format!("{id} is pinned: {rule}"));
            }
            (Command::Fork, name) => self.fork(name).await?,
            (Command::Model, None) => {
                let text = format!("the model is {}", self.model());
                self.terminal.say(&text);
            }
            (Command::Model, Some(name)) => self.switch(name).await?,
            (Command::Session, None) => {
                let id = self.session.id();
                self.terminal.say(&format!("this is session {id}"));
            }
            (Command::Session, Some(id)) => self.session(id).await?,
            (Command::Sessions, words) => {
                for line in which_session::listed(&self.store, words.as_deref()).await? {
                    self.terminal.say(&line);
                }
            }
            (Command::New, _) => self.new_session().await?,
            (Command::Save, file) => {
                let file = PathBuf::from(file.unwrap_or_default());
                let saved = save::save(&*self.store, &self.session, &file).await?;
                let saved = counted(saved, "message");
                self.terminal.say(&format!("{saved} in {}", file.display()));
            }
            (Command::Stop, _) => self.terminal.must("there is no current run"),
            // They begin a run.
            (Command::Steer | Command::Later | Command::Go, _) => {}
        }
        Ok(NextStep::Line)
    }

    fn help(&self) {
        for command in COMMANDS {
            self.terminal.say(&command.help());
        }
        let names = self.templates.names();
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
            self.terminal
                .say(&format!("Your prompts: {}", names.join(", ")));
        }
        self.terminal.say(
            "A line starts a run, or steers the current one. Ctrl-C stops the run; twice, it exits. \
             A \\ at the end of a line continues it on the next one.",
        );
    }

    /// Shows the contents of the window.
    async fn context(&self) -> Result<(), CliError> {
        let colours = self.terminal.answer_colours();
        let lines = context_bar::of_session(&self.store, &self.session, colours).await?;
        self.terminal.say_styled(&lines.join("\n"));
        Ok(())
    }

    /// Shows the file changes of the session.
    async fn diff(&self) -> Result<(), CliError> {
        let colours = self.terminal.answer_colours();
        let id = self.session.id();
        let lines = files::changed_lines(&self.store, id, colours).await?;
        self.terminal.say_styled(&lines.join("\n"));
        Ok(())
    }

    fn pins(&self) {
        let pinned = self.session.pinned().map(|(seq, message)| {
            let text = message.text();
            let text: Vec<&str> = text.lines().collect();
            format!("{}  {}", seq.recall_id(), text.join(" "))
        });
        let pinned: Vec<String> = pinned.collect();
        self.terminal.say(&if pinned.is_empty() {
            "nothing is pinned; /pin RULE pins a rule, which is then never evicted or shortened"
                .to_owned()
        } else {
            pinned.join("\n")
        });
    }

    /// Compacts the session now. Ctrl-C ends it like a run.
    async fn compact(&mut self, focus: Option<&str>) -> Result<NextStep, CliError> {
        self.begin();
        let (session, talk) = (&mut self.session, &mut self.talk);
        let done = tokio::select! {
            biased;
            done = session.compact(focus) => Some(done),
            () = talk.until_stopped() => None,
        };
        let went = self.end();
        match done {
            None => self.terminal.must("interrupted; nothing was compacted"),
            Some(Ok(done)) => {
                // A terminal has shown the plan already; a script gets it as the answer to its
                // command.
                if !(done.is_some() && self.terminal.is_live()) {
                    self.terminal.say(&compacted(&self.session, done.as_ref()));
                }
                if let Some(note) = unused_focus(done.as_ref(), focus) {
                    self.terminal.must(note);
                }
            }
            Some(Err(error)) => return Err(stop_of(&error)),
        }
        Ok(went)
    }

    async fn undo(&mut self) -> Result<NextStep, CliError> {
        let run = match self.session.undo().await {
            Ok(run) => run,
            Err(error @ Error::Undo(_)) => return Err(CliError::usage(error)),
            Err(error) => return Err(stop_of(&error)),
        };
        let last = last_said(self.session.view());
        self.terminal.say(&format!(
            "run {run} is undone: the model sees what it saw before{last}"
        ));
        let id = self.session.id().clone();
        let restoring = RestoreSet::of_runs(&self.store, &id, &[run]).await?;
        for why in &restoring.refused {
            self.terminal.must(why);
        }
        if restoring.is_empty() {
            return Ok(NextStep::Line);
        }
        for line in restoring.lines(self.terminal.colours()) {
            self.terminal.must(&line);
        }
        let question = format!("{} [y]es, [n]o", restoring.question());
        let (reply, next) = self.talk.ask_now(&question).await;
        if reply == Some(Reply::Yes) {
            let names = restoring.names().join(", ");
            restoring.make(&self.store, &id).await?;
            self.terminal.say(&format!("restored {names}"));
        } else {
            self.terminal.must(&restoring.hint(&id));
        }
        Ok(next)
    }

    async fn fork(&mut self, name: Option<String>) -> Result<(), CliError> {
        let to = match name {
            Some(name) => SessionId::new(name).map_err(CliError::usage)?,
            None => new_session_id(),
        };
        let from = self.session.id().clone();
        let fork = match self.ready.agent.fork(&from, None, to.clone()).await {
            Ok(fork) => fork,
            Err(Error::Store(error @ StoreError::CannotFork { .. })) => {
                return Err(CliError::usage(error));
            }
            Err(error) => return Err(stop_of(&error)),
        };
        self.take(fork, None).await?;
        self.terminal.say(&format!(
            "now in session {to}, a fork of {from}; continue the original with: plimsoll chat \
             --session {from}"
        ));
        Ok(())
    }

    /// Switches to another model. If that fails, nothing changes.
    async fn switch(&mut self, name: String) -> Result<(), CliError> {
        let before = self.model().to_owned();
        let vendor = |name: &str| ModelRef::parse(name).ok().map(|model| model.vendor().name);
        // An address belongs to the provider that was reached there.
        let is_elsewhere = vendor(&before) != vendor(&name);
        let (first, address) = self.began.clone();
        let switched = |sources: &Sources| {
            let mut sources = sources.clone();
            if is_elsewhere {
                sources.flags.unset("base_url");
            }
            if let (true, Some(address)) = (vendor(&first) == vendor(&name), &address) {
                sources.flags.set("--base-url", "base_url", address);
            }
            sources.flags.set("--model", "model", &name);
            sources.resumed = None;
            sources
        };
        let given = switched(&self.given);
        self.anew(switched(&self.sources)).await?;
        self.given = given;
        let after = self.model().to_owned();
        self.words.add_models([after.clone()]);
        self.terminal
            .say(&format!("the model is now {after}; before: {before}"));
        Ok(())
    }

    /// Reads the tools of MCP servers again if a server has reported a change. Called between runs.
    pub(super) async fn read_tools(&mut self) {
        if !self.ready.mcp.has_changed().await {
            return;
        }
        let told = match self.anew(self.sources.clone()).await {
            Ok(()) => "the tools of an MCP server have changed; the new ones are in use".to_owned(),
            Err(stop) => {
                format!("the tools of an MCP server have changed, but could not be read: {stop}")
            }
        };
        self.terminal.note(&self.terminal.dim(&told));
    }

    /// Replaces the agent by one with the current configuration.
    async fn anew(&mut self, sources: Sources) -> Result<(), CliError> {
        let ready = self.made(&sources).await?;
        let switched = self.session.switch(&ready.agent).await;
        switched.map_err(|error| stop_of(&error))?;
        (self.sources, self.ready) = (sources, ready);
        self.remember().await
    }

    /// Builds an agent with the current configuration.
    async fn made(&self, sources: &Sources) -> Result<ReadyAgent, CliError> {
        let mcp = Some(self.ready.mcp.clone());
        let prepared = agent::prepare(sources, Verbosity::Answers, self.store.clone(), mcp).await?;
        let printer = Arc::clone(&self.printer) as Arc<dyn Observer>;
        prepared.build(Arc::clone(&self.gate), [printer])
    }

    /// Stores the settings of the session, for when it is continued.
    pub(super) async fn remember(&self) -> Result<(), CliError> {
        let choice = &self.ready.choice;
        resume::save(&self.store, &self.session, &self.sources, choice).await
    }

    /// Begins a new session with the same agent.
    async fn new_session(&mut self) -> Result<(), CliError> {
        let next = self.ready.session(new_session_id()).await?;
        let id = next.id().clone();
        let before = self.take(next, None).await?;
        self.terminal.say(&format!(
            "now in the new session {id}; go back with /session {before}"
        ));
        Ok(())
    }

    /// Switches to another session, with the settings of its last run.
    async fn session(&mut self, id: String) -> Result<(), CliError> {
        // The current session may not be stored yet.
        if id == self.session.id().as_str() {
            self.terminal.say(&format!("this is session {id}"));
            return Ok(());
        }
        let id = which_session::known(&*self.store, &id).await?;
        let mut sources = self.given.clone();
        resume::restore(&self.store, &id, &mut sources).await?;
        // Its permissions and servers would differ from those of this chat.
        if !sources.is_configured_as(&self.sources) {
            return Err(CliError::usage(format!(
                "session {id} was run with another configuration; exit, then continue it with: \
                 plimsoll chat --session {id}"
            )));
        }
        let ready = self.made(&sources).await?;
        let next = ready.session(id.clone()).await?;
        let last = last_said(next.view());
        let was = self.model().to_owned();
        let before = self.take(next, Some((sources, ready))).await?;
        let model = match self.model() {
            model if model == was => String::new(),
            model => format!(", on {model}"),
        };
        self.terminal.say(&format!(
            "now in session {id}{model}{last}; before: {before}"
        ));
        Ok(())
    }

    /// Replaces the current session by another one, and the agent if there is one for it. Stores the
    /// settings of both sessions. Returns the id of the former.
    async fn take(
        &mut self,
        session: Session,
        agent: Option<(Sources, ReadyAgent)>,
    ) -> Result<SessionId, CliError> {
        self.remember().await?;
        if let Some(agent) = agent {
            (self.sources, self.ready) = agent;
        }
        let before = std::mem::replace(&mut self.session, session);
        self.remember().await?;
        Ok(before.id().clone())
    }

    /// Returns the name of the current model.
    fn model(&self) -> &str {
        self.ready.choice.model.provider.model()
    }
}

/// Describes the usage of a session and of its last run.
pub(crate) fn cost_lines(session: &Session) -> Vec<String> {
    let state = session.view();
    let (usage, cost) = (state.usage(), state.cost());
    let runs = state.runs();
    let mut lines = vec![format!("{}: {usage}, {cost}", counted(runs, "run"))];
    if runs > 0 {
        let used = session.tracker();
        lines.push(format!(
            "the last run: {} of {}, {}",
            used.turns,
            counted(used.limits.max_turns(), "turn"),
            counted(used.tool_calls, "tool call")
        ));
    }
    lines
}

/// Describes the outcome of a requested compaction.
pub(crate) fn compacted(session: &Session, done: Option<&AppliedPlan>) -> String {
    let now = session.window_use();
    match (done, now.target) {
        (Some(done), _) => plan_text(done),
        (None, None) => {
            "nothing to do: the context window is unknown; set it with --max-context".to_owned()
        }
        (None, Some(target)) if now.used > target => format!(
            "nothing was compacted: the remaining messages of {} tokens are protected, or a hook \
             refused the plan",
            now.used
        ),
        (None, Some(target)) => format!(
            "nothing to do: the request has {} tokens, less than the target of {target}",
            now.used
        ),
    }
}

/// Returns a note if a focus had no effect, because no model wrote a summary.
pub(crate) fn unused_focus(
    done: Option<&AppliedPlan>,
    focus: Option<&str>,
) -> Option<&'static str> {
    let stages = &done?.plan.stages;
    let has_summary = stages.iter().any(|stage| stage == "summarize");
    let note = "no model wrote a summary for this plan, so the focus had no effect";
    (focus.is_some() && !has_summary).then_some(note)
}

/// Returns the user's last message, to recognize a session. Empty if there is none.
pub(super) fn last_said(state: &State) -> String {
    let mut items = state.transcript().items().iter().rev();
    let last = items.find(|item| matches!(*item.message, Message::User { .. }));
    match last {
        Some(item) => format!("; last message: {}", one_line(&item.message.text())),
        None => String::new(),
    }
}
