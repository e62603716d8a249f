//! The policies of `plimsoll compact`, and their options.

use std::sync::Arc;

use clap::Args;
use plimsoll::context::{SummaryConfig, ViewLimits};
use plimsoll::policy::{ClearToolUses, ClearTrigger, Policy, Trim, TrimRole, TrimStrategy};
use plimsoll::{ContextStrategy, Tokens};

use crate::error::CliError;

const CLEAR_TOOL_USES: &str = "clear-tool-uses";
const TRIM: &str = "trim";

/// Options that only some policies have.
#[derive(Debug, Default, Args)]
pub(crate) struct FilterOptions {
    /// clear-tool-uses: clear above this, in tokens or as tool_uses=N [default: 100k]
    #[arg(long, value_name = "TOKENS", value_parser = trigger)]
    trigger: Option<ClearTrigger>,
    /// clear-tool-uses: number of newest results to keep [default: 3]
    #[arg(long, value_name = "COUNT")]
    keep: Option<usize>,
    /// clear-tool-uses: minimum number of tokens to free; less is not cleared [default: 0]
    #[arg(long, value_name = "TOKENS", value_parser = crate::args::tokens)]
    clear_at_least: Option<u64>,
    /// clear-tool-uses: tools whose results and arguments are kept, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    exclude_tools: Option<Vec<String>>,
    /// clear-tool-uses: clear the arguments of cleared calls too
    #[arg(long)]
    clear_tool_inputs: bool,
    /// trim: which messages are kept, first or last [default: last]
    #[arg(long, value_name = "END", value_parser = end)]
    strategy: Option<TrimStrategy>,
    /// trim: the roles that may come first, separated by commas (user, assistant); with last only
    #[arg(long, value_name = "ROLES", value_delimiter = ',', value_parser = role)]
    start_on: Option<Vec<TrimRole>>,
    /// trim: the roles that may come last, separated by commas (user, assistant, tool)
    #[arg(long, value_name = "ROLES", value_delimiter = ',', value_parser = role)]
    end_on: Option<Vec<TrimRole>>,
    /// trim: keep system messages [default and only value: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    include_system: Option<bool>,
    /// trim: keep a part of the first message that does not fit whole
    #[arg(long)]
    allow_partial: bool,
}

/// A policy of `plimsoll compact`.
#[derive(Debug, Clone)]
pub(crate) enum Filter {
    /// A policy that agents have too.
    Strategy(ContextStrategy),
    /// Anthropic's context edit.
    ClearToolUses(ClearToolUses),
    /// LangChain's `trim_messages`.
    Trim(Trim),
}

impl Filter {
    /// Returns the policy with this name and these options.
    pub(super) fn new(name: &str, options: &FilterOptions) -> Result<Self, CliError> {
        let plain = name.replace('_', "-");
        options.check(&plain)?;
        match plain.as_str() {
            CLEAR_TOOL_USES => Ok(Self::ClearToolUses(options.clear_tool_uses())),
            TRIM => Ok(Self::Trim(options.trim()?)),
            _ => ContextStrategy::named(name, None)
                .map(Self::Strategy)
                .ok_or_else(|| {
                    let names = ContextStrategy::NAMES.join(", ");
                    CliError::usage(format!(
                        "there is no policy `{name}`; choose one of: {names}, {CLEAR_TOOL_USES}, \
                         {TRIM}"
                    ))
                }),
        }
    }

    /// Returns the policy with this name and default options, for `plimsoll rescue`.
    pub(crate) fn named(name: &str) -> Result<Self, CliError> {
        let filter = Self::new(name, &FilterOptions::default())?;
        match filter {
            Self::Trim(_) => Err(CliError::usage(
                "--policy trim is not available here, because it may remove the task; choose \
                 extract or evict",
            )),
            filter => Ok(filter),
        }
    }

    /// Returns `true` if the policy has its own limit and needs no budget.
    pub(crate) fn has_own_trigger(&self) -> bool {
        matches!(self, Self::ClearToolUses(_))
    }

    /// Returns the policy and its limit. Returns `None` if the filter removes nothing or is not
    /// implemented as a policy.
    pub(crate) fn within(&self, budget: Tokens) -> Option<(Policy, ViewLimits)> {
        match self {
            Self::Strategy(ContextStrategy::Unlimited {}) | Self::Trim(_) => None,
            Self::Strategy(strategy) => {
                let policy = strategy.filter_policy(filter_summary());
                Some((policy.for_filter().filled(), ViewLimits::exactly(budget)))
            }
            Self::ClearToolUses(clear) => {
                let policy = Policy::new(vec![Arc::new(clear.clone())]);
                Some((policy, ViewLimits::exactly(Tokens::MAX)))
            }
        }
    }

