//! Parses the forms of values that have several spellings.

use std::time::Duration;

use plimsoll_context::{Ppm, Tokens};
use toml::Value;

/// Maximum of a time in seconds. Longer times are effectively no limit.
const MAX_SECONDS: f64 = 365.0 * 24.0 * 3600.0;

pub(super) fn whole(given: &Value, least: u64) -> Option<u64> {
    let whole = u64::try_from(given.as_integer()?).ok()?;
    (whole >= least).then_some(whole)
}

pub(super) fn tokens(given: &Value, least: u64) -> Option<Tokens> {
    let tokens = match given {
        Value::String(text) => parse_tokens(text)?,
        _ => whole(given, least)?,
    };
    (tokens >= least).then_some(Tokens(tokens))
}

/// Parses a number of tokens such as `8000`, `8_000`, `8k` or `1m`. Returns `None` if it is not one,
/// or is larger than [`i64::MAX`].
#[must_use]
pub fn parse_tokens(text: &str) -> Option<u64> {
    let plain = text.trim().replace('_', "").to_ascii_lowercase();
    let (digits, factor) = match (plain.strip_suffix('k'), plain.strip_suffix('m')) {
        (Some(digits), _) => (digits, 1_000),
        (_, Some(digits)) => (digits, 1_000_000),
        _ => (plain.as_str(), 1),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok())??;
    let tokens = number.checked_mul(factor)?;
    i64::try_from(tokens).is_ok().then_some(tokens)
}

pub(crate) fn number(given: &Value) -> Option<f64> {
    let number = match given {
        Value::Float(number) => *number,
        Value::Integer(whole) => *whole as f64,
        _ => return None,
    };
    (number.is_finite() && number >= 0.0).then_some(number)
}

pub(super) fn share(given: &Value) -> Option<Ppm> {
    number(given).and_then(Ppm::from_fraction)
}

/// Parses a time: seconds, or a text with a unit.
pub(crate) fn time(given: &Value) -> Option<Duration> {
    let seconds = match given {
        Value::String(text) => {
            let text = text.trim();
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
            let unit = match text.strip_prefix(digits)?.trim() {
                "ms" => 0.001,
                "s" | "" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            number(&Value::Float(digits.parse().ok()?))? * unit
        }
        other => number(other)?,
    };
    let is_good = seconds > 0.0 && seconds <= MAX_SECONDS;
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (is_good && !time.is_zero()).then_some(time)
}

pub(super) fn text(given: &Value) -> Option<String> {
    given.as_str().map(str::to_owned)
}

/// Returns a text, or a list of texts.
pub(crate) fn texts(given: &Value) -> Option<Vec<String>> {
    match given {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Array(list) => list.iter().map(text).collect(),
        _ => None,
    }
}

/// Returns names: a list, or a text in which commas separate them.
pub(crate) fn names(given: &Value) -> Option<Vec<String>> {
    let names: Vec<String> = match given {
        Value::String(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        _ => texts(given)?,
    };
    names.iter().all(|name| !name.is_empty()).then_some(names)
}
