//! Parses and validates the facts of one source about one model.

use std::time::Duration;

use plimsoll_context::{LongPrompt, Money, Rates, Tokens, nearest};
use plimsoll_wire::Effort;
use toml::{Table, Value};

use super::did_you_mean;
use super::facts::{Fact, ModelFacts, Origin, Prices};

/// The highest plausible price, in dollars per million tokens.
pub const MAX_PRICE: f64 = 1_000_000.0;
/// The lowest plausible price above 0, in dollars per million tokens. A lower one is probably the
/// price of one token.
pub const MIN_PRICE: f64 = 0.000_1;
/// The smallest plausible window. A system prompt and a reply do not fit into less.
pub const MIN_WINDOW: Tokens = Tokens(512);
/// The largest plausible window: ten times the largest one on the market.
pub const MAX_WINDOW: Tokens = Tokens(100_000_000);

/// The keys of a row.
pub const MODEL_KEYS: [&str; 15] = [
    "input",
    "output",
    "cache_read",
    "cache_write",
    "cache_lives",
    "longer_write",
    "longer_lives",
    "long",
    "min_cacheable",
    "window",
    "max_output",
    "images",
    "thinking",
    "efforts",
    "tools",
];
/// The keys that are prices. They are only valid together; the others are independent.
const PRICE_KEYS: [&str; 6] = [
    "input",
    "output",
    "cache_read",
    "cache_write",
    "longer_write",
    "long",
];
/// The keys of the prices of long prompts.
const LONG_KEYS: [&str; 5] = ["above", "input", "output", "cache_read", "cache_write"];

/// A fault of a row: the key, if one key is at fault, and the message.
type Wrong = (Option<String>, String);

/// A row, with the faults that were found in it.
struct Row<'a> {
    table: &'a Table,
    faults: Vec<Wrong>,
}

impl ModelFacts {
    /// Parses a row. Returns all of its faults.
    pub(super) fn of(table: &Table, from: Origin) -> Result<Self, Vec<Wrong>> {
        let unknown = table
            .keys()
            .filter(|key| !MODEL_KEYS.contains(&key.as_str()));
        let faults = unknown.map(|key| {
            let known = MODEL_KEYS.join(", ");
            let mean = did_you_mean(nearest(key, MODEL_KEYS));
            let fault = format!("there is no such key; {mean}known are: {known}");
            (Some(key.clone()), fault)
        });
        let faults = faults.collect();
        let mut row = Row { table, faults };
        fn fact<T>(value: Option<T>, from: Origin) -> Option<Fact<T>> {
            value.map(|value| Fact { value, from })
        }
        let seconds = |value: &Value| whole(value).map(Duration::from_secs);
        let facts = Self {
            window: fact(row.get("window", |value| size(value, MIN_WINDOW)), from),
            max_output: fact(row.get("max_output", |value| size(value, Tokens(1))), from),
            prices: fact(row.prices(), from),
            cache_lives: fact(row.get("cache_lives", seconds), from),
            longer_lives: fact(row.get("longer_lives", seconds), from),
            min_cacheable: fact(row.get("min_cacheable", whole).map(Tokens), from),
            images: fact(row.get("images", flag), from),
            thinking: fact(row.get("thinking", flag), from),
            efforts: fact(row.get("efforts", efforts), from),
            tools: fact(row.get("tools", flag), from),
        };
        if row.faults.is_empty() {
            Ok(facts)
        } else {
            Err(row.faults)
        }
    }
}

