//! [`SettingKind`]: the type of a key's value and the setting that it changes. [`SettingValue`]: a
//! parsed value.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use plimsoll_agent::ToolExecutionStrategy;
use plimsoll_context::{CompactionScope, HostedTool, Money, Ppm, Threshold, Tokens};
use plimsoll_core::CommandHook;
use serde_json::Value;

use super::document::{Node, WrittenValue, parse_value};
use super::hook;
use super::hosted;
use super::permission::Rule;
use super::settings::AgentSettings;

/// Maximum of a time in seconds. Longer times are effectively no limit.
const MAX_SECONDS: f64 = 365.0 * 24.0 * 3600.0;
/// Values that mean "no limit".
const NO_LIMIT: [&str; 2] = ["none", "unlimited"];

type Setter<T> = fn(&mut AgentSettings, T);

/// The type of a key's value, and the setting that it changes.
#[derive(Debug, Clone, Copy)]
pub enum SettingKind {
    /// True or false.
    Flag(Setter<bool>),
    /// A whole number, at least this one.
    Whole(u64, Setter<u64>),
    /// A number of items, at least this one.
    Count(usize, Setter<usize>),
    /// Tokens, at least this number.
    Tokens(u64, Setter<Tokens>),
    /// Tokens, at least 1, or no limit.
    TokensOrNone(Setter<Option<Tokens>>),
    /// A fraction of 1.
    Share(Setter<Ppm>),
    /// A share of the available tokens, or a number of tokens.
    Size(Setter<Threshold>),
    /// A number from 0 to this one.
    Number(f64, Setter<f64>),
    /// Dollars, more than 0.
    Dollars(Setter<Money>),
    /// A time above zero.
    Time(Setter<Duration>),
    /// A time above zero, or no limit.
    TimeOrNone(Setter<Option<Duration>>),
    /// A text.
    Text(Setter<String>),
    /// A file or directory.
    Path(Setter<PathBuf>),
    /// Files or directories.
    Paths(Setter<Vec<PathBuf>>),
    /// One of these names.
    Choice(&'static [&'static str], Setter<&'static str>),
    /// Names, as a list or separated by commas.
    Names(Setter<Vec<String>>),
    /// Texts.
    Texts(Setter<Vec<String>>),
    /// Whole numbers by name.
    Counts(Setter<BTreeMap<String, u64>>),
    /// Tokens, or "unknown".
    Window(Setter<Option<Tokens>>),
    /// The earlier runs that go into a summary.
    Earlier(Setter<CompactionScope>),
    /// The number of concurrent tool calls, by a name.
    Execution(Setter<ToolExecutionStrategy>),
    /// Permission rules.
    Rules(Setter<Vec<Rule>>),
    /// Commands for events of a run.
    Hooks(Setter<Vec<CommandHook>>),
    /// Tools that run at the provider.
    Hosted(Setter<Vec<HostedTool>>),
}

/// A parsed value.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingValue {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(u64),
    /// A fraction of 1, or of the available tokens.
    Share(Ppm),
    /// Any other number.
    Number(f64),
    /// Dollars.
    Dollars(Money),
    /// A duration.
    Time(Duration),
    /// A text.
    Text(String),
    /// A file or directory.
    Path(PathBuf),
    /// Files or directories.
    Paths(Vec<PathBuf>),
    /// One of the names of its key.
    Choice(&'static str),
    /// Texts.
    Texts(Vec<String>),
    /// Whole numbers by name.
    Counts(BTreeMap<String, u64>),
    /// No limit.
    None,
    /// Not known.
    Unknown,
    /// The earlier runs that go into a summary.
    Earlier(CompactionScope),
    /// The number of concurrent tool calls.
    Execution(ToolExecutionStrategy),
    /// Permission rules.
    Rules(Vec<Rule>),
    /// Commands for events of a run.
    Hooks(Vec<CommandHook>),
    /// Tools that run at the provider.
    Hosted(Vec<HostedTool>),
}

