//! What a host does with a [`Session`]: runs, undo, compaction and pins. The loop is in the driver.

use std::sync::Arc;

use plimsoll_agent::{AppliedPlan, Input, Now};
use plimsoll_context::{Part, Seq};

use crate::agent::{Agent, cache_key, nobody_to_ask};
use crate::driver;
use crate::error::Error;
use crate::host_steps::Steps;
use crate::output::AgentOutput;
use crate::parts::Parts;
use crate::remote::checked;
use crate::session::Session;
use crate::tool::Tool;

impl Session {
    /// Continues with another agent: another model, other tools and other limits for the same log.
    ///
    /// The session stays in its store. On an error, it does not change.
    ///
    /// # Errors
    /// If the log cannot be read or written, or if the agent's configuration leaves no room in its
    /// model's window.
    pub async fn switch(&mut self, agent: &Agent) -> Result<(), Error> {
        self.between_runs(|_| Ok(())).await?;
        let parts = Parts {
            store: Arc::clone(&self.parts.store),
            ..Parts::clone(&agent.parts)
        };
        let (run, entries, tools) = agent.prepare(&parts, self.id()).await?;
        (self.run, self.entries) = (run, entries);
        self.set_parts(Arc::new(parts));
        self.fit_out(agent, tools).await
    }

    /// Undoes the newest run that is not undone yet. Returns the number of the run.
    ///
    /// The view becomes, byte for byte, the view before the task of the run. Pins that the host has
    /// set since then stay pinned; its newer rules are added again at the end of the view. The log
    /// keeps the run. Effects outside the session are not undone.
    ///
    /// # Errors
    /// If there is no run to undo, or the log cannot be read or written.
    pub async fn undo(&mut self) -> Result<u64, Error> {
        self.between_runs(|run| Ok(run.undo()?)).await
    }

    /// Compacts the view now, regardless of the trigger.
    ///
    /// The policy plans down to its target, and the plan is recorded and reported like
    /// any other. `focus` tells a model that writes a summary which information matters most.
    /// Returns `None` if the view is already below its target, if no message can be evicted, or if
    /// a hook refuses the plan. No model is called if there is nothing to compact. Dropping the future
    /// cancels the plan.
    ///
    /// ```
    /// use plimsoll_core::testing::{ScriptedProvider, Turn};
    /// use plimsoll_core::{Agent, SessionId};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let agent = Agent::builder(ScriptedProvider::new([Turn::say("Hello.")])).build()?;
    /// let mut session = agent.session(SessionId::new("one")?).await?;
    /// session.run("Hi.").await?;
    /// assert!(session.compact(None).await?.is_none(), "there is nothing to compact");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the focus is too long, or the log cannot be written.
    pub async fn compact(&mut self, focus: Option<&str>) -> Result<Option<AppliedPlan>, Error> {
        let now = Now {
            since_call: self.idle(),
            ..Now::default()
        };
        self.between_runs(|run| Ok(run.compact(now, focus)?))
            .await?;
        Ok(self.run.take_compaction())
    }

    /// Pins an item of the view. It stays complete in every later request.
    ///
    /// # Errors
    /// If the original item is not in the view, if too much would be pinned, or if the log cannot
    /// be written.
    pub async fn pin(&mut self, seq: Seq) -> Result<(), Error> {
        self.between_runs(|run| Ok(run.pin(seq)?)).await
    }

    /// Adds a rule from the host and pins it.
    ///
    /// # Errors
    /// If the rule is empty, if too much would be pinned, if calls of a crashed run are waiting to
    /// be continued, or if the log cannot be written.
    pub async fn pin_text(&mut self, text: &str) -> Result<Seq, Error> {
        self.between_runs(|run| Ok(run.pin_text(text)?)).await
    }

    /// Removes a pin. Returns `false` if there is none.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub async fn unpin(&mut self, seq: Seq) -> Result<bool, Error> {
        self.between_runs(|run| Ok(run.unpin(seq))).await
    }

    /// Runs a task. Dropping the future interrupts it; the session can be continued.
    ///
    /// # Errors
    /// If the task is empty, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]).
    pub async fn run(&mut self, task: &str) -> Result<AgentOutput, Error> {
        self.run_parts(vec![Part::text(task)]).await
    }

    /// Runs a task with images, files or other parts besides text.
    ///
    /// # Errors
    /// If the message is empty, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]).
    pub async fn run_parts(&mut self, parts: Vec<Part>) -> Result<AgentOutput, Error> {
        let message = checked(parts)?;
        self.between_runs(|_| Ok(())).await?;
        self.drive(Input::User(message)).await
    }

    /// Continues without a new message after a crash or a failure has ended the last run. Calls
    /// that had not begun run now; started calls run again only if they are idempotent.
    ///
    /// # Errors
    /// If the session is empty, the log cannot be written, or the model cannot be called
    /// ([`Error::Failed`]).
    pub async fn carry_on(&mut self) -> Result<AgentOutput, Error> {
        let input = self.continue_input()?;
        self.between_runs(|_| Ok(())).await?;
        self.drive(input).await
    }

    /// Closes the session: ends a run whose future was dropped, and waits until the log is complete.
    /// The session can then be opened again at once, also by another process.
    ///
    /// # Errors
    /// If the log cannot be written.
    pub async fn close(mut self) -> Result<(), Error> {
        self.between_runs(|_| Ok(())).await
    }

    /// Prepares the session for runs of this agent, whose setup and parts it has already.
    pub(crate) async fn fit_out(
        &mut self,
        agent: &Agent,
        tools: Vec<Arc<dyn Tool>>,
    ) -> Result<(), Error> {
        let (id, runs) = (self.id().clone(), self.run.state().runs());
        let parts = Arc::make_mut(&mut self.parts);
        parts.observers = parts.observers.of_session(id.as_str(), runs);
        let named = tools.into_iter();
        let named = named.map(|tool| (tool.spec().name.clone(), tool));
        parts.tools.extend(named);
        self.own_context
            .clone_from(&self.run.setup().dynamic_context);
        self.steps = Steps::new(self.parts.settings.max_step_result);
        let root = self.run.state().root().unwrap_or(id.as_str());
        let setup = self.run.setup();
        self.cache_key = setup.cache.is_on().then(|| cache_key(root));
        self.parts.warn(agent.notes.clone());
        self.parts.warn(nobody_to_ask(&agent.setup, &self.parts));
        for rule in &agent.settings.pins {
            self.run.pin_rule(rule)?;
        }
        driver::settle(self).await
    }

    /// Returns the input that continues the session.
    pub(crate) fn continue_input(&self) -> Result<Input, Error> {
        if self.run.state().transcript().items().is_empty() {
            return Err(Error::EmptyTask);
        }
        Ok(Input::Continue)
    }
}
