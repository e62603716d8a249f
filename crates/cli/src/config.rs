//! `plimsoll.toml`: how contexts are kept small and what models cost, read once, every fault said at
//! once; and `plimsoll config check`. What the settings do is decided below this floor.

use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll::providers::{ModelRef, PriceBook};
use plimsoll::{
    AgentBuilder, ArgumentDigest, Author, ContextConfig, Counts, Given, HistoryLimit, Line,
    MAX_SUMMARY, OwnStages, Policy, Ppm, PriceSheet, Settings, Summarization, SummaryConfig,
    Tokens,
};
use serde::Deserialize;
use serde_json::json;

use crate::args::{ConfigArgs, ConfigCommand};
use crate::exit::{DONE, Stop};
use crate::out::out;

/// The configuration where none is named.
const FILE: &str = "plimsoll.toml";
/// A configuration, at most: a mistake such as a disk image ends here.
const MAX_FILE: u64 = 4 * 1024 * 1024;

/// What a configuration says.
#[derive(Debug, Default)]
pub(crate) struct Config {
    context: Option<ContextConfig>,
    summary: SummaryConfig,
    /// What [summary] says of it.
    soft_mark: Option<Ppm>,
    digest: Option<ArgumentDigest>,
    summarization: Summarization,
    max_history: Option<usize>,
    prices: PriceBook,
    models_priced: usize,
    pub(crate) warnings: Vec<String>,
}

/// Runs `plimsoll config`.
pub(crate) fn run(args: &ConfigArgs) -> Result<u8, Stop> {
    let ConfigCommand::Check { file, json } = &args.command;
    let path = file.clone().unwrap_or_else(|| PathBuf::from(FILE));
    let config = Config::read(&path)?;
    for warning in &config.warnings {
        crate::say(&format!("{}: {warning}", path.display()));
    }
    if *json {
        out!("{}", config.as_json());
    } else {
        out!("{} is good", path.display());
        out!("{}", config.as_text().trim_end());
    }
    Ok(DONE)
}

impl Config {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Stop> {
        let text = text(path)?;
        Self::parse(&text).map_err(|faults| {
            let place = path.display();
            match faults.as_slice() {
                [one] => Stop::failed(format!("{place}: {one}")),
                many => Stop::failed(format!(
                    "{place}: {} settings are faulty:\n- {}",
                    many.len(),
                    many.join("\n- ")
                )),
            }
        })
    }

