//! [`Agent`]: the agents whose session logs Plimsoll reads.

use std::path::Path;

/// An agent that writes session logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Agent {
    /// Anthropic's Claude Code.
    ClaudeCode,
    /// OpenAI's Codex.
    Codex,
    /// opencode.
    Opencode,
    /// pi.
    Pi,
    /// Google's Gemini CLI.
    Gemini,
    /// OpenHands: event histories of its evaluations.
    OpenHands,
    /// SWE-agent: trajectories.
    SweAgent,
    /// mini-SWE-agent: trajectories.
    MiniSweAgent,
    /// The output of `codex exec --json`.
    CodexExec,
}

impl Agent {
    /// Agents with sessions that can be resumed, in the order in which the help lists them.
    pub const RESUMABLE: [Self; 5] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Opencode,
        Self::Pi,
        Self::Gemini,
    ];

    /// Returns the name used on the command line, such as `claude-code`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.names().0
    }

    /// Returns the product name in its official spelling.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.names().1
    }

    /// Returns the name of an entry of the agent's logs: a line, or a message of a document.
    pub(crate) const fn entry(self) -> &'static str {
        self.names().2
    }

    const fn names(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::ClaudeCode => ("claude-code", "Claude Code", "line"),
            Self::Codex => ("codex", "Codex", "line"),
            Self::Opencode => ("opencode", "opencode", "message"),
            Self::Pi => ("pi", "pi", "line"),
            Self::Gemini => ("gemini", "Gemini CLI", "message"),
            Self::OpenHands => ("openhands", "OpenHands", "message"),
            Self::SweAgent => ("swe-agent", "SWE-agent", "message"),
            Self::MiniSweAgent => ("mini-swe-agent", "mini-SWE-agent", "message"),
            Self::CodexExec => ("codex-exec", "`codex exec --json`", "line"),
        }
    }

    /// Checks whether the agent's logs have a result in the same entry as its call.
    pub(crate) const fn joins_results(self) -> bool {
        matches!(self, Self::Opencode | Self::Gemini)
    }

    /// Parses a name as used on the command line. Returns `None` for an unknown name and for agents
    /// whose sessions cannot be resumed.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::RESUMABLE
            .into_iter()
            .find(|agent| agent.name() == name)
    }

    /// Returns the command that resumes a session, for a shell in the directory of the session. `path` is its file,
    /// which must be absolute. Empty for agents whose sessions cannot be resumed.
    #[must_use]
    pub fn resume_command(self, id: &str, path: &Path) -> String {
        let file = || shell_word(&path.to_string_lossy());
        match self {
            Self::ClaudeCode => format!("claude --resume {id}"),
            Self::Codex => format!("codex resume {id}"),
            Self::Opencode => format!("opencode import {} && opencode --session {id}", file()),
            Self::Pi => format!("pi --session {}", file()),
            Self::Gemini => format!("gemini --resume {id}"),
            Self::OpenHands | Self::SweAgent | Self::MiniSweAgent | Self::CodexExec => {
                String::new()
            }
        }
    }
}

/// Returns a shell word, in quotes if necessary.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
