//! `cargo xtask prices FILE --source TEXT`: renews the prices in `crates/providers/data/models.toml` from
//! LiteLLM's table of models, `model_prices_and_context_window.json`, which its packages on PyPI contain
//! as `model_prices_and_context_window_backup.json`.
//!
//! Rows, comments and all other facts stay as they are. A row keeps its prices if the table has none.

use std::fmt::Write;
use std::path::Path;

use regex::Regex;
use serde_json::Value as Json;

use crate::error::Error;

const MODELS: &str = "crates/providers/data/models.toml";
/// Our vendors, and their names in the table, which are also prefixes of model names there.
const NAMES: [(&str, &[&str]); 12] = [
    ("openai", &["openai"]),
    ("anthropic", &["anthropic"]),
    ("gemini", &["gemini"]),
    ("bedrock", &["bedrock", "bedrock_converse"]),
    ("openrouter", &["openrouter"]),
    ("groq", &["groq"]),
    ("mistral", &["mistral"]),
    ("deepseek", &["deepseek"]),
    ("xai", &["xai"]),
    ("together", &["together_ai"]),
    ("kimi", &["moonshot"]),
    ("cohere", &["cohere_chat", "cohere"]),
];
/// Begins the line with the source and the date.
const SOURCE: &str = "# Prices: ";
/// The keys of a row that are renewed.
const RENEWED: &str =
    r"\b(long = \{[^}]*\}|(input|output|cache_read|cache_write|longer_write) = [0-9._]+), ";

/// Renews the prices.
pub(crate) fn run(root: &Path, table: &Path, source: &str) -> Result<(), Error> {
    let read = |path: &Path| std::fs::read_to_string(path).map_err(Error::file(path));
    let models = root.join(MODELS);
    let prices: Json = serde_json::from_str(&read(table)?).map_err(|why| unreadable(&why))?;
    let (text, renewed) = renewed(&read(&models)?, &prices, source)?;
    std::fs::write(&models, text).map_err(Error::file(&models))?;
    println!("{renewed} rows have prices of {source}");
    Ok(())
}

fn unreadable(why: &dyn std::error::Error) -> Error {
    Error::Unreadable {
        what: "prices".to_owned(),
        why: why.to_string(),
    }
}

/// Returns the file with renewed prices, and the number of renewed rows.
fn renewed(models: &str, table: &Json, source: &str) -> Result<(String, usize), Error> {
    let pattern = |text: &str| Regex::new(text).map_err(|why| unreadable(&why));
    let row = pattern(r#"^"([^"]+)" = \{ (.*) \}$"#)?;
    let old = pattern(RENEWED)?;
    let (mut vendor, mut count) = ("", 0);
    let mut text = String::new();
    for line in models.lines() {
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            vendor = name;
        }
        let found = row.captures(line).and_then(|row| {
            let (name, facts) = (row.get(1)?.as_str(), row.get(2)?.as_str());
            let keeps_longer = facts.contains("longer_lives = ");
            let (_, theirs) = NAMES.iter().find(|(ours, _)| *ours == vendor)?;
            let prices = prices(&entries(table, theirs, name), keeps_longer)?;
            Some((name, format!("{facts}, "), prices))
        });
        match found {
            Some((name, facts, prices)) => {
                let facts = old.replace_all(&facts, "");
                let facts = facts.trim_end_matches([',', ' ']);
                let (size, rest) = facts.split_at(end_of_sizes(facts));
                let keys = [size, prices.as_str(), rest].map(|part| part.trim_matches([',', ' ']));
                let keys: Vec<&str> = keys.into_iter().filter(|part| !part.is_empty()).collect();
                let _ = writeln!(text, "\"{name}\" = {{ {} }}", keys.join(", "));
                count += 1;
            }
            None if line.starts_with(SOURCE) => {
                let _ = writeln!(text, "{SOURCE}{source}.");
            }
            None => {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    Ok((text, count))
}

/// Returns the position behind the window and the output limit, which come first in a row.
fn end_of_sizes(facts: &str) -> usize {
    let sizes = ["window = ", "max_output = "];
    let mut end = 0;
    for part in facts.split_inclusive(", ") {
        if !sizes.iter().any(|size| part.starts_with(size)) {
            break;
        }
        end += part.len();
    }
    end
}

/// Returns the entries of a model: those of its name or else of its dated names, and of all regions.
fn entries<'t>(table: &'t Json, theirs: &[&str], name: &str) -> Vec<&'t Json> {
    let all = table.as_object().into_iter().flatten();
    let all = all.filter(|(_, entry)| {
        let of = entry.get("litellm_provider").and_then(Json::as_str);
        of.is_some_and(|of| theirs.contains(&of))
    });
    let bare = |full: &'t str| {
        let mut prefixes = theirs.iter();
        let bare = prefixes.find_map(|prefix| full.strip_prefix(prefix)?.strip_prefix('/'));
        bare.unwrap_or(full)
    };
    let all: Vec<(&str, &Json)> = all.map(|(full, entry)| (bare(full), entry)).collect();
    // The cloud of the American government has prices of its own.
    let regional = |full: &str| {
        let region = full.split_once('.').filter(|(_, rest)| *rest == name);
        region.is_some_and(|(region, _)| region != "us-gov")
    };
    let exact = all
        .iter()
        .filter(|(full, _)| *full == name || regional(full));
    let exact: Vec<&Json> = exact.map(|(_, entry)| *entry).collect();
    if !exact.is_empty() {
        return exact;
    }
    let dated = all.iter().filter(|(full, _)| {
        let date = full
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-'));
        date.is_some_and(is_date)
    });
    let newest = dated.max_by_key(|(full, _)| *full);
    newest.map(|(_, entry)| *entry).into_iter().collect()
}

