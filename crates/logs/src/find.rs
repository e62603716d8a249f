//! [`find`]: finds the sessions of the agents on this machine. Lists directories, and opens no log
//! except the database of opencode.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::agent::Agent;
use crate::opencode;
use crate::session::SessionLog;

/// The maximum number of sessions that are examined for each agent.
pub const MAX_CANDIDATES: usize = 20_000;
/// The maximum depth of session directories: Codex sorts by year, month and day.
const MAX_DEPTH: usize = 4;

/// A session that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The agent that wrote the session.
    pub agent: Agent,
    /// The log file, or the database that contains the session.
    pub path: PathBuf,
    /// The id in the database; `None` if the file contains a single session.
    pub session: Option<String>,
    /// The time of the last change.
    pub modified: SystemTime,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// Returns the sessions of one agent, or of all agents, the newest first. `variable` reads
/// environment variables, which determine the session directories of each agent.
#[must_use]
pub fn find(variable: &dyn Fn(&str) -> Option<PathBuf>, agent: Option<Agent>) -> Vec<Candidate> {
    let mut found = Vec::new();
    for one in Agent::RESUMABLE {
        if agent.is_none_or(|agent| agent == one) {
            for folder in folders(one, variable) {
                collect(one, &folder, MAX_DEPTH, &mut found);
            }
        }
    }
    found.sort_by(|one: &Candidate, other| {
        let newest = other.modified.cmp(&one.modified);
        newest.then_with(|| one.path.cmp(&other.path))
    });
    found.dedup_by(|one, other| one.path == other.path && one.session == other.session);
    found
}

/// Returns the session directories of an agent, even if they do not exist.
#[must_use]
pub fn folders(agent: Agent, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let home = || variable("HOME").or_else(|| variable("USERPROFILE"));
    let below = |name: &str, rest: &str| {
        let base = variable(name).or_else(|| home().map(|home| home.join(rest)));
        base.into_iter()
    };
    match agent {
        Agent::ClaudeCode => {
            let own = below("CLAUDE_CONFIG_DIR", ".claude");
            let xdg = below("XDG_CONFIG_HOME", ".config").map(|base| base.join("claude"));
            own.chain(xdg).map(|base| base.join("projects")).collect()
        }
        Agent::Codex => below("CODEX_HOME", ".codex")
            .flat_map(|base| [base.join("sessions"), base.join("archived_sessions")])
            .collect(),
        Agent::Opencode => below("XDG_DATA_HOME", ".local/share")
            .map(|base| base.join("opencode"))
            .collect(),
        Agent::Pi => match variable("PI_CODING_AGENT_SESSION_DIR") {
            Some(folder) => vec![folder],
            None => below("PI_CODING_AGENT_DIR", ".pi/agent")
                .map(|base| base.join("sessions"))
                .collect(),
        },
        Agent::Gemini => below("GEMINI_CLI_HOME", "")
            .map(|base| base.join(".gemini").join("tmp"))
            .collect(),
        Agent::OpenHands | Agent::SweAgent | Agent::MiniSweAgent | Agent::CodexExec => Vec::new(),
    }
}

/// Returns the path at which the agent finds the copy of a log: beside the log if that is in a folder of the agent and
/// its directory exists, and otherwise in the agent's folder for `directory`, in which the copy will be resumed.
///
/// opencode reads a copy from any place.
#[must_use]
pub fn place_of_copy(
    log: &SessionLog,
    copy: &Path,
    directory: &Path,
    variable: &dyn Fn(&str) -> Option<PathBuf>,
) -> PathBuf {
    let folders = folders(log.agent, variable);
    let is_inside = folders.iter().any(|folder| log.path.starts_with(folder));
    let is_at_home = log
        .directory
        .as_ref()
        .is_none_or(|own| Path::new(own) == directory);
    let name = copy.file_name().unwrap_or_default();
    let Some(folder) = folders.first().filter(|_| !is_inside || !is_at_home) else {
        return copy.to_owned();
    };
    let directory = directory.to_string_lossy();
    match log.agent {
        Agent::ClaudeCode => {
            let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            folder
                .join(directory.chars().map(letter).collect::<String>())
                .join(name)
        }
        Agent::Codex if !is_inside => {
            // The name begins with the day: rollout-2026-11-01T10-00-00-….
            let day = name.to_string_lossy();
            let day = day.split(['-', 'T']).skip(1).take(3);
            folder.join(day.collect::<PathBuf>()).join(name)
        }
        Agent::Pi if !is_inside => {
            let project = directory
                .trim_start_matches('/')
                .replace(['/', '\\', ':'], "-");
            folder.join(format!("--{project}--")).join(name)
        }
        Agent::Gemini if !is_inside => match &log.project {
            Some(project) => folder.join(project).join("chats").join(name),
            None => copy.to_owned(),
        },
        _ => copy.to_owned(),
    }
}

fn collect(agent: Agent, folder: &Path, depth: usize, found: &mut Vec<Candidate>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        if found.len() >= MAX_CANDIDATES * Agent::RESUMABLE.len() {
            return;
        }
        let Ok(metadata) = entry.metadata() else {
            continue;
        };
        let path = entry.path();
        if metadata.is_dir() {
            if depth > 0 && agent != Agent::Opencode {
                collect(agent, &path, depth - 1, found);
            }
            continue;
        }
        let name = entry.file_name();
        if !is_session(agent, &name.to_string_lossy(), &path) {
            continue;
        }
        let sessions = match agent {
            Agent::Opencode => opencode::sessions(&path),
            _ => vec![(None, metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))],
        };
        found.extend(sessions.into_iter().map(|(session, modified)| Candidate {
            agent,
            path: path.clone(),
            session,
            modified,
            bytes: metadata.len(),
        }));
    }
}

/// Returns `true` if the name belongs to a user's session, not a sub-agent's.
fn is_session(agent: Agent, name: &str, path: &Path) -> bool {
    let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst"));
    let plain = plain.unwrap_or(name);
    match agent {
        Agent::ClaudeCode => {
            let is_side = name.starts_with("agent-")
                || path
                    .components()
                    .any(|part| part.as_os_str() == "subagents");
            plain.ends_with(".jsonl") && !is_side
        }
        Agent::Codex => plain.starts_with("rollout-") && plain.ends_with(".jsonl"),
        Agent::Opencode => name == "opencode.db",
        Agent::Pi => plain.ends_with(".jsonl"),
        Agent::Gemini => {
            name.starts_with("session-") && (plain.ends_with(".jsonl") || plain.ends_with(".json"))
        }
        Agent::OpenHands | Agent::SweAgent | Agent::MiniSweAgent | Agent::CodexExec => false,
    }
}
