//! [`ModelBook`]: what is known of models, by who says it: we, what was published since, the user,
//! a configuration. Asks nobody; a server's own word comes from `discovery.rs`, and goes before all
//! of this.

mod enforce;
mod facts;
mod fetch;
mod row;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use plimsoll_context::{PriceSheet, Rates, Tokens};
use toml::{Table, Value};

pub(crate) use enforce::FROM_LOW;
pub use facts::{Fact, ModelFacts, Origin, Prices};
pub use fetch::{MAX_TABLE, TABLE_URL, fetch_table, table_address};
pub use row::{MAX_PRICE, MAX_WINDOW, MIN_PRICE, MIN_WINDOW, MODEL_KEYS, MODEL_KEYS_OF_PRICES};
pub use table::{Change, MAX_MODELS, Published, TableError, published};

use crate::cache_lifetime::{MARKED, keeps_by_mark};
use crate::model_ref::ModelRef;
use crate::vendor::{Place, Vendor};

/// Names further away than this from what was given are no suggestion.
const MAX_DISTANCE: usize = 3;

/// The file, read once; empty if it cannot be read, which a test rules out.
static BUILT_IN: LazyLock<ModelBook> = LazyLock::new(|| {
    ModelBook::parse(include_str!("../data/models.toml"), Origin::BuiltIn).unwrap_or_default()
});

/// How the names of Bedrock's inference profiles begin.
const BEDROCK_REGIONS: [&str; 9] = [
    "us", "us-gov", "eu", "apac", "au", "ca", "jp", "in", "global",
];

/// Rows by vendor and name.
type Rows = BTreeMap<String, BTreeMap<String, ModelFacts>>;

/// What is known of models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelBook {
    /// The first goes before the others.
    layers: Vec<Layer>,
}

/// What one source says.
#[derive(Debug, Clone, PartialEq)]
struct Layer {
    from: Origin,
    rows: Rows,
}

/// Why what is said of models cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("models{}: {fault}", at(.place))]
pub struct ModelError {
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
    ModelBook::built_in().facts(model).sheet()
}

/// The window that our data has for a model.
#[must_use]
pub fn known_window(model: &ModelRef) -> Option<Tokens> {
    let window = ModelBook::built_in().facts(model).window;
    window.map(|fact| fact.value)
}

/// The provider that has a model of that name, where our data knows exactly one.
pub(crate) fn provider_of(name: &str) -> Option<&'static str> {
    let mut having = BUILT_IN
        .models()
        .filter(|(_, model)| model.eq_ignore_ascii_case(name))
        .filter_map(|(vendor, _)| Vendor::named(vendor).ok());
    let first = having.next()?;
    having.next().is_none().then_some(first.name)
}

impl ModelBook {
    /// What we know.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Reads rows as `data/models.toml` has them: a table for a vendor, in it a table for a model.
    ///
    /// ```
    /// use plimsoll_providers::{ModelBook, ModelRef, Origin};
    ///
    /// let mine = "[openai.gpt-9]\nwindow = 400_000\ninput = 2.0\noutput = 8.0";
    /// let mine = ModelBook::parse(mine, Origin::User)?;
    /// let book = ModelBook::built_in().clone().overlay(mine);
    /// let model = ModelRef::parse("openai/gpt-9").expect("a known vendor");
    /// let facts = book.facts(&model);
    /// assert_eq!(facts.window.expect("it was said").from, Origin::User);
    /// assert!(facts.sheet().is_some());
    ///
    /// let bad = "[openai.gpt-9]\ninput = -2.0\noutput = 8.0";
    /// let error = ModelBook::parse(bad, Origin::User).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "models, openai, gpt-9, input: -2 is no price; give dollars for a million tokens, 0 or more"
    /// );
    /// # Ok::<(), plimsoll_providers::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError`] for the first thing that is wrong: what is no TOML, an unknown vendor or key, a
    /// price that is negative, not a number, missing, or of one token rather than a million, a size
    /// that no model has.
    pub fn parse(text: &str, from: Origin) -> Result<Self, ModelError> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| {
                let before = text.as_bytes().iter().take(span.start);
                1 + before.filter(|byte| **byte == b'\n').count()
            });
            let what = error.message();
            ModelError {
                place: vec![format!("line {line}")],
                fault: format!("no TOML: {what}"),
            }
        })?;
        Self::of(&table, from)
    }

    /// Of a table that was read already, such as a part of a configuration: `vendor.model` or
    /// `"vendor/model"`.
    ///
    /// # Errors
    /// As [`ModelBook::parse`].
    pub fn of(table: &Table, from: Origin) -> Result<Self, ModelError> {
        let mut rows = Rows::new();
        for (given, models) in table {
            let place = [given.as_str()];
            if let Some((vendor, model)) = given.split_once('/') {
                insert(&mut rows, (vendor, model), models, from, &place)?;
                continue;
            }
            vendor(given).map_err(|fault| error(&place, fault))?;
            let Value::Table(models) = models else {
                let fault = "expected a table of models, such as [openai.\"gpt-5\"]";
                return Err(error(&place, fault.to_owned()));
            };
            for (model, row) in models {
                insert(&mut rows, (given, model), row, from, &[given, model])?;
            }
        }
        Ok(Self::rows(rows, from))
    }

    pub(crate) fn rows(rows: Rows, from: Origin) -> Self {
        let layers = match rows.is_empty() {
            true => Vec::new(),
            false => vec![Layer { from, rows }],
        };
        Self { layers }
    }

    /// This book with another before it: what a row of that one says, this one is not asked.
    #[must_use]
    pub fn overlay(mut self, other: Self) -> Self {
        for layer in other.layers.into_iter().rev() {
            match self.layers.first_mut() {
                Some(first) if first.from == layer.from => {
                    for (vendor, models) in layer.rows {
                        first.rows.entry(vendor).or_default().extend(models);
                    }
                }
                _ => self.layers.insert(0, layer),
            }
        }
        self
    }

    /// What is known of a model, and who says so. A model on this machine costs nothing, unless the
    /// book says otherwise.
    #[must_use]
    pub fn facts(&self, model: &ModelRef) -> ModelFacts {
        let mut facts = self.find(model.vendor().name, model.name());
        let here = matches!(model.vendor().place, Place::ThisMachine | Place::Ours);
        if facts.prices.is_none() && here {
            let free = Prices {
                rates: Rates::FREE,
                longer_write: None,
            };
            facts.prices = Some(Fact {
                value: free,
                from: Origin::BuiltIn,
            });
        }
        // Asked for whatever is known of the model, and paid for then.
        if facts.longer_lives.is_none() && keeps_by_mark(model) {
            facts.longer_lives = Some(Fact {
                value: MARKED,
                from: Origin::BuiltIn,
            });
        }
        facts
    }

    /// The same of a vendor's model, or of the vendor that it is by another wire. A name with a
    /// date at its end is the name without it, where a source does not have it whole.
    #[must_use]
    pub fn find(&self, vendor: &str, model: &str) -> ModelFacts {
        let name = model.to_ascii_lowercase();
        let other = Vendor::named(vendor).ok().and_then(|vendor| vendor.same_as);
        let mut facts = ModelFacts::default();
        for layer in &self.layers {
            let row = |vendor: &str| {
                let models = layer.rows.get(vendor)?;
                let plain = || models.get(undated(&name)?);
                let found = models.get(&name).or_else(plain);
                found.or_else(|| models.get(regionless(vendor, &name)?))
            };
            if let Some(row) = row(vendor).or_else(|| row(other?)) {
                facts = facts.or(row);
            }
        }
        facts
    }

    /// The models that have a row, by vendor and name, each once and in order.
    pub fn models(&self) -> impl Iterator<Item = (&str, &str)> {
        let rows = self.layers.iter().flat_map(|layer| &layer.rows);
        let models = rows.flat_map(|(vendor, models)| {
            let names = models.keys();
            names.map(|name| (vendor.as_str(), name.as_str()))
        });
        models.collect::<BTreeSet<_>>().into_iter()
    }

    /// How many models it says anything of.
    #[must_use]
    pub fn len(&self) -> usize {
        self.models().count()
    }

    /// Whether it says nothing of any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }
}

