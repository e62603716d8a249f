//! [`SessionLog::read`]: reads logs of all formats. Each format has its own module.

use std::path::Path;

use crate::agent::Agent;
use crate::detect::{SQLITE, detect};
use crate::error::LogError;
use crate::input::read_text;
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
        let mut text = read_text(path)?;
        let agent = detect(&text).ok_or_else(|| LogError::Unknown {
            path: path.to_owned(),
        })?;
        let mut log = Self::new(agent, path);
        if text.starts_with(SQLITE) {
            text = opencode::export(path, session)?;
        }
        log.replace_halves(&mut text);
        match agent {
            Agent::ClaudeCode => claude_code::read(log, &text),
            Agent::Codex => codex::read(log, &text),
            Agent::Opencode => opencode::read(log, &text),
            Agent::Pi => pi::read(log, &text),
            Agent::Gemini => gemini::read(log, &text),
            Agent::OpenHands => trajectory::read_openhands(log, &text),
            Agent::SweAgent => trajectory::read_messages(log, &text, "history"),
            Agent::MiniSweAgent => trajectory::read_messages(log, &text, "messages"),
            Agent::CodexExec => codex::exec::read(log, &text),
        }
    }
}
