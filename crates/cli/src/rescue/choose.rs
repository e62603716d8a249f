//! Chooses the session to rescue, and lists the sessions.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plimsoll::foreign::Reasoning;
use plimsoll::logs::{self, Agent, Candidate, LogError, SessionLog};
use serde_json::json;

use super::RescueArgs;
use super::diagnosis::Diagnosis;
use crate::error::{CliError, DONE};
use crate::terminal::text::counted;
use crate::{ask, paths, stdout};

/// Number of the newest sessions that are listed, and among which one is chosen.
const LISTED: usize = 20;

/// A session that was found, with its diagnosis if it can be read.
struct Listed {
    candidate: Candidate,
    read: Result<Diagnosis, LogError>,
}

impl Listed {
    fn of(candidate: Candidate) -> Self {
        let log = SessionLog::read(&candidate.path, candidate.session.as_deref());
        let read = log.map(|log| Diagnosis::of(log, Reasoning::Keep).0);
        Self { candidate, read }
    }

    /// Returns the title. That of a session that cannot be read is the error.
    fn title(&self) -> String {
        match &self.read {
            Ok(read) => read.log.title.clone().unwrap_or_default(),
            Err(error) => error.to_string(),
        }
    }

    fn directory(&self) -> Option<&str> {
        self.read.as_ref().ok()?.log.directory.as_deref()
    }

    fn tokens(&self) -> Option<u64> {
        self.read.as_ref().ok()?.used
    }

    fn is_copy(&self) -> bool {
        self.read.as_ref().is_ok_and(|read| read.log.is_copy())
    }

    /// Returns its faults, one on a line.
    fn wrong(&self) -> Vec<String> {
        self.read.as_ref().map_or(Vec::new(), Diagnosis::wrong)
    }

    /// Describes the session on a few lines.
    fn lines(&self) -> Vec<String> {
        let age = SystemTime::now()
            .duration_since(self.candidate.modified)
            .unwrap_or_default();
        let tokens = self
            .tokens()
            .map(|tokens| format!(", {}", counted(tokens, "token")));
        let mut lines = vec![
            id_of(&self.candidate),
            format!(
                "  {}, {}{}",
                self.candidate.agent.title(),
                ago(age),
                tokens.unwrap_or_default()
            ),
            format!("  {}", self.title()),
        ];
        lines.extend(
            self.directory()
                .map(|directory| format!("  in {directory}")),
        );
        lines.extend(self.wrong().iter().map(|wrong| format!("  {wrong}")));
        lines
    }
}

/// Lists the sessions on this machine.
pub(super) fn list(args: &RescueArgs) -> Result<u8, CliError> {
    let found = logs::find(&paths::variable, args.from);
    if found.is_empty() {
        return Err(none_found(args.from, "rescue"));
    }
    let more = found.len().saturating_sub(LISTED);
    for candidate in found.into_iter().take(LISTED) {
        let one = Listed::of(candidate);
        if !args.json {
            for line in one.lines() {
                stdout::prose(&line)?;
            }
            continue;
        }
        let modified = one
            .candidate
            .modified
            .duration_since(SystemTime::UNIX_EPOCH);
        out!(
            "{}",
            json!({
                "agent": one.candidate.agent.name(), "id": id_of(&one.candidate), "path": one.candidate.path,
                "bytes": one.candidate.bytes, "modified": modified.unwrap_or_default().as_secs(),
                "title": one.title(), "directory": one.directory(), "tokens": one.tokens(),
                "wrong": one.wrong(), "is_copy": one.is_copy(),
            })
        );
    }
    if !args.json && more > 0 {
        note!("and {}", counted(more, "older session"));
    }
    Ok(DONE)
}

