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
pub const MODEL_KEYS_OF_PRICES: [&str; 6] = [
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

impl ModelFacts {
    /// Parses a row.
    pub(super) fn of(row: &Table, from: Origin) -> Result<Self, Wrong> {
        if let Some(unknown) = row.keys().find(|key| !MODEL_KEYS.contains(&key.as_str())) {
            let known = MODEL_KEYS.join(", ");
            let mean = did_you_mean(nearest(unknown, MODEL_KEYS));
            let fault = format!("there is no such key; {mean}known are: {known}");
            return Err((Some(unknown.clone()), fault));
        }
        fn fact<T>(value: Option<T>, from: Origin) -> Option<Fact<T>> {
            value.map(|value| Fact { value, from })
        }
        let seconds = |key| Ok(whole(row, key)?.map(Duration::from_secs));
        Ok(Self {
            window: fact(size(row, "window")?, from),
            max_output: fact(size(row, "max_output")?, from),
            prices: fact(prices(row)?, from),
            cache_lives: fact(seconds("cache_lives")?, from),
            longer_lives: fact(seconds("longer_lives")?, from),
            min_cacheable: fact(whole(row, "min_cacheable")?.map(Tokens), from),
            images: fact(flag(row, "images")?, from),
            thinking: fact(flag(row, "thinking")?, from),
            efforts: fact(efforts(row)?, from),
            tools: fact(flag(row, "tools")?, from),
        })
    }
}

fn prices(row: &Table) -> Result<Option<Prices>, Wrong> {
    if !MODEL_KEYS_OF_PRICES
        .iter()
        .any(|key| row.contains_key(*key))
    {
        return Ok(None);
    }
    let rates = rates(row)?;
    let longer_write = price(row, "longer_write")?;
    if longer_write.is_some() && !row.contains_key("longer_lives") {
        let fault = "`longer_write` is the price for `longer_lives`; set both";
        return Err((None, fault.to_owned()));
    }
    Ok(Some(Prices {
        rates,
        longer_write,
        long: long(row)?,
    }))
}

fn rates(row: &Table) -> Result<Rates, Wrong> {
    let needed = |key: &str| {
        let missing = format!("`{key}` is missing; give dollars for a million tokens");
        price(row, key)?.ok_or((None, missing))
    };
    let (input, output) = (needed("input")?, needed("output")?);
    let cache_read = price(row, "cache_read")?;
    Ok(Rates {
        input,
        output,
        cache_read,
        cache_write: price(row, "cache_write")?.or(cache_read.map(|_| input)),
    })
}

/// Parses the prices of requests with a long prompt.
fn long(row: &Table) -> Result<Option<LongPrompt>, Wrong> {
    let of_key = |(_, fault): Wrong| (Some("long".to_owned()), fault);
    let long = match row.get("long") {
        None => return Ok(None),
        Some(Value::Table(long)) => long,
        Some(other) => {
            let fault = format!("{other} is no table; give `above` and the prices above it");
            return wrong("long", fault);
        }
    };
    if let Some(unknown) = long.keys().find(|key| !LONG_KEYS.contains(&key.as_str())) {
        let known = LONG_KEYS.join(", ");
        return wrong(
            "long",
            format!("it has no key `{unknown}`; known are: {known}"),
        );
    }
    let Some(above) = whole(long, "above").map_err(of_key)? else {
        return wrong(
            "long",
            "`above` is missing; give the tokens of the longest usual prompt".to_owned(),
        );
    };
    Ok(Some(LongPrompt {
        above: Tokens(above),
        rates: rates(long).map_err(of_key)?,
    }))
}

fn price(row: &Table, key: &str) -> Result<Option<Money>, Wrong> {
    let dollars = match row.get(key) {
        None => return Ok(None),
        Some(Value::Float(dollars)) => *dollars,
        Some(Value::Integer(dollars)) => *dollars as f64,
        Some(other) => {
            let fault =
                format!("{other} is no price; give dollars for a million tokens as a number");
            return wrong(key, fault);
        }
    };
    dollars_of(dollars).map_or_else(|fault| wrong(key, fault), |money| Ok(Some(money)))
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
            "{dollars} is more than {MAX_PRICE} dollars for a million tokens; check it"
        ));
    }
    Ok(money)
}

fn wrong<T>(key: &str, fault: String) -> Result<T, Wrong> {
    Err((Some(key.to_owned()), fault))
}

fn whole(row: &Table, key: &str) -> Result<Option<u64>, Wrong> {
    match row.get(key) {
        None => Ok(None),
        Some(Value::Integer(number)) if *number > 0 => Ok(u64::try_from(*number).ok()),
        Some(value) => wrong(key, format!("{value} is no whole number above 0")),
    }
}

/// Parses a plausible number of tokens.
fn size(row: &Table, key: &str) -> Result<Option<Tokens>, Wrong> {
    let tokens = whole(row, key)?.map(Tokens);
    let least = match key {
        "window" => MIN_WINDOW,
        _ => Tokens(1),
    };
    match tokens {
        Some(tokens) if tokens < least || tokens > MAX_WINDOW => {
            let fault = format!("{tokens} tokens are not plausible; give {least} to {MAX_WINDOW}");
            wrong(key, fault)
        }
        tokens => Ok(tokens),
    }
}

fn flag(row: &Table, key: &str) -> Result<Option<bool>, Wrong> {
    match row.get(key) {
        None => Ok(None),
        Some(Value::Boolean(flag)) => Ok(Some(*flag)),
        Some(value) => wrong(key, format!("{value} is neither true nor false")),
    }
}

fn efforts(row: &Table) -> Result<Option<Vec<Effort>>, Wrong> {
    let key = "efforts";
    let Some(value) = row.get(key) else {
        return Ok(None);
    };
    let Ok(mut efforts) = value.clone().try_into::<Vec<Effort>>() else {
        let known = Effort::ALL.map(Effort::name).join(", ");
        return wrong(
            key,
            format!("{value} is no list of efforts; known are: {known}"),
        );
    };
    efforts.sort_unstable();
    efforts.dedup();
    Ok(Some(efforts))
}
