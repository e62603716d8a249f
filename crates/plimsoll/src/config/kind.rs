//! [`SettingKind`]: the spellings of a value in a file, a variable or a flag, for example a number of tokens
//! as `8000` or `"8k"`.

use std::time::Duration;

use plimsoll_agent::Sampling;
use plimsoll_context::{ArgumentDigest, ContextStrategy, Money, Ppm, Threshold, Tokens};
use plimsoll_core::Window;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::document::{Located, OUT_OF_RANGE};
use super::fault::Faults;

/// A day in seconds.
const DAY: u64 = 24 * 60 * 60;
/// Maximum of a time in seconds. Longer times are effectively no limit.
const MAX_SECONDS: f64 = 365.0 * 24.0 * 3600.0;
/// The kind of a setting's value, with its accepted spellings.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingKind {
    /// True or false.
    Flag,
    /// A whole number, at least this one.
    Whole(u64),
    /// A number of tokens, at least this one.
    Tokens(u64),
    /// A number of tokens, or a share of the available ones.
    Size,
    /// A context window.
    Window,
    /// A fraction of 1.
    Share,
    /// A fraction of 1 whose field is read as such.
    Fraction,
    /// A sampling temperature.
    Temperature,
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
    /// One of these names.
    Choice(Vec<String>),
    /// One of these names of context strategies.
    Strategy(Vec<String>),
    /// A value that a file spells as the log does, with a description of it.
    Written(String),
    /// Whether long texts in the arguments of old calls become digests, or from which length on.
    Digest,
    /// Permission rules: a list of tables, or lines of the form `allow TOOL:PATTERN`.
    Rules,
    /// Commands for events of a run, as a list of tables.
    Hooks,
    /// The name of an environment variable.
    Variable,
    /// A text that is never printed.
    Secret,
    /// Such texts by name.
    Secrets,
    /// A value, or "none" for no limit.
    OrNone(Box<SettingKind>),
}

impl SettingKind {
    /// Returns a word for the kind, and the accepted spellings without the least number.
    fn form(&self) -> (&'static str, &str) {
        match self {
            Self::Flag => ("flag", "true or false"),
            Self::Whole(_) | Self::Days => ("whole", "a whole number"),
            Self::Tokens(_) => ("tokens", "a whole number of tokens such as 8000 or \"8k\""),
            Self::Size => (
                "tokens",
                "tokens such as 50_000 or \"50k\", or a share of the available tokens such as 0.8",
            ),
            Self::Window => (
                "tokens",
                "a number of tokens such as 32000 or \"32k\", or \"unknown\" to learn it from refusals",
            ),
            Self::Share | Self::Fraction => ("number", "a fraction from 0 to 1, such as 0.9"),
            Self::Temperature => ("number", "a number from 0 to 2"),
            Self::Dollars => ("dollars", "dollars, such as 0.50; more than 0"),
            Self::Time => ("time", "seconds, or a text such as \"10m\"; more than 0"),
            Self::Text => ("text", "a text"),
            Self::Filled | Self::Secret => ("text", "a text that is not empty"),
            Self::Variable => (
                "text",
                "the name of the environment variable that contains the key",
            ),
            Self::Path => ("path", "the path of a file or directory"),
            Self::Paths => ("paths", "a list of paths"),
            Self::Names => ("names", "a list of names, such as [\"read\", \"grep\"]"),
            Self::Texts => ("texts", "a list of texts"),
            Self::Words => (
                "texts",
                "a list of a program and its arguments, such as [\"./guard\", \"--strict\"]",
            ),
            Self::Choice(_) | Self::Strategy(_) => ("choice", ""),
            Self::Written(takes) => ("choice", takes),
            Self::Digest => ("choice", "true, false or `{ over_chars = 2000 }`"),
            Self::Rules => (
                "rules",
                "a list of tables, such as { tool = \"bash\", arguments = \"command=git status\", then = \"allow\" }",
            ),
            Self::Hooks => (
                "tables",
                "a list of tables, such as { on = \"before_tool_execution\", command = [\"./guard\"] }",
            ),
            Self::Secrets => ("choice", "a table of texts"),
            Self::OrNone(kind) => kind.form(),
        }
    }

