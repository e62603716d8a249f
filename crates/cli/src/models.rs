//! `plimsoll models`: lists known models with the source of each figure. For local models, see
//! `plimsoll model`.

use std::time::Duration;

use console::{Term, measure_text_width};
use plimsoll::Tokens;
use plimsoll::providers::{Fact, ModelBook, ModelFacts, Origin};
use serde_json::{Value, json};

use crate::args::ModelsArgs;
use crate::error::{CliError, DONE, FAILED};
use crate::listing;
use crate::settings::users_file;
use crate::stdout;
use crate::terminal::columns;
use crate::terminal::text::lines_of;

const HEADING: [&str; 8] = [
    "model",
    ">window",
    ">output",
    ">$ in",
    ">$ out",
    ">$ cached",
    ">cache≥",
    "can",
];

/// Runs the command.
pub(crate) fn run(args: &ModelsArgs) -> Result<u8, CliError> {
    let resolved = args.sources.resolve()?;
    let book = ModelBook::built_in().clone();
    let book = book.overlay(resolved.agent.own_models().clone());
    let pattern = args.pattern.as_deref().unwrap_or("").to_lowercase();
    let found: Vec<(&str, &str)> = book
        .models()
        .filter(|(vendor, name)| format!("{vendor}/{name}").contains(&pattern))
        .collect();
    if args.json {
        let rows: Vec<Value> = found
            .iter()
            .map(|(vendor, name)| as_json(&format!("{vendor}/{name}"), &book.find(vendor, name)))
            .collect();
        out!("{}", json!({ "models": rows }));
        return Ok(DONE);
    }
    if found.is_empty() {
        out!("no known model has `{pattern}` in its name");
        return Ok(FAILED);
    }
    let found: Vec<(String, ModelFacts)> = found
        .into_iter()
        .map(|(vendor, name)| (format!("{vendor}/{name}"), book.find(vendor, name)))
        .collect();
    let lines = listing::columns(HEADING, found.iter().map(cells), None);
    let terminal = Term::stdout();
    let widest = lines.iter().map(|line| measure_text_width(line)).max();
    if !terminal.is_term() || widest <= Some(columns(&terminal)) {
        for line in lines {
            out!("{line}");
        }
    } else {
        for (model, facts) in &found {
            out!("{model}");
            for row in lines_of(&parts(facts)).lines() {
                stdout::prose(&format!("  {row}"))?;
            }
        }
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
fn cells((model, facts): &(String, ModelFacts)) -> [String; 8] {
    let [window, output, paid_in, paid_out, cached, cacheable] =
        figures(facts).map(|figure| figure.unwrap_or_else(|| "-".to_owned()));
    let can = can(facts, |from| mark(from).to_owned()).join(", ");
    let model = model.clone();
    [
        model, window, output, paid_in, paid_out, cached, cacheable, can,
    ]
}

/// Formats what is known of one model as labelled parts, for a terminal that the table does not fit.
fn parts(facts: &ModelFacts) -> Vec<String> {
    let [window, output, paid_in, paid_out, cached, cacheable] = figures(facts);
    let labelled = [
        window.map(|figure| format!("window {figure}")),
        output.map(|figure| format!("output {figure}")),
        paid_in.map(|figure| format!("${figure} in")),
        paid_out.map(|figure| format!("${figure} out")),
        cached.map(|figure| format!("${figure} cached")),
        cacheable.map(|figure| format!("cache from {figure}")),
    ];
    let can = can(facts, |from| mark(from).to_owned());
    labelled.into_iter().flatten().chain(can).collect()
}

/// Returns the window, the longest output, the prices of input, output and cached input, and the
/// shortest prefix that is cached. A figure that is not built in has a mark: see [`mark`].
fn figures(facts: &ModelFacts) -> [Option<String>; 6] {
    let size = |fact: &Option<Fact<Tokens>>| {
        let fact = fact.as_ref()?;
        Some(format!("{}{}", fact.value, mark(fact.from)))
    };
    let price = |of: fn(&plimsoll::pricing::Rates) -> Option<plimsoll::Money>| {
        let fact = facts.prices.as_ref()?;
        let dollars = of(&fact.value.rates)?.to_string();
        Some(format!(
            "{}{}",
            dollars.trim_start_matches('$'),
            mark(fact.from)
        ))
    };
    [
        size(&facts.window),
        size(&facts.max_output),
        price(|rates| Some(rates.input)),
        price(|rates| Some(rates.output)),
        price(|rates| rates.cache_read),
        size(&facts.min_cacheable),
    ]
}

/// Lists the known capabilities of a model, present or missing, each with its mark.
pub(crate) fn can(facts: &ModelFacts, mark: impl Fn(Origin) -> String) -> Vec<String> {
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
        Origin::User | Origin::Configuration => "*",
    }
}

/// Returns the facts about a model, each with its source.
pub(crate) fn as_json(model: &str, facts: &ModelFacts) -> Value {
    let prices = facts.prices.as_ref().map(|fact| {
        let rates = fact.value.rates;
        let dollars = |money: plimsoll::Money| money.0 as f64 / 1e9;
        json!({ "value": {
            "input": dollars(rates.input),
            "output": dollars(rates.output),
            "cache_read": rates.cache_read.map(dollars),
            "cache_write": rates.cache_write.map(dollars),
            "longer_write": fact.value.longer_write.map(dollars),
            "long": fact.value.long.map(|long| json!({
                "above": long.above,
                "input": dollars(long.rates.input),
                "output": dollars(long.rates.output),
                "cache_read": long.rates.cache_read.map(dollars),
                "cache_write": long.rates.cache_write.map(dollars),
            })),
        }, "from": fact.from })
    });
    let seconds = |lives: &Option<Fact<Duration>>| {
        let lives = lives.as_ref();
        lives.map(|fact| json!({ "value": fact.value.as_secs(), "from": fact.from }))
    };
    json!({
        "model": model,
        "window": facts.window,
        "max_output": facts.max_output,
        "prices": prices,
        "cache_lives": seconds(&facts.cache_lives),
        "longer_lives": seconds(&facts.longer_lives),
        "min_cacheable": facts.min_cacheable,
        "images": facts.images,
        "thinking": facts.thinking,
        "efforts": facts.efforts,
        "tools": facts.tools,
    })
}
