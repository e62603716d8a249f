//! Executes the commands of a chat between runs.

use plimsoll::providers::ModelRef;
use plimsoll::session::new_session_id;
use plimsoll::{SessionId, SessionStore};

use super::Chat;
use super::parse::Command;
use crate::error::CliError;
use crate::sessions::files::{self, RestoreSet};
use crate::which_session::new_name;

impl Chat {
    /// Executes a command.
    pub(super) async fn act(&mut self, command: Command, text: String) -> Result<(), CliError> {
        if let Some(output) = self.perform(command, &text).await? {
            self.terminal.say(&output);
            return Ok(());
        }
        let given = Some(text).filter(|text| !text.is_empty());
        let output = match (command, given) {
            (Command::Quit, _) => {
                self.input.leaving = true;
                return Ok(());
            }
            (Command::Undo, _) => return self.undo().await,
            (Command::Help, _) => self.help(),
            (Command::Diff, _) => {
                let id = self.host.session.id();
                let lines = files::changed_lines(&self.host.store, id).await?;
                self.terminal.say_styled(&lines.join("\n"));
                return Ok(());
            }
            (Command::Pin, rule) => {
                let rule = rule.unwrap_or_default();
                let seq = self.host.session.pin_text(&rule).await;
                let id = seq?.recall_id();
                self.host.remember().await?;
                format!("{id} is pinned: {rule}")
            }
            (Command::Fork, name) => self.fork(name).await?,
            (Command::Model, None) => format!("the model is {}", self.host.model()),
            (Command::Model, Some(name)) => self.switch(&name).await?,
            (Command::New, _) => {
                let id = new_session_id();
                let next = self.host.ready.agent.session(id.clone()).await?;
                let before = std::mem::replace(&mut self.host.session, next);
                let before = before.id();
                format!("now in the new session {id}; {}", continued(before))
            }
            // They begin a run, or were executed above.
            _ => return Ok(()),
        };
        self.terminal.say(&output);
        Ok(())
    }

    /// Executes a command that editors have as well. Ctrl-C ends it like a run.
    async fn perform(&mut self, command: Command, text: &str) -> Result<Option<String>, CliError> {
        self.begin();
        let done = tokio::select! {
            biased;
            done = self.host.perform(command, text) => done,
            () = self.input.until_stopped() => {
                self.terminal.must("interrupted; nothing was compacted");
                Ok(None)
            }
        };
        self.end();
        done
    }

    fn help(&self) -> String {
        let mut lines: Vec<String> = Command::all().iter().map(|of| of.help()).collect();
        let names = self.input.templates.names();
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| format!("/{name}")).collect();
            lines.push(format!("Your prompts: {}", names.join(", ")));
        }
        lines.push(
            "A line starts a run, or steers the current one. Ctrl-C stops the run; twice, it exits. \
             A \\ at the end of a line continues it on the next one."
                .to_owned(),
        );
        lines.join("\n")
    }

    async fn undo(&mut self) -> Result<(), CliError> {
        let run = self.host.session.undo().await?;
        self.terminal.say(&format!(
            "run {run} is undone: the model sees what it saw before"
        ));
        let id = self.host.session.id().clone();
        let log = self.host.store.load(&id).await?;
        let set = RestoreSet::of_run(&self.host.store, &id, &log, run).await?;
        for why in &set.refused {
            self.terminal.must(why);
        }
        if set.is_empty() {
            return Ok(());
        }
        for line in set.lines() {
            self.terminal.must(&line);
        }
        if self
            .input
            .confirm(&format!("{} [y]es, [n]o", set.question()))
            .await
        {
            let names = set.make(&self.host.store).await?;
            self.terminal.say(&format!("restored {}", names.join(", ")));
        } else {
            self.terminal.must(&set.later());
        }
        Ok(())
    }

    async fn fork(&mut self, name: Option<String>) -> Result<String, CliError> {
        let to = new_name(name.as_deref())?;
        let from = self.host.session.id().clone();
        let fork = self.host.ready.agent.fork(&from, None, to.clone()).await;
        self.host.session = fork?;
        Ok(format!(
            "now in session {to}, a fork of {from}; {}",
            continued(&from)
        ))
    }

    /// Switches to another model. The address that the session began with belongs to the provider of
    /// its first model.
    async fn switch(&mut self, name: &str) -> Result<String, CliError> {
        let before = self.host.model().to_owned();
        let vendor = |name: &str| ModelRef::parse(name).ok().map(|model| model.vendor().name);
        let (first, mut sources) = self.began.clone();
        if vendor(&first) != vendor(name) {
            sources.flags.unset("base_url");
        }
        sources.flags.set("/model", "model", name);
        sources.resumed = None;
        self.host.rebuild(sources).await?;
        let after = self.host.model();
        Ok(format!("the model is now {after}; before: {before}"))
    }
}

/// Names the command that continues the former session.
fn continued(id: &SessionId) -> String {
    format!("continue the former one with: plimsoll chat --session {id}")
}