impl Row<'_> {
    /// Reads the value of a key, if there is one.
    fn get<T>(&mut self, key: &str, read: impl Fn(&Value) -> Result<T, String>) -> Option<T> {
        let value = read(self.table.get(key)?);
        let fault = |fault| self.faults.push((Some(key.to_owned()), fault));
        value.map_err(fault).ok()
    }

    fn prices(&mut self) -> Option<Prices> {
        if !PRICE_KEYS.iter().any(|key| self.table.contains_key(*key)) {
            return None;
        }
        let rates = self.rates();
        let longer_write = self.get("longer_write", price);
        if longer_write.is_some() && !self.table.contains_key("longer_lives") {
            let fault = "`longer_write` is the price for `longer_lives`; set both";
            self.faults.push((None, fault.to_owned()));
        }
        let long = self.get("long", long);
        Some(Prices {
            rates: rates?,
            longer_write,
            long,
        })
    }

    fn rates(&mut self) -> Option<Rates> {
        for key in ["input", "output"]
            .iter()
            .filter(|key| !self.table.contains_key(**key))
        {
            let missing = format!("`{key}` is missing; give dollars for a million tokens");
            self.faults.push((None, missing));
        }
        let [input, output, cache_read, cache_write] =
            ["input", "output", "cache_read", "cache_write"].map(|key| self.get(key, price));
        Some(Rates {
            input: input?,
            output: output?,
            cache_read,
            cache_write: cache_write.or(cache_read.and(input)),
        })
    }
}

/// Parses the prices of requests with a long prompt.
fn long(value: &Value) -> Result<LongPrompt, String> {
    let Value::Table(row) = value else {
        return Err(format!(
            "{value} is no table; give `above` and the prices above it"
        ));
    };
    if let Some(unknown) = row.keys().find(|key| !LONG_KEYS.contains(&key.as_str())) {
        let known = LONG_KEYS.join(", ");
        return Err(format!("it has no key `{unknown}`; known are: {known}"));
    }
    let above = row.get("above").map(whole).transpose()?;
    let above = above.ok_or("`above` is missing; give the tokens of the longest usual prompt")?;
    let mut row = Row {
        table: row,
        faults: Vec::new(),
    };
    let rates = row.rates();
    let faults = row.faults.into_iter().map(|(_, fault)| fault);
    Ok(LongPrompt {
        above: Tokens(above),
        rates: rates.ok_or_else(|| faults.collect::<Vec<_>>().join("; "))?,
    })
}

fn price(value: &Value) -> Result<Money, String> {
    match value {
        Value::Float(dollars) => dollars_of(*dollars),
        Value::Integer(dollars) => dollars_of(*dollars as f64),
        other => Err(format!(
            "{other} is no price; give dollars for a million tokens as a number"
        )),
    }
}

/// Validates a price.
pub(super) fn dollars_of(dollars: f64) -> Result<Money, String> {
    let money = Money::from_dollars(dollars).map_err(|_| {
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
            "this is no price; give at most {MAX_PRICE} dollars for a million tokens"
        ));
    }
    Ok(money)
}

fn whole(value: &Value) -> Result<u64, String> {
    let number = value.as_integer();
    let number = number.and_then(|number| u64::try_from(number).ok());
    let number = number.filter(|number| *number > 0);
    number.ok_or_else(|| format!("{value} is no whole number above 0"))
}

/// Parses a plausible number of tokens.
fn size(value: &Value, least: Tokens) -> Result<Tokens, String> {
    let tokens = Tokens(whole(value)?);
    if (least..=MAX_WINDOW).contains(&tokens) {
        Ok(tokens)
    } else {
        Err(format!(
            "{tokens} tokens are not plausible; give {least} to {MAX_WINDOW}"
        ))
    }
}

fn flag(value: &Value) -> Result<bool, String> {
    let flag = value.as_bool();
    flag.ok_or_else(|| format!("{value} is neither true nor false"))
}

fn efforts(value: &Value) -> Result<Vec<Effort>, String> {
    let efforts = value.clone().try_into::<Vec<Effort>>();
    let mut efforts = efforts.map_err(|_| {
        let known = Effort::ALL.map(Effort::name).join(", ");
        format!("{value} is no list of efforts; known are: {known}")
    })?;
    efforts.sort_unstable();
    efforts.dedup();
    Ok(efforts)
}
