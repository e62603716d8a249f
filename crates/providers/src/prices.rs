//! [`PriceBook`]: what models cost, as far as it is known: what we know, and what a user knows
//! better. Not what a run has cost; that is usage times rates.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use plimsoll_context::{LongerCache, Money, PriceSheet, Rates, Tokens};
use toml::{Table, Value};

use crate::model_ref::ModelRef;
use crate::vendor::{Place, Vendor};
use crate::windows::undated;

/// Prices above this, in dollars for a million tokens, are taken for a slip.
pub const MAX_PRICE: f64 = 1_000_000.0;
/// Prices below this, but above nothing, are taken for prices of one token: no model costs so
/// little.
pub const MIN_PRICE: f64 = 0.000_1;

/// What a row may say.
const KEYS: [&str; 8] = [
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_lives",
    "longer_write",
    "longer_lives",
    "min_cacheable",
];
/// Whose prices we have although nothing of ours calls them yet.
const OTHERS: [&str; 1] = ["gemini"];
/// Names further away than this from what was given are no suggestion.
const MAX_DISTANCE: usize = 3;

/// The file, read once; empty if it cannot be read, which a test rules out.
static BUILT_IN: LazyLock<PriceBook> =
    LazyLock::new(|| parse_prices(include_str!("../data/prices.toml")).unwrap_or_default());

/// What models cost, by vendor and name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PriceBook {
    vendors: BTreeMap<String, BTreeMap<String, PriceSheet>>,
}

/// Why prices cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("prices{}: {fault}", at(.place))]
pub struct PriceError {
    /// Where: a vendor, a model and a key, as far as it goes.
    pub place: Vec<String>,
    /// What is wrong, and what to do.
    pub fault: String,
}

/// What a million tokens of a model cost; `None` where it is not known. A model on this machine
/// costs nothing.
#[must_use]
pub fn known_rates(model: &ModelRef) -> Option<Rates> {
    known_prices(model).map(|sheet| sheet.rates)
}

/// What a model costs and how its cache behaves, as far as we know; `None` where nothing is known.
#[must_use]
pub fn known_prices(model: &ModelRef) -> Option<PriceSheet> {
    PriceBook::built_in().sheet(model)
}

/// Reads prices as `data/prices.toml` has them: a table for a vendor, in it a table for a model.
///
/// ```
/// use plimsoll_providers::{ModelRef, PriceBook, parse_prices};
///
/// let mine = parse_prices("[openai.gpt-9]\ninput = 2.0\noutput = 8.0\ncache_read = 0.2")?;
/// let book = PriceBook::built_in().clone().overlay(mine);
/// let model = ModelRef::parse("openai/gpt-9").expect("a known vendor");
/// assert!(book.sheet(&model).is_some());
///
/// let error = parse_prices("[openai.gpt-9]\ninput = -2.0\noutput = 8.0").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "prices, openai, gpt-9, input: -2 is no price; give dollars for a million tokens, 0 or more"
/// );
/// # Ok::<(), plimsoll_providers::PriceError>(())
/// ```
///
/// # Errors
/// [`PriceError`] for the first thing that is wrong: what is no TOML, an unknown vendor or key, a
/// price that is negative, not a number, missing, or of one token rather than a million.
pub fn parse_prices(text: &str) -> Result<PriceBook, PriceError> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| {
            let before = text.as_bytes().iter().take(span.start);
            1 + before.filter(|byte| **byte == b'\n').count()
        });
        let what = error.message();
        PriceError {
            place: vec![format!("line {line}")],
            fault: format!("no TOML: {what}"),
        }
    })?;
    PriceBook::of(&table)
}

