//! [`Agent`]: the agents whose session logs Plimsoll reads, and the facts about them in `data/agents.json`.

use std::path::Path;
use std::sync::LazyLock;

use plimsoll_foreign::Protocol;
use serde::Deserialize;

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

/// The facts about an agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct AgentFacts {
    /// The name on the command line.
    name: String,
    /// The product name in its official spelling.
    title: String,
    /// Whether a log is always one document.
    pub(crate) is_document: bool,
    /// The keys of the lists in an entry whose elements are entries too: `a.b` is a key of an object.
    pub(crate) lists: Vec<String>,
    /// The entries by which a log is recognized.
    pub(crate) marks: Vec<EntryMark>,
    /// The command that resumes a session, with `{id}` or `{file}`. Empty if nothing does.
    resume: String,
    /// The beginnings and the ends of the names of logs.
    pub(crate) files: Vec<(String, String)>,
    pub(crate) folders: Vec<SessionFolder>,
}

/// An entry by which a log is recognized.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EntryMark {
    /// Its possible types. Empty if it may have any.
    pub(crate) types: Vec<String>,
    /// Keys that it has: `a.b` is a key of an object, and `a~` a key whose value is cut off.
    pub(crate) keys: Vec<String>,
}

/// A folder with sessions.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SessionFolder {
    /// The environment variable that names the base.
    pub(crate) variable: String,
    /// The base in the home directory if the variable is not set.
    pub(crate) home: Option<String>,
    /// The path below the base.
    pub(crate) rest: String,
}

/// The facts about all agents, in the order of [`Agent::ALL`]. A test reads the file.
static FACTS: LazyLock<Vec<AgentFacts>> =
    LazyLock::new(|| serde_json::from_str(include_str!("../data/agents.json")).unwrap_or_default());

impl Agent {
    /// All agents.
    pub(crate) const ALL: [Self; 9] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Opencode,
        Self::Pi,
        Self::Gemini,
        Self::OpenHands,
        Self::SweAgent,
        Self::MiniSweAgent,
        Self::CodexExec,
    ];

    /// Agents with sessions that can be resumed, in the order in which the help lists them.
    pub const RESUMABLE: [Self; 5] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::Opencode,
        Self::Pi,
        Self::Gemini,
    ];

    pub(crate) fn facts(self) -> &'static AgentFacts {
        static UNKNOWN: LazyLock<AgentFacts> = LazyLock::new(AgentFacts::default);
        FACTS.get(self as usize).unwrap_or(&UNKNOWN)
    }

    /// Returns the name used on the command line, such as `claude-code`.
    #[must_use]
    pub fn name(self) -> &'static str {
        &self.facts().name
    }

    /// Returns the product name in its official spelling.
    #[must_use]
    pub fn title(self) -> &'static str {
        &self.facts().title
    }

    /// Returns the protocol of the units of the agent's logs.
    #[must_use]
    pub fn protocol(self) -> Protocol {
        match self {
            Self::Codex | Self::CodexExec => Protocol::Responses,
            Self::OpenHands | Self::SweAgent | Self::MiniSweAgent => Protocol::Chat,
            _ => Protocol::Messages,
        }
    }

    /// Checks whether the agent's logs have a result in the same entry as its call.
    pub(crate) fn joins_results(self) -> bool {
        matches!(self, Self::Opencode | Self::Gemini)
    }

    /// Returns the command that resumes a session, for a shell in the directory of the session. `path` is its file,
    /// which must be absolute. Empty for agents whose sessions cannot be resumed.
    #[must_use]
    pub fn resume_command(self, id: &str, path: &Path) -> String {
        let file = shell_word(&path.to_string_lossy());
        let command = self.facts().resume.replace("{id}", id);
        command.replace("{file}", &file)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_has_all_agents_in_their_order() {
        let file = serde_json::from_str(include_str!("../data/agents.json"));
        let file: Vec<AgentFacts> = file.unwrap();
        let names = file.iter().map(|facts| facts.name.replace('-', ""));
        let variants = Agent::ALL.map(|agent| format!("{agent:?}").to_lowercase());
        assert_eq!(names.collect::<Vec<_>>(), variants);
        for (agent, facts) in Agent::ALL.into_iter().zip(&file) {
            let can_resume = Agent::RESUMABLE.contains(&agent);
            assert_eq!(!facts.resume.is_empty(), can_resume);
            assert_eq!(!facts.folders.is_empty(), can_resume);
        }
    }
}
