//! [`published`]: converts LiteLLM's table of models to rows of our form, for the providers that we
//! know. Implausible values are left out and counted. Downloads and writes nothing.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value as Json};
use toml::{Table, Value};

use super::ModelBook;
use super::facts::{ModelFacts, Origin};
use crate::vendor::VENDORS;

/// The maximum number of rows. Today the whole table has half as many.
pub const MAX_MODELS: usize = 10_000;
/// The maximum length of a name.
const MAX_NAME: usize = 200;
/// The longer cache lifetime that the table has a price for, in seconds.
const LONGER: i64 = 3_600;
/// The first line of a table that this module writes.
const HEAD: &str = "# Written by `plimsoll models update`, which writes over it; your own figures stand in models.toml.";

/// The modes of models that generate text.
const MODES: [&str; 2] = ["chat", "responses"];
/// For some of OpenAI's models the table gives the whole window instead of the limit of the input.
/// Longer input is refused. Each pair is a window and its input limit.
const WHOLE_WINDOWS: [(i64, i64); 2] = [(400_000, 272_000), (1_050_000, 922_000)];
/// The window of older Claude models without a beta header, which Plimsoll does not send. For these
/// the table gives the window with the header, and a higher price above this length.
const LONG: i64 = 200_000;

/// The result of converting a table.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedTable {
    /// The rows.
    pub book: ModelBook,
    /// The rows as a file.
    pub text: String,
    /// The number of implausible values and of rows beyond [`MAX_MODELS`].
    pub left_out: usize,
}

/// The reasons why a table is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The table is not valid JSON.
    #[error(
        "the table of models is no JSON: {0}; name LiteLLM's model_prices_and_context_window.json"
    )]
    NotJson(String),
    /// The table contains none of our providers' models.
    #[error(
        "the table of models has no model of a provider that we know; name LiteLLM's model_prices_and_context_window.json"
    )]
    Nothing,
}

/// Converts a table. `source` and `date` are written into the file, for readers.
///
/// # Errors
/// If the data is not such a table.
pub fn published(json: &[u8], source: &str, date: &str) -> Result<PublishedTable, TableError> {
    let table: Map<String, Json> =
        serde_json::from_slice(json).map_err(|error| TableError::NotJson(error.to_string()))?;
    let mut left_out = 0;
    let mut rows: BTreeMap<&str, BTreeMap<String, Table>> = BTreeMap::new();
    let mut kept = 0;
    for (name, entry) in &table {
        let Some((vendor, name)) = whose(name, entry) else {
            continue;
        };
        if kept == MAX_MODELS {
            left_out += 1;
            continue;
        }
        let row = row(vendor, &name, entry, &mut left_out);
        if !row.is_empty() {
            kept += 1;
            rows.entry(vendor).or_default().insert(name, row);
        }
    }
    if kept == 0 {
        return Err(TableError::Nothing);
    }
    let source: String = source.chars().filter(|c| !c.is_control()).collect();
    let mut text = format!("{HEAD}\n# from: {source}\n# date: {date}\n");
    for (vendor, models) in &rows {
        let _ = write!(text, "\n[{vendor}]\n");
        for (name, row) in models {
            // A dated name falls back to the name without its date.
            if super::undated(name).and_then(|name| models.get(name)) == Some(row) {
                continue;
            }
            let name = Value::String(name.clone());
            let row = Value::Table(row.clone());
            let line = format!("{name} = {row}");
            // Some names are not valid TOML keys.
            match line.parse::<Table>() {
                Ok(_) => text.extend([line.as_str(), "\n"]),
                Err(_) => left_out += 1,
            }
        }
    }
    let book = ModelBook::parse(&text, Origin::Published);
    let book = book.map_err(|error| TableError::NotJson(error.to_string()))?;
    if book.is_empty() {
        return Err(TableError::Nothing);
    }
    Ok(PublishedTable {
        book,
        text,
        left_out,
    })
}

impl PublishedTable {
    /// Returns the source and the date in the head of a converted file.
    #[must_use]
    pub fn head(text: &str) -> (Option<&str>, Option<&str>) {
        let line = |key: &str| text.lines().take(3).find_map(|line| line.strip_prefix(key));
        (line("# from: "), line("# date: "))
    }
}