impl PriceBook {
    /// What we know.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Of a table that was read already, such as a part of a configuration.
    ///
    /// # Errors
    /// As [`parse_prices`].
    pub fn of(table: &Table) -> Result<Self, PriceError> {
        let mut vendors: BTreeMap<String, BTreeMap<String, PriceSheet>> = BTreeMap::new();
        for (given, models) in table {
            let place = [given.as_str()];
            let vendor = vendor(given).map_err(|fault| error(&place, fault))?;
            let Value::Table(models) = models else {
                let fault = "expected a table of models, such as [openai.\"gpt-5\"]";
                return Err(error(&place, fault.to_owned()));
            };
            for (model, row) in models {
                let place = [given.as_str(), model.as_str()];
                let Value::Table(row) = row else {
                    let fault = "expected a table, such as { input = 1.25, output = 10.0 }";
                    return Err(error(&place, fault.to_owned()));
                };
                let sheet = sheet(row).map_err(|(key, fault)| {
                    let key = key.as_deref().into_iter();
                    let place: Vec<&str> = place.into_iter().chain(key).collect();
                    error(&place, fault)
                })?;
                let rows = vendors.entry(vendor.to_owned()).or_default();
                rows.insert(model.to_ascii_lowercase(), sheet);
            }
        }
        Ok(Self { vendors })
    }

    /// This book with the rows of another, which win.
    #[must_use]
    pub fn overlay(mut self, other: Self) -> Self {
        for (vendor, models) in other.vendors {
            self.vendors.entry(vendor).or_default().extend(models);
        }
        self
    }

    /// What a model costs. A name with a date at its end is the name without it, where the book
    /// does not have it whole. A model on this machine costs nothing, unless the book says
    /// otherwise.
    #[must_use]
    pub fn sheet(&self, model: &ModelRef) -> Option<PriceSheet> {
        let here = matches!(model.vendor().place, Place::ThisMachine | Place::Ours);
        let free = || here.then(|| PriceSheet::of(Rates::FREE));
        self.find(model.vendor().name, model.name()).or_else(free)
    }

    /// The models that have a row, by vendor and name.
    pub fn models(&self) -> impl Iterator<Item = (&str, &str)> {
        let vendors = self.vendors.iter();
        vendors.flat_map(|(vendor, models)| {
            models
                .keys()
                .map(move |name| (vendor.as_str(), name.as_str()))
        })
    }

    /// The row of a vendor's model, or of the vendor that it is by another wire.
    #[must_use]
    pub fn find(&self, vendor: &str, model: &str) -> Option<PriceSheet> {
        let name = model.to_ascii_lowercase();
        let row = |vendor: &str| {
            let models = self.vendors.get(vendor)?;
            let found = models.get(&name).or_else(|| models.get(undated(&name)?));
            found.copied()
        };
        let other = || row(Vendor::named(vendor).ok()?.same_as?);
        row(vendor).or_else(other)
    }
}

fn sheet(row: &Table) -> Result<PriceSheet, (Option<String>, String)> {
    if let Some(unknown) = row.keys().find(|key| !KEYS.contains(&key.as_str())) {
        let known = KEYS.join(", ");
        let mean = did_you_mean(nearest(unknown, KEYS));
        let fault = format!("there is no such key; {mean}known are: {known}");
        return Err((Some(unknown.clone()), fault));
    }
    let price = |key: &str| match row.get(key) {
        None => Ok(None),
        Some(value) => price(value)
            .map(Some)
            .map_err(|fault| (Some(key.to_owned()), fault)),
    };
    let whole = |key: &str| match row.get(key) {
        None => Ok(None),
        Some(Value::Integer(number)) if *number > 0 => Ok(u64::try_from(*number).ok()),
        Some(value) => {
            let fault = format!("{value} is no whole number above 0");
            Err((Some(key.to_owned()), fault))
        }
    };
    let need = |key: &str| {
        let fault = format!("`{key}` is missing; give dollars for a million tokens");
        price(key)?.ok_or((None, fault))
    };
    let input = need("input")?;
    let output = need("output")?;
    let cache_read = price("cache_read")?;
    let longer = match (price("longer_write")?, whole("longer_lives")?) {
        (None, None) => None,
        (Some(cache_write), Some(seconds)) => Some(LongerCache {
            lives: Duration::from_secs(seconds),
            cache_write,
        }),
        _ => {
            let fault = "`longer_write` and `longer_lives` belong together; give both";
            return Err((None, fault.to_owned()));
        }
    };
    Ok(PriceSheet {
        rates: Rates {
            input,
            output,
            cache_read,
            cache_write: price("cache_write")?.or(cache_read.map(|_| input)),
        },
        cache_lives: whole("cache_lives")?.map(Duration::from_secs),
        longer,
        min_cacheable: whole("min_cacheable")?.map(Tokens),
    })
}