impl SettingKind {
    /// Parses a value. If it has the wrong type, returns a description of the expected one.
    pub(crate) fn read(self, node: &Node) -> Result<SettingValue, String> {
        let given = &node.value;
        let value = match self {
            Self::Flag(_) => match given {
                WrittenValue::Flag(flag) => Some(SettingValue::Flag(*flag)),
                _ => None,
            },
            Self::Whole(least, _) => whole(given, least),
            Self::Count(least, _) => whole(given, least as u64),
            Self::Tokens(least, _) => tokens(given, least),
            Self::TokensOrNone(_) => none(given).or_else(|| tokens(given, 1)),
            Self::Window(_) => match given {
                WrittenValue::Text(text) if text.trim() == "unknown" => Some(SettingValue::Unknown),
                _ => tokens(given, 1),
            },
            Self::Share(_) => share(given).map(SettingValue::Share),
            Self::Size(_) => match given {
                WrittenValue::Number(_) => share(given).map(SettingValue::Share),
                _ => tokens(given, 1),
            },
            Self::Number(most, _) => number(given)
                .filter(|number| *number <= most)
                .map(SettingValue::Number),
            Self::Dollars(_) => number(given)
                .and_then(|dollars| Money::from_dollars(dollars).ok())
                .filter(|money| money.0 > 0)
                .map(SettingValue::Dollars),
            Self::Time(_) => time(given).map(SettingValue::Time),
            Self::TimeOrNone(_) => none(given).or_else(|| time(given).map(SettingValue::Time)),
            Self::Text(_) => text(given).map(SettingValue::Text),
            Self::Path(_) => text(given)
                .filter(|text| !text.is_empty())
                .map(|text| SettingValue::Path(text.into())),
            Self::Choice(names, _) => choice(given, names),
            Self::Paths(_) => texts(given)
                .map(|texts| SettingValue::Paths(texts.into_iter().map(Into::into).collect())),
            Self::Names(_) => names(given).map(SettingValue::Texts),
            Self::Texts(_) => texts(given).map(SettingValue::Texts),
            Self::Counts(_) => counts(given).map(SettingValue::Counts),
            Self::Earlier(_) => earlier(given).map(SettingValue::Earlier),
            Self::Execution(_) => execution(given).map(SettingValue::Execution),
            Self::Rules(_) => text(given)
                .and_then(|text| Rule::all_of(&text))
                .map(SettingValue::Rules),
            // In a file they are tables, which are parsed elsewhere. There is no other form.
            Self::Hooks(_) => None,
            Self::Hosted(_) => hosted::read(given).map(SettingValue::Hosted),
        };
        value.ok_or_else(|| self.expects())
    }

    /// Converts a text of the command line or the environment to the form of a file.
    pub(crate) fn node(self, raw: &str) -> Node {
        let plain = matches!(
            self,
            Self::Text(_)
                | Self::Path(_)
                | Self::Choice(..)
                | Self::Names(_)
                | Self::Paths(_)
                | Self::Texts(_)
                | Self::Rules(_)
        );
        if let (Self::Counts(_), false) = (self, raw.trim_start().starts_with('{')) {
            return parse_value(&format!("{{{raw}}}"));
        }
        // A list may also be written as in a file.
        let is_listed = matches!(
            self,
            Self::Names(_) | Self::Paths(_) | Self::Texts(_) | Self::Rules(_)
        );
        if is_listed && raw.trim_start().starts_with('[') {
            let node = parse_value(raw);
            if let WrittenValue::List(_) = node.value {
                return node;
            }
        }
        if plain {
            Node {
                line: 1,
                value: WrittenValue::Text(raw.to_owned()),
            }
        } else {
            parse_value(raw)
        }
    }

