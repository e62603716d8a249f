//! [`SettingFlags`]: the command-line flags of settings, generated from the structure of settings.
//! `settings.rs` combines them with the file and the environment.

use std::convert::Infallible;

use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll::config::{self, Overrides, SettingKey, SettingKind};
use serde::{Deserialize, Serialize};

/// The flag that sets any key.
const SET: &str = "set";
/// The flag of the permission mode `yes`.
const YES: &str = "yes";
/// The heading of the flags of permission rules.
const RULES_HEADING: &str = "Agent and tools";
const DENY: &str = "deny";
const ALLOW: &str = "allow";
/// Flags of permission rules. Denying overrides allowing.
const RULES: [(&str, &str); 2] = [
    (
        DENY,
        "Deny calls of TOOL, or only calls whose arguments match PATTERN (`*` matches anything)",
    ),
    (
        ALLOW,
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
            over.flag(flag, key, text)
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

    /// Returns `true` if every tool call was allowed by `--yes`.
    #[cfg(feature = "restate")]
    pub(crate) fn consents(&self) -> bool {
        self.given.iter().any(|flag| flag.flag == "--yes")
    }

    /// Returns all flags, including those of `--set`, with the full names of their keys.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Flag> {
        self.given.iter().cloned()
    }

    /// Checks whether the key with this name is set.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.text(path).is_some()
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
        let names = with_flags().map(|(_, name)| name);
        let names = names.chain(RULES.map(|(name, _)| name)).chain([SET, YES]);
        let given = names.flat_map(|name| {
            let flags = matches.get_many::<Flag>(name).into_iter().flatten();
            let places = matches.indices_of(name).into_iter().flatten();
            // The first rule that matches decides: one that denies stands before all others.
            places.zip(flags).map(move |(at, flag)| match name {
                DENY => (0, flag.clone()),
                ALLOW => (usize::MAX, flag.clone()),
                _ => (at, flag.clone()),
            })
        });
        let mut given: Vec<(usize, Flag)> = given.collect();
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
            command.arg(arg.hide_short_help(!key.is_common))
        });
        let command = RULES.iter().fold(command, |command, (name, help)| {
            let arg = Arg::new(*name).long(*name).value_name("TOOL[:PATTERN]");
            let arg = arg.action(ArgAction::Append).hide_short_help(true);
            let arg = arg.value_parser(move |rule: &str| match rule.split(':').next() {
                None | Some("") => Err("write TOOL or TOOL:PATTERN, as in bash:git *"),
                _ => {
                    let rule = format!("{name} {rule}");
                    Ok(Flag::new(format!("--{name}"), "permissions", rule))
                }
            });
            command.arg(arg.help_heading(RULES_HEADING).help(*help))
        });
        let yes = Arg::new(YES)
            .long(YES)
            .action(ArgAction::Set)
            .num_args(0)
            .default_missing_value(YES)
            .value_parser(|mode: &str| {
                Ok::<_, Infallible>(Flag::new("--yes", "permission_mode", mode))
            })
            .conflicts_with("permission-mode")
            .help_heading(RULES_HEADING)
            .help("Allow every tool call without asking, like --permission-mode yes");
        command.arg(yes).arg(
            Arg::new(SET)
                .long(SET)
                .value_name("KEY=VALUE")
                .value_parser(set)
                .action(ArgAction::Append)
                .hide_short_help(true)
                .help("Set any setting of plimsoll.toml; `plimsoll config show` lists them"),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Parses `KEY=VALUE`, the argument of `--set`.
fn set(text: &str) -> Result<Flag, &'static str> {
    let (key, value) = text
        .split_once('=')
        .ok_or("write KEY=VALUE, as in max_turns=20")?;
    let key = key.trim();
    Ok(Flag::new(format!("--{SET} {key}"), key, value.trim()))
}

fn with_flags() -> impl Iterator<Item = (&'static SettingKey, &'static str)> {
    config::keys().filter_map(|key| Some((key, key.flag.as_deref()?)))
}

fn arg(key: &'static SettingKey, name: &'static str) -> Arg {
    let flag =
        move |text: &str| Ok::<_, Infallible>(Flag::new(format!("--{name}"), key.path(), text));
    let mut arg = Arg::new(name).long(name).value_parser(flag);
    if let Some(alias) = key.alias.as_deref() {
        arg = arg.visible_alias(alias);
    }
    let doc = key.doc.trim_end_matches('.');
    if key.kind == SettingKind::Flag {
        // The only such flags turn something off.
        let help = format!("Do not {}", doc.to_lowercase());
        let arg = arg.action(ArgAction::Set).num_args(0);
        return arg.default_missing_value("false").help(help);
    }
    let default = match key.default().as_str() {
        "[]" | "{}" | "none" => String::new(),
        text if key.value.is_some() => {
            format!(" [default: {}]", text.replace(['"', '[', ']'], ""))
        }
        text => format!(" [default: {text}]"),
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
        .value_name(key.value_name())
        .allow_negative_numbers(true)
        .help(format!("{doc}{names}{default}"))
}
