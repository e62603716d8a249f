//! Reads a [`ContextConfig`] from a table of settings, under all accepted names of its keys.

use serde::de::{Deserialize, Deserializer, Error};

use super::{CompactionConfig, CompactionScope, ContextConfig, Summarization};
use crate::settings::{Given, Loaded, Settings, SettingsError};
use crate::tokens::{Ppm, Tokens};

/// The names of the trigger in the systems that Plimsoll's replaces, our own name first.
const TRIGGER: [&str; 5] = [
    "trigger",
    "max_token",
    "max_tokens",
    "max_safe_tokens",
    "threshold",
];
const TARGET: [&str; 2] = ["target", "context_token_limit"];
const SUMMARY: [&str; 2] = ["max_summary_tokens", "summary_token_limit"];

/// The compaction settings of a configuration, from all their places.
#[derive(Default)]
struct Said {
    at: Option<Ppm>,
    below: Option<Ppm>,
    scope: Option<CompactionScope>,
    keep_first: Option<usize>,
    keep_recent: Option<usize>,
    max_summary: Option<Tokens>,
    max_lines: Option<usize>,
    trigger: Option<Tokens>,
    target: Option<Tokens>,
    summarization: Option<bool>,
}

impl ContextConfig {
    /// Reads a configuration's `[context]`, the `compaction` table in it, and a separate
    /// `[compaction]` table.
    ///
    /// Errors, including conflicts between settings, are recorded in `context`; see
    /// [`Settings::finish`].
    pub fn read(context: &mut Settings, beside: Option<Settings>) -> Self {
        let default = Self::default();
        let max = context.tokens(&[
            "max_context_tokens",
            "context_size",
            "context_window",
            "window",
        ]);
        let system = context.tokens(&["system_prompt_tokens"]);
        let old = old_places(context);
        let within = context.table(&["compaction"]);
        if let (Some(within), Some(beside)) = (&within, &beside) {
            let (within, beside) = (within.place().to_owned(), beside.place().to_owned());
            context.fault(format!(
                "{beside} and {within} are two settings of one thing; keep the one you mean"
            ));
        }
        let mut said = Said::default();
        for mut compaction in within.into_iter().chain(beside) {
            said = CompactionConfig::said(&mut compaction);
            context.absorb(compaction);
        }
        let said = merged(context, old, said);
        let read = Self {
            max_context_tokens: max.unwrap_or(default.max_context_tokens),
            system_prompt_tokens: system.unwrap_or(default.system_prompt_tokens),
            compaction: CompactionConfig::of(context, &said),
        };
        for fault in read.faults() {
            context.fault(fault);
        }
        read
    }

    /// Reads a configuration in any format that serde reads, with warnings for its author.
    ///
    /// ```
    /// use plimsoll_context::{ContextConfig, Tokens};
    ///
    /// let json = r#"{"maxContextTokens": 32000, "keep_recent": 4}"#;
    /// let loaded = ContextConfig::load(&mut serde_json::Deserializer::from_str(json))?;
    /// assert_eq!(loaded.value.max_context_tokens, Tokens(32_000));
    /// assert_eq!(loaded.value.compaction.keep_recent_turns, 4);
    /// assert_eq!(
    ///     loaded.warnings,
    ///     ["`keep_recent` in [context] is an old name; write `keep_recent_turns` in [compaction]"]
    /// );
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the configuration has errors, one message that lists all of them: unknown keys with the
    /// nearest known key, two settings of one thing, values out of range, and conflicting values.
    pub fn load<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Loaded<Self>, D::Error> {
        let mut settings = Settings::new("[context]", Given::deserialize(deserializer)?);
        let read = Self::read(&mut settings, None);
        settings.finish(read).map_err(D::Error::custom)
    }
}

impl CompactionConfig {
    fn said(settings: &mut Settings) -> Said {
        Said {
            at: settings.fraction(&["compact_at_pct"]),
            below: settings.fraction(&["compact_budget_threshold_pct"]),
            scope: scope(settings),
            keep_first: settings.count(&["keep_first_turns", "keep_first"]),
            keep_recent: settings.count(&["keep_recent_turns", "keep_recent"]),
            max_summary: settings.tokens(&SUMMARY),
            max_lines: settings.count(&["tool_output_max_lines"]),
            trigger: settings.tokens(&TRIGGER),
            target: settings.tokens(&TARGET),
            summarization: settings.flag(&["summarization"]),
        }
    }

    /// Fills the missing settings with their defaults.
    fn of(settings: &mut Settings, said: &Said) -> Self {
        let default = Self::default();
        if let (Some(_), Some(share)) = (
            said.trigger,
            said.at
                .map(|_| "compact_at_pct")
                .or(said.below.map(|_| "compact_budget_threshold_pct")),
        ) {
            settings.fault(format!(
                "`trigger` and `{share}` are two settings of one thing; keep the one you mean"
            ));
        }
        let summarization = said.summarization.map_or(default.summarization, Into::into);
        if summarization == Summarization::Off && said.trigger.is_some() {
            settings.warn("`trigger` is for summaries; with `summarization = false` it is ignored");
        }
        Self {
            compact_at_pct: said.at.unwrap_or(default.compact_at_pct),
            compact_budget_threshold_pct: said
                .below
                .unwrap_or(default.compact_budget_threshold_pct),
            compaction_scope: said.scope.unwrap_or_default(),
            keep_first_turns: said.keep_first.unwrap_or(default.keep_first_turns),
            keep_recent_turns: said.keep_recent.unwrap_or(default.keep_recent_turns),
            max_summary_tokens: said.max_summary.unwrap_or(default.max_summary_tokens),
            tool_output_max_lines: said.max_lines.unwrap_or(default.tool_output_max_lines),
            trigger: said.trigger,
            target: said.target,
            summarization,
        }
    }
}

