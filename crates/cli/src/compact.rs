//! `plimsoll compact`: a chat in, the same chat within a budget out. No model, no network, and the
//! same bytes every time.

use std::collections::HashSet;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use plimsoll::config::AgentConfig;
use plimsoll::wire::openai_chat::Slot;
use plimsoll::{
    Author, Calibration, ContextStrategy, Edit, Line, Message, Plan, Policy, Ppm, Seq,
    SessionPruneConfig, SummaryConfig, TokenCounter, Tokens, Trigger,
};

use crate::chat_file::{self, ChatFile};
use crate::config;
use crate::exit::{DONE, FAILED, Stop};
use crate::explain::Explained;
use crate::input;
use crate::out::out;
use crate::settings::Sources;

const EXAMPLES: &str = "\
Examples:
  plimsoll compact --budget 8000 < chat.json > smaller.json
  jq -c . chats/*.json | plimsoll compact --lines --budget 8000 > smaller.jsonl
  echo '{\"budget_tokens\": 500, \"messages\": [...]}' | plimsoll compact
  plimsoll compact --budget 8000 --explain < chat.json > smaller.json

The input is {\"messages\": [...]} or a bare array, in OpenAI's shape. Its shape, other keys and
every message that is not edited come back byte for byte. `tools` beside the messages count.
A damaged chat is repaired first, and each repair is said on stderr (see `plimsoll repair`).";

/// The arguments of `plimsoll compact`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompactArgs {
    /// The chat [default: standard input]
    pub(crate) file: Option<PathBuf>,
    /// What the chat may weigh; `budget_tokens` beside the messages goes before it
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
    /// What gives way: extract (what leaves is summed up, word for word, most important first; no
    /// model is asked), evict, sliding_window or unlimited (only repairs)
    #[arg(long, default_value = "extract", value_name = "NAME")]
    pub(crate) policy: String,
    /// Compact as a configuration says (see `plimsoll config`): only a chat above its threshold, down
    /// to its target; --budget is then a context that is smaller than the configuration's
    #[arg(long, value_name = "FILE", conflicts_with = "policy")]
    pub(crate) config: Option<PathBuf>,
    /// Say on stderr where the thresholds are and what each stage did
    #[arg(long)]
    pub(crate) explain: bool,
    /// With --explain: say it as JSON
    #[arg(long, requires = "explain")]
    pub(crate) json: bool,
    /// What counts: o200k, cl100k, estimate or chars4
    #[arg(long, default_value = "o200k", value_name = "NAME")]
    pub(crate) counter: String,
    /// One chat a line in, one a line out; a failing line answers {"error": …} and the rest goes on
    #[arg(long)]
    pub(crate) lines: bool,
    /// Say nothing on stderr
    #[arg(long, short, conflicts_with = "explain")]
    pub(crate) quiet: bool,
}

/// What one chat became.
struct Compacted {
    json: String,
    notes: Vec<String>,
    explained: Option<Explained>,
}

/// How chats are compacted.
struct How<'a> {
    args: &'a CompactArgs,
    counter: Arc<dyn TokenCounter>,
    config: Option<AgentConfig>,
}

/// Runs the filter.
pub(crate) fn run(args: &CompactArgs) -> Result<u8, Stop> {
    let how = How {
        args,
        counter: chat_file::counter(&args.counter)?,
        config: args.config.as_deref().map(configured).transpose()?,
    };
    if strategy(&args.policy)?.name() == "summarize" && !args.quiet {
        crate::say(
            "summarize is extract here: no model is asked, what was said stands word for word",
        );
    }
    let input = input::open(args.file.as_deref())?;
    if args.lines {
        return lines(&how, input);
    }
    let text = input::whole(input)?;
    let compacted = compact(&text, &how)?;
    for note in compacted.notes {
        crate::say(&note);
    }
    if let Some(explained) = compacted.explained {
        crate::note(&match args.json {
            true => explained.as_json().to_string(),
            false => explained.as_text(),
        });
    }
    out!("{}", compacted.json);
    Ok(DONE)
}

/// One request a line; a line that fails answers with its error, and the rest goes on.
fn lines(how: &How<'_>, mut input: Box<dyn BufRead>) -> Result<u8, Stop> {
    let args = how.args;
    let mut code = DONE;
    let mut number = 0_u64;
    while let Some(line) = input::line(&mut input) {
        number += 1;
        let compacted = line.and_then(|line| compact(&line, how));
        match compacted {
            Ok(compacted) => {
                for note in compacted.notes.iter().filter(|_| !args.quiet) {
                    crate::say(&format!("line {number}: {note}"));
                }
                if let Some(explained) = compacted.explained {
                    crate::note(&explained_line(&explained, args, number));
                }
                out!("{}", compacted.json);
            }
            Err(stop) => {
                code = FAILED;
                out!("{}", serde_json::json!({ "error": stop.text }));
            }
        }
    }
    Ok(code)
}

/// What is said of one line of many.
fn explained_line(explained: &Explained, args: &CompactArgs, number: u64) -> String {
    if args.json {
        let mut json = explained.as_json();
        if let Some(object) = json.as_object_mut() {
            object.insert("line".to_owned(), number.into());
        }
        return json.to_string();
    }
    format!("line {number}: {}", explained.as_text())
}

fn compact(text: &str, how: &How<'_>) -> Result<Compacted, Stop> {
    let args = how.args;
    let mended = chat_file::mended(text)?;
    let mut file = chat_file::read(&mended.request, &how.counter)?;
    let mut notes: Vec<String> = mended
        .repairs
        .iter()
        .map(|repair| format!("repaired: {repair}"))
        .collect();
    // The other keys are the caller's, and go back as they came.
    let left = mended.faults.iter();
    let left = left.filter(|fault| fault.place.starts_with("messages"));
    notes.extend(left.map(|fault| format!("left: {fault}")));
    let before = file.overhead + file.transcript.tokens();
    let (mut plan, mut explained) = (None, None);
    if let Some((policy, line)) = how.policy(&file)? {
        let policy = policy.for_filter();
        let budget = line
            .budget(file.overhead, Calibration::default())
            .map_err(Stop::cannot_fit)?;
        explained = args
            .explain
            .then(|| Explained::new(&policy, &file.transcript, budget));
        plan = policy
            .plan(&file.transcript, &budget, Trigger::Asked)
            .map_err(Stop::cannot_fit)?;
        if let Some(plan) = &plan {
            file.transcript.apply(plan).map_err(Stop::failed)?;
            let after = file.overhead + file.transcript.tokens();
            notes.push(format!(
                "{before} tokens became {after} ({}); {} of {} messages are left",
                plan.stages.join(", "),
                file.transcript.items().len(),
                file.said,
            ));
        }
    }
    // What was not edited comes back with its very bytes, the spaces between them included.
    let json = match &plan {
        None => mended.request.trim().to_owned(),
        Some(plan) => write(&file, plan)?,
    };
    if args.quiet {
        notes.clear();
    }
    Ok(Compacted {
        json,
        notes,
        explained,
    })
}

/// Writes the chat back: what nobody touched with its very bytes.
fn write(file: &ChatFile<'_>, plan: &Plan) -> Result<String, Stop> {
    let shrunk = plan.edits.iter().filter_map(|edit| match edit {
        Edit::Shrink { seq, .. } => Some(*seq),
        Edit::Drop { .. } | Edit::Summarize { .. } => None,
    });
    let shrunk: HashSet<Seq> = shrunk.collect();
    let summaries = plan.edits.iter().filter_map(|edit| match edit {
        Edit::Summarize { covers, .. } => covers.first().map(|range| range.first),
        _ => None,
    });
    let summaries: HashSet<Seq> = summaries.collect();
    let slots = file.transcript.items().iter().map(|item| {
        let origin = usize::try_from(item.seq.0)
            .ok()
            .filter(|seq| !summaries.contains(&item.seq) && *seq < file.said);
        match origin {
            Some(at) if shrunk.contains(&item.seq) => Slot::Edited(at, &item.message),
            Some(at) => Slot::Original(at),
            None => Slot::New(&item.message),
        }
    });
    file.chat.write(slots).map_err(Stop::failed)
}

impl How<'_> {
    /// What is asked for a plan, and under which line; `None` where nothing is to give way.
    fn policy(&self, file: &ChatFile<'_>) -> Result<Option<(Policy, Line)>, Stop> {
        let asked = budget(file, self.args)?;
        if let Some(config) = &self.config {
            return config::filter(config, system(file), asked).map(Some);
        }
        let strategy = strategy(&self.args.policy)?;
        let policy = strategy.policy(SessionPruneConfig::default(), filter_summary());
        if policy.stages().is_empty() {
            return Ok(None);
        }
        let asked = asked.ok_or_else(|| {
            Stop::usage("no budget: give --budget TOKENS, or `budget_tokens` beside `messages`")
        })?;
        Ok(Some((policy, Line::exactly(asked))))
    }
}

/// A configuration that says how large a context may be.
fn configured(path: &Path) -> Result<AgentConfig, Stop> {
    let sources = Sources {
        config: Some(path.to_owned()),
        ..Sources::default()
    };
    let resolved = sources.resolve()?;
    for note in &resolved.notes {
        crate::say(note);
    }
    Ok(resolved.agent)
}

/// What the system prompt of a chat weighs.
fn system(file: &ChatFile<'_>) -> Tokens {
    let items = file.transcript.items().iter();
    items
        .take_while(|item| matches!(*item.message, Message::System { .. }))
        .map(|item| item.tokens)
        .sum()
}

/// `budget_tokens` beside the messages goes before `--budget`.
fn budget(file: &ChatFile<'_>, args: &CompactArgs) -> Result<Option<Tokens>, Stop> {
    let beside = file.chat.key("budget_tokens").map(|raw| {
        serde_json::from_str::<u64>(raw).map_err(|_| {
            Stop::failed(format!(
                "budget_tokens: expected a whole number of tokens, got {raw}"
            ))
        })
    });
    let budget = beside.transpose()?.or(args.budget);
    if budget == Some(0) {
        return Err(Stop::usage(
            "the budget is 0 tokens; give what the chat may weigh",
        ));
    }
    Ok(budget.map(Tokens))
}

/// A filter is given a size to fill: half of it may tell what the rest of the chat was.
fn filter_summary() -> SummaryConfig {
    SummaryConfig {
        max_summary_tokens: Tokens::MAX,
        share: Ppm(500_000),
        soft_mark: None,
        author: Author::Extract,
    }
}

fn strategy(name: &str) -> Result<ContextStrategy, Stop> {
    ContextStrategy::named(name, None).ok_or_else(|| {
        let names = ContextStrategy::NAMES.join(", ");
        Stop::usage(format!("there is no policy `{name}`; there is: {names}"))
    })
}