/// Returns our vendor and the model's name for a relevant row.
fn whose(name: &str, entry: &Json) -> Option<(&'static str, String)> {
    let text = |key: &str| entry.get(key).and_then(Json::as_str);
    if !MODES.contains(&text("mode")?) {
        return None;
    }
    let of = text("litellm_provider")?;
    let vendor = VENDORS.iter().find(|vendor| vendor.litellm.contains(&of))?;
    let mut prefixes = vendor.litellm.iter();
    let bare = prefixes.find_map(|prefix| name.strip_prefix(prefix)?.strip_prefix('/'));
    let name = bare.unwrap_or(name).to_ascii_lowercase();
    // For Bedrock the table also prices regions and commitments, which are not model names.
    let is_name = vendor.name != "bedrock" || !name.contains('/');
    let shown = !name.contains(char::is_control);
    let good = is_name && shown && !name.is_empty() && name.len() <= MAX_NAME;
    good.then_some((vendor.name, name))
}

/// Converts an entry, group by group. A group with an implausible value is left out.
fn row(vendor: &str, name: &str, entry: &Json, left_out: &mut usize) -> Table {
    let mut row = Table::new();
    let mut add = |group: Vec<(&str, Option<Value>)>| {
        let said = group
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let group: Table = said.collect();
        match ModelFacts::of(&group, Origin::Published) {
            Ok(_) => row.extend(group),
            Err(_) => *left_out += 1,
        }
    };
    let whole = |key: &str| entry.get(key).and_then(number);
    let most = whole("max_output_tokens");
    let window = whole("max_input_tokens").map(|window| {
        let totals = WHOLE_WINDOWS.iter().filter(|_| vendor == "openai");
        let mut input = totals
            .filter(|(total, _)| *total == window)
            .map(|(_, input)| *input);
        let window = input.next_back().unwrap_or(window);
        if window > LONG && is_behind_beta(vendor, name, entry) {
            LONG
        } else {
            window
        }
    });
    add(vec![("window", window.map(Value::Integer))]);
    add(vec![("max_output", most.map(Value::Integer))]);
    add(prices(entry));
    let minimum = whole("prompt_cache_min_tokens").map(Value::Integer);
    add(vec![("min_cacheable", minimum)]);
    for (theirs, ours) in [
        ("supports_vision", "images"),
        ("supports_reasoning", "thinking"),
        ("supports_function_calling", "tools"),
    ] {
        let said = entry.get(theirs).and_then(Json::as_bool);
        add(vec![(ours, said.map(Value::Boolean))]);
    }
    row
}

/// Checks whether a Claude model takes more than [`LONG`] tokens only with a beta header.
fn is_behind_beta(vendor: &str, name: &str, entry: &Json) -> bool {
    if !name.contains("claude") {
        return false;
    }
    let built_in = ModelBook::built_in().find(vendor, name).window;
    match built_in {
        Some(fact) => fact.value.0 == LONG.unsigned_abs(),
        None => {
            let mut keys = entry.as_object().into_iter().flat_map(Map::keys);
            keys.any(|key| key.ends_with("_above_200k_tokens"))
        }
    }
}

/// Returns the prices, and those of long prompts if they are higher.
fn prices(entry: &Json) -> Vec<(&'static str, Option<Value>)> {
    let dollars = |key: &str| {
        let one = entry.get(key).and_then(Json::as_f64)?;
        // Round away the floating-point error of multiplying a price per token.
        Some((one * 1e12).round() / 1e6)
    };
    let (input, output) = (
        dollars("input_cost_per_token"),
        dollars("output_cost_per_token"),
    );
    // The table gives 0 for an unknown price.
    let known = input.is_some_and(|input| input > 0.0) && output.is_some();
    if !known {
        return Vec::new();
    }
    let some = |price: Option<f64>| price.filter(|price| *price > 0.0).map(Value::Float);
    let longer = some(dollars("cache_creation_input_token_cost_above_1hr"));
    vec![
        ("input", some(input)),
        ("output", output.map(Value::Float)),
        ("cache_read", some(dollars("cache_read_input_token_cost"))),
        (
            "cache_write",
            some(dollars("cache_creation_input_token_cost")),
        ),
        (
            "longer_lives",
            longer.as_ref().map(|_| Value::Integer(LONGER)),
        ),
        ("longer_write", longer),
        ("long", long(entry, dollars)),
    ]
}

