//! `plimsoll rescue`: writes a repaired and compacted copy of another agent's session that cannot
//! continue. The same agent resumes the copy. The original is never changed.

mod diagnosis;
mod save;

use std::path::{Path, PathBuf};

use clap::Args;
use plimsoll::foreign::CutError;
use plimsoll::logs::{self, Agent, Candidate, Ids, SessionLog};
use serde_json::json;

use crate::compact::filter;
use crate::error::{CliError, DONE};
use crate::terminal::text::counted;
use crate::{chat_file, paths};

use diagnosis::ExaminedSession;

const EXAMPLES: &str = "\
Examples:
  plimsoll rescue                            # the newest session of any agent
  plimsoll rescue --from claude-code         # the newest session of Claude Code
  plimsoll rescue --list                     # which sessions there are
  plimsoll rescue ~/.codex/sessions/2026/11/25/rollout-….jsonl --dry-run
  plimsoll rescue 93db84f8-1b8c-499a-9692-1865cb6f9160 --budget 60000

The copy is written beside the original, under a new session id, and the command that resumes it \
is printed. Nothing is asked and nothing is sent anywhere. A session of opencode is written as a \
file for `opencode import`.

Without --budget, a session that is too long for its model is compacted to half of the window.";

/// Number of sessions that `--list` shows.
const LISTED: usize = 20;

/// The arguments of `plimsoll rescue`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RescueArgs {
    /// A session log, or the id of a session on this machine [default: the newest session]
    session: Option<PathBuf>,
    /// Only sessions of this agent: claude-code, codex, opencode, pi or gemini
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    from: Option<Agent>,
    /// List the sessions on this machine, the newest first
    #[arg(long, conflicts_with_all = ["session", "budget", "policy", "output", "dry_run"])]
    list: bool,
    /// Compact the session to this many tokens, as its provider counts them, such as 60000 or 60k
    #[arg(long, value_name = "TOKENS", value_parser = crate::args::some_tokens)]
    budget: Option<u64>,
    /// How to compact: extract (evicts messages and quotes their most important parts in a summary, without a model), evict, sliding_window, or unlimited (only repairs)
    #[arg(long, default_value = "extract", value_name = "NAME")]
    policy: String,
    /// Remove all thinking, for when the provider refuses a signature
    #[arg(long)]
    drop_thinking: bool,
    /// Write the copy to this file instead of beside the original
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print what is wrong and what would be done, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses the name of an agent.
pub(crate) fn agent(name: &str) -> Result<Agent, String> {
    Agent::from_name(name).ok_or_else(|| {
        let names = Agent::RESUMABLE.map(Agent::name).join(", ");
        format!("give one of: {names}")
    })
}

/// Runs the command.
pub(crate) fn run(args: &RescueArgs) -> Result<u8, CliError> {
    if args.list {
        return list(args);
    }
    let strategy = filter::named(&args.policy)?;
    let chosen = choose(args.session.as_deref(), args.from)?;
    let log =
        SessionLog::read(&chosen.path, chosen.session.as_deref()).map_err(CliError::failed)?;
    let counter = chat_file::counter("o200k")?;
    let mut patient = ExaminedSession::examine(&log, &counter, args.drop_thinking)?;
    let budget = patient.budget(args.budget);
    if !args.json {
        for line in patient.describe(&log) {
            out!("{line}");
        }
    }
    if let Some(budget) = budget {
        patient
            .cut(strategy, budget, &counter)
            .map_err(|error| match error {
                CutError::CannotFit(error) => CliError::cannot_fit(error),
                error => CliError::failed(error),
            })?;
    }
    let copy = if patient.is_well() || args.dry_run {
        None
    } else {
        Some(save::write(args, &log, &patient)?)
    };
    report(args, &log, &patient, copy.as_ref())
}