    /// Returns `true` for `summarize`, which asks no model here.
    pub(super) fn is_summarize(&self) -> bool {
        matches!(self, Self::Strategy(ContextStrategy::Summarize { .. }))
    }
}

impl FilterOptions {
    /// Rejects options that belong to another policy.
    pub(super) fn check(&self, policy: &str) -> Result<(), CliError> {
        let given = [
            (CLEAR_TOOL_USES, "--trigger", self.trigger.is_some()),
            (CLEAR_TOOL_USES, "--keep", self.keep.is_some()),
            (
                CLEAR_TOOL_USES,
                "--clear-at-least",
                self.clear_at_least.is_some(),
            ),
            (
                CLEAR_TOOL_USES,
                "--exclude-tools",
                self.exclude_tools.is_some(),
            ),
            (
                CLEAR_TOOL_USES,
                "--clear-tool-inputs",
                self.clear_tool_inputs,
            ),
            (TRIM, "--strategy", self.strategy.is_some()),
            (TRIM, "--start-on", self.start_on.is_some()),
            (TRIM, "--end-on", self.end_on.is_some()),
            (TRIM, "--include-system", self.include_system.is_some()),
            (TRIM, "--allow-partial", self.allow_partial),
        ];
        let wrong = given
            .iter()
            .find(|(of, _, is_given)| *is_given && *of != policy);
        match wrong {
            Some((of, option, _)) => Err(CliError::usage(format!(
                "{option} is an option of --policy {of} and does not apply to {policy}"
            ))),
            None => Ok(()),
        }
    }

    fn clear_tool_uses(&self) -> ClearToolUses {
        let default = ClearToolUses::default();
        ClearToolUses {
            trigger: self.trigger.unwrap_or(default.trigger),
            keep: self.keep.unwrap_or(default.keep),
            clear_at_least: self.clear_at_least.map_or(default.clear_at_least, Tokens),
            exclude_tools: self.exclude_tools.clone().unwrap_or_default(),
            clear_tool_inputs: self.clear_tool_inputs,
        }
    }

    fn trim(&self) -> Result<Trim, CliError> {
        let trim = Trim {
            strategy: self.strategy.unwrap_or_default(),
            start_on: self.start_on.clone().unwrap_or_default(),
            end_on: self.end_on.clone().unwrap_or_default(),
            allow_partial: self.allow_partial,
        };
        if self.include_system == Some(false) {
            return Err(CliError::usage(
                "--include-system false: instructions are never removed; leave the option out",
            ));
        }
        if trim.strategy == TrimStrategy::First && !trim.start_on.is_empty() {
            return Err(CliError::usage(
                "--start-on requires --strategy last: with first, the beginning of the chat does \
                 not change",
            ));
        }
        if trim.start_on.contains(&TrimRole::Tool) {
            return Err(CliError::usage(
                "--start-on tool: a tool result never comes first, since it follows its call",
            ));
        }
        Ok(trim)
    }
}

/// Returns the summary settings of a filter: no model, and as large as the user's messages require.
fn filter_summary() -> SummaryConfig {
    SummaryConfig::default().without_model()
}

fn trigger(text: &str) -> Result<ClearTrigger, String> {
    let wrong = || "give a number of tokens such as 100k, or tool_uses=20".to_owned();
    match text.split_once('=') {
        Some(("tool_uses", count)) => count
            .parse()
            .map(ClearTrigger::ToolUses)
            .map_err(|_| wrong()),
        Some(("input_tokens", tokens)) => crate::args::tokens(tokens)
            .map(|tokens| ClearTrigger::InputTokens(Tokens(tokens)))
            .map_err(|_| wrong()),
        Some(_) => Err(wrong()),
        None => trigger(&format!("input_tokens={text}")),
    }
}

fn end(text: &str) -> Result<TrimStrategy, String> {
    match text {
        "first" => Ok(TrimStrategy::First),
        "last" => Ok(TrimStrategy::Last),
        _ => Err("give first or last".to_owned()),
    }
}

fn role(text: &str) -> Result<TrimRole, String> {
    TrimRole::from_name(text).ok_or_else(|| "give user, assistant or tool".to_owned())
}