/// Chooses the session to rescue among the newest ones: those of this folder, if there are any, and of these the one with
/// something wrong. Asks if there are several. Never chooses a copy with nothing wrong.
pub(super) async fn broken(from: Option<Agent>, can_ask: bool) -> Result<Candidate, CliError> {
    let found = logs::find(&paths::variable, from).into_iter().take(LISTED);
    let mut sessions: Vec<Listed> = found.map(Listed::of).collect();
    if sessions.is_empty() {
        return Err(none_found(from, "rescue"));
    }
    let is_wrong = |one: &Listed| !one.wrong().is_empty();
    sessions.retain(|one| !one.is_copy() || is_wrong(one));
    let here = std::env::current_dir().unwrap_or_default();
    let is_here = |one: &Listed| one.directory().is_some_and(|own| is_same(own, &here));
    if sessions.iter().any(is_here) {
        sessions.retain(is_here);
    }
    if sessions.iter().any(is_wrong) {
        sessions.retain(is_wrong);
    } else {
        // The newest one shows that nothing is wrong.
        sessions.truncate(1);
    }
    if sessions.len() < 2 {
        let only = sessions.pop().map(|one| one.candidate);
        return only.ok_or_else(|| {
            CliError::failed(
                "there are only copies that Plimsoll wrote, and nothing is wrong with them; to \
                 rescue one again, name it: `plimsoll rescue --list` lists them",
            )
        });
    }
    if !can_ask || !ask::can_ask() {
        let names: Vec<String> = sessions.iter().map(|one| id_of(&one.candidate)).collect();
        return Err(CliError::usage(format!(
            "name one of these sessions, which `plimsoll rescue --list` describes: {}",
            names.join(", ")
        )));
    }
    for (number, one) in (1..).zip(&sessions) {
        note!("{number}  {}", one.lines().join("\n "));
    }
    let answer = ask::line(&format!("Which session? 1 to {} [1]: ", sessions.len())).await;
    let number = match answer.trim() {
        "" => Some(1),
        answer => answer.parse::<usize>().ok(),
    };
    let chosen = number.and_then(|number| sessions.into_iter().nth(number.checked_sub(1)?));
    chosen
        .map(|one| one.candidate)
        .ok_or_else(|| CliError::usage("there is no session with this number"))
}

fn is_same(directory: &str, here: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(Path::new(directory)) == real(here)
}

/// Returns the newest session, to import it.
pub(crate) fn newest(from: Option<Agent>) -> Result<Candidate, CliError> {
    let found = logs::find(&paths::variable, from);
    let newest = found.into_iter().next();
    newest.ok_or_else(|| none_found(from, "sessions import"))
}

/// Finds a session by its file or its id.
pub(super) fn named(path: &Path, from: Option<Agent>) -> Result<Candidate, CliError> {
    if path.exists() || path.components().count() > 1 {
        return Ok(Candidate {
            agent: from.unwrap_or(Agent::ClaudeCode),
            // The command that resumes the copy runs in the folder of the session.
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            session: None,
            modified: SystemTime::UNIX_EPOCH,
            bytes: 0,
        });
    }
    let id = path.to_string_lossy();
    let found = logs::find(&paths::variable, from).into_iter();
    let mut named = found.filter(|one| id_of(one).contains(id.as_ref()));
    match (named.next(), named.next()) {
        (Some(one), None) => Ok(one),
        (Some(_), Some(_)) => Err(CliError::usage(format!(
            "`{id}` is part of several session names; give more of it, or the file"
        ))),
        _ => Err(CliError::usage(format!(
            "there is no file and no session `{id}`; `plimsoll rescue --list` lists the sessions"
        ))),
    }
}

/// Formats an age in its largest unit.
fn ago(age: std::time::Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        3_600..172_800 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

/// Returns the id by which a session can be named: its id in a database, or its file name.
fn id_of(one: &Candidate) -> String {
    let name = || {
        let name = one.path.file_stem().unwrap_or_default().to_string_lossy();
        name.trim_end_matches(".jsonl").to_owned()
    };
    one.session.clone().unwrap_or_else(name)
}

/// Returns the error that there is no session, with the command that takes a file.
fn none_found(from: Option<Agent>, command: &str) -> CliError {
    let agents = from.map_or(Agent::RESUMABLE.to_vec(), |one| vec![one]);
    let folders = agents.iter().filter_map(|agent| {
        let folder: Option<PathBuf> = logs::folders(*agent, &paths::variable).into_iter().next();
        Some(folder?.display().to_string())
    });
    let folders: Vec<String> = folders.collect();
    let whose = from.map_or(
        "Claude Code, Codex, opencode, pi or Gemini CLI",
        Agent::title,
    );
    CliError::failed(format!(
        "no session of {whose} was found (searched {}); name a log file: plimsoll {command} FILE",
        folders.join(", ")
    ))
}
