//! [`SettingKind`]: the spellings of a value in a file, a variable or a flag, for example a number of tokens
//! as `8000` or `"8k"`.

use std::time::Duration;

use plimsoll_context::{ArgumentDigest, Money, Ppm, Threshold, Tokens};
use plimsoll_core::Window;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::document::{Located, OUT_OF_RANGE, describe};
use super::fault::Faults;
use super::key::SettingKey;

/// A day in seconds.
const DAY: u64 = 24 * 60 * 60;
/// Maximum of a time. Longer times are effectively no limit.
const MAX_TIME: Duration = Duration::from_secs(365 * DAY);

/// The kind of a setting's value. Its accepted spellings are described in `data/settings.toml`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// True or false.
    Flag,
    /// A whole number.
    Whole,
    /// A number of tokens.
    Tokens,
    /// A number of tokens, or a share of the available ones.
    Size,
    /// A context window.
    Window,
    /// A fraction of 1.
    Share,
    /// A number of 0 or more, whose field bounds it.
    Number,
    /// Dollars, more than 0.
    Dollars,
    /// A time above zero.
    Time,
    /// A time in days.
    Days,
    /// A text.
    #[default]
    Text,
    /// A text that is not empty.
    Filled,
    /// A file or directory.
    Path,
    /// Files or directories.
    Paths,
    /// Names, as a list or separated by commas.
    Names,
    /// Texts.
    Texts,
    /// A program and its arguments.
    Words,
    /// One of some names.
    Choice,
    /// A value that a file spells as the log does.
    Written,
    /// Whether long texts in the arguments of old calls become digests, or from which length on.
    Digest,
    /// A list of tables.
    Tables,
    /// The name of an environment variable.
    Variable,
    /// A text that is never printed.
    Secret,
    /// Such texts by name.
    Secrets,
}

impl SettingKey {
    /// Converts a value to the form in which serde reads the field of the setting. Returns `None` if
    /// it has another form. The items of a list of tables are read by themselves.
    pub(super) fn converted(&self, given: &Located) -> Option<Json> {
        let (given, origin) = (&given.value, given.origin());
        let word = given.as_str().map(str::trim);
        if self.or_none && matches!(word, Some("none" | "unlimited")) {
            return Some(Json::Null);
        }
        let least = self.least.unwrap_or_default();
        Some(match self.kind {
            SettingKind::Flag => given.as_bool()?.into(),
            SettingKind::Whole => whole(given, least)?.into(),
            SettingKind::Tokens => tokens(given, least)?.0.into(),
            SettingKind::Size if given.is_f64() => json!(Threshold::Share(share(given)?)),
            SettingKind::Size => json!(Threshold::Sent(tokens(given, 1)?)),
            SettingKind::Window => json!(match word {
                Some("unknown") => Window::Unknown,
                _ => Window::Known(tokens(given, 1)?),
            }),
            SettingKind::Share => json!(share(given)?),
            SettingKind::Number => number(given)?.into(),
            SettingKind::Dollars => {
                let money = Money::from_dollars(number(given)?).ok();
                json!(money.filter(|money| money.0 > 0)?)
            }
            SettingKind::Time => json!(time(given)?),
            SettingKind::Days => {
                let seconds = whole(given, least)?.saturating_mul(DAY);
                json!(Duration::from_secs(seconds))
            }
            SettingKind::Text => given.as_str()?.into(),
            SettingKind::Filled | SettingKind::Secret => filled(given.as_str()?)?.into(),
            SettingKind::Path => origin.beside_file(filled(given.as_str()?)?).into(),
            SettingKind::Paths => {
                let paths = texts(given)?.into_iter();
                paths.map(|path| origin.beside_file(&path)).collect()
            }
            SettingKind::Variable => {
                let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let name = filled(given.as_str()?)?;
                name.chars().all(is_good).then(|| name.into())?
            }
            SettingKind::Texts => texts(given)?.into(),
            SettingKind::Names => names(given)?.into(),
            SettingKind::Words => {
                let words = texts(given).filter(|_| given.is_array())?;
                filled(words.first()?)?;
                words.into()
            }
            SettingKind::Choice => {
                // A name may be written with hyphens or underscores.
                let plain = |name: &str| name.replace('-', "_");
                let written = plain(word?);
                let mut names = self.choices.iter();
                names.find(|name| plain(name) == written)?.as_str().into()
            }
            SettingKind::Written => Some(given.clone()).filter(|given| !given.is_null())?,
            SettingKind::Digest => match given.as_bool() {
                Some(is_on) => json!(is_on.then(ArgumentDigest::default)),
                None => Some(given.clone()).filter(Json::is_object)?,
            },
            SettingKind::Tables => return None,
            SettingKind::Secrets => {
                let mut texts = given.as_object()?.values();
                texts.all(Json::is_string).then(|| given.clone())?
            }
        })
    }

