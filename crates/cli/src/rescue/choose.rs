//! Chooses the session to rescue, and lists the sessions.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use plimsoll::foreign::Reasoning;
use plimsoll::logs::{self, Agent, Candidate, SessionLog};
use serde::Serialize;

use super::RescueArgs;
use super::diagnosis::Diagnosis;
use crate::error::{CliError, DONE};
use crate::listing::{self, minute};
use crate::terminal::text::counted;
use crate::{ask, paths, stdout};

/// Number of the newest sessions that are listed, and among which one is chosen.
const LISTED: usize = 20;
/// Number of the newest sessions among which those of the current folder are searched.
const SEARCHED: usize = 2_000;

/// A session that was found.
#[derive(Debug, Serialize)]
struct FoundSession {
    agent: &'static str,
    id: String,
    path: PathBuf,
    /// The time of the last change, in seconds since 1970.
    modified: u64,
    /// The title. That of a session that cannot be read is the error.
    title: String,
    directory: Option<String>,
    tokens: Option<u64>,
    /// Its faults.
    wrong: Vec<String>,
    is_copy: bool,
    #[serde(skip)]
    candidate: Candidate,
}

impl FoundSession {
    fn of(candidate: Candidate) -> Self {
        let modified = candidate.modified.duration_since(SystemTime::UNIX_EPOCH);
        let log = SessionLog::read(&candidate.path, candidate.session.as_deref());
        let log = log.map(|log| Diagnosis::of(log, Reasoning::Keep).0);
        let read = log.as_ref().ok();
        Self {
            agent: candidate.agent.name(),
            id: candidate.id(),
            path: candidate.path.clone(),
            modified: modified.unwrap_or_default().as_secs(),
            tokens: read.and_then(|read| read.used),
            wrong: read.map(Diagnosis::wrong).unwrap_or_default(),
            is_copy: read.is_some_and(|read| read.log.is_copy()),
            directory: read.and_then(|read| read.log.directory.clone()),
            title: match log {
                Ok(read) => read.log.title.unwrap_or_default(),
                Err(error) => error.to_string(),
            },
            candidate,
        }
    }

