//! [`SessionLog::read`]: reads logs of all formats. Each format has its own module, whose `read` returns the likely
//! cause if there is no message.

use std::path::Path;

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
        let mut log = Self::new(path, LogFile::open(path, session)?);
        let why = match log.agent {
            Agent::ClaudeCode => claude_code::read(&mut log)?,
            Agent::Codex => codex::read(&mut log)?,
            Agent::Opencode => opencode::read(&mut log)?,
            Agent::Pi => pi::read(&mut log)?,
            Agent::Gemini => gemini::read(&mut log)?,
            Agent::OpenHands | Agent::SweAgent | Agent::MiniSweAgent => trajectory::read(&mut log)?,
            Agent::CodexExec => codex::exec::read(&mut log)?,
        };
        log.checked(why)
    }
}
