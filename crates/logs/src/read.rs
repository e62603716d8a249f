//! [`SessionLog::read`]: reads logs of all formats. Each format has its own module, whose `read` returns the likely
//! cause if there is no message.

use std::io::Read;
use std::path::Path;

use crate::agent::Agent;
use crate::detect::{HEAD, detect};
use crate::error::LogError;
use crate::input::{LogFile, open};
use crate::session::SessionLog;
use crate::{claude_code, codex, gemini, opencode, pi, trajectory};

/// The likely cause if a log has no message.
pub(crate) const NO_MESSAGE: &str = "it contains no messages; choose another session with --list";

impl SessionLog {
    /// Reads the session log of any agent and returns the messages of its active branch. `session`
    /// selects one of several sessions in a database; without it, the newest is read.
    ///
    /// # Errors
    ///
    /// [`LogError`] with the remedy. Damage inside a log is no error; see
    /// [`damage`](SessionLog::damage).
    pub fn read(path: &Path, session: Option<&str>) -> Result<Self, LogError> {
        let agent = agent_of(path)?.ok_or_else(|| LogError::Unknown {
            path: path.to_owned(),
        })?;
        let file = LogFile::open(agent, path, session)?;
        let mut log = Self::new(agent, path, file);
        let why = match agent {
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

/// Returns the agent that wrote a file, or `None` if it is no session log.
///
/// # Errors
///
/// [`LogError::Read`], also for a directory or a file over [`MAX_LOG`](crate::MAX_LOG).
pub fn agent_of(path: &Path) -> Result<Option<Agent>, LogError> {
    let mut head = Vec::new();
    let read = open(path)?.take(HEAD as u64).read_to_end(&mut head);
    read.map_err(LogError::read(path))?;
    Ok(detect(&head))
}
