//! [`SessionLog::read`]: reads logs of all formats. Each format has its own module, whose `read` returns the likely
//! cause if there is no message.

use std::path::Path;
use std::sync::Arc;

use crate::agent::Agent;
use crate::error::LogError;
use crate::input::LogFile;
use crate::session::SessionLog;
use crate::{claude_code, codex, gemini, opencode, pi, trajectory};

/// The likely cause if a log has no message.
pub(crate) const NO_MESSAGE: &str = "nothing was said in it; choose another session with --list";

impl SessionLog {
    /// Reads the session log of any agent and returns the messages of its active branch. `session`
    /// selects one of several sessions in a database; without it, the newest is read.
    ///
    /// # Errors
    ///
    /// [`LogError`] with the remedy. Damage inside a log is no error; see
    /// [`damage`](SessionLog::damage).
    pub fn read(path: &Path, session: Option<&str>) -> Result<Self, LogError> {
        let file = Arc::new(LogFile::open(path, session)?);
        Self::new(path, file).filled()
    }

    /// Reads the session again with the messages that encrypted compactions of Codex replaced, and with the encrypted
    /// reasoning of opencode as thinking, if it has any. For a session whose reasoning is left out, and such a
    /// compaction with it.
    #[must_use]
    pub fn before_encrypted(self) -> Self {
        if !self.has_encrypted {
            return self;
        }
        let mut log = Self::new(&self.path, Arc::clone(&self.file));
        log.ignores_encrypted = true;
        match log.filled() {
            Ok(log) if log.agent == Agent::Opencode => log,
            // The last request was a smaller one.
            Ok(log) => Self {
                reported: None,
                ..log
            },
            Err(_) => self,
        }
    }

    fn filled(mut self) -> Result<Self, LogError> {
        let why = match self.agent {
            Agent::ClaudeCode => claude_code::read(&mut self)?,
            Agent::Codex => codex::read(&mut self)?,
            Agent::Opencode => opencode::read(&mut self)?,
            Agent::Pi => pi::read(&mut self)?,
            Agent::Gemini => gemini::read(&mut self)?,
            Agent::CodexExec => codex::exec::read(&mut self)?,
            Agent::OpenHands | Agent::SweAgent | Agent::MiniSweAgent => {
                trajectory::read(&mut self)?
            }
        };
        self.checked(why)
    }
}
