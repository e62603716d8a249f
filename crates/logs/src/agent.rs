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

    const fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::ClaudeCode => ("claude-code", "Claude Code"),
            Self::Codex => ("codex", "Codex"),
            Self::Opencode => ("opencode", "opencode"),
            Self::Pi => ("pi", "pi"),
            Self::Gemini => ("gemini", "Gemini CLI"),
            Self::OpenHands => ("openhands", "OpenHands"),
            Self::SweAgent => ("swe-agent", "SWE-agent"),
            Self::MiniSweAgent => ("mini-swe-agent", "mini-SWE-agent"),
            Self::CodexExec => ("codex-exec", "`codex exec --json`"),
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
