//! [`ModelBook`]: the known facts about models: built in, or configured by the user. It does not ask
//! servers. A window that the server reports (see `discovery.rs`) overrides them.

mod facts;
mod row;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use plimsoll_context::Rates;
use toml::{Table, Value};

pub use facts::{Fact, ModelFacts, Origin, Prices};
pub use row::{MAX_PRICE, MAX_WINDOW, MIN_PRICE, MIN_WINDOW, MODEL_KEYS};

use crate::cache_lifetime::{MARKED, keeps_by_mark};
use crate::model_ref::ModelRef;
use crate::vendor::{self, ServerLocation, Vendor};

/// The parsed file. Empty if it cannot be parsed, which a test excludes.
static BUILT_IN: LazyLock<ModelBook> = LazyLock::new(|| {
    ModelBook::parse(include_str!("../data/models.toml"), Origin::BuiltIn).unwrap_or_default()
});

/// The prefixes of Bedrock's inference profiles.
const BEDROCK_REGIONS: [&str; 9] = [
    "us", "us-gov", "eu", "apac", "au", "ca", "jp", "in", "global",
];

/// Rows by vendor and name.
type Rows = BTreeMap<String, BTreeMap<String, ModelFacts>>;

/// The known facts about models.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelBook {
    /// The user's own rows. They override the built-in ones.
    own: Rows,
    built_in: Rows,
}

/// An error in the facts about models, with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("models{}: {fault}", at(.place))]
pub struct ModelError {
    /// The place: a vendor, a model and a key, as far as they are known.
    pub place: Vec<String>,
    /// The fault and how to fix it.
    pub fault: String,
}

/// Returns the provider of the model with this name, if the built-in data contains exactly one.
pub(crate) fn provider_of(name: &str) -> Option<&'static str> {
    let mut having = BUILT_IN
        .models()
        .filter(|(_, model)| model.eq_ignore_ascii_case(name))
        .filter_map(|(vendor, _)| Vendor::named(vendor).ok());
    let first = having.next()?;
    having.next().is_none().then_some(first.name)
}