fn price(value: &Value) -> Result<Money, String> {
    let dollars = match value {
        Value::Float(dollars) => *dollars,
        Value::Integer(dollars) => *dollars as f64,
        other => {
            return Err(format!(
                "{other} is no price; give dollars for a million tokens as a number"
            ));
        }
    };
    let money = Money::from_dollars(dollars).ok_or_else(|| {
        format!("{dollars} is no price; give dollars for a million tokens, 0 or more")
    })?;
    if dollars > 0.0 && dollars < MIN_PRICE {
        let million = dollars * 1e6;
        return Err(format!(
            "{dollars} looks like the price of one token; a million of them cost {million:.4}"
        ));
    }
    if dollars > MAX_PRICE {
        return Err(format!(
            "{dollars} is more than {MAX_PRICE} dollars for a million tokens; check it"
        ));
    }
    Ok(money)
}

/// A vendor's own name.
fn vendor(given: &str) -> Result<&'static str, String> {
    if let Ok(vendor) = Vendor::named(given) {
        return Ok(vendor.name);
    }
    if let Some(other) = OTHERS.iter().find(|other| **other == given) {
        return Ok(other);
    }
    let names = || {
        crate::vendor::VENDORS
            .iter()
            .map(|vendor| vendor.name)
            .chain(OTHERS)
    };
    let known: Vec<&str> = names().collect();
    let mean = did_you_mean(nearest(given, names()));
    let known = known.join(", ");
    Err(format!(
        "there is no such provider; {mean}known are: {known}"
    ))
}

fn nearest(given: &str, names: impl IntoIterator<Item = &'static str>) -> Option<&'static str> {
    let given = given.to_ascii_lowercase();
    let near = names
        .into_iter()
        .map(|name| (strsim::levenshtein(&given, name), name));
    let near = near.filter(|(distance, _)| *distance <= MAX_DISTANCE);
    near.min().map(|(_, name)| name)
}

fn did_you_mean(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!("did you mean `{name}`? "))
}

fn error(place: &[&str], fault: String) -> PriceError {
    PriceError {
        place: place.iter().map(|part| (*part).to_owned()).collect(),
        fault,
    }
}

