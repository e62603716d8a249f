//! [`SettingFlags`]: the command-line flags of settings, generated from the structure of settings.
//! `settings.rs` combines them with the file and the environment.

use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll::config::{self, Overrides, Preset, SettingKey, SettingKind};
use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// The flag of the permission mode. It has a short alias.
const PERMISSION_MODE: &str = "permission-mode";
/// The flags of settings that `-h` lists. `--help` lists all.
const COMMON: [&str; 10] = [
    "tools",
    "root",
    PERMISSION_MODE,
    "model",
    "base-url",
    "max-context",
    "max-turns",
    "max-cost",
    "max-duration",
    "policy",
];
/// The flag that sets any key.
const SET: &str = "set";
/// The heading of the flags of permission rules.
const RULES_HEADING: &str = "Agent and tools";
/// Flags of permission rules. Denying overrides allowing.
const RULES: [(&str, &str); 2] = [
    (
        "deny",
        "Deny calls of TOOL, or only calls whose arguments match PATTERN (`*` matches anything)",
    ),
    (
        "allow",
        "Allow calls of TOOL without asking, or only calls whose arguments match PATTERN",
    ),
];

/// The flags of settings that were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    given: Vec<Flag>,
    set: Vec<String>,
}

/// A flag that sets a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Flag {
    /// The flag as the user writes it.
    pub(crate) flag: String,
    /// The full name of its key.
    pub(crate) key: String,
    /// The value, as text.
    pub(crate) text: String,
}

impl Flag {
    pub(crate) fn new(
        flag: impl Into<String>,
        key: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            flag: flag.into(),
            key: key.into(),
            text: text.into(),
        }
    }
}

impl SettingFlags {
    /// Returns the settings of the flags as overrides.
    pub(crate) fn overrides(&self) -> Result<Overrides<'static>, CliError> {
        let mut over = Overrides::default();
        for Flag { flag, key, text } in &self.given {
            over = over.flag(flag, key, text);
        }
        for text in &self.set {
            over = over
                .set(text)
                .map_err(|fault| CliError::usage(format!("--set: {fault}")))?;
        }
        Ok(over)
    }

    /// Sets a key. Replaces its earlier value.
    pub(crate) fn set(&mut self, flag: &str, path: &str, text: &str) {
        self.unset(path);
        self.given.push(Flag::new(flag, path, text));
    }

    /// Removes the flags of a key.
    pub(crate) fn unset(&mut self, path: &str) {
        self.given.retain(|flag| flag.key != path);
    }

    /// Returns the value of a key. Ignores `--set`.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        let found = self.given.iter().find(|flag| flag.key == path);
        found.map(|flag| flag.text.as_str())
    }

    /// Returns all flags, including those of `--set`, with the full names of their keys.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Flag> {
        let set = self.set.iter().filter_map(|text| {
            let (key, text) = text.split_once('=')?;
            let (key, text) = (key.trim(), text.trim());
            let known = config::key(key).map_or_else(|| key.to_owned(), SettingKey::path);
            Some(Flag::new(format!("--set {key}"), known, text))
        });
        self.given.iter().cloned().chain(set)
    }

    /// Checks whether the key with this name is set.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.entries().any(|flag| flag.key == path)
    }

    /// Adds the flags of an earlier command whose keys are not set now.
    pub(crate) fn restore(&mut self, earlier: Vec<Flag>) {
        let open = earlier.into_iter().filter(|flag| !self.has(&flag.key));
        let open: Vec<Flag> = open.collect();
        self.given.splice(0..0, open);
    }
}

impl clap::FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        for (key, name) in with_flags() {
            let flag = format!("--{name}");
            if key.kind == SettingKind::Flag {
                if matches.get_flag(name) {
                    let on = !name.starts_with("no-");
                    flags
                        .given
                        .push(Flag::new(flag, key.path(), on.to_string()));
                }
                continue;
            }
            let texts = matches.get_many::<String>(name);
            for text in texts.into_iter().flatten() {
                flags.given.push(Flag::new(flag.clone(), key.path(), text));
            }
        }
        for (name, _) in RULES {
            let rules = matches.get_many::<String>(name);
            for rule in rules.into_iter().flatten() {
                let text = format!("{name} {rule}");
                let flag = format!("--{name}");
                flags.given.push(Flag::new(flag, "permissions", text));
            }
        }
        let set = matches.get_many::<String>(SET);
        flags.set = set.into_iter().flatten().cloned().collect();
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let command = with_flags().fold(command, |command, (key, name)| {
            let arg = arg(key, name).help_heading(key.group);
            command.arg(arg.hide_short_help(!COMMON.contains(&name)))
        });
        let command = RULES.iter().fold(command, |command, (name, help)| {
            let arg = Arg::new(*name).long(*name).value_name("TOOL[:PATTERN]");
            let arg = arg.action(ArgAction::Append).hide_short_help(true);
            command.arg(arg.help_heading(RULES_HEADING).help(*help))
        });
        command.arg(
            Arg::new(SET)
                .long(SET)
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .hide_short_help(true)
                .help("Set any setting of plimsoll.toml; `plimsoll config show` lists them"),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn with_flags() -> impl Iterator<Item = (&'static SettingKey, &'static str)> {
    config::keys().filter_map(|key| Some((key, key.flag.as_deref()?)))
}

fn arg(key: &'static SettingKey, name: &'static str) -> Arg {
    let mut arg = Arg::new(name).long(name);
    if name == PERMISSION_MODE {
        arg = arg.visible_alias("mode");
    }
    let doc = key.doc.trim_end_matches('.');
    if key.kind == SettingKind::Flag {
        let help = if name.starts_with("no-") {
            format!("Do not {}", uncapitalized(doc))
        } else {
            doc.to_owned()
        };
        return arg.action(ArgAction::SetTrue).help(help);
    }
    let default = match &key.default {
        Preset::Value(text) if ["[]", "{}"].contains(&text.as_str()) => String::new(),
        Preset::Words(text) if text == "none" => String::new(),
        Preset::Value(text) => format!(" [default: {}]", text.replace(['"', '[', ']'], "")),
        Preset::Words(text) => format!(" [default: {text}]"),
    };
    let names = match key.choices.as_slice() {
        [] => String::new(),
        names => format!(" [one of: {}]", names.join(", ")),
    };
    let action = match key.kind {
        SettingKind::Texts => ArgAction::Append,
        _ => ArgAction::Set,
    };
    arg.action(action)
        .value_name(value_name(key))
        .allow_negative_numbers(true)
        .help(format!("{doc}{names}{default}"))
}

fn uncapitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(chars).collect()
}

fn value_name(key: &SettingKey) -> &'static str {
    match (key.name.as_str(), key.kind) {
        ("model", _) => "PROVIDER/NAME",
        ("base_url", _) => "URL",
        ("root", _) => "DIR",
        ("pins", _) => "RULE",
        (_, SettingKind::Whole) => "N",
        (_, SettingKind::Tokens) => "TOKENS",
        (_, SettingKind::Time) => "SECONDS",
        (_, SettingKind::Dollars) => "DOLLARS",
        (_, SettingKind::Path) => "FILE",
        (_, SettingKind::Choice) => "NAME",
        (_, SettingKind::Names) => "NAMES",
        (_, SettingKind::Number) => "NUMBER",
        _ => "TEXT",
    }
}
