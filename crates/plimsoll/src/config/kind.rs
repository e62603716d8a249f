//! [`SettingKind`]: the spellings of a value in a file, a variable or a flag, for example a number of tokens
//! as `8000` or `"8k"`.

use std::time::Duration;

use plimsoll_agent::Sampling;
use plimsoll_context::{ArgumentDigest, ContextStrategy, Money, Threshold};
use plimsoll_core::Window;
use serde_json::{Map, Value as Json, json};
use toml::Value;

use super::key::{field, fields, join};
use super::permission::Rule;

mod parse;

pub use parse::parse_tokens;
pub(crate) use parse::{names, number, texts, time};
use parse::{share, text, tokens, whole};

/// A day in seconds.
const DAY: u64 = 24 * 60 * 60;
/// The names of the context strategies.
const STRATEGIES: &[&str] = &[
    "evict",
    "summarize",
    "extract",
    "sliding_window",
    "unlimited",
];

/// The kind of a setting's value, with its accepted spellings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// A sampling temperature.
    Temperature,
    /// Dollars, more than 0.
    Dollars,
    /// A time above zero.
    Time,
    /// A time in days.
    Days,
    /// A text.
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
    Choice(&'static [&'static str]),
    /// The name of a context strategy.
    Strategy,
    /// A value that a file spells as the log does, with a description of it.
    Written(&'static str),
    /// Whether long texts in the arguments of old calls become digests, or from which length on.
    Digest,
    /// Tools that run at the provider: a list of tables, or one table. Variables and flags may also
    /// contain JSON.
    HostedTools,
    /// Permission rules: a list of tables, or lines of the form `allow TOOL:PATTERN`.
    Rules,
    /// Commands for events of a run, as a list of tables.
    Hooks,
    /// A text that is never printed.
    Secret,
    /// Such texts by name.
    Secrets,
    /// A value, or "none" for no limit.
    OrNone(&'static SettingKind),
}

impl SettingKind {
    /// Returns a word for the kind, which `docs/configuration.md` explains.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Whole(_) | Self::Days => "whole",
            Self::Tokens(_) | Self::Size | Self::Window => "tokens",
            Self::Share | Self::Temperature => "number",
            Self::Dollars => "dollars",
            Self::Time => "time",
            Self::Text | Self::Filled | Self::Secret => "text",
            Self::Path => "path",
            Self::Paths => "paths",
            Self::Names => "names",
            Self::Texts | Self::Words => "texts",
            Self::Rules => "rules",
            Self::Hooks => "tables",
            Self::OrNone(kind) => kind.word(),
            _ => "choice",
        }
    }

    /// Describes the accepted spellings.
    #[must_use]
    pub fn takes(self) -> String {
        let takes = match self {
            Self::Flag => "true or false",
            Self::Whole(least) => return at_least("", least),
            Self::Tokens(least) => return at_least(" of tokens such as 8000 or \"8k\"", least),
            Self::Size => {
                "tokens such as 50_000 or \"50k\", or a share of the available tokens such as 0.8"
            }
            Self::Window => {
                "a number of tokens such as 32000 or \"32k\", or \"unknown\" to learn it from refusals"
            }
            Self::Share => "a fraction from 0 to 1, such as 0.9",
            Self::Temperature => "a number from 0 to 2",
            Self::Dollars => "dollars, such as 0.50; more than 0",
            Self::Time => "seconds, or a text such as \"10m\"; more than 0",
            Self::Days => "a whole number, 1 or more",
            Self::Text => "a text",
            Self::Filled | Self::Secret => "a text that is not empty",
            Self::Path => "the path of a file or directory",
            Self::Paths => "a list of paths",
            Self::Names => "a list of names, such as [\"read\", \"grep\"]",
            Self::Texts => "a list of texts",
            Self::Words => {
                "a list of a program and its arguments, such as [\"./guard\", \"--strict\"]"
            }
            Self::Choice(_) | Self::Strategy => return one_of(self.choices()),
            Self::Written(takes) => takes,
            Self::Digest => "true, false or `{ over_chars = 2000 }`, 500 or more",
            Self::HostedTools => {
                "a list of tables with a `type`, such as { type = \"web_search\" }"
            }
            Self::Rules => {
                "a list of tables, such as { tool = \"bash\", arguments = \"command=git status\", \
                 then = \"allow\" }"
            }
            Self::Hooks => {
                "a list of tables, such as { on = \"before_tool_execution\", command = [\"./guard\"] }"
            }
            Self::Secrets => "a table of texts",
            Self::OrNone(kind) => return format!("{}, or \"none\"", kind.takes()),
        };
        takes.to_owned()
    }

    /// Returns the accepted names, if it is a choice of names.
    #[must_use]
    pub fn choices(self) -> &'static [&'static str] {
        match self {
            Self::Choice(names) => names,
            Self::Strategy => STRATEGIES,
            _ => &[],
        }
    }

    /// Returns the name of the table that each item of its list is.
    pub(crate) fn items(self) -> Option<&'static str> {
        match self {
            Self::Rules => Some("[[permissions]]"),
            Self::Hooks => Some("[[hooks]]"),
            _ => None,
        }
    }

    /// Parses a value, to the form in which serde reads the field of the setting. Returns `None` if
    /// it has another form.
    pub(crate) fn read(self, given: &Value) -> Option<Json> {
        Some(match self {
            Self::Flag => given.as_bool()?.into(),
            Self::Whole(least) => whole(given, least)?.into(),
            Self::Tokens(least) => tokens(given, least)?.0.into(),
            Self::Size => json!(match given {
                Value::Float(_) => Threshold::Share(share(given)?),
                _ => Threshold::Sent(tokens(given, 1)?),
            }),
            Self::Window => json!(match given.as_str().map(str::trim) {
                Some("unknown") => Window::Unknown,
                _ => Window::Known(tokens(given, 1)?),
            }),
            Self::Share => json!(share(given)?),
            Self::Temperature => number(given)
                .filter(|number| *number <= Sampling::MAX_TEMPERATURE)?
                .into(),
            Self::Dollars => {
                let money = Money::from_dollars(number(given)?).ok();
                json!(money.filter(|money| money.0 > 0)?)
            }
            Self::Time => json!(time(given)?),
            Self::Days => json!(Duration::from_secs(whole(given, 1)?.saturating_mul(DAY))),
            Self::Text => text(given)?.into(),
            Self::Filled | Self::Secret => {
                text(given).filter(|text| !text.trim().is_empty())?.into()
            }
            Self::Path => text(given).filter(|text| !text.is_empty())?.into(),
            Self::Paths | Self::Texts => texts(given)?.into(),
            Self::Names => names(given)?.into(),
            Self::Words => {
                let words = texts(given).filter(|_| given.is_array())?;
                words.first().filter(|program| !program.trim().is_empty())?;
                words.into()
            }
            Self::Choice(names) => chosen(given, names)?.into(),
            Self::Strategy => json!(ContextStrategy::named(chosen(given, STRATEGIES)?, None)?),
            Self::Written(_) => json_of(given)?,
            Self::Digest => match given {
                Value::Boolean(is_on) => json!(is_on.then(ArgumentDigest::default)),
                _ => {
                    let digest = json_of(given).filter(Json::is_object)?;
                    let digest: ArgumentDigest = serde_json::from_value(digest).ok()?;
                    json!(Some(digest).filter(|digest| digest.fault().is_none())?)
                }
            },
            Self::HostedTools => hosted_tools(given)?,
            Self::Rules | Self::Hooks => match given {
                Value::String(lines) => self.read(&Rule::tables_of(lines)?)?,
                _ => {
                    let items = given.as_array()?.iter();
                    let items = items.map(|item| table(self.items()?, item));
                    items.collect::<Option<Vec<_>>>()?.into()
                }
            },
            Self::Secrets => {
                let entries = given.as_table()?.iter();
                let entries =
                    entries.map(|(name, value)| Some((name.clone(), text(value)?.into())));
                Json::Object(entries.collect::<Option<_>>()?)
            }
            Self::OrNone(kind) => match given.as_str().map(str::trim) {
                Some("none" | "unlimited") => Json::Null,
                _ => kind.read(given)?,
            },
        })
    }
}