    /// Returns a word for the kind, which `docs/configuration.md` explains.
    #[must_use]
    pub fn word(&self) -> &'static str {
        self.form().0
    }

    /// Describes the accepted spellings.
    #[must_use]
    pub fn takes(&self) -> String {
        let takes = self.form().1;
        match (self, self.choices().split_last()) {
            (Self::Whole(0), _) => format!("{takes} from 0"),
            (Self::Whole(least) | Self::Tokens(least), _) => format!("{takes}, {least} or more"),
            (Self::Days, _) => format!("{takes}, 1 or more"),
            (Self::OrNone(kind), _) => format!("{}, or \"none\"", kind.takes()),
            (_, Some((last, before))) => {
                let before: Vec<String> = before.iter().map(|name| format!("{name:?}")).collect();
                format!("{} or {last:?}", before.join(", "))
            }
            _ => takes.to_owned(),
        }
    }

    /// Returns the accepted names, if it is a choice of names.
    #[must_use]
    pub fn choices(&self) -> &[String] {
        match self {
            Self::Choice(names) | Self::Strategy(names) => names,
            _ => &[],
        }
    }

    /// Returns the name of the table that each item of its list is.
    pub(crate) const fn items(&self) -> Option<&'static str> {
        match self {
            Self::Rules => Some("[[permissions]]"),
            Self::Hooks => Some("[[hooks]]"),
            _ => None,
        }
    }

    /// Converts a value to the form in which serde reads the field of the setting. Returns `None` if
    /// it has another form.
    pub(crate) fn read(&self, given: &Json) -> Option<Json> {
        Some(match self {
            Self::Flag => given.as_bool()?.into(),
            Self::Whole(least) => whole(given, *least)?.into(),
            Self::Tokens(least) => tokens(given, *least)?.0.into(),
            Self::Size if given.is_f64() => json!(Threshold::Share(share(given)?)),
            Self::Size => json!(Threshold::Sent(tokens(given, 1)?)),
            Self::Window => json!(match given.as_str().map(str::trim) {
                Some("unknown") => Window::Unknown,
                _ => Window::Known(tokens(given, 1)?),
            }),
            Self::Share => json!(share(given)?),
            Self::Fraction => share(given).and(number(given))?.into(),
            Self::Temperature => number(given)
                .filter(|number| *number <= Sampling::MAX_TEMPERATURE)?
                .into(),
            Self::Dollars => {
                let money = Money::from_dollars(number(given)?).ok();
                json!(money.filter(|money| money.0 > 0)?)
            }
            Self::Time => json!(time(given)?),
            Self::Days => json!(Duration::from_secs(whole(given, 1)?.saturating_mul(DAY))),
            Self::Text => given.as_str()?.into(),
            Self::Filled | Self::Secret | Self::Path => given
                .as_str()
                .filter(|text| !text.trim().is_empty())?
                .into(),
            Self::Variable => {
                let is_good = |c: char| c.is_ascii_alphanumeric() || c == '_';
                let name = given.as_str().filter(|name| name.chars().all(is_good))?;
                Some(name).filter(|name| !name.is_empty())?.into()
            }
            Self::Paths | Self::Texts => texts(given)?.into(),
            Self::Names => names(given)?.into(),
            Self::Words => {
                let words = texts(given).filter(|_| given.is_array())?;
                words.first().filter(|program| !program.trim().is_empty())?;
                words.into()
            }
            Self::Choice(names) => chosen(given, names)?.into(),
            Self::Strategy(names) => json!(ContextStrategy::named(chosen(given, names)?, None)?),
            Self::Written(_) => Some(given.clone()).filter(|given| !given.is_null())?,
            Self::Digest => match given.as_bool() {
                Some(is_on) => json!(is_on.then(ArgumentDigest::default)),
                None => Some(given.clone()).filter(Json::is_object)?,
            },
            // Each item is a table that is read by itself.
            Self::Rules | Self::Hooks => return None,
            Self::Secrets => {
                let mut texts = given.as_object()?.values();
                texts.all(Json::is_string).then(|| given.clone())?
            }
            Self::OrNone(kind) => match given.as_str().map(str::trim) {
                Some("none" | "unlimited") => Json::Null,
                _ => kind.read(given)?,
            },
        })
    }

    /// Reports a value that is not accepted, or an item of a list.
    pub(crate) fn refuse(&self, name: &str, given: &Located, faults: &mut Faults) {
        let mut takes = self.takes();
        let items = given.items().filter(|_| takes.starts_with("a list"));
        let is_wrong = |item: &&Located| self.read(&json!([item.value()])).is_none();
        let item = items.unwrap_or_default().iter().find(is_wrong);
        let name = item.map_or_else(|| format!("`{name}`"), |_| format!("an item of `{name}`"));
        if let (Some(table), Some(_)) = (self.items(), given.entries()) {
            takes = format!("a list of tables, each {table}");
        }
        let wrong = item.unwrap_or(given);
        // A key is never printed. It may stand where its variable has to be named.
        let described = match self {
            Self::Secret | Self::Secrets | Self::Variable => "wrong".to_owned(),
            _ => wrong.describe(),
        };
        faults.push(
            &wrong.origin,
            format!("{name} is {described}; give {takes}"),
        );
    }
}

/// Returns the chosen name, which may be written with hyphens or underscores.
fn chosen<'a>(given: &Json, names: &'a [String]) -> Option<&'a str> {
    let plain = |name: &str| name.trim().replace('-', "_");
    let written = plain(given.as_str()?);
    let mut names = names.iter().map(String::as_str);
    names.find(|name| plain(name) == written)
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
    let number: u64 = is_number.then(|| digits.parse().ok())??;
    let tokens = number.checked_mul(factor)?;
    i64::try_from(tokens).is_ok().then_some(tokens)
}

/// Returns a number that is neither negative nor out of range.
pub(crate) fn number(given: &Json) -> Option<f64> {
    given
        .as_f64()
        .filter(|number| (0.0..OUT_OF_RANGE).contains(number))
}

fn share(given: &Json) -> Option<Ppm> {
    number(given).and_then(Ppm::from_fraction)
}

/// Parses a time: seconds, or a text with a unit.
fn time(given: &Json) -> Option<Duration> {
    let seconds = match given.as_str() {
        Some(text) => {
            let text = text.trim();
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
    let is_good = seconds > 0.0 && seconds <= MAX_SECONDS;
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (is_good && !time.is_zero()).then_some(time)
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