    fn parse(text: &str) -> Result<Self, Vec<String>> {
        let mut table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            vec![format!("it is no TOML: {}", error.to_string().trim_end())]
        })?;
        let prices = ["prices", "pricing"].map(|name| table.remove(name));
        let given = Given::deserialize(toml::Value::Table(table))
            .map_err(|error| vec![error.to_string()])?;
        let mut top = Settings::new("", given);
        let mut config = Self::settings(&mut top);
        config.read_prices(&mut top, prices);
        let loaded = top.finish(()).map_err(|error| error.0)?;
        config.warnings = loaded.warnings;
        Ok(config)
    }

    fn settings(top: &mut Settings) -> Self {
        let default = SummaryConfig::default();
        let compaction = top.table(&["compaction"]);
        let has_context = top.table(&["context"]);
        let context = match (has_context, compaction) {
            (None, None) => None,
            (context, compaction) => {
                let none = || Settings::new("[context]", Given::Table(Vec::new()));
                let mut context = context.unwrap_or_else(none);
                let read = ContextConfig::read(&mut context, compaction);
                top.absorb(context);
                Some(read)
            }
        };
        let (summary, soft_mark) = match top.table(&["summary"]) {
            None => (default, None),
            Some(mut table) => {
                let read = summary(&mut table);
                top.absorb(table);
                read
            }
        };
        if let Some(context) = context {
            let (one, other) = (
                context.compaction.max_summary_tokens,
                summary.max_summary_tokens,
            );
            if one != other && one != MAX_SUMMARY && other != MAX_SUMMARY {
                top.fault(format!(
                    "`max_summary_tokens` in [compaction] ({one}) and in [summary] ({other}) are \
                     two settings of one thing; keep the one you mean"
                ));
            }
        }
        let max_history = top.count(&["max_history_messages"]);
        if max_history == Some(0) {
            top.fault("`max_history_messages` is 0; allow at least 1");
        }
        Self {
            context,
            summary,
            soft_mark,
            digest: digest(top),
            summarization: top
                .flag(&["summarization"])
                .map_or(Summarization::On, Into::into),
            max_history,
            ..Self::default()
        }
    }

    fn read_prices(&mut self, top: &mut Settings, given: [Option<toml::Value>; 2]) {
        let table = match given {
            [None, None] => return,
            [Some(_), Some(_)] => return top.both("[prices]", "[pricing]"),
            [Some(table), None] | [None, Some(table)] => table,
        };
        let toml::Value::Table(table) = table else {
            return top.fault("[prices] is no table; give [prices.VENDOR.MODEL]");
        };
        let models = table.values().filter_map(toml::Value::as_table);
        self.models_priced = models.map(toml::Table::len).sum();
        match PriceBook::of(&table) {
            Ok(book) => self.prices = book,
            Err(error) => top.fault(error.to_string()),
        }
    }

    /// The settings of an agent with these on top.
    ///
    /// `soft_mark` is the run's own, where the file says nothing of it.
    pub(crate) fn apply(&self, mut builder: AgentBuilder, soft_mark: Option<Ppm>) -> AgentBuilder {
        if let Some(context) = self.context {
            builder = builder.context_config(context);
        }
        if let Some(digest) = self.digest {
            builder = builder.argument_digest(digest);
        }
        if let Some(messages) = self.max_history {
            builder = builder.max_history_messages(messages);
        }
        let summary = SummaryConfig {
            soft_mark: self.soft_mark.or(soft_mark),
            ..self.summary
        };
        builder
            .summary_config(summary)
            .summarization(self.summarization)
    }

    /// What compacts a chat as this configuration says, with a system prompt of `system` tokens, in
    /// `size` tokens where that is less than the configuration allows. No model is asked.
    pub(crate) fn filter(
        &self,
        system: Tokens,
        size: Option<Tokens>,
    ) -> Result<(Policy, Line), Stop> {
        let context = self.effective().ok_or_else(|| {
            Stop::usage(
                "the configuration has no [context]; add one, or give --budget without --config",
            )
        })?;
        let fires = context.thresholds(system, size).fires_above;
        if fires == Tokens::ZERO {
            let max = context.max_context_tokens.min(size.unwrap_or(Tokens::MAX));
            let aside = context.system_prompt_tokens.max(system);
            return Err(Stop::cannot_fit(format!(
                "compaction would fire above nothing: of {max} tokens of context the system prompt \
                 takes {aside}; allow more"
            )));
        }
        let line = Line {
            window: size,
            // A chat is all there is: no room is set aside for an answer.
            max_output: Some(Tokens::ZERO),
            ..Line::default()
        };
        let summary = self.summary.without_model();
        let policy = context.policy(summary, self.digest, OwnStages::default());
        let mut stages = policy.stages().to_vec();
        if let Some(messages) = self.max_history {
            stages.insert(1, Arc::new(HistoryLimit(messages)));
        }
        Ok((Policy::new(stages), context.line(line, system)))
    }

    /// What a model costs by this configuration.
    pub(crate) fn sheet(&self, model: &str) -> Option<PriceSheet> {
        let model = ModelRef::parse(model).ok()?;
        self.prices.find(model.vendor().name, model.name())
    }

    fn as_text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{words}");
        };
        match self.effective() {
            None => {
                line("context: no [context], so the model's window decides".into());
                line(
                    "compaction fires at 80 % of the window less answer, system prompt and tools, \
                     or when it pays, and ends at 55 %"
                        .into(),
                );
            }
            Some(context) => {
                let compaction = &context.compaction;
                line(format!(
                    "context: {} tokens at most, {} of them for the system prompt",
                    grouped(context.max_context_tokens),
                    grouped(context.system_prompt_tokens),
                ));
                line(fires(&context));
                line(format!(
                    "stay: the first {} and the last {} turns of the newest run; results of the \
                     last at most {} lines",
                    compaction.keep_first_turns,
                    compaction.keep_recent_turns,
                    compaction.tool_output_max_lines,
                ));
                line(format!("summed up of earlier runs: {}", scope(&context)));
            }
        }
        line(match self.summarizes() {
            false => "summary: none, what leaves is in the archive only".into(),
            true => format!(
                "summary: {} tokens at most and {} of the target, written by {}",
                grouped(self.max_summary()),
                fraction(self.summary.share.0),
                match self.summary.author {
                    Author::Model => "a model",
                    Author::Extract => "nobody: what was said stands word for word",
                }
            ),
        });
        if let Some(digest) = self.digest {
            line(format!(
                "arguments: texts of more than {} characters in old calls become digests",
                digest.over_chars
            ));
        }
        if let Some(messages) = self.max_history {
            line(format!("history: {messages} messages at most"));
        }
        if self.models_priced > 0 {
            line(format!("prices: {} models of your own", self.models_priced));
        }
        if let Some(stages) = self.stages() {
            line(format!("stages: {}", stages.join(" → ")));
        }
        text
    }

    fn as_json(&self) -> serde_json::Value {
        let context = self.effective();
        let thresholds = context.map(|context| {
            let thresholds = context.thresholds(Tokens::ZERO, None);
            json!({
                "fires_above": thresholds.fires_above,
                "ends_at": thresholds.ends_at,
                "counts": match thresholds.counts {
                    Counts::All => "all",
                    Counts::AllButSystem => "all_but_system",
                },
            })
        });
        json!({
            "context": context,
            "thresholds": thresholds,
            "summary": {
                "max_summary_tokens": self.max_summary(),
                "share": fraction(self.summary.share.0),
                "soft_mark": self.summary.soft_mark.map(|mark| fraction(mark.0)),
                "author": self.summary.author,
            },
            "summarization": self.summarizes(),
            "argument_digest": self.digest,
            "max_history_messages": self.max_history,
            "models_priced": self.models_priced,
            "stages": self.stages(),
            "warnings": self.warnings,
        })
    }

    /// The context with what stands beside it.
    fn effective(&self) -> Option<ContextConfig> {
        let mut context = self.context?;
        context.compaction.max_summary_tokens = self.max_summary();
        if self.summarization == Summarization::Off {
            context.compaction.summarization = Summarization::Off;
        }
        Some(context)
    }

    fn max_summary(&self) -> Tokens {
        let said = self
            .context
            .map(|context| context.compaction.max_summary_tokens);
        said.filter(|tokens| *tokens != MAX_SUMMARY)
            .unwrap_or(self.summary.max_summary_tokens)
    }

    fn summarizes(&self) -> bool {
        let within = self
            .effective()
            .map(|context| context.compaction.summarization);
        self.summarization == Summarization::On && within != Some(Summarization::Off)
    }

    fn stages(&self) -> Option<Vec<String>> {
        let policy = self
            .effective()?
            .policy(self.summary, self.digest, OwnStages::default());
        let names = policy.stages().iter().map(|stage| stage.name().to_owned());
        let mut names: Vec<String> = names.collect();
        if self.max_history.is_some() {
            names.insert(1, "history".to_owned());
        }
        Some(names)
    }
}

