//! [`Agent`]: the agents whose session logs Plimsoll reads.

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
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
            Self::Gemini => "gemini",
            Self::OpenHands => "openhands",
            Self::SweAgent => "swe-agent",
        }
    }

    /// Returns the product name in its official spelling.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Opencode => "opencode",
            Self::Pi => "pi",
            Self::Gemini => "Gemini CLI",
            Self::OpenHands => "OpenHands",
            Self::SweAgent => "SWE-agent",
        }
    }

    /// Parses a name as used on the command line. Returns `None` for an unknown name and for agents
    /// whose sessions cannot be resumed.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::RESUMABLE
            .into_iter()
            .find(|agent| agent.name() == name)
    }
}
