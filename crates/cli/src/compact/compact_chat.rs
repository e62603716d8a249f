//! Compacts one chat to its budget. The `foreign` crate repairs, cuts and writes it.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use plimsoll::config::AgentConfig;
use plimsoll::context::ViewLimits;
use plimsoll::foreign::{Body, BodyCut, CutError, Reasoning, Unit, repair};
use plimsoll::policy::Policy;
use plimsoll::tokens::{AtMost, Calibration, TokenCounter};
use plimsoll::{ContextStrategy, Tokens};

use super::CompactArgs;
use super::filter;
use crate::chat_file::{self, ChatFile};
use crate::config;
use crate::error::CliError;
use crate::explain::PolicyEffect;
use crate::input::InputChat;
use crate::repair as repair_command;
use crate::settings::Sources;
use crate::terminal::text::counted;

/// A compacted chat.
pub(super) struct CompactedChat<'t> {
    pub(super) json: Cow<'t, str>,
    pub(super) notes: Vec<String>,
    pub(super) explained: Option<PolicyEffect>,
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
        let parsed = chat_file::parse(&input.text)?;
        let target = repair_command::target(
            args.model.as_deref(),
            args.protocol.as_deref(),
            parsed.value(),
            input.target.as_ref(),
        )?;
        let mut chat = chat_file::chat(parsed, &target)?;
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
            let file = chat_file::weighed(body, &self.counter);
            let (policy, line) = self.policy(&file, asked)?;
            let cut = file.body.cut(&file.view, &policy, &line);
            let cut = cut.map_err(|error| match error {
                CutError::CannotFit(error) => CliError::cannot_fit(error),
                error => CliError::failed(error),
            })?;
            if args.explain {
                let instructions = file.view.instructions();
                let budget = line.budget(file.overhead, instructions, Calibration::default());
                let planned = cut.as_ref().map_or(&file.view, |cut| &cut.planned);
                let budget = budget.map_err(CliError::cannot_fit)?;
                explained = Some(PolicyEffect::new(&policy, planned, budget));
            }
            json = match cut {
                Some(cut) => {
                    notes.extend(done(&file, &cut));
                    Cow::Owned(cut.text)
                }
                None => {
                    notes.extend(self.excess(&file, asked));
                    file.body.chat.write()
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
    fn excess(&self, file: &ChatFile<'_>, asked: Option<Tokens>) -> Option<String> {
        let tokens = file.overhead + file.view.tokens();
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
        file: &ChatFile<'_>,
        asked: Option<Tokens>,
    ) -> Result<(Policy, ViewLimits), CliError> {
        if let Some(config) = &self.config {
            let (policy, line) = config::filter(config, file.view.instructions(), asked)?;
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
fn done(file: &ChatFile<'_>, cut: &BodyCut<'_>) -> Vec<String> {
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
    if cut.unthinking > 0 {
        notes.push(format!(
            "removed the thinking of {}: it is bound to messages that were removed or changed \
             (AM10)",
            counted(cut.unthinking, "message")
        ));
    }
    let repairs = cut.repairs.iter();
    notes.extend(repairs.map(|repair| format!("repaired after compaction: {repair}")));
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