/// What [summary] comes to, and the soft mark where it names one.
fn summary(table: &mut Settings) -> (SummaryConfig, Option<Ppm>) {
    let default = SummaryConfig::default();
    let max = table.tokens(&["max_summary_tokens", "summary_token_limit"]);
    if max == Some(Tokens::ZERO) {
        table.fault("`max_summary_tokens` in [summary] is 0; give more than that");
    }
    let share = table.fraction(&["share"]);
    let soft_mark = table.fraction(&["soft_mark"]);
    let author = table.take(&["author"]).and_then(|(key, given)| {
        let author = match &given {
            Given::Text(text) if text == "model" => Some(Author::Model),
            Given::Text(text) if text == "extract" => Some(Author::Extract),
            _ => None,
        };
        if author.is_none() {
            table.wrong(&key, &given, "\"model\" or \"extract\"");
        }
        author
    });
    let config = SummaryConfig {
        max_summary_tokens: max.unwrap_or(default.max_summary_tokens),
        share: share.unwrap_or(default.share),
        soft_mark: soft_mark.or(default.soft_mark),
        author: author.unwrap_or_default(),
    };
    (config, soft_mark)
}

/// `argument_digest = true`, or a table that says from which length on.
fn digest(top: &mut Settings) -> Option<ArgumentDigest> {
    let (key, given) = top.take(&["argument_digest"])?;
    let digest = match given {
        Given::Flag(on) => return on.then(ArgumentDigest::default),
        Given::Table(_) => {
            let mut table = Settings::new("[argument_digest]", given);
            let over = table.count(&["over_chars"]);
            top.absorb(table);
            ArgumentDigest {
                over_chars: over.unwrap_or(ArgumentDigest::default().over_chars),
            }
        }
        other => {
            top.wrong(&key, &other, "true, or { over_chars = 2000 }");
            return None;
        }
    };
    if let Some(fault) = digest.fault() {
        top.fault(fault);
    }
    Some(digest)
}