/// Reads an item of a list of tables.
fn table(name: &str, item: &Value) -> Option<Json> {
    let entries = item.as_table()?;
    let mut required = fields(name).filter(|key| key.is_required);
    let is_whole = required.all(|key| entries.contains_key(key.name));
    let entries = entries.iter().filter(|_| is_whole).map(|(key, value)| {
        let field = field(&join(name, key))?;
        Some((key.clone(), field.kind.read(value)?))
    });
    let entries: Map<String, Json> = entries.collect::<Option<_>>()?;
    is_whole.then_some(Json::Object(entries))
}

/// Reads one tool, or several.
fn hosted_tools(given: &Value) -> Option<Json> {
    let tools = match given.as_str() {
        Some(text) => serde_json::from_str(text).ok()?,
        None => json_of(given)?,
    };
    let tools = match tools {
        Json::Array(tools) => tools,
        tool => vec![tool],
    };
    let has_kind = |tool: &Json| tool["type"].as_str().is_some_and(|kind| !kind.is_empty());
    tools.iter().all(has_kind).then_some(tools.into())
}

/// Returns a value as JSON. Numbers that JSON does not have have no form.
fn json_of(given: &Value) -> Option<Json> {
    serde_json::to_value(given)
        .ok()
        .filter(|json| !json.is_null())
}

/// Returns the chosen name, which may be written with hyphens or underscores.
fn chosen(given: &Value, names: &'static [&'static str]) -> Option<&'static str> {
    let plain = |name: &str| name.trim().replace('-', "_");
    let written = plain(given.as_str()?);
    let mut names = names.iter().copied();
    names.find(|name| plain(name) == written)
}

fn one_of(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
    match quoted.split_last() {
        Some((last, before)) => format!("{} or {last}", before.join(", ")),
        None => String::new(),
    }
}

fn at_least(what: &str, least: u64) -> String {
    match least {
        0 => format!("a whole number{what} from 0"),
        least => format!("a whole number{what}, {least} or more"),
    }
}
