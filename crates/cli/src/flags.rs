//! [`SettingFlags`]: the command-line flags of settings, generated from the structure of settings.
//! `settings.rs` combines them with the file and the environment.

use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll::config::{self, Overrides, SettingKey, SettingKind};
use serde::{Deserialize, Serialize};

/// The flags of settings that `-h` lists. `--help` lists all.
const COMMON: [&str; 10] = [
    "tools",
    "root",
    "permission-mode",
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
const SET_FLAG: &str = "--set";
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

/// The flags of settings that were given, in their order on the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    given: Vec<Flag>,
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
    pub(crate) fn overrides(&self) -> Overrides {
        let given = self.given.iter();
        given.fold(Overrides::default(), |over, Flag { flag, key, text }| {
            if flag == SET_FLAG {
                over.set(text)
            } else {
                over.flag(flag, key, text)
            }
        })
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

    /// Returns the value of a key, the last one if there are several.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        let found = self.given.iter().rfind(|flag| flag.key == path);
        found.map(|flag| flag.text.as_str())
    }

    /// Returns all flags, including those of `--set`, with the full names of their keys.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Flag> {
        self.given.iter().cloned()
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
        let mut given: Vec<(usize, Flag)> = Vec::new();
        for (key, name) in with_flags() {
            let flag = format!("--{name}");
            if key.kind != SettingKind::Flag {
                given.extend(texts(matches, name).map(|(at, text)| {
                    let flag = Flag::new(flag.clone(), key.path(), text);
                    (at, flag)
                }));
            } else if matches.get_flag(name) {
                let at = matches.index_of(name).unwrap_or_default();
                given.push((at, Flag::new(flag, key.path(), "false")));
            }
        }
        // The first rule that matches decides: one that denies stands before all others.
        for (name, at) in [("deny", 0), ("allow", usize::MAX)] {
            let flag = format!("--{name}");
            given.extend(texts(matches, name).map(|(_, rule)| {
                let rule = Flag::new(flag.clone(), "permissions", format!("{name} {rule}"));
                (at, rule)
            }));
        }
        given.extend(texts(matches, SET).map(|(at, text)| {
            let flag = match text.split_once('=') {
                Some((key, value)) => {
                    let key = key.trim();
                    Flag::new(format!("{SET_FLAG} {key}"), key, value.trim())
                }
                None => Flag::new(SET_FLAG, "", text),
            };
            (at, flag)
        }));
        given.sort_by_key(|(at, _)| *at);
        let given = given.into_iter().map(|(_, flag)| flag).collect();
        Ok(Self { given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for SettingFlags {
    fn augment_args(command: Command) -> Command {
        let command = with_flags().fold(command, |command, (key, name)| {
            let arg = arg(key, name).help_heading(key.group.as_str());
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

/// Returns the values of a flag, with their positions on the command line.
fn texts<'a>(matches: &'a ArgMatches, name: &str) -> impl Iterator<Item = (usize, &'a String)> {
    let texts = matches.get_many::<String>(name).into_iter().flatten();
    let places = matches.indices_of(name).into_iter().flatten();
    places.zip(texts)
}

fn with_flags() -> impl Iterator<Item = (&'static SettingKey, &'static str)> {
    config::keys().filter_map(|key| Some((key, key.flag.as_deref()?)))
}

fn arg(key: &'static SettingKey, name: &'static str) -> Arg {
    let mut arg = Arg::new(name).long(name);
    if let Some(alias) = key.alias.as_deref() {
        arg = arg.visible_alias(alias);
    }
    let doc = key.doc.trim_end_matches('.');
    if key.kind == SettingKind::Flag {
        // The only such flags turn something off.
        let help = format!("Do not {}", doc.to_lowercase());
        return arg.action(ArgAction::SetTrue).help(help);
    }
    let default = match key.default().as_str() {
        "[]" | "{}" | "none" => String::new(),
        text if key.value.is_some() => {
            format!(" [default: {}]", text.replace(['"', '[', ']'], ""))
        }
        text => format!(" [default: {text}]"),
    };
    let names = match key.kind.choices() {
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

fn value_name(key: &SettingKey) -> &'static str {
    match (key.name.as_str(), key.kind.word()) {
        ("model", _) => "PROVIDER/NAME",
        ("base_url", _) => "URL",
        ("root", _) => "DIR",
        ("pins", _) => "RULE",
        (_, "whole") => "N",
        (_, "tokens") => "TOKENS",
        (_, "time") => "SECONDS",
        (_, "dollars") => "DOLLARS",
        (_, "path") => "FILE",
        (_, "choice") => "NAME",
        (_, "names") => "NAMES",
        (_, "number") => "NUMBER",
        _ => "TEXT",
    }
}