/// When a compaction fires, with the sum it comes from.
fn fires(context: &ContextConfig) -> String {
    let thresholds = context.thresholds(Tokens::ZERO, None);
    let (above, ends) = (grouped(thresholds.fires_above), grouped(thresholds.ends_at));
    let compaction = &context.compaction;
    match thresholds.counts {
        Counts::All => format!(
            "compaction fires above {above} tokens of everything that is sent, and ends at {ends}"
        ),
        Counts::AllButSystem => format!(
            "compaction fires above {above} tokens of all but the system prompt: {} · ({} − {}) − {}, \
             less where the system prompt or the answer takes more; it ends at {ends}",
            grouped(context.max_context_tokens),
            fraction(compaction.compact_at_pct.0),
            fraction(compaction.compact_budget_threshold_pct.0),
            grouped(context.system_prompt_tokens),
        ),
    }
}

fn scope(context: &ContextConfig) -> String {
    match context.compaction.compaction_scope {
        plimsoll::CompactionScope::FixedCount(0) => "none".to_owned(),
        plimsoll::CompactionScope::FixedCount(1) => "the newest".to_owned(),
        plimsoll::CompactionScope::FixedCount(count) => format!("the newest {count}"),
        plimsoll::CompactionScope::TokenBudget => {
            "as many of the newest as weigh no more than a compaction's end".to_owned()
        }
    }
}

fn fraction(ppm: u64) -> f64 {
    ppm as f64 / 1e6
}

/// `81000` as `81,000`.
pub(crate) fn grouped(tokens: Tokens) -> String {
    let digits = tokens.0.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn text(path: &Path) -> Result<String, Stop> {
    let bad = |what: &dyn std::fmt::Display| {
        Stop::usage(format!("{} cannot be read: {what}", path.display()))
    };
    let file = File::open(path).map_err(|error| bad(&error))?;
    let mut text = String::new();
    file.take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .map_err(|error| bad(&error))?;
    if text.len() as u64 > MAX_FILE {
        return Err(bad(&format!("it is larger than {MAX_FILE} bytes")));
    }
    Ok(text)
}
