//! Compacts one chat to its budget. The `foreign` crate repairs, cuts and writes it.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use plimsoll::config::AgentConfig;
use plimsoll::context::{Transcript, ViewLimits};
use plimsoll::foreign::{Body, BodyCut, CutError, Reasoning, Repair, Unit, repair};
use plimsoll::policy::Policy;
use plimsoll::tokens::{AtMost, Calibration, TokenCounter};
use plimsoll::{ContextStrategy, Tokens};

use super::CompactArgs;
use super::filter;
use crate::chat_file;
use crate::config;
use crate::error::CliError;
use crate::explain;
use crate::input::InputChat;
use crate::settings::Sources;
use crate::terminal::text::counted;

/// A compacted chat.
pub(super) struct CompactedChat<'t> {
    pub(super) json: Cow<'t, str>,
    notes: Vec<String>,
    explained: Option<String>,
}

impl CompactedChat<'_> {
    /// Prints the notes and the explanation to standard error.
    pub(super) fn report(&self, prefix: &str) {
        for note in &self.notes {
            say!("{prefix}{note}");
        }
        if let Some(explained) = &self.explained {
            note!("{prefix}{explained}");
        }
    }
}

/// The settings with which chats are compacted.
pub(super) struct CompactSettings<'a> {
    args: &'a CompactArgs,
    counter: Arc<dyn TokenCounter>,
    strategy: ContextStrategy,
    config: Option<AgentConfig>,
}

impl<'a> CompactSettings<'a> {
    pub(super) fn new(args: &'a CompactArgs) -> Result<Self, CliError> {
        Ok(Self {
            args,
            strategy: filter::named(&args.policy)?,
            counter: chat_file::counter(&args.counter)?,
            config: args.config.as_deref().map(configured).transpose()?,
        })
    }

    /// Repairs a chat and compacts it to its budget.
    pub(super) fn compact<'t>(&self, input: &'t InputChat) -> Result<CompactedChat<'t>, CliError> {
        let args = self.args;
        let (model, protocol) = (args.model.as_deref(), args.protocol.as_deref());
        let (mut chat, target) = chat_file::read(input, model, protocol)?;
        // Without a message there is nothing to repair.
        let repairs = match chat.units.iter().all(Unit::is_beside) {
            true => Vec::new(),
            false => repair(&mut chat, &target, Reasoning::Keep),
        };
        let body = Body::of(chat, &target).map_err(chat_file::unread)?;
        let repairs = input.repairs.iter().chain(&repairs);
        let repairs = repairs.map(|repair| format!("repaired: {repair}"));
        let mut notes: Vec<String> = repairs.collect();
        let mut explained = None;
        let mut json;
        let asked = budget(&body, args)?;
        if self.is_left_as_it_is(&body, asked) {
            json = body.chat.write();
        } else {
            let view = body.transcript(&self.counter);
            let overhead = body.overhead(self.counter.as_ref());
            let (policy, line) = self.policy(&view, asked)?;
            let cut = body.cut(&view, &policy, &line);
            let cut = cut.map_err(|error| match error {
                CutError::CannotFit(error) => CliError::cannot_fit(error),
                error => CliError::failed(error),
            })?;
            if args.explain {
                let budget = line.budget(overhead, view.instructions(), Calibration::default());
                let budget = budget.map_err(CliError::cannot_fit)?;
                explained = Some(explain::effect(&policy, &view, &budget));
            }
            json = match cut {
                Some(cut) => {
                    notes.extend(done(&view, overhead, &cut));
                    Cow::Owned(cut.text)
                }
                None => {
                    notes.extend(self.excess(overhead + view.tokens(), asked));
                    body.chat.write()
                }
            };
        }
        let is_changed = matches!(json, Cow::Owned(_)) || !input.repairs.is_empty();
        if is_changed && !json.ends_with('\n') {
            json.to_mut().push('\n');
        }
        if args.quiet {
            notes.clear();
        }
        Ok(CompactedChat {
            // An unchanged chat is returned byte for byte, including white space around it.
            json,
            notes,
            explained,
        })
    }

    /// Returns a note if the policy removes nothing from a chat above the budget.
    fn excess(&self, tokens: Tokens, asked: Option<Tokens>) -> Option<String> {
        let asked = asked.filter(|asked| self.is_unlimited() && tokens > *asked)?;
        Some(format!(
            "{} exceed the budget of {asked}, because `unlimited` removes nothing",
            counted(tokens.0, "token")
        ))
    }

    fn is_unlimited(&self) -> bool {
        self.config.is_none() && self.strategy == (ContextStrategy::Unlimited {})
    }

    /// Returns `true` if it is certain without counting that there is nothing to do or to say: no
    /// budget for a policy that removes nothing, or even the upper bound of the tokens is within the
    /// budget.
    fn is_left_as_it_is(&self, body: &Body<'_>, asked: Option<Tokens>) -> bool {
        if self.config.is_some() {
            return false;
        }
        if self.is_unlimited() && asked.is_none() {
            return true;
        }
        let counter = AtMost(self.counter.as_ref());
        let messages = body.messages.iter();
        let at_most = |enough| {
            let messages: Tokens = messages.map(|message| counter.message(message)).sum();
            messages + body.overhead(&counter) <= enough
        };
        !self.args.explain && asked.is_some_and(at_most)
    }

    /// Returns the policy and its limit.
    fn policy(
        &self,
        view: &Transcript,
        asked: Option<Tokens>,
    ) -> Result<(Policy, ViewLimits), CliError> {
        if let Some(config) = &self.config {
            let (policy, line) = config::filter(config, view.instructions(), asked)?;
            return Ok((policy.for_filter(), line));
        }
        let within = filter::within(self.strategy, asked.ok_or_else(no_budget)?);
        Ok(within.unwrap_or_else(|| (Policy::unlimited(), ViewLimits::exactly(Tokens::MAX))))
    }
}

fn no_budget() -> CliError {
    CliError::usage("no budget: give --budget TOKENS, or `budget_tokens` beside the messages")
}

/// Describes the result of a compaction.
fn done(view: &Transcript, overhead: Tokens, cut: &BodyCut<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    notes.push(format!(
        "{} became {} ({}); {} of {} left",
        counted((overhead + view.tokens()).0, "token"),
        overhead + cut.tokens,
        cut.plan.stages.join(", "),
        cut.left,
        counted(view.items().len(), "message"),
    ));
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

/// Reads the configuration of `--config`.
fn configured(path: &Path) -> Result<AgentConfig, CliError> {
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

/// Returns the budget: `budget_tokens` beside the messages overrides `--budget`.
fn budget(body: &Body<'_>, args: &CompactArgs) -> Result<Option<Tokens>, CliError> {
    let beside = body.chat.key("budget_tokens").map(|raw| {
        serde_json::from_str::<u64>(raw).map_err(|_| {
            CliError::failed(format!(
                "budget_tokens: expected a whole number of tokens, got {raw}"
            ))
        })
    });
    let budget = beside.transpose()?.or(args.budget);
    if budget == Some(0) {
        return Err(CliError::usage(
            "the budget is 0 tokens; give the maximum number of tokens",
        ));
    }
    Ok(budget.map(Tokens))
}