    /// Applies a parsed value.
    pub(crate) fn set(self, settings: &mut AgentSettings, value: &SettingValue) {
        match (self, value) {
            (Self::Flag(set), SettingValue::Flag(flag)) => set(settings, *flag),
            (Self::Whole(_, set), SettingValue::Whole(whole)) => set(settings, *whole),
            (Self::Count(_, set), SettingValue::Whole(whole)) => {
                set(settings, usize::try_from(*whole).unwrap_or(usize::MAX));
            }
            (Self::Tokens(_, set), SettingValue::Whole(whole)) => set(settings, Tokens(*whole)),
            (Self::TokensOrNone(set) | Self::Window(set), SettingValue::Whole(whole)) => {
                set(settings, Some(Tokens(*whole)));
            }
            (Self::TokensOrNone(set), SettingValue::None)
            | (Self::Window(set), SettingValue::Unknown) => {
                set(settings, None);
            }
            (Self::Share(set), SettingValue::Share(share)) => set(settings, *share),
            (Self::Size(set), SettingValue::Share(share)) => {
                set(settings, Threshold::Share(*share))
            }
            (Self::Size(set), SettingValue::Whole(whole)) => {
                set(settings, Threshold::Sent(Tokens(*whole)));
            }
            (Self::Number(_, set), SettingValue::Number(number)) => set(settings, *number),
            (Self::Dollars(set), SettingValue::Dollars(money)) => set(settings, *money),
            (Self::Time(set), SettingValue::Time(time)) => set(settings, *time),
            (Self::TimeOrNone(set), SettingValue::Time(time)) => set(settings, Some(*time)),
            (Self::TimeOrNone(set), SettingValue::None) => set(settings, None),
            (Self::Text(set), SettingValue::Text(text)) => set(settings, text.clone()),
            (Self::Path(set), SettingValue::Path(path)) => set(settings, path.clone()),
            (Self::Paths(set), SettingValue::Paths(paths)) => set(settings, paths.clone()),
            (Self::Choice(_, set), SettingValue::Choice(name)) => set(settings, name),
            (Self::Names(set) | Self::Texts(set), SettingValue::Texts(texts)) => {
                set(settings, texts.clone());
            }
            (Self::Counts(set), SettingValue::Counts(counts)) => set(settings, counts.clone()),
            (Self::Earlier(set), SettingValue::Earlier(earlier)) => set(settings, *earlier),
            (Self::Execution(set), SettingValue::Execution(execution)) => set(settings, *execution),
            (Self::Rules(set), SettingValue::Rules(rules)) => set(settings, rules.clone()),
            (Self::Hooks(set), SettingValue::Hooks(hooks)) => set(settings, hooks.clone()),
            (Self::Hosted(set), SettingValue::Hosted(tools)) => set(settings, tools.clone()),
            // A key accepts only values of its own type.
            _ => {}
        }
    }

    /// Describes the expected value.
    #[must_use]
    pub fn expects(self) -> String {
        let at_least = |least: u64, what: &str| match least {
            0 => format!("a whole number{what} from 0"),
            least => format!("a whole number{what}, {least} or more"),
        };
        match self {
            Self::Flag(_) => "true or false".to_owned(),
            Self::Whole(least, _) => at_least(least, ""),
            Self::Count(least, _) => at_least(least as u64, ""),
            Self::Tokens(least, _) => at_least(least, " of tokens such as 8000 or \"8k\""),
            Self::TokensOrNone(_) => {
                "a whole number of tokens such as 8000 or \"8k\", 1 or more, or \"none\"".to_owned()
            }
            Self::Window(_) => {
                "a number of tokens such as 32000 or \"32k\", or \"unknown\" to learn it from refusals"
                    .to_owned()
            }
            Self::Share(_) => "a fraction from 0 to 1, such as 0.9".to_owned(),
            Self::Size(_) => {
                "tokens such as 50_000 or \"50k\", or a share of the available tokens such as \
                 0.8".to_owned()
            }
            Self::Number(most, _) => format!("a number from 0 to {most}"),
            Self::Dollars(_) => "dollars, such as 0.50; more than 0".to_owned(),
            Self::Time(_) => "seconds, or a text such as \"10m\"; more than 0".to_owned(),
            Self::TimeOrNone(_) => {
                "seconds, or a text such as \"10m\", more than 0; or \"none\"".to_owned()
            }
            Self::Text(_) => "a text".to_owned(),
            Self::Path(_) => "the path of a file or directory".to_owned(),
            Self::Paths(_) => "a list of paths".to_owned(),
            Self::Choice(names, _) => {
                let quoted: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
                match quoted.split_last() {
                    Some((last, [])) => last.clone(),
                    Some((last, before)) => format!("{} or {last}", before.join(", ")),
                    None => String::new(),
                }
            }
            Self::Names(_) => "a list of names, such as [\"read\", \"grep\"]".to_owned(),
            Self::Texts(_) => "a list of texts".to_owned(),
            Self::Counts(_) => "a table of whole numbers from 0, such as { bash = 3 }".to_owned(),
            Self::Earlier(_) => "`{ fixed_count = 3 }` or \"token_budget\"".to_owned(),
            Self::Execution(_) => "\"sequential\", \"parallel\" or `{ batched = 4 }`".to_owned(),
            Self::Rules(_) => {
                "a list of tables, such as { tool = \"bash\", arguments = \"command=git status\", then = \
                 \"allow\" }"
                    .to_owned()
            }
            Self::Hooks(_) => {
                "in a file, a list of tables, such as { on = \"before_tool_execution\", command = \
                 [\"./guard\"] }"
                    .to_owned()
            }
            Self::Hosted(_) => {
                "a list of tables with a `type`, such as { type = \"web_search\" }".to_owned()
            }
        }
    }
}

