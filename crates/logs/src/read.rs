//! [`SessionLog::read`]: reads logs of all formats. Each format has its own module.

use std::io::Read;
use std::path::Path;

use crate::agent::Agent;
use crate::detect::{HEAD, detect};
use crate::error::LogError;
use crate::input::open;
use crate::session::SessionLog;
use crate::{claude_code, codex, gemini, opencode, pi, trajectory};

impl SessionLog {
    /// Reads the session log of any agent and returns the messages of its active branch. `session`
    /// selects one of several sessions in a database; without it, the newest is read.
    ///
    /// # Errors
    ///
    /// [`LogError`] with the remedy. Damage inside a log is no error; see
    /// [`damage`](SessionLog::damage).
    pub fn read(path: &Path, session: Option<&str>) -> Result<Self, LogError> {
        match agent_of(path)? {
            Some(Agent::ClaudeCode) => claude_code::read(path),
            Some(Agent::Codex) => codex::read(path),
            Some(Agent::Opencode) => opencode::read(path, session),
            Some(Agent::Pi) => pi::read(path),
            Some(Agent::Gemini) => gemini::read(path),
            Some(agent @ (Agent::OpenHands | Agent::SweAgent | Agent::MiniSweAgent)) => {
                trajectory::read(path, agent)
            }
            Some(Agent::CodexExec) => codex::exec::read(path),
            None => Err(LogError::Unknown {
                path: path.to_owned(),
            }),
        }
    }
}

/// Returns the agent that wrote a file, or `None` if it is no session log.
///
/// # Errors
///
/// The errors of [`open`].
pub fn agent_of(path: &Path) -> Result<Option<Agent>, LogError> {
    let mut head = Vec::new();
    let read = open(path)?.take(HEAD as u64).read_to_end(&mut head);
    read.map_err(LogError::read(path))?;
    Ok(detect(&head))
}