    /// Reports a value that is not accepted, or an item of a list.
    pub(super) fn refuse(&self, given: &Located, faults: &mut Faults) {
        let takes = self.takes();
        let items = given.items().filter(|_| takes.starts_with("a list"));
        let is_wrong = |item: &Located| {
            let list = Located::new(json!([item.value]), item.origin());
            self.converted(&list).is_none()
        };
        let item = items.and_then(|mut items| items.find(is_wrong));
        let of = item.as_ref().map_or("", |_| "an item of ");
        let wrong = item.as_ref().unwrap_or(given);
        // A key is never printed. It may stand where its variable has to be named.
        let secrets = [
            SettingKind::Secret,
            SettingKind::Secrets,
            SettingKind::Variable,
        ];
        let described = match secrets.contains(&self.kind) {
            true => "wrong".to_owned(),
            false => describe(&wrong.value),
        };
        let name = &self.name;
        let text = format!("{of}`{name}` is {described}; give {takes}");
        faults.push(wrong.origin(), text);
    }
}

/// Returns a text if it is not empty.
fn filled(text: &str) -> Option<&str> {
    (!text.trim().is_empty()).then_some(text)
}

/// Reads a whole number that TOML has.
fn whole(given: &Json, least: u64) -> Option<u64> {
    let whole = u64::try_from(given.as_i64()?).ok()?;
    (whole >= least).then_some(whole)
}

fn tokens(given: &Json, least: u64) -> Option<Tokens> {
    let tokens = match given.as_str() {
        Some(text) => parse_tokens(text).filter(|tokens| *tokens >= least),
        None => whole(given, least),
    };
    tokens.map(Tokens)
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
    let number: i64 = is_number.then(|| digits.parse().ok())??;
    u64::try_from(number.checked_mul(factor)?).ok()
}

/// Returns a number that is neither negative nor out of range.
pub(crate) fn number(given: &Json) -> Option<f64> {
    let number = given.as_f64()?;
    (0.0..OUT_OF_RANGE).contains(&number).then_some(number)
}

fn share(given: &Json) -> Option<Ppm> {
    number(given).and_then(Ppm::from_fraction)
}

/// Parses a time: seconds, or a text with a unit.
fn time(given: &Json) -> Option<Duration> {
    let seconds = match given.as_str().map(str::trim) {
        Some(text) => {
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
            let unit = match text.strip_prefix(digits)?.trim() {
                "ms" => 0.001,
                "s" | "" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            digits.parse::<f64>().ok()? * unit
        }
        None => number(given)?,
    };
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (!time.is_zero() && time <= MAX_TIME).then_some(time)
}

/// Returns a text, or a list of texts.
pub(crate) fn texts(given: &Json) -> Option<Vec<String>> {
    let text = |given: &Json| given.as_str().map(str::to_owned);
    match given {
        Json::Array(list) => list.iter().map(text).collect(),
        one => Some(vec![text(one)?]),
    }
}

/// Returns names: a list, or a text in which commas separate them.
pub(crate) fn names(given: &Json) -> Option<Vec<String>> {
    let names: Vec<String> = match given.as_str() {
        Some(text) => text.split(',').map(|name| name.trim().to_owned()).collect(),
        None => texts(given)?,
    };
    names.iter().all(|name| !name.is_empty()).then_some(names)
}