/// Reads the compaction settings that used to be in `[context]`.
fn old_places(context: &mut Settings) -> Said {
    let mut old = |names: &[&'static str], now: &str| {
        let count = context.count(names)?;
        let (name, place) = (names.first()?, context.place().to_owned());
        context.warn(format!(
            "`{name}` in {place} is an old name; write `{now}` in [compaction]"
        ));
        Some(count)
    };
    Said {
        keep_first: old(&["keep_first"], "keep_first_turns"),
        keep_recent: old(&["keep_recent"], "keep_recent_turns"),
        max_lines: old(&["tool_output_max_lines"], "tool_output_max_lines"),
        max_summary: context.tokens(&SUMMARY),
        trigger: context.tokens(&TRIGGER),
        target: context.tokens(&TARGET),
        summarization: context.flag(&["summarization"]),
        ..Said::default()
    }
}

/// Merges the settings of both places. A setting in both places is an error.
fn merged(context: &mut Settings, old: Said, new: Said) -> Said {
    fn either<T>(
        context: &mut Settings,
        old: (Option<T>, &str),
        new: (Option<T>, &str),
    ) -> Option<T> {
        if old.0.is_some() && new.0.is_some() {
            let place = context.place().to_owned();
            context.fault(format!(
                "`{}` in {place} and `{}` in [compaction] are two settings of one thing; keep the one you mean",
                old.1, new.1
            ));
        }
        new.0.or(old.0)
    }
    Said {
        keep_first: either(
            context,
            (old.keep_first, "keep_first"),
            (new.keep_first, "keep_first_turns"),
        ),
        keep_recent: either(
            context,
            (old.keep_recent, "keep_recent"),
            (new.keep_recent, "keep_recent_turns"),
        ),
        max_lines: either(
            context,
            (old.max_lines, "tool_output_max_lines"),
            (new.max_lines, "tool_output_max_lines"),
        ),
        max_summary: either(
            context,
            (old.max_summary, "max_summary_tokens"),
            (new.max_summary, "max_summary_tokens"),
        ),
        trigger: either(context, (old.trigger, "trigger"), (new.trigger, "trigger")),
        target: either(context, (old.target, "target"), (new.target, "target")),
        summarization: either(
            context,
            (old.summarization, "summarization"),
            (new.summarization, "summarization"),
        ),
        ..new
    }
}

/// Reads `FixedCount(3)` or `TokenBudget`, given as a text, a table or a plain number.
fn scope(settings: &mut Settings) -> Option<CompactionScope> {
    let (key, given) = settings.take(&["compaction_scope"])?;
    let scope = scope_of(&given);
    if scope.is_none() {
        let expected = "`{ fixed_count = 3 }` or \"token_budget\"";
        settings.wrong(&key, &given, expected);
    }
    scope
}

fn scope_of(given: &Given) -> Option<CompactionScope> {
    let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
    match given {
        Given::Whole(count) => usize::try_from(*count)
            .ok()
            .map(CompactionScope::FixedCount),
        Given::Text(text) if plain(text) == "tokenbudget" => Some(CompactionScope::TokenBudget),
        Given::Text(text) => {
            let text = plain(text);
            let count = text.strip_prefix("fixedcount(")?.strip_suffix(')')?;
            count.trim().parse().ok().map(CompactionScope::FixedCount)
        }
        Given::Table(entries) => match entries.as_slice() {
            [(key, count @ Given::Whole(_))] if plain(key) == "fixedcount" => scope_of(count),
            _ => None,
        },
        _ => None,
    }
}

impl<'de> Deserialize<'de> for ContextConfig {
    /// Reads a configuration like [`ContextConfig::load`], without the warnings.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::load(deserializer).map(|loaded| loaded.value)
    }
}

impl<'de> Deserialize<'de> for CompactionConfig {
    /// Accepts all names of the keys. An unknown key or two names of one setting are errors.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut settings = Settings::new("[compaction]", Given::deserialize(deserializer)?);
        let said = Self::said(&mut settings);
        let read = Self::of(&mut settings, &said);
        let loaded: Result<Loaded<Self>, SettingsError> = settings.finish(read);
        loaded.map(|loaded| loaded.value).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for CompactionScope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Given::deserialize(deserializer)?;
        scope_of(&given).ok_or_else(|| {
            D::Error::custom(format!(
                "the scope is {given}; give {{ fixed_count = 3 }} or \"token_budget\""
            ))
        })
    }
}

impl<'de> Deserialize<'de> for Summarization {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bool::deserialize(deserializer).map(Into::into)
    }
}