fn insert(
    rows: &mut Rows,
    (given, model): (&str, &str),
    row: &Value,
    from: Origin,
    place: &[&str],
) -> Result<(), ModelError> {
    let vendor = vendor(given).map_err(|fault| error(place, fault))?;
    let Value::Table(row) = row else {
        let fault = "expected a table, such as { window = 400_000, input = 1.25, output = 10.0 }";
        return Err(error(place, fault.to_owned()));
    };
    let row = ModelFacts::of(row, from).map_err(|(key, fault)| {
        let place: Vec<&str> = place.iter().copied().chain(key.as_deref()).collect();
        error(&place, fault)
    })?;
    let models = rows.entry(vendor.to_owned()).or_default();
    let name = model.to_ascii_lowercase();
    // It can be written in two ways, and in either case.
    if models.get(&name).is_some_and(|other| *other != row) {
        let fault = "it stands there twice, with other figures; keep one of them".to_owned();
        return Err(error(place, fault));
    }
    models.insert(name, row);
    Ok(())
}

/// The name without a date at its end: `-2024-08-06`, `-20250929` or `-0613`.
fn undated(name: &str) -> Option<&str> {
    let is = |date: &str, dashes: &[usize]| {
        let mut bytes = date.bytes().enumerate();
        bytes.all(|(at, byte)| match dashes.contains(&at) {
            true => byte == b'-',
            false => byte.is_ascii_digit(),
        })
    };
    let forms = [(11, [0, 5, 8].as_slice()), (9, &[0]), (5, &[0])];
    forms.into_iter().find_map(|(length, dashes)| {
        let at = name.len().checked_sub(length)?;
        let (rest, date) = name.split_at_checked(at)?;
        let is = is(date, dashes) && (length > 5 || is_day(date));
        is.then_some(rest)
    })
}

/// Whether `-0613` is a day of a year; `-2508` is not, it would be a month.
fn is_day(date: &str) -> bool {
    let number = |range| date.get(range).and_then(|two: &str| two.parse::<u8>().ok());
    let (month, day) = (number(1..3), number(3..5));
    month.is_some_and(|month| (1..=12).contains(&month))
        && day.is_some_and(|day| (1..=31).contains(&day))
}

/// A model of Bedrock's without the region that its calls are kept in.
fn regionless<'n>(vendor: &str, name: &'n str) -> Option<&'n str> {
    let (region, model) = name.split_once('.').filter(|_| vendor == "bedrock")?;
    // A model's own name is behind its maker's.
    (BEDROCK_REGIONS.contains(&region) && model.contains('.')).then_some(model)
}

/// A vendor's own name.
fn vendor(given: &str) -> Result<&'static str, String> {
    if let Ok(vendor) = Vendor::named(given) {
        return Ok(vendor.name);
    }
    let names = || crate::vendor::VENDORS.iter().map(|vendor| vendor.name);
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

fn error(place: &[&str], fault: String) -> ModelError {
    ModelError {
        place: place.iter().map(|part| (*part).to_owned()).collect(),
        fault,
    }
}

fn at(place: &[String]) -> String {
    place.iter().map(|part| format!(", {part}")).collect()
}

#[cfg(test)]
mod tests;
