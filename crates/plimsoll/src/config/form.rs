//! [`Form`]: the spellings of a value in a file, a variable or a flag, for example a number of tokens
//! as `8000` or `"8k"`.

use std::path::PathBuf;
use std::time::Duration;

use plimsoll_agent::{
    AtLimit, CountTokens, HookPoint, Permission, PermissionMode, Sampling, ThinkingLevel,
    ToolExecutionStrategy, TurnTrigger,
};
use plimsoll_context::{
    ArgumentDigest, Author, CacheRetention, CacheStrategy, CompactionScope, ContextStrategy,
    HostedTool, LEAST_ARGUMENT_CHARS, Money, Ppm, Threshold, Tokens,
};
use plimsoll_core::{CommandHook, Window};
use plimsoll_providers::Secret;
use plimsoll_tools::SandboxMode;
use plimsoll_wire::openai_chat::ToolStyle;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use toml::Value;

use super::hook::{self, MOMENTS};
use super::permission::Rule;
use super::settings::COUNTERS;

mod parse;

pub use parse::parse_tokens;
pub(crate) use parse::{number, texts, time};
use parse::{share, text, tokens, whole};

/// A day in seconds.
const DAY: u64 = 24 * 60 * 60;

/// The kind of a setting's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingKind {
    /// True or false.
    Flag,
    /// A whole number.
    Whole,
    /// A number of tokens, or a share.
    Tokens,
    /// Any other number.
    Number,
    /// An amount of money.
    Dollars,
    /// A duration.
    Time,
    /// A text.
    Text,
    /// One of several names.
    Choice,
    /// A file or directory.
    Path,
    /// Files or directories.
    Paths,
    /// Names, separated by commas.
    Names,
    /// Texts.
    Texts,
    /// Permission rules.
    Rules,
    /// A table, or a list of tables.
    Tables,
}

/// The spellings of a value.
pub(crate) trait Form {
    /// The value.
    type Value: Clone;
    /// Its kind.
    const KIND: SettingKind;
    /// The accepted names, if it is a choice of names.
    const CHOICES: &'static [&'static str] = &[];
    /// Describes the accepted spellings.
    fn takes() -> String;
    /// Parses a value. Returns `None` if it has another form.
    fn read(given: &Value) -> Option<Self::Value>;
}

/// Defines a form: its value, its kind, its description and its parser.
macro_rules! form {
    ($(#[$doc:meta])* $name:ident, $value:ty, $kind:ident, $takes:expr, $read:expr) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl Form for $name {
            type Value = $value;
            const KIND: SettingKind = SettingKind::$kind;

            fn takes() -> String {
                $takes.to_owned()
            }

            fn read(given: &Value) -> Option<$value> {
                let read: fn(&Value) -> Option<$value> = $read;
                read(given)
            }
        }
    };
}