impl ModelBook {
    /// Returns the built-in facts.
    #[must_use]
    pub fn built_in() -> &'static Self {
        &BUILT_IN
    }

    /// Parses rows in the form of `data/models.toml`: a table for each vendor that contains a table
    /// for each model.
    ///
    /// ```
    /// use plimsoll_providers::{ModelBook, ModelRef, Origin};
    ///
    /// let mine = "[openai.gpt-9]\nwindow = 400_000\ninput = 2.0\noutput = 8.0";
    /// let mine = ModelBook::parse(mine, Origin::Configuration)?;
    /// let book = ModelBook::built_in().clone().overlay(mine);
    /// let model = ModelRef::parse("openai/gpt-9").expect("a known vendor");
    /// let facts = book.facts(&model);
    /// assert_eq!(facts.window.expect("it was said").from, Origin::Configuration);
    /// assert!(facts.sheet().is_some());
    ///
    /// let bad = "[openai.gpt-9]\ninput = -2.0\noutput = 8.0";
    /// let error = ModelBook::parse(bad, Origin::Configuration).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "models, openai, gpt-9, input: -2 is no price; give dollars for a million tokens, 0 or more"
    /// );
    /// # Ok::<(), plimsoll_providers::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError`] for the first fault: invalid TOML, an unknown vendor or key, a price that is
    /// missing, negative, not a number or apparently for one token instead of a million, or an
    /// implausible size.
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
        let (book, errors) = Self::of(&table, from);
        errors.into_iter().next().map_or(Ok(book), Err)
    }

    /// Creates a book from a parsed table, such as a part of a configuration, without the rows that are
    /// faulty. Also returns all faults of these.
    #[must_use]
    pub fn of(table: &Table, from: Origin) -> (Self, Vec<ModelError>) {
        let mut book = Self::default();
        let rows = match from {
            Origin::BuiltIn => &mut book.built_in,
            Origin::Configuration => &mut book.own,
        };
        let mut errors = Vec::new();
        for (given, models) in table {
            match (vendor(given), models) {
                (Err(fault), _) => errors.push(error(&[given], fault)),
                (Ok(vendor), Value::Table(models)) => {
                    let rows = rows.entry(vendor.to_owned()).or_default();
                    for (model, row) in models {
                        let added = insert(rows, (given, model), row, from);
                        errors.extend(added.err().into_iter().flatten());
                    }
                }
                _ => {
                    let fault = "expected a table of models, such as [openai.\"gpt-5\"]";
                    errors.push(error(&[given], fault.to_owned()));
                }
            }
        }
        (book, errors)
    }

    /// Adds the rows of another book. They replace those of this book about the same models, but own
    /// rows always override built-in ones.
    #[must_use]
    pub fn overlay(mut self, other: Self) -> Self {
        let both = [
            (&mut self.own, other.own),
            (&mut self.built_in, other.built_in),
        ];
        for (rows, others) in both {
            for (vendor, models) in others {
                rows.entry(vendor).or_default().extend(models);
            }
        }
        self
    }

    /// Returns the known facts about a model, with their sources. A model on this machine is free,
    /// unless the book gives a price.
    #[must_use]
    pub fn facts(&self, model: &ModelRef) -> ModelFacts {
        let mut facts = self.find(model.vendor().name, model.name());
        let place = model.vendor().place;
        let is_here = matches!(place, ServerLocation::ThisMachine | ServerLocation::Ours);
        if facts.prices.is_none() && is_here {
            let free = Prices {
                rates: Rates::FREE,
                longer_write: None,
                long: None,
            };
            facts.prices = Some(Fact {
                value: free,
                from: Origin::BuiltIn,
            });
        }
        // Requests can set this lifetime even if nothing is known about the model, and it is
        // charged then.
        if facts.longer_lives.is_none() && keeps_by_mark(model) {
            facts.longer_lives = Some(Fact {
                value: MARKED,
                from: Origin::BuiltIn,
            });
        }
        facts
    }

    /// Returns the facts about a vendor's model, or about the same model of the vendor in
    /// `same_as`. If a source does not contain a name with a date, the name without the date is
    /// looked up.
    #[must_use]
    pub fn find(&self, vendor: &str, model: &str) -> ModelFacts {
        let name = model.to_ascii_lowercase();
        let other = Vendor::named(vendor).ok().and_then(|vendor| vendor.same_as);
        let mut facts = ModelFacts::default();
        for rows in [&self.own, &self.built_in] {
            let row = |vendor: &str| {
                let models = rows.get(vendor)?;
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

    /// Returns the vendor and name of each model with a row, sorted and without duplicates.
    pub fn models(&self) -> impl Iterator<Item = (&str, &str)> {
        let rows = self.own.iter().chain(&self.built_in);
        let models = rows.flat_map(|(vendor, models)| {
            let names = models.keys();
            names.map(|name| (vendor.as_str(), name.as_str()))
        });
        models.collect::<BTreeSet<_>>().into_iter()
    }

    /// Returns the number of models in the book.
    #[must_use]
    pub fn len(&self) -> usize {
        self.models().count()
    }

    /// Checks whether the book is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.built_in.is_empty()
    }
}

fn insert(
    models: &mut BTreeMap<String, ModelFacts>,
    (vendor, model): (&str, &str),
    row: &Value,
    from: Origin,
) -> Result<(), Vec<ModelError>> {
    let place = [vendor, model];
    let Value::Table(row) = row else {
        let fault = "expected a table, such as { window = 400_000, input = 1.25, output = 10.0 }";
        return Err(vec![error(&place, fault.to_owned())]);
    };
    let row = ModelFacts::of(row, from).map_err(|faults| {
        let faults = faults.into_iter().map(|(key, fault)| {
            let place: Vec<&str> = place.into_iter().chain(key.as_deref()).collect();
            error(&place, fault)
        });
        faults.collect::<Vec<ModelError>>()
    })?;
    let name = model.to_ascii_lowercase();
    // A model can be written in either case, and its vendor by another name.
    if models.get(&name).is_some_and(|other| *other != row) {
        let fault = "it stands there twice, with other figures; keep one of them".to_owned();
        return Err(vec![error(&place, fault)]);
    }
    models.insert(name, row);
    Ok(())
}

/// Returns the name without a date at its end, such as `-2024-08-06`, `-20250929` or `-0613`.
fn undated(name: &str) -> Option<&str> {
    let forms = ["-0000-00-00", "-00000000", "-0000"];
    forms.into_iter().find_map(|form| {
        let at = name.len().checked_sub(form.len())?;
        let (rest, date) = name.split_at_checked(at)?;
        let fits = |(form, byte): (u8, u8)| match form {
            b'0' => byte.is_ascii_digit(),
            dash => byte == dash,
        };
        let is_date = form.bytes().zip(date.bytes()).all(fits) && (date.len() > 5 || is_day(date));
        is_date.then_some(rest)
    })
}

/// Checks whether a suffix such as `-0613` is a month and a day. In `-2508` the month would be 25.
fn is_day(date: &str) -> bool {
    let number = |range| date.get(range).and_then(|two: &str| two.parse::<u8>().ok());
    let (month, day) = (number(1..3), number(3..5));
    month.is_some_and(|month| (1..=12).contains(&month))
        && day.is_some_and(|day| (1..=31).contains(&day))
}

/// Returns the name of a Bedrock model without the region of its inference profile.
fn regionless<'n>(vendor: &str, name: &'n str) -> Option<&'n str> {
    let (region, model) = name.split_once('.').filter(|_| vendor == "bedrock")?;
    // The model's own name follows its maker's.
    (BEDROCK_REGIONS.contains(&region) && model.contains('.')).then_some(model)
}

/// Returns the canonical name of a vendor.
fn vendor(given: &str) -> Result<&'static str, String> {
    let found = Vendor::find(given).map_err(|nearest| {
        let (mean, known) = (did_you_mean(nearest), vendor::names());
        format!("there is no such provider; {mean}known are: {known}")
    });
    found.map(|vendor| vendor.name)
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