fn whole(given: &WrittenValue, least: u64) -> Option<SettingValue> {
    let WrittenValue::Whole(Some(whole)) = given else {
        return None;
    };
    let whole = u64::try_from(*whole).ok()?;
    (whole >= least).then_some(SettingValue::Whole(whole))
}

/// Parses a number of tokens: a whole number, or a text such as "100k".
fn tokens(given: &WrittenValue, least: u64) -> Option<SettingValue> {
    match given {
        WrittenValue::Text(text) => {
            let tokens = parse_tokens(text)?;
            (tokens >= least).then_some(SettingValue::Whole(tokens))
        }
        _ => whole(given, least),
    }
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

fn none(given: &WrittenValue) -> Option<SettingValue> {
    match given {
        WrittenValue::Text(text) => NO_LIMIT
            .contains(&text.trim())
            .then_some(SettingValue::None),
        _ => None,
    }
}

fn number(given: &WrittenValue) -> Option<f64> {
    let number = match given {
        WrittenValue::Number(number) => *number,
        WrittenValue::Whole(Some(whole)) => *whole as f64,
        _ => return None,
    };
    (number.is_finite() && number >= 0.0).then_some(number)
}

fn share(given: &WrittenValue) -> Option<Ppm> {
    number(given).and_then(Ppm::from_fraction)
}

pub(crate) fn time(given: &WrittenValue) -> Option<Duration> {
    let seconds = match given {
        WrittenValue::Text(text) => {
            let text = text.trim();
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
            let unit = match text.strip_prefix(digits)?.trim() {
                "ms" => 0.001,
                "s" | "" => 1.0,
                "m" | "min" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            number(&WrittenValue::Number(digits.parse().ok()?))? * unit
        }
        other => number(other)?,
    };
    let is_good = seconds > 0.0 && seconds <= MAX_SECONDS;
    let time = Duration::try_from_secs_f64(seconds).ok()?;
    (is_good && !time.is_zero()).then_some(time)
}

pub(crate) fn text(given: &WrittenValue) -> Option<String> {
    match given {
        WrittenValue::Text(text) => Some(text.clone()),
        _ => None,
    }
}

fn choice(given: &WrittenValue, names: &[&'static str]) -> Option<SettingValue> {
    let plain = |name: &str| name.trim().replace('-', "_");
    let written = plain(&text(given)?);
    let found = names.iter().find(|name| plain(name) == written);
    found.map(|name| SettingValue::Choice(name))
}

fn names(given: &WrittenValue) -> Option<Vec<String>> {
    match given {
        WrittenValue::Text(text) => {
            Some(text.split(',').map(|name| name.trim().to_owned()).collect())
        }
        other => texts(other),
    }
}

pub(crate) fn texts(given: &WrittenValue) -> Option<Vec<String>> {
    match given {
        WrittenValue::Text(text) => Some(vec![text.clone()]),
        WrittenValue::List(list) => list.iter().map(|node| text(&node.value)).collect(),
        _ => None,
    }
}

fn counts(given: &WrittenValue) -> Option<BTreeMap<String, u64>> {
    let WrittenValue::Table(table) = given else {
        return None;
    };
    let counts = table
        .0
        .iter()
        .map(|entry| match whole(&entry.node.value, 0) {
            Some(SettingValue::Whole(count)) => Some((entry.key.clone(), count)),
            _ => None,
        });
    counts.collect()
}

/// Parses `fixed_count(3)`, as a text or a table, or `token_budget`.
fn earlier(given: &WrittenValue) -> Option<CompactionScope> {
    match named_count(given)? {
        (name, None) if name == "token_budget" => Some(CompactionScope::TokenBudget),
        (name, Some(count)) if name == "fixed_count" => Some(CompactionScope::FixedCount(count)),
        _ => None,
    }
}

/// Parses `sequential`, `parallel` or `batched(4)`, as a text or a table.
fn execution(given: &WrittenValue) -> Option<ToolExecutionStrategy> {
    match named_count(given)? {
        (name, None) if name == "sequential" => Some(ToolExecutionStrategy::Sequential),
        (name, None) if name == "parallel" => Some(ToolExecutionStrategy::Parallel),
        (name, Some(count)) if name == "batched" => Some(ToolExecutionStrategy::Batched(count)),
        _ => None,
    }
}

/// Parses `name`, `name(3)` or `{ name = 3 }`.
fn named_count(given: &WrittenValue) -> Option<(String, Option<usize>)> {
    let plain = |text: &str| text.trim().to_owned();
    match given {
        WrittenValue::Text(text) => match text.split_once('(') {
            None => Some((plain(text), None)),
            Some((name, rest)) => {
                let count = rest.trim_end().strip_suffix(')')?.trim();
                Some((plain(name), Some(count.parse().ok()?)))
            }
        },
        WrittenValue::Table(table) => match table.0.as_slice() {
            [entry] => match &entry.node.value {
                WrittenValue::Whole(Some(count)) => {
                    Some((plain(&entry.key), Some(usize::try_from(*count).ok()?)))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

impl fmt::Display for SettingValue {
    /// Formats the value as TOML.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Counts(counts) if counts.is_empty() => f.write_str("{}"),
            Self::Counts(counts) => {
                let counts: Vec<String> = counts
                    .iter()
                    .map(|(name, count)| format!("{} = {count}", quoted(name)))
                    .collect();
                write!(f, "{{ {} }}", counts.join(", "))
            }
            Self::Rules(rules) => {
                let rules: Vec<String> = rules.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", rules.join(", "))
            }
            Self::Hooks(hooks) => {
                let hooks: Vec<String> = hooks.iter().map(hook::written).collect();
                write!(f, "[{}]", hooks.join(", "))
            }
            value => f.write_str(&toml(&value.json())),
        }
    }
}

/// Returns a text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Formats a JSON value as TOML, in one line.
fn toml(value: &Value) -> String {
    match value {
        Value::Object(keys) => {
            let keys = keys
                .iter()
                .map(|(key, value)| format!("{} = {}", bare(key), toml(value)));
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        }
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(toml).collect();
            format!("[{}]", list.join(", "))
        }
        Value::String(text) => quoted(text),
        // TOML has no such value.
        Value::Null => "\"\"".to_owned(),
        other => other.to_string(),
    }
}

/// Returns a name as a TOML key, quoted if it needs to be.
pub(crate) fn bare(key: &str) -> String {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(good) {
        key.to_owned()
    } else {
        quoted(key)
    }
}

/// Returns the text of a text value; any other value in its TOML form.
pub(crate) fn as_text(value: &SettingValue) -> String {
    match value {
        SettingValue::Text(text) => text.clone(),
        other => other.to_string(),
    }
}
