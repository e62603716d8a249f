//! [`find`]: finds the sessions of the agents on this machine. Lists directories, and opens no log
//! except the database of opencode.

use std::fs::{self, File};
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memchr::memmem;

use crate::agent::Agent;
use crate::copy::stem;
use crate::input::unpack;
use crate::session::{SessionLog, text};
use crate::{gemini, opencode};

/// The maximum number of sessions that are examined for each agent.
pub const MAX_CANDIDATES: usize = 20_000;
/// The maximum depth of session directories: Codex sorts by year, month and day.
const MAX_DEPTH: usize = 4;
/// The folder in which Claude Code keeps the logs of sub-agents.
const SUB_AGENTS: &str = "subagents";
/// The number of bytes of a log in which its working directory is searched, and the key of it.
const FIRST: u64 = 64 * 1024;
const CWD: &[u8] = b"\"cwd\":";

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
    /// The working directory, if a database contains it.
    pub(crate) directory: Option<String>,
}

impl Candidate {
    /// Returns the id by which a session can be named: its id in a database, or its file name.
    #[must_use]
    pub fn id(&self) -> String {
        self.session.clone().unwrap_or_else(|| stem(&self.path))
    }

    /// Returns the working directory of the agent, as the beginning of the log names it. Reads no more of it.
    #[must_use]
    pub fn directory(&self) -> Option<String> {
        match self.agent {
            Agent::Opencode => self.directory.clone(),
            Agent::Gemini => gemini::directory_of(self.path.ancestors().nth(2)?),
            _ => {
                let input = unpack(BufReader::new(File::open(&self.path).ok()?)).ok()?;
                let mut head = Vec::new();
                input.take(FIRST).read_to_end(&mut head).ok()?;
                let at = memmem::find(&head, CWD)?;
                let value = head.get(at + CWD.len()..)?;
                let mut values = serde_json::Deserializer::from_slice(value).into_iter();
                values.next()?.ok()
            }
        }
    }
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

/// Returns the session directories of an agent, even if they do not exist. A relative one is below the current folder.
#[must_use]
pub fn folders(agent: Agent, variable: &dyn Fn(&str) -> Option<PathBuf>) -> Vec<PathBuf> {
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    let folders = agent.facts().folders.iter().filter_map(|folder| {
        let base = variable(&folder.variable).or_else(|| {
            let home = home.as_ref()?;
            Some(home.join(folder.home.as_ref()?))
        });
        let path = base?.join(&folder.rest);
        let path = std::path::absolute(&path).unwrap_or(path);
        Some(path.components().collect())
    });
    folders.collect()
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
    // Codex resumes no archived session.
    let is_live = |folder: &&PathBuf| !folder.ends_with("archived_sessions");
    let mut live = folders.iter().filter(is_live);
    let is_inside = live.any(|folder| log.path.starts_with(folder));
    let is_at_home = log
        .directory
        .as_ref()
        .is_none_or(|own| Path::new(own) == directory);
    let (Some(folder), false) = (folders.first(), is_inside && is_at_home) else {
        return copy.to_owned();
    };
    let name = copy.file_name().unwrap_or_default();
    let directory = directory.to_string_lossy();
    let chats = text(&log.metadata, "/projectHash");
    let project: PathBuf = match (log.agent, chats) {
        (Agent::ClaudeCode, _) => {
            let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            directory.chars().map(letter).collect::<String>().into()
        }
        (Agent::Codex, _) => {
            // The name begins with the day: rollout-2026-11-01T10-00-00-….
            let day = name.to_string_lossy();
            day.split(['-', 'T']).skip(1).take(3).collect()
        }
        (Agent::Pi, _) => {
            let path = directory.trim_start_matches('/');
            format!("--{}--", path.replace(['/', '\\', ':'], "-")).into()
        }
        (Agent::Gemini, chats) => {
            let projects = fs::read_dir(folder).into_iter().flatten().flatten();
            let mut projects = projects.map(|project| project.path());
            let own = projects.find(|project| {
                let root = gemini::directory_of(project);
                root.is_some_and(|root| *root == directory)
            });
            match own.or(chats.map(PathBuf::from)) {
                Some(project) => project.join("chats"),
                None => return copy.to_owned(),
            }
        }
        _ => return copy.to_owned(),
    };
    folder.join(project).join(name)
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
        let (path, name) = (entry.path(), entry.file_name());
        if metadata.is_dir() {
            if depth > 0 && agent != Agent::Opencode && name != SUB_AGENTS {
                collect(agent, &path, depth - 1, found);
            }
            continue;
        }
        // Reading a pipe would wait for its writer.
        if !is_session(agent, &name.to_string_lossy()) || !path.is_file() {
            continue;
        }
        let sessions = match agent {
            Agent::Opencode => opencode::sessions(&path),
            _ => vec![Candidate {
                agent,
                path,
                session: None,
                modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                directory: None,
            }],
        };
        found.extend(sessions);
    }
}

/// Checks whether the name of a file is that of a session of the user's, not of a sub-agent's.
fn is_session(agent: Agent, name: &str) -> bool {
    let plain = name.strip_suffix(".gz").or(name.strip_suffix(".zst"));
    let plain = plain.unwrap_or(name);
    let mut files = agent.facts().files.iter();
    let fits = |(begin, end): &(String, String)| plain.starts_with(begin) && plain.ends_with(end);
    files.any(fits) && !name.starts_with("agent-")
}