    /// Describes the session on a few lines.
    fn lines(&self) -> Vec<String> {
        let agent = self.candidate.agent.title();
        let mut about = format!("  {agent}, {}", age(self.modified));
        if let Some(tokens) = self.tokens {
            about.push_str(&format!(", {}", counted(tokens, "token")));
        }
        let mut lines = vec![self.id.clone(), about, format!("  {}", self.title)];
        lines.extend(self.directory.iter().map(|folder| format!("  in {folder}")));
        lines.extend(self.wrong.iter().map(|wrong| format!("  {wrong}")));
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
    let sessions = found.into_iter().take(LISTED).map(FoundSession::of);
    if args.json {
        listing::json_lines(sessions)?;
        return Ok(DONE);
    }
    for line in sessions.flat_map(|session| session.lines()) {
        stdout::prose(&line)?;
    }
    if more > 0 {
        note!("and {}", counted(more, "older session"));
    }
    Ok(DONE)
}

/// Chooses the session to rescue among the newest of this folder, or of all folders if it has none: the one with
/// something wrong. If there are several, the user chooses at the terminal, and the newest is taken without one. Never
/// chooses a copy with nothing wrong. Reads it.
pub(super) async fn broken(from: Option<Agent>) -> Result<SessionLog, CliError> {
    let found = logs::find(&paths::variable, from);
    if found.is_empty() {
        return Err(none_found(from, "rescue"));
    }
    let here = std::env::current_dir().unwrap_or_default();
    let is_here = |one: &&Candidate| {
        let own = one.directory();
        own.is_some_and(|own| paths::is_same(Path::new(&own), &here))
    };
    let mut newest: Vec<&Candidate> = { found.iter().take(SEARCHED) }
        .filter(is_here)
        .take(LISTED)
        .collect();
    if newest.is_empty() {
        crate::note(
            "no session of this folder was found, so the newest of all folders are examined",
        );
        newest = found.iter().take(LISTED).collect();
    }
    let sessions = newest.into_iter().cloned().map(FoundSession::of);
    let mut sessions: Vec<FoundSession> = sessions.collect();
    let is_wrong = |session: &FoundSession| !session.wrong.is_empty();
    sessions.retain(|session| !session.is_copy || is_wrong(session));
    if sessions.iter().any(is_wrong) {
        sessions.retain(is_wrong);
    } else {
        // The newest one shows that nothing is wrong.
        sessions.truncate(1);
    }
    let count = sessions.len();
    if count > 1 && ask::can_ask() {
        for (number, session) in (1..).zip(&sessions) {
            note!("{number:>2}  {}", session.lines().join("\n    "));
        }
        let chosen = ask::number(sessions).await.ok_or_else(|| {
            CliError::usage("no session was chosen; `plimsoll rescue --list` lists them")
        })?;
        return read(&chosen.candidate);
    }
    if count > 1 {
        note!("the newest of {count} sessions with faults; `plimsoll rescue --list` lists them");
    }
    match sessions.first() {
        Some(newest) => read(&newest.candidate),
        None => Err(CliError::failed(
            "there are only copies that Plimsoll wrote, and nothing is wrong with them; to rescue one \
             again, name it: `plimsoll rescue --list` lists them",
        )),
    }
}

/// Reads the newest session, to import it.
pub(crate) fn newest(from: Option<Agent>) -> Result<SessionLog, CliError> {
    let found = logs::find(&paths::variable, from);
    let newest = found.first();
    read(newest.ok_or_else(|| none_found(from, "sessions import"))?)
}

/// Reads a session, which is named by its file or its id.
pub(super) fn named(path: &Path, from: Option<Agent>) -> Result<SessionLog, CliError> {
    if path.exists() || path.components().count() > 1 {
        // The command that resumes the copy runs in the folder of the session.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        return Ok(SessionLog::read(&path, None)?);
    }
    let id = path.to_string_lossy();
    let found = logs::find(&paths::variable, from).into_iter();
    let mut named = found.filter(|one| one.id().contains(id.as_ref()));
    match (named.next(), named.next()) {
        (Some(one), None) => read(&one),
        (Some(_), Some(_)) => Err(CliError::usage(format!(
            "`{id}` is part of several session names; give more of it, or the file"
        ))),
        _ => Err(CliError::usage(format!(
            "there is no file and no session `{id}`; `plimsoll rescue --list` lists the sessions"
        ))),
    }
}

fn read(one: &Candidate) -> Result<SessionLog, CliError> {
    Ok(SessionLog::read(&one.path, one.session.as_deref())?)
}

/// Describes when a session was last changed, for example "3 hours ago, 2026-11-21 13:02 UTC".
fn age(modified: u64) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let minutes = now.unwrap_or_default().as_secs().saturating_sub(modified) / 60;
    let age = match minutes {
        0..120 => counted(minutes, "minute"),
        120..2_880 => counted(minutes / 60, "hour"),
        _ => counted(minutes / 1_440, "day"),
    };
    format!("{age} ago, {} UTC", minute(modified))
}

/// Returns the error that there is no session, with the command that takes a file.
fn none_found(from: Option<Agent>, command: &str) -> CliError {
    let agents = from.map_or(Agent::RESUMABLE.to_vec(), |one| vec![one]);
    let folders = agents.iter().filter_map(|agent| {
        let folder: Option<PathBuf> = logs::folders(*agent, &paths::variable).into_iter().next();
        Some(folder?.display().to_string())
    });
    let folders: Vec<String> = folders.collect();
    let searched = match folders.is_empty() {
        true => "HOME is not set".to_owned(),
        false => format!("searched {}", folders.join(", ")),
    };
    let whose = from.map_or(
        "Claude Code, Codex, opencode, pi or Gemini CLI",
        Agent::title,
    );
    CliError::failed(format!(
        "no session of {whose} was found ({searched}); name a log file: plimsoll {command} FILE"
    ))
}
