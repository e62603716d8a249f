//! `plimsoll rescue`: writes a repaired and compacted copy of another agent's session that cannot
//! continue. The same agent resumes the copy. The original is never changed.

mod choose;
mod diagnosis;
mod save;
mod treatment;

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use plimsoll::ContextStrategy;
use plimsoll::logs::{self, Agent};

use crate::chat_file;
use crate::compact::filter;
use crate::error::{CliError, DONE};
use crate::stdout;
use crate::terminal::text::counted;

pub(crate) use choose::newest;
use diagnosis::Diagnosis;
use treatment::Treatment;

/// The arguments of `plimsoll rescue`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../../help/rescue.txt").trim_ascii_end())]
pub(crate) struct RescueArgs {
    /// A session log, or the id of a session on this machine [default: the broken session of this folder, or else of any folder]
    session: Option<PathBuf>,
    /// Only sessions of this agent: claude-code, codex, opencode, pi or gemini
    #[arg(long, value_name = "AGENT", value_parser = agent)]
    from: Option<Agent>,
    /// List the newest sessions on this machine, and what is wrong with each
    #[arg(long, conflicts_with_all = ["session", "budget", "policy", "output", "dry_run"])]
    list: bool,
    /// Compact the session to this many tokens, as its provider counts them, such as 60000 or 60k
    #[arg(long, value_name = "TOKENS", value_parser = crate::args::some_tokens)]
    budget: Option<u64>,
    /// How to compact; extract evicts messages and quotes their most important parts in a summary, without a model, and unlimited only repairs
    #[arg(long, default_value = "extract", value_name = "NAME", value_parser = policies())]
    policy: String,
    /// Remove all thinking, for when the provider refuses a signature
    #[arg(long)]
    drop_thinking: bool,
    /// Write the copy to this file instead of the agent's folder
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print what is wrong and what would be done, but write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Returns a parser of the names of policies.
fn policies() -> PossibleValuesParser {
    let names = filter::names().into_iter();
    names.chain([PossibleValue::new("unlimited")]).into()
}

/// Parses the name of an agent.
pub(crate) fn agent(name: &str) -> Result<Agent, String> {
    let mut agents = Agent::RESUMABLE.into_iter();
    agents.find(|agent| agent.name() == name).ok_or_else(|| {
        let names = Agent::RESUMABLE.map(Agent::name).join(", ");
        format!("give one of: {names}")
    })
}

/// Runs the command.
pub(crate) async fn run(args: &RescueArgs) -> Result<u8, CliError> {
    if args.list {
        return choose::list(args);
    }
    let strategy = filter::named(&args.policy)?;
    let is_unlimited = strategy == (ContextStrategy::Unlimited {});
    if is_unlimited && args.budget.is_some() {
        return Err(CliError::usage(
            "`unlimited` removes nothing, so --budget has no effect; choose another policy, or leave it out",
        ));
    }
    let log = match &args.session {
        Some(name) => choose::named(name, args.from)?,
        None => choose::broken(args.from).await?,
    };
    let (diagnosis, chat) = Diagnosis::of(log, chat_file::reasoning(args.drop_thinking));
    let mut treatment = Treatment::begin(diagnosis, chat)?;
    if !args.json {
        let log = &treatment.diagnosis.log;
        let title = format!("{} session {}", log.agent.title(), log.id);
        stdout::prose(title.trim_end())?;
        out!("  {}", log.path.display());
        for line in treatment.describe() {
            stdout::prose(&line)?;
        }
    }
    if let Some(budget) = treatment.budget(args.budget).filter(|_| !is_unlimited) {
        treatment.compact(strategy, budget)?;
    }
    let copy = if treatment.is_well() || args.dry_run {
        None
    } else {
        Some(save::write(args, &treatment)?)
    };
    report(args, &treatment, copy.as_ref())
}

/// Prints the result, and how to continue.
fn report(
    args: &RescueArgs,
    treatment: &Treatment,
    copy: Option<&save::SavedCopy>,
) -> Result<u8, CliError> {
    if args.json {
        out!("{}", treatment.as_json(copy));
        return Ok(DONE);
    }
    if treatment.is_well() {
        let well = match treatment.diagnosis.log.last_error {
            Some(_) => {
                "Nothing in the session explains this, so no copy was written. Try again, or give --drop-thinking."
            }
            None => "Nothing is wrong with it, so no copy was written.",
        };
        stdout::prose(well)?;
        let more = match args.budget {
            Some(budget) => format!("It fits {} already.", counted(budget, "token")),
            None => "To make it shorter all the same, give --budget TOKENS.".to_owned(),
        };
        stdout::prose(&more)?;
        return Ok(DONE);
    }
    for line in treatment.done() {
        stdout::prose(&line)?;
    }
    let Some(copy) = copy else {
        out!("Nothing was written (--dry-run).");
        return Ok(DONE);
    };
    out!("");
    out!("The repaired copy:");
    out!("  {}", copy.path.display());
    if let Some(place) = &copy.place {
        out!("Its agent finds it only in this place, so copy it there first:");
        out!("  {}", place.display());
    }
    out!("Resume it with:");
    if let Some(directory) = &copy.directory {
        out!("  cd {}", logs::shell_word(&directory.to_string_lossy()));
    }
    out!("  {}", copy.resume);
    Ok(DONE)
}