/// Prints the result, and how to continue.
fn report(
    args: &RescueArgs,
    log: &SessionLog,
    patient: &ExaminedSession,
    copy: Option<&save::SavedCopy>,
) -> Result<u8, CliError> {
    if args.json {
        let copy = copy.map(|copy| {
            json!({
                "id": copy.id, "path": copy.path, "directory": log.directory, "resume": copy.resume,
            })
        });
        let report = patient.as_json(log, copy);
        out!("{report}");
        return Ok(DONE);
    }
    if patient.is_well() {
        out!("Nothing is wrong with it, so no copy was written.");
        match args.budget {
            Some(budget) => out!("It fits {} already.", counted(budget, "token")),
            None => out!("To make it shorter all the same, give --budget TOKENS."),
        }
        return Ok(DONE);
    }
    for line in patient.done() {
        out!("{line}");
    }
    let Some(copy) = copy else {
        out!("Nothing was written (--dry-run).");
        return Ok(DONE);
    };
    out!("");
    out!("The repaired copy:");
    out!("  {}", copy.path.display());
    out!("Resume it with:");
    if let Some(place) = &copy.wrong_place {
        if let Some(folder) = place.parent().filter(|folder| !folder.exists()) {
            out!("  mkdir -p {}", shell(folder));
        }
        out!("  mv {} {}", shell(&copy.path), shell(place));
    }
    if let Some(directory) = &log.directory {
        out!("  cd {}", shell(Path::new(directory)));
    }
    out!("  {}", copy.resume);
    Ok(DONE)
}

fn shell(path: &Path) -> String {
    logs::shell_word(&path.to_string_lossy())
}

/// Lists the sessions on this machine.
fn list(args: &RescueArgs) -> Result<u8, CliError> {
    let found = logs::find(&paths::variable, args.from);
    if found.is_empty() {
        return Err(none_found(args.from));
    }
    let total = found.len();
    let now = std::time::SystemTime::now();
    for one in found.iter().take(LISTED) {
        let age = now.duration_since(one.modified).unwrap_or_default();
        let id = id_of(one);
        if args.json {
            let seconds = one
                .modified
                .duration_since(std::time::SystemTime::UNIX_EPOCH);
            let seconds = seconds.unwrap_or_default().as_secs();
            out!(
                "{}",
                json!({
                    "agent": one.agent.name(), "id": id, "path": one.path, "bytes": one.bytes,
                    "modified": seconds,
                })
            );
            continue;
        }
        let kilobytes = one.bytes.div_ceil(1_000);
        out!(
            "{:<11}  {:>9}  {kilobytes:>8} kB  {id}",
            one.agent.name(),
            ago(age)
        );
    }
    if !args.json && total > LISTED {
        let more = counted(total - LISTED, "older session");
        note!("and {more}");
    }
    Ok(DONE)
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

/// Finds the session to rescue: a file, a session id, or the newest session.
pub(crate) fn choose(session: Option<&Path>, from: Option<Agent>) -> Result<Candidate, CliError> {
    if let Some(path) = session.filter(|path| path.exists() || path.components().count() > 1) {
        return Ok(Candidate {
            agent: from.unwrap_or(Agent::ClaudeCode),
            // The command that resumes the copy runs in the folder of the session.
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            session: None,
            modified: std::time::SystemTime::UNIX_EPOCH,
            bytes: 0,
        });
    }
    let found = logs::find(&paths::variable, from);
    let Some(id) = session.map(Path::to_string_lossy) else {
        return found.into_iter().next().ok_or_else(|| none_found(from));
    };
    let mut named = found
        .into_iter()
        .filter(|one| id_of(one).contains(id.as_ref()));
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

fn none_found(from: Option<Agent>) -> CliError {
    let agents: Vec<Agent> = from.map_or(Agent::RESUMABLE.to_vec(), |one| vec![one]);
    let folders = agents.iter().flat_map(|agent| {
        let folders = logs::folders(*agent, &paths::variable);
        folders
            .into_iter()
            .take(1)
            .map(|folder| folder.display().to_string())
    });
    let folders: Vec<String> = folders.collect();
    let whose = from.map_or(
        "Claude Code, Codex, opencode, pi or Gemini CLI",
        Agent::title,
    );
    CliError::failed(format!(
        "no session of {whose} was found (searched {}); name a log file: plimsoll rescue FILE",
        folders.join(", ")
    ))
}

/// Creates ids that are unique across processes.
fn new_ids(log: &SessionLog) -> Ids {
    let now = std::time::SystemTime::now();
    let now = now.duration_since(std::time::SystemTime::UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let seed = format!("{now} {} {}", std::process::id(), log.path.display());
    Ids::new(seed.as_bytes())
}