/// Checks whether the end of a name is a date: `0613`, `20250929` or `2024-08-06`.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let is_number = |part: &&str| part.chars().all(|c| c.is_ascii_digit());
    matches!(lengths.as_slice(), [4 | 8] | [4, 2, 2]) && parts.iter().all(is_number)
}

/// Returns the highest prices of these entries as keys of a row.
fn prices(entries: &[&Json], keeps_longer: bool) -> Option<String> {
    let dollars = |key: &str| {
        let prices = entries.iter().filter_map(|entry| entry.get(key)?.as_f64());
        let price = prices.fold(0.0, f64::max);
        // Round away the floating-point error of multiplying a price per token.
        (price > 0.0).then(|| (price * 1e12).round() / 1e6)
    };
    let (input, output) = ("input_cost_per_token", "output_cost_per_token");
    let (read, write) = (
        "cache_read_input_token_cost",
        "cache_creation_input_token_cost",
    );
    let usual = [
        ("input", Some(dollars(input)?)),
        ("output", Some(dollars(output)?)),
        ("cache_read", dollars(read)),
        ("cache_write", dollars(write)),
    ];
    let mut keys = shown(&usual);
    let longer = dollars(&format!("{write}_above_1hr"));
    if let Some(longer) = longer.filter(|_| keeps_longer) {
        let _ = write!(keys, ", longer_write = {}", amount(longer));
    }
    let lengths = entries.iter().filter_map(|entry| entry.as_object());
    let lengths = lengths.flat_map(|entry| entry.keys()).filter_map(|key| {
        let length = key.strip_prefix("input_cost_per_token_above_")?;
        length.strip_suffix("k_tokens")?.parse::<u64>().ok()
    });
    if let Some(length) = lengths.min() {
        let above = |key: &str| dollars(&format!("{key}_above_{length}k_tokens")).or(dollars(key));
        let long = [
            ("input", above(input)),
            ("output", above(output)),
            ("cache_read", above(read)),
            ("cache_write", above(write)),
        ];
        let _ = write!(
            keys,
            ", long = {{ above = {length}_000, {} }}",
            shown(&long)
        );
    }
    Some(keys)
}

fn shown(keys: &[(&str, Option<f64>)]) -> String {
    let keys = keys.iter();
    let keys = keys.filter_map(|(key, price)| Some(format!("{key} = {}", amount((*price)?))));
    keys.collect::<Vec<_>>().join(", ")
}

/// Formats dollars with at least two decimals.
fn amount(dollars: f64) -> String {
    let text = dollars.to_string();
    match text.split_once('.') {
        Some((_, decimals)) if decimals.len() >= 2 => text,
        _ => format!("{dollars:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prices_are_renewed_and_everything_else_stays() {
        let models = "# Prices: old.\n[openai]\n# A comment.\n\
            \"a\" = { window = 9, input = 1.00, output = 2.00, cache_lives = 5, images = true }\n\
            \"b\" = { window = 9, max_output = 2, tools = true }\n\
            \"c\" = { window = 9, input = 7.00, output = 8.00 }\n";
        let table = json!({
            "a": {"litellm_provider": "openai", "input_cost_per_token": 3e-6,
                "output_cost_per_token": 1.5e-5, "input_cost_per_token_above_200k_tokens": 6e-6},
            "openai/b-2026-01-02": {"litellm_provider": "openai", "input_cost_per_token": 7.5e-8,
                "output_cost_per_token": 3e-7, "cache_read_input_token_cost": 1e-8},
            "c": {"litellm_provider": "azure", "input_cost_per_token": 1e-6,
                "output_cost_per_token": 1e-6},
        });
        let (text, count) = renewed(models, &table, "table 2 of today").unwrap();
        assert_eq!(count, 2);
        assert_eq!(
            text,
            "# Prices: table 2 of today.\n[openai]\n# A comment.\n\
             \"a\" = { window = 9, input = 3.00, output = 15.00, long = { above = 200_000, \
             input = 6.00, output = 15.00 }, cache_lives = 5, images = true }\n\
             \"b\" = { window = 9, max_output = 2, input = 0.075, output = 0.30, \
             cache_read = 0.01, tools = true }\n\
             \"c\" = { window = 9, input = 7.00, output = 8.00 }\n"
        );
        let again = renewed(&text, &table, "table 2 of today").unwrap();
        assert_eq!(again.0, text);
    }
}
