//! `plimsoll models`: lists known models with the source of each figure. For local models, see
//! `plimsoll model`.

use std::fmt::Display;

use plimsoll::Money;
use plimsoll::pricing::Rates;
use plimsoll::providers::{Fact, ModelBook, ModelFacts, Origin};
use serde::Serialize;

use crate::args::ModelsArgs;
use crate::error::{CliError, DONE, FAILED};
use crate::listing;
use crate::settings::users_file;
use crate::stdout;

/// A model with the facts about it, each with its source.
#[derive(Serialize)]
struct KnownModel {
    model: String,
    #[serde(flatten)]
    facts: ModelFacts,
}

/// The last one is shown on every terminal.
const HEADING: [&str; 8] = [
    "model",
    ">$ in",
    ">$ out",
    ">output",
    ">$ cached",
    ">cache≥",
    "can",
    ">window",
];

/// Runs the command.
pub(crate) fn run(args: &ModelsArgs) -> Result<u8, CliError> {
    let resolved = args.sources.resolve()?;
    let book = ModelBook::built_in().clone();
    let book = book.overlay(resolved.agent.own_models().clone());
    let pattern = args.pattern.as_deref().unwrap_or("").to_lowercase();
    let known = book.models().map(|(vendor, name)| KnownModel {
        model: format!("{vendor}/{name}"),
        facts: book.find(vendor, name),
    });
    let found = known.filter(|known| known.model.contains(&pattern));
    let found: Vec<KnownModel> = found.collect();
    listing::print(&found, args.json, HEADING, cells)?;
    if args.json {
        return Ok(DONE);
    }
    if found.is_empty() {
        out!("no known model has `{pattern}` in its name");
        return Ok(FAILED);
    }
    out!("");
    let sizes = "sizes in tokens, prices in dollars per million tokens; -: unknown";
    stdout::prose(&format!("{} models; {sizes}", book.len()))?;
    let place = users_file().map(|path| format!(" of {}", path.display()));
    let place = place.unwrap_or_default();
    stdout::prose(&format!(
        "*: yours; your own values go into [models]{place}"
    ))?;
    Ok(DONE)
}

/// Formats one model as a row of the table.
fn cells(KnownModel { model, facts }: &KnownModel) -> [String; 8] {
    let price = |of: fn(&Rates) -> Option<Money>| {
        let Fact { value, from } = facts.prices?;
        of(&value.rates).map(|value| Fact { value, from })
    };
    [
        model.clone(),
        cell(price(|rates| Some(rates.input))),
        cell(price(|rates| Some(rates.output))),
        cell(facts.max_output),
        cell(price(|rates| rates.cache_read)),
        cell(facts.min_cacheable),
        can(facts).join(", "),
        cell(facts.window),
    ]
}

/// Formats a figure, with a mark if it is not built in.
fn cell(figure: Option<Fact<impl Display>>) -> String {
    figure.map_or_else(
        || "-".to_owned(),
        |Fact { value, from }| {
            let value = value.to_string();
            format!("{}{}", value.trim_start_matches('$'), mark(from))
        },
    )
}

/// Lists the known capabilities of a model, present or missing, each with its mark.
fn can(facts: &ModelFacts) -> Vec<String> {
    let can = [
        ("images", &facts.images),
        ("thinking", &facts.thinking),
        ("tools", &facts.tools),
    ];
    can.into_iter()
        .filter_map(|(word, fact)| {
            let fact = fact.as_ref()?;
            let no = if fact.value { "" } else { "no " };
            Some(format!("{no}{word}{}", mark(fact.from)))
        })
        .collect()
}

/// Returns the mark after a figure that is not built in.
fn mark(from: Origin) -> &'static str {
    match from {
        Origin::BuiltIn => "",
        Origin::Configuration => "*",
    }
}