fn at(place: &[String]) -> String {
    place.iter().map(|part| format!(", {part}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dollars(dollars: f64) -> Option<Money> {
        Money::from_dollars(dollars)
    }

    fn model(name: &str) -> ModelRef {
        ModelRef::parse(name).unwrap()
    }

    #[test]
    fn every_row_is_read_and_the_unknown_stays_unknown() {
        let read = parse_prices(include_str!("../data/prices.toml")).unwrap();
        assert_eq!(&read, PriceBook::built_in());
        for (vendor, models) in &read.vendors {
            for (name, sheet) in models {
                let rates = sheet.rates;
                assert!(rates.cache_read.unwrap() < rates.input, "{vendor} {name}");
                assert!(rates.cache_write.unwrap() >= rates.input, "{vendor} {name}");
                assert!(rates.output > rates.input, "{vendor} {name}");
                let longer = sheet.longer.map(|longer| longer.cache_write);
                assert!(
                    longer.is_none() || longer > rates.cache_write,
                    "{vendor} {name}"
                );
            }
        }
        let dated = known_prices(&model("openai/gpt-4o-2024-08-06")).unwrap();
        assert_eq!(Some(dated.rates.input), dollars(2.5));
        assert_eq!(dated.rates.cache_write, dollars(2.5), "nothing extra");
        assert_eq!(dated.min_cacheable, Some(Tokens(1_024)));
        assert_eq!(known_rates(&model("openai/new")), None);
        for here in ["llama.cpp/x", "local"] {
            assert_eq!(known_rates(&model(here)), Some(Rates::FREE));
        }
        let claude = read.find("anthropic", "claude-sonnet-4-5").unwrap();
        assert_eq!(claude.cache_lives, Some(Duration::from_secs(300)));
        let longer = claude.longer.unwrap();
        assert_eq!(Some(longer.cache_write), dollars(6.0));
        assert_eq!(longer.lives, Duration::from_secs(3_600));
    }

    #[test]
    fn a_users_rows_take_the_place_of_ours() {
        let mine = "
            [OpenAI.\"GPT-4o\"]
            input = 1
            output = 2
            [grok.grok-9]
            input = 0.5
            output = 0
            cache_read = 0.05
            [ollama.\"qwen3:8b\"]
            input = 0.01
            output = 0.02";
        let mine = parse_prices(&mine.replace("OpenAI", "openai")).unwrap();
        let book = PriceBook::built_in().clone().overlay(mine);
        let ours = book.sheet(&model("openai/gpt-4o")).unwrap();
        assert_eq!(Some(ours.rates.input), dollars(1.0));
        assert_eq!(ours.rates.cache_read, None, "not what ours says");
        assert_eq!(ours.rates.cache_write, None);
        let grok = book.sheet(&model("xai/grok-9")).unwrap();
        assert_eq!(grok.rates.cache_write, dollars(0.5));
        assert_eq!(grok.rates.output, Money(0), "nothing is a price");
        assert!(book.sheet(&model("openai/gpt-5")).is_some());
        let local = book.sheet(&model("ollama/qwen3:8b")).unwrap();
        assert_eq!(Some(local.rates.input), dollars(0.01));
        assert_eq!(parse_prices("").unwrap(), PriceBook::default());
    }

    #[test]
    fn bad_prices_are_refused_with_their_place() {
        let row = |rest: &str| format!("[openai.m]\noutput = 1.0\n{rest}");
        let rows = [
            (
                row("input = -1.0"),
                "prices, openai, m, input: -1 is no price",
            ),
            (
                row("input = nan"),
                "prices, openai, m, input: NaN is no price",
            ),
            (
                row("input = inf"),
                "prices, openai, m, input: inf is no price",
            ),
            (
                row("input = \"1\""),
                "prices, openai, m, input: \"1\" is no price",
            ),
            (
                row("input = 0.000003"),
                "one token; a million of them cost 3.0000",
            ),
            (
                row("input = 1e9"),
                "prices, openai, m, input: 1000000000 is more than",
            ),
            (row(""), "prices, openai, m: `input` is missing"),
            (
                "[openai.m]\ninput = 1".to_owned(),
                "prices, openai, m: `output` is missing",
            ),
            (
                row("input = 1\ncache_reed = 1"),
                "cache_reed: there is no such key; did you mean `cache_read`?",
            ),
            (
                row("input = 1\nfrobnicate = 1"),
                "frobnicate: there is no such key; known are: input",
            ),
            (
                row("input = 1\ncache_read = -0.1"),
                "cache_read: -0.1 is no price",
            ),
            (
                row("input = 1\ncache_lives = 0"),
                "cache_lives: 0 is no whole number above 0",
            ),
            (
                row("input = 1\nmin_cacheable = 1.5"),
                "min_cacheable: 1.5 is no whole",
            ),
            (row("input = 1\nlonger_lives = 3600"), "belong together"),
            (
                "[opnai.m]\ninput = 1\noutput = 1".to_owned(),
                "prices, opnai: there is no such provider; did you mean `openai`?",
            ),
            (
                "[frobnicate.m]".to_owned(),
                "no such provider; known are: openai",
            ),
            (
                "openai = 1".to_owned(),
                "prices, openai: expected a table of models",
            ),
            (
                "[openai]\nm = 1".to_owned(),
                "prices, openai, m: expected a table",
            ),
            ("[openai.m]\ninput = ".to_owned(), "prices, line 2: no TOML"),
            (
                "[openai.m]\ninput = 1\ninput = 2".to_owned(),
                "prices, line 3: no TOML",
            ),
        ];
        for (text, part) in rows {
            let error = parse_prices(&text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}\n{error}");
        }
    }
}
