//! Manual compaction between two runs, and the use of the window.

use plimsoll_agent::{AppliedPlan, Now, WindowUse};

use crate::driver;
use crate::error::Error;
use crate::session::Session;

impl Session {
    /// Compacts the view now, regardless of the trigger.
    ///
    /// The policy plans down to its target, and the plan is recorded, archived and reported like
    /// any other. `focus` tells a model that writes a summary which information matters most.
    /// Returns `None` if the view is already below its target, if no message can be evicted, or if
    /// a hook refuses the plan. No model is called if there is nothing to compact. Dropping the
    /// future
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
        driver::between_runs(self).await?;
        driver::settle(self).await?;
        let now = Now {
            since_call: self.idle(),
            ..Now::default()
        };
        self.run.compact(now, focus)?;
        driver::settle(self).await?;
        Ok(self.run.take_compaction())
    }

    /// Returns the current use of the window.
    #[must_use]
    pub fn window_use(&self) -> WindowUse {
        self.run.window_use()
    }
}
