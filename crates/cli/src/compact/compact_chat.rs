//! Compacts one chat to its budget. The `foreign` crate repairs, cuts and writes it.

use std::sync::Arc;

use plimsoll::Tokens;
use plimsoll::context::Transcript;
use plimsoll::foreign::{Body, BodyCut, CutError, Reasoning, Repair, Unit, repair};
use plimsoll::tokens::TokenCounter;

use super::CompactArgs;
use super::filter;
use crate::chat_file;
use crate::error::CliError;
use crate::input::InputChat;
use crate::terminal::text::counted;

/// A compacted chat.
pub(super) struct CompactedChat {
    pub(super) json: String,
    notes: Vec<String>,
}

impl CompactedChat {
    /// Prints the notes to standard error.
    pub(super) fn report(&self, prefix: &str) {
        for note in &self.notes {
            say!("{prefix}{note}");
        }
    }
}

/// Repairs a chat and compacts it to its budget.
pub(super) fn compact(
    args: &CompactArgs,
    counter: &Arc<dyn TokenCounter>,
    mut input: InputChat,
) -> Result<CompactedChat, CliError> {
    let strategy = filter::named(&args.policy)?;
    let (model, protocol) = (args.model.as_deref(), args.protocol.as_deref());
    let before = std::mem::take(&mut input.repairs);
    let (mut chat, target) = chat_file::read(&mut input, model, protocol)?;
    // Without a message there is nothing to repair.
    let repairs = match chat.units.iter().all(Unit::is_beside) {
        true => Vec::new(),
        false => repair(&mut chat, &target, Reasoning::Keep),
    };
    let body = Body::of(chat, &target).map_err(chat_file::unread)?;
    let repairs = before.iter().chain(&repairs);
    let repairs = repairs.map(|repair| format!("repaired: {repair}"));
    let mut notes: Vec<String> = repairs.collect();
    let view = body.transcript(counter);
    let overhead = body.overhead(counter.as_ref());
    let (policy, limits) = filter::within(strategy, budget(&body, args)?);
    let cut = body.cut(&view, &policy, &limits);
    let cut = cut.map_err(|error| match error {
        CutError::CannotFit(error) => CliError::cannot_fit(error),
        error => CliError::failed(error),
    })?;
    let chat = match &cut {
        Some(cut) => {
            notes.extend(done(&view, overhead, cut));
            &cut.chat
        }
        None => &body.chat,
    };
    if args.quiet {
        notes.clear();
    }
    Ok(CompactedChat {
        json: chat_file::ended(chat.write(), !before.is_empty()),
        notes,
    })
}

/// Describes the result of a compaction.
fn done(view: &Transcript, overhead: Tokens, cut: &BodyCut<'_>) -> Vec<String> {
    let mut notes = vec![format!(
        "{} became {} ({}); {} of {} left",
        counted((overhead + view.tokens()).0, "token"),
        overhead + cut.tokens,
        cut.plan.stages.join(", "),
        cut.left,
        counted(view.items().len(), "message"),
    )];
    let is_thinking = |repair: &&Repair| repair.fix == "thinking";
    let (thinking, others): (Vec<_>, Vec<_>) = cut.repairs.iter().partition(is_thinking);
    if !thinking.is_empty() {
        notes.push(format!(
            "removed the thinking of {}: it is bound to messages that were removed or changed \
             (AM10)",
            counted(thinking.len(), "message")
        ));
    }
    let others = others.into_iter();
    notes.extend(others.map(|repair| format!("repaired after compaction: {repair}")));
    notes
}

/// Returns the budget: `budget_tokens` beside the messages overrides `--budget`.
fn budget(body: &Body<'_>, args: &CompactArgs) -> Result<Tokens, CliError> {
    let beside = body.chat.key("budget_tokens").map(|raw| {
        serde_json::from_str::<u64>(raw).map_err(|_| {
            CliError::failed(format!(
                "budget_tokens: expected a whole number of tokens, got {raw}"
            ))
        })
    });
    match beside.transpose()?.or(args.budget) {
        Some(0) => Err(CliError::usage(
            "the budget is 0 tokens; give the maximum number of tokens",
        )),
        Some(budget) => Ok(Tokens(budget)),
        None => Err(CliError::usage(
            "no budget: give --budget TOKENS, or `budget_tokens` beside the messages",
        )),
    }
}