form!(
    /// True or false.
    Flag, bool, Flag, "true or false",
    Value::as_bool
);
form!(
    /// Whether long texts in the arguments of old calls become digests, or from which length on.
    Digest, Option<ArgumentDigest>, Tables, "true, false or `{ over_chars = 2000 }`, 500 or more",
    |given| match given {
        Value::Boolean(is_on) => Some(is_on.then(ArgumentDigest::default)),
        Value::Table(table) if !table.is_empty() => {
            let digest: ArgumentDigest = written(given)?;
            (digest.over_chars >= LEAST_ARGUMENT_CHARS).then_some(Some(digest))
        }
        _ => None,
    }
);
form!(
    /// The places of cache breakpoints.
    Breakpoints, CacheStrategy, Choice,
    "\"auto\", \"disabled\" or `{ manual = { cache_system = true } }` with any of `cache_system`, \
     `cache_tools` and `cache_messages`",
    written
);
form!(
    /// A fraction of 1.
    Share, Ppm, Number, "a fraction from 0 to 1, such as 0.9",
    share
);
form!(
    /// A number of tokens, or a share of the available ones.
    Size, Threshold, Tokens,
    "tokens such as 50_000 or \"50k\", or a share of the available tokens such as 0.8",
    |given| match given {
        Value::Float(_) => share(given).map(Threshold::Share),
        _ => tokens(given, 1).map(Threshold::Sent),
    }
);
form!(
    /// A context window.
    ContextWindow, Window, Tokens,
    "a number of tokens such as 32000 or \"32k\", or \"unknown\" to learn it from refusals",
    |given| match given.as_str().map(str::trim) {
        Some("unknown") => Some(Window::Unknown),
        _ => tokens(given, 1).map(Window::Known),
    }
);
form!(
    /// A sampling temperature.
    Temperature, f64, Number, "a number from 0 to 2",
    |given| number(given).filter(|number| *number <= Sampling::MAX_TEMPERATURE)
);
form!(
    /// Dollars, more than 0.
    Dollars, Money, Dollars, "dollars, such as 0.50; more than 0",
    |given| Money::from_dollars(number(given)?).ok().filter(|money| money.0 > 0)
);
form!(
    /// A time above zero.
    Seconds, Duration, Time, "seconds, or a text such as \"10m\"; more than 0",
    time
);
form!(
    /// A time in days.
    Days, Duration, Whole, "a whole number, 1 or more",
    |given| whole(given, 1).map(|days| Duration::from_secs(days.saturating_mul(DAY)))
);
form!(
    /// A text.
    Text, String, Text, "a text",
    text
);
form!(
    /// A text that is not empty.
    Filled, String, Text, "a text that is not empty",
    |given| text(given).filter(|text| !text.trim().is_empty())
);
form!(
    /// A file or directory.
    FilePath, PathBuf, Path, "the path of a file or directory",
    |given| text(given).filter(|text| !text.is_empty()).map(PathBuf::from)
);
form!(
    /// Files or directories.
    FilePaths, Vec<PathBuf>, Paths, "a list of paths",
    |given| texts(given).map(|paths| paths.into_iter().map(PathBuf::from).collect())
);
form!(
    /// Names, as a list or separated by commas.
    Names, Vec<String>, Names, "a list of names, such as [\"read\", \"grep\"]",
    |given| match given.as_str() {
        Some(text) => Some(text.split(',').map(|name| name.trim().to_owned()).collect()),
        None => texts(given),
    }
    .filter(|names: &Vec<String>| names.iter().all(|name| !name.is_empty()))
);
form!(
    /// Texts.
    Texts, Vec<String>, Texts, "a list of texts",
    texts
);
form!(
    /// A program and its arguments.
    Words, Vec<String>, Texts,
    "a list of a program and its arguments, such as [\"./guard\", \"--strict\"]",
    |given| {
        let words = given.is_array().then(|| texts(given))??;
        (!words.first()?.trim().is_empty()).then_some(words)
    }
);
form!(
    /// The earlier runs that go into a summary.
    EarlierRuns, CompactionScope, Tables, "`{ fixed_count = 3 }` or \"token_budget\"",
    written
);
form!(
    /// The number of concurrent tool calls.
    Execution, ToolExecutionStrategy, Choice, "\"sequential\", \"parallel\" or `{ batched = 4 }`",
    written
);
form!(
    /// Tools that run at the provider: a list of tables, or one table. Variables and flags may also
    /// contain JSON.
    HostedTools, Vec<HostedTool>, Tables,
    "a list of tables with a `type`, such as { type = \"web_search\" }",
    |given| {
        let tools = match given.as_str() {
            Some(text) => serde_json::from_str(text).ok()?,
            None => serde_json::to_value(given).ok()?,
        };
        let tools = match tools {
            Json::Array(tools) => tools,
            tool => vec![tool],
        };
        let tools = tools.into_iter().map(HostedTool);
        tools.map(|tool| (!tool.kind().is_empty()).then_some(tool)).collect()
    }
);

form!(
    /// Permission rules: a list of tables, or lines of the form `allow TOOL:PATTERN`.
    Rules, Vec<Rule>, Rules,
    "a list of tables, such as { tool = \"bash\", arguments = \"command=git status\", then = \
     \"allow\" }",
    |given| match given {
        Value::String(lines) => Rules::read(&Rule::tables_of(lines)?),
        _ => given.as_array()?.iter().map(Rule::of).collect(),
    }
);
form!(
    /// Commands for events of a run, as a list of tables.
    Hooks, Vec<CommandHook>, Tables,
    "a list of tables, such as { on = \"before_tool_execution\", command = [\"./guard\"] }",
    |given| given.as_array()?.iter().map(hook::of).collect()
);
form!(
    /// Secrets by name.
    Secrets, Vec<(String, Secret)>, Tables, "a table of texts",
    |given| {
        let entries = given.as_table()?.iter();
        entries
            .map(|(name, value)| Some((name.clone(), Secret::new(value.as_str()?))))
            .collect()
    }
);

