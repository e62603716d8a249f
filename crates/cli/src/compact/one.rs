//! One chat within its budget, and how all of them are asked for. What is mended, cut and written
//! back is `wire`'s work.

use std::path::Path;
use std::sync::Arc;

use plimsoll::config::AgentConfig;
use plimsoll::wire::body::{Cut, CutError};
use plimsoll::wire::canonical::{Mended, Target};
use plimsoll::{
    Author, Calibration, ContextStrategy, Line, Message, Policy, Ppm, SummaryConfig, TokenCounter,
    Tokens,
};

use super::CompactArgs;
use crate::chat_file::{self, ChatFile};
use crate::exit::Stop;
use crate::explain::Explained;
use crate::screen::counted;
use crate::settings::Sources;
use crate::{config, repair};

/// What one chat became.
pub(super) struct Compacted {
    pub(super) json: String,
    pub(super) notes: Vec<String>,
    pub(super) explained: Option<Explained>,
}

/// How chats are compacted.
pub(super) struct How<'a> {
    args: &'a CompactArgs,
    counter: Arc<dyn TokenCounter>,
    config: Option<AgentConfig>,
}

impl<'a> How<'a> {
    pub(super) fn new(args: &'a CompactArgs) -> Result<Self, Stop> {
        Ok(Self {
            args,
            counter: chat_file::counter(&args.counter)?,
            config: args.config.as_deref().map(configured).transpose()?,
        })
    }

    /// Mends a chat and brings it within its budget.
    pub(super) fn compact(&self, text: &str) -> Result<Compacted, Stop> {
        let args = self.args;
        let target = repair::target(args.model.as_deref(), args.protocol.as_deref(), text)?;
        let body = chat_file::parse(text, &target)?;
        let mended = chat_file::mended(&body, text, &target)?;
        let body = match mended.repairs.is_empty() {
            true => body,
            false => chat_file::parse(&mended.request, &target)?,
        };
        let file = chat_file::weighed(body, &self.counter);
        let mut notes = found(&mended, &target);
        let mut explained = None;
        let mut json = None;
        if let Some((policy, line)) = self.policy(&file)? {
            let policy = policy.for_filter();
            let budget = line
                .budget(
                    file.overhead,
                    file.view.instructions(),
                    Calibration::default(),
                )
                .map_err(Stop::cannot_fit)?;
            let cut = file.body.cut(&file.view, &policy, &budget);
            let cut = cut.map_err(|error| match error {
                CutError::CannotFit(error) => Stop::cannot_fit(error),
                error => Stop::failed(error),
            })?;
            explained = args.explain.then(|| {
                let planned = cut.as_ref().map_or(&file.view, |cut| &cut.planned);
                Explained::new(&policy, planned, budget)
            });
            if let Some(cut) = cut {
                notes.extend(done(&file, &cut));
                json = Some(cut.text + "\n");
            }
        }
        if args.quiet {
            notes.clear();
        }
        Ok(Compacted {
            // A chat with nothing to do comes back byte for byte, the white space around it included.
            json: json.unwrap_or(mended.request),
            notes,
            explained,
        })
    }

    /// What is asked for a plan, and under which line; `None` where nothing is to give way.
    fn policy(&self, file: &ChatFile<'_>) -> Result<Option<(Policy, Line)>, Stop> {
        let asked = budget(file, self.args)?;
        if let Some(config) = &self.config {
            return config::filter(config, system(file), asked).map(Some);
        }
        let strategy = strategy(&self.args.policy)?;
        let policy = strategy.filter_policy(filter_summary());
        if policy.stages().is_empty() {
            return Ok(None);
        }
        let asked = asked.ok_or_else(|| {
            Stop::usage("no budget: give --budget TOKENS, or `budget_tokens` beside the messages")
        })?;
        Ok(Some((policy, Line::exactly(asked))))
    }
}

/// The strategy of this name.
pub(super) fn strategy(name: &str) -> Result<ContextStrategy, Stop> {
    ContextStrategy::named(name, None).ok_or_else(|| {
        let names = ContextStrategy::NAMES.join(", ");
        Stop::usage(format!("there is no policy `{name}`; there is: {names}"))
    })
}

/// What was wrong with a chat before it was cut, and what still is with its messages. The other keys
/// are the caller's, and go back as they came.
fn found(mended: &Mended, target: &Target) -> Vec<String> {
    let repaired = mended.repairs.iter();
    let left = mended.faults.iter();
    let left = left.filter(|fault| fault.place.starts_with(target.list()));
    repaired
        .map(|repair| format!("repaired: {repair}"))
        .chain(left.map(|fault| format!("left: {fault}")))
        .collect()
}

/// What was done to it.
fn done(file: &ChatFile<'_>, cut: &Cut) -> Vec<String> {
    let mut notes = Vec::new();
    let stages = cut.plan.as_ref().map(|plan| plan.stages.join(", "));
    let stages = stages.map_or_else(String::new, |stages| format!(" ({stages})"));
    notes.push(format!(
        "{} became {}{stages}; {} of {} left",
        counted((file.overhead + file.view.tokens()).0, "token"),
        file.overhead + cut.tokens,
        cut.left,
        counted(file.view.items().len(), "message"),
    ));
    if !cut.unthinking.is_empty() {
        let count = cut.unthinking.len();
        notes.push(format!(
            "left out the thinking of {}: it is bound to what is not there any more as it was (AM10)",
            counted(count, "message")
        ));
    }
    let repairs = cut.repairs.iter();
    notes.extend(repairs.map(|repair| format!("mended after the cut: {repair}")));
    notes
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
    let items = file.view.items().iter();
    items
        .take_while(|item| matches!(*item.message, Message::System { .. }))
        .map(|item| item.tokens)
        .sum()
}

/// `budget_tokens` beside the messages goes before `--budget`.
fn budget(file: &ChatFile<'_>, args: &CompactArgs) -> Result<Option<Tokens>, Stop> {
    let beside = file.body.key("budget_tokens").map(|raw| {
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
