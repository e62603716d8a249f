//! Between two runs: making a session's view smaller now, and what fills its window. The planning is
//! the machine's.

use plimsoll_agent::{Compaction, WindowUse};

use crate::driver;
use crate::error::Error;
use crate::session::Session;

impl Session {
    /// Makes the view smaller now, whatever the trigger: the policy plans down to its target, and the
    /// plan is recorded, archived and told like any other. `focus` is what a model that writes a
    /// summary is told to keep above all. `None` where the view is under its target, where nothing in
    /// it may leave, or where a hook does not want the plan; where there is nothing to do, no model
    /// is called. Dropping the future gives the plan up.
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
    /// assert!(session.compact(None).await?.is_none(), "there is nothing to do");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Where the focus is too long, or the log cannot be written.
    pub async fn compact(&mut self, focus: Option<&str>) -> Result<Option<Compaction>, Error> {
        driver::between_runs(self)?;
        driver::settle(self).await?;
        self.run.set_idle(self.idle());
        self.run.compact(focus)?;
        driver::asked::plan(self).await?;
        Ok(self.run.take_compaction())
    }

    /// What fills the window now.
    #[must_use]
    pub fn window_use(&self) -> WindowUse {
        self.run.window_use()
    }
}