/// Returns the prices of prompts above the first length at which they rise.
fn long(entry: &Json, dollars: impl Fn(&str) -> Option<f64>) -> Option<Value> {
    let lengths = entry.as_object()?.keys().filter_map(|key| {
        let length = key.strip_prefix("input_cost_per_token_above_")?;
        length.strip_suffix("k_tokens")?.parse::<i64>().ok()
    });
    let length = lengths.min()?;
    let price = |key: &str| {
        let price = dollars(&format!("{key}_above_{length}k_tokens")).or_else(|| dollars(key));
        Some(Value::Float(price.filter(|price| *price > 0.0)?))
    };
    let keys = [
        ("input", price("input_cost_per_token")),
        ("output", price("output_cost_per_token")),
        ("cache_read", price("cache_read_input_token_cost")),
        ("cache_write", price("cache_creation_input_token_cost")),
    ];
    let keys = keys.into_iter();
    let mut long: Table = keys
        .filter_map(|(key, price)| Some((key.to_owned(), price?)))
        .collect();
    long.insert("above".to_owned(), Value::Integer(length * 1_000));
    Some(Value::Table(long))
}

/// Parses a whole number that is written as a number or a string.
fn number(value: &Json) -> Option<i64> {
    let text = value.as_str().and_then(|text| text.parse::<i64>().ok());
    let float = || {
        let float = value.as_f64()?;
        (float.fract() == 0.0 && float.abs() < 1e15).then_some(float as i64)
    };
    value.as_i64().or(text).or_else(float)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelRef;
    use plimsoll_context::{Money, Tokens};

    /// Rows of LiteLLM 1.109.1's table (MIT), with only the relevant keys.
    const TABLE: &[u8] = include_bytes!("../../tests/tables/litellm.json");
    const FROM: &str = "https://example.org/table.json";
    const DATE: &str = "Sat, 21 Nov 2026 20:00:00 GMT";

    fn table() -> PublishedTable {
        published(TABLE, FROM, DATE).unwrap()
    }

    fn facts(name: &str) -> ModelFacts {
        table().book.facts(&ModelRef::parse(name).unwrap())
    }

    fn one(entry: Json) -> Result<PublishedTable, TableError> {
        let table = serde_json::json!({ "gpt-9": entry });
        published(table.to_string().as_bytes(), FROM, DATE)
    }

    fn dollars(dollars: f64) -> Money {
        Money::from_dollars(dollars).unwrap()
    }

    #[test]
    fn rows_of_our_providers_are_kept_under_our_names() {
        let five = facts("openai/gpt-5");
        assert_eq!(five.window.unwrap().value, Tokens(272_000));
        assert_eq!(five.max_output.unwrap().value, Tokens(128_000));
        assert!(five.thinking.unwrap().value && five.images.unwrap().value);
        let prices = five.prices.unwrap();
        assert_eq!(prices.from, Origin::Published);
        assert_eq!(prices.value.rates.input, dollars(1.25));
        assert_eq!(prices.value.rates.cache_read, Some(dollars(0.125)));
        let claude = facts("anthropic/claude-sonnet-4-5-20250929");
        let prices = claude.prices.unwrap().value;
        assert_eq!(prices.rates.cache_write, Some(dollars(3.75)));
        assert_eq!(prices.longer_write, Some(dollars(6.0)));
        assert_eq!(claude.longer_lives.unwrap().value.as_secs(), 3_600);
        assert_eq!(claude.min_cacheable.unwrap().value, Tokens(1_024));
        assert!(facts("kimi/kimi-k2.5").window.is_some());
        assert!(facts("together/openai/gpt-oss-120b").prices.is_some());
        let names: Vec<String> = table()
            .book
            .models()
            .map(|(vendor, name)| format!("{vendor}/{name}"))
            .collect();
        for not_ours in ["azure", "embedding", "sample_spec", "llama3"] {
            assert!(
                !names.iter().any(|name| name.contains(not_ours)),
                "{names:?}"
            );
        }
    }

    #[test]
    fn prices_of_long_prompts_and_the_limits_of_the_input_are_known() {
        let long = facts("openai/gpt-5.4").prices.unwrap().value.long.unwrap();
        assert_eq!(long.above, Tokens(272_000));
        assert_eq!(long.rates.input, dollars(5.0));
        assert_eq!(long.rates.output, dollars(22.5));
        assert_eq!(long.rates.cache_read, Some(dollars(0.25)));
        let input = |name: &str| facts(name).window.unwrap().value;
        assert_eq!(input("openai/gpt-5.4"), Tokens(922_000), "the input's part");
        assert_eq!(input("openai/gpt-5.1-codex"), Tokens(272_000));
        // A dated name falls back to the name without its date, unless the values differ.
        let text = table().text;
        assert!(!text.contains("gpt-4o-2024-08-06"), "{text}");
        assert!(text.contains("gpt-4o-2024-05-13"), "{text}");
    }

    #[test]
    fn what_cannot_be_so_is_left_out_and_counted() {
        let good = serde_json::json!({ "litellm_provider": "openai", "mode": "chat",
            "max_input_tokens": 9_000, "max_output_tokens": 900,
            "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6 });
        let with = |key: &str, value: Json| {
            let mut entry = good.clone();
            entry[key] = value;
            one(entry).unwrap()
        };
        assert_eq!(one(good.clone()).unwrap().left_out, 0);
        for (key, value) in [
            ("max_input_tokens", Json::from(12)),
            ("max_input_tokens", 1e12.into()),
            ("max_output_tokens", (-1).into()),
            ("input_cost_per_token", 5.into()),
            ("output_cost_per_token", (-1e-6).into()),
        ] {
            let odd = with(key, value.clone());
            assert_eq!(odd.left_out, 1, "{key} {value}");
            assert_eq!(odd.book.len(), 1, "the rest of the row is kept");
        }
        let unknown = with("input_cost_per_token", 0.into());
        assert!(!unknown.text.contains("input ="), "{}", unknown.text);
        let written = with("max_input_tokens", "8192".into());
        assert!(written.text.contains("window = 8192"), "{}", written.text);
        assert_eq!(
            published(b"<html>", FROM, DATE)
                .unwrap_err()
                .to_string()
                .split(':')
                .next(),
            Some("the table of models is no JSON")
        );
        for nothing in [
            "{}",
            r#"{"a": 1}"#,
            r#"{"a": {"litellm_provider": "azure", "mode": "chat"}}"#,
        ] {
            assert_eq!(
                published(nothing.as_bytes(), FROM, DATE),
                Err(TableError::Nothing)
            );
        }
        // No name breaks the TOML, whatever it contains.
        let strange = serde_json::json!({ "x\" = 1 ]\n[openai": good });
        assert_eq!(
            published(strange.to_string().as_bytes(), FROM, DATE),
            Err(TableError::Nothing)
        );
        let quoted = serde_json::json!({ "a\"b = {": good });
        let quoted = published(quoted.to_string().as_bytes(), "from\nhere", DATE).unwrap();
        assert_eq!(
            quoted.book.models().collect::<Vec<_>>(),
            [("openai", "a\"b = {")]
        );
    }

    #[test]
    fn an_odd_name_costs_its_own_row_only() {
        let good = serde_json::json!({ "litellm_provider": "openai", "mode": "chat",
            "max_input_tokens": 9_000 });
        let odd = "both ' and \" = 1";
        let table = serde_json::json!({ odd: good, "fine": good, "back\\slash": good });
        let table = published(table.to_string().as_bytes(), FROM, DATE).unwrap();
        let names: Vec<_> = table.book.models().map(|(_, name)| name).collect();
        assert_eq!(names, ["back\\slash", "fine"]);
        assert_eq!(table.left_out, 1);
        let alone = serde_json::json!({ odd: good }).to_string();
        let alone = published(alone.as_bytes(), FROM, DATE);
        assert_eq!(alone, Err(TableError::Nothing));
    }

    #[test]
    fn a_window_that_wants_a_beta_is_not_taken() {
        for (provider, name, beyond, taken) in [
            ("anthropic", "claude-sonnet-4-20250514", true, 200_000),
            ("anthropic", "claude-sonnet-4-5", false, 200_000),
            ("anthropic", "claude-sonnet-4-6", true, 1_000_000),
            ("anthropic", "claude-tomorrow-9", false, 1_000_000),
            (
                "bedrock",
                "anthropic.claude-sonnet-4-20250514-v1:0",
                true,
                200_000,
            ),
            (
                "openrouter",
                "openrouter/anthropic/claude-sonnet-4",
                true,
                200_000,
            ),
            ("xai", "xai/grok-9", true, 1_000_000),
        ] {
            let mut entry = serde_json::json!({ "litellm_provider": provider, "mode": "chat",
                "max_input_tokens": 1_000_000 });
            if beyond {
                entry["input_cost_per_token_above_200k_tokens"] = 6e-6.into();
            }
            let table = serde_json::json!({ name: entry }).to_string();
            let table = published(table.as_bytes(), FROM, DATE).unwrap();
            let window = format!("window = {taken} ");
            assert!(table.text.contains(&window), "{name}: {}", table.text);
        }
    }

    #[test]
    fn its_file_is_read_back_the_same_and_says_where_it_is_from() {
        let table = table();
        let again = ModelBook::parse(&table.text, Origin::Published).unwrap();
        assert_eq!(again, table.book);
        assert_eq!(PublishedTable::head(&table.text), (Some(FROM), Some(DATE)));
    }
}