/// A whole number, at least `LEAST`.
pub(crate) struct Whole<const LEAST: u64, T = u64>(T);
/// A number of tokens, at least `LEAST`.
pub(crate) struct TokenCount<const LEAST: u64>;
/// A value, or "none" for no limit.
pub(crate) struct Limit<F>(F);

impl<const LEAST: u64, T: DeserializeOwned + Clone> Form for Whole<LEAST, T> {
    type Value = T;
    const KIND: SettingKind = SettingKind::Whole;

    fn takes() -> String {
        at_least("", LEAST)
    }

    fn read(given: &Value) -> Option<T> {
        whole(given, LEAST)?;
        T::deserialize(given.clone()).ok()
    }
}

impl<const LEAST: u64> Form for TokenCount<LEAST> {
    type Value = Tokens;
    const KIND: SettingKind = SettingKind::Tokens;

    fn takes() -> String {
        at_least(" of tokens such as 8000 or \"8k\"", LEAST)
    }

    fn read(given: &Value) -> Option<Tokens> {
        tokens(given, LEAST)
    }
}

impl<F: Form> Form for Limit<F> {
    type Value = Option<F::Value>;
    const KIND: SettingKind = F::KIND;

    fn takes() -> String {
        format!("{}, or \"none\"", F::takes())
    }

    fn read(given: &Value) -> Option<Option<F::Value>> {
        match given.as_str().map(str::trim) {
            Some("none" | "unlimited") => Some(None),
            _ => F::read(given).map(Some),
        }
    }
}

/// Defines forms that are a choice of names: the value, the names, and the value of a name.
macro_rules! choices {
    ($($form:ty, $value:ty, $names:expr, $named:expr;)*) => {
        $(impl Form for $form {
            type Value = $value;
            const KIND: SettingKind = SettingKind::Choice;
            const CHOICES: &'static [&'static str] = $names;

            fn takes() -> String {
                one_of(Self::CHOICES)
            }

            fn read(given: &Value) -> Option<$value> {
                let named: fn(&'static str) -> Option<$value> = $named;
                named(chosen(given, Self::CHOICES)?)
            }
        })*
    };
}

/// The token counters by name.
pub(crate) struct Counters;

choices! {
    CountTokens, Self, &["processed", "growth"], stored;
    AtLimit, Self, &["finalize", "stop", "rollback"], stored;
    ThinkingLevel, Self, &["off", "minimal", "low", "medium", "high"], stored;
    TurnTrigger, Self, &["user", "sub_agent", "continue"], stored;
    Author, Self, &["model", "extract"], stored;
    CacheRetention, Self, &Self::NAMES, Self::named;
    Permission, Self, &["allow", "deny", "ask"], |name| name.parse().ok();
    PermissionMode, Self, &Self::NAMES, |name| name.parse().ok();
    HookPoint, Self, &MOMENTS, stored;
    SandboxMode, Self, &Self::NAMES, |name| name.parse().ok();
    ToolStyle, Self, &["native", "json"], |name| Some(match name {
        "json" => Self::JsonSchema,
        _ => Self::Native,
    });
    ContextStrategy, Self, &["evict", "summarize", "extract", "sliding_window", "unlimited"],
        |name| Self::named(name, None);
    Counters, &'static str, &COUNTERS, Some;
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

/// Reads a field of a table. Returns `Some(None)` if it is absent.
pub(crate) fn optional<F: Form>(table: &Value, name: &str) -> Option<Option<F::Value>> {
    match table.get(name) {
        Some(given) => F::read(given).map(Some),
        None => Some(None),
    }
}

/// Returns a value whose own form is that of the file.
fn written<T: DeserializeOwned>(given: &Value) -> Option<T> {
    T::deserialize(given.clone()).ok()
}

/// Returns the value that an entry of a log has under the same name.
fn stored<T: DeserializeOwned>(name: &'static str) -> Option<T> {
    serde_json::from_value(name.into()).ok()
}

fn at_least(what: &str, least: u64) -> String {
    match least {
        0 => format!("a whole number{what} from 0"),
        least => format!("a whole number{what}, {least} or more"),
    }
}
