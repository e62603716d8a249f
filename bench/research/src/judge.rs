//! `cargo xtask judge`: measures how much of real sessions a summary without a model keeps,
//! compared with the agents' own summaries and a mechanical rule at the same budget.
//!
//! It judges the content of the texts, not how well an agent continues with them.

mod authors;
mod chats;
mod cuts;
mod lines;
mod measure;
mod outcomes;
mod planted;
mod rounds;
mod sessions;
mod summary;
mod through;
mod trust;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use plimsoll_context::{Bpe, Message, Tokens, extract};

use crate::error::Error;
use crate::recordings::DATA;

/// Sessions with fewer tokens than this are never compacted.
const LARGE: u64 = 20_000;

/// The options of `cargo xtask judge`.
#[derive(Debug, Args)]
pub(crate) struct JudgeOptions {
    /// Folder of sessions (`.jsonl`, `.jsonl.gz`); without it ../shared/data/normalized
    #[arg(long)]
    data: Option<PathBuf>,
    /// Write every text that was judged into this folder
    #[arg(long)]
    texts: Option<PathBuf>,
    /// Decides the wordings of the short chats; another number gives chats that nobody has seen
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Measure only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// What is kept where agents compacted, and at half and three quarters of each session
    Cuts,
    /// Whether a colleague can rely on the summary
    Trust,
    /// Whether failed calls, and only these, are reported as failed
    Failures,
    /// Short chats through `plimsoll compact`
    Chats,
    /// Recorded sessions through `plimsoll compact`, ten times in a row
    Rounds,
}

/// Judges the sessions of a folder.
pub(crate) fn run(root: &Path, options: &JudgeOptions) -> Result<(), Error> {
    let beside = root.join(DATA);
    let folder = options.data.as_deref().unwrap_or(&beside);
    let Some(sessions) = sessions::load(folder)? else {
        println!("skipped: there are no sessions at {}", folder.display());
        return Ok(());
    };
    let texts = options.texts.as_deref();
    let is_wanted = |part: &Part| options.part.is_empty() || options.part.contains(part);
    for part in Part::value_variants().iter().filter(|part| is_wanted(part)) {
        match part {
            Part::Cuts => cuts::print(&sessions, texts)?,
            Part::Trust => trust::print(&sessions, texts)?,
            Part::Failures => outcomes::print(&sessions)?,
            Part::Chats => chats::print(root, options.seed)?,
            Part::Rounds => rounds::print(root, &sessions)?,
        }
    }
    Ok(())
}

/// The judged rule.
fn ours(views: &[&Message], max: Tokens) -> String {
    extract(views, max, &Bpe::o200k()).unwrap_or_default()
}

/// Formats a share in percent.
fn percent(part: Option<f64>) -> String {
    part.map_or_else(|| "–".to_owned(), |part| format!("{:.0} %", 100.0 * part))
}
