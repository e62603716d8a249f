//! [`SettingFlags`]: the flags of settings, made of the table of keys. What they mean is decided with
//! the file and the environment, in `settings.rs`.

use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll::config::{self, Key, Kind, Overrides, Preset};

use crate::exit::Stop;

/// The flag that sets any key.
const SET: &str = "set";
/// Flags of rules for what may run; a no goes before a yes.
const RULES: [(&str, &str); 2] = [
    (
        "deny",
        "Deny calls of TOOL, or only those with such arguments; `*` stands for anything",
    ),
    (
        "allow",
        "Allow calls of TOOL without asking, or only those with such arguments",
    ),
];

/// What the flags of settings say.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingFlags {
    /// As it is written, its key's full name, and its text.
    given: Vec<(String, String, String)>,
    set: Vec<String>,
}

impl SettingFlags {
    /// What they say, over whatever else does.
    pub(crate) fn overrides(&self) -> Result<Overrides<'static>, Stop> {
        let mut over = Overrides::default();
        for (flag, path, text) in &self.given {
            over = over.flag(flag, path, text);
        }
        for text in &self.set {
            over = over
                .set(text)
                .map_err(|fault| Stop::usage(format!("--set: {fault}")))?;
        }
        Ok(over)
    }

    /// Says one more, or another text of one that was given.
    pub(crate) fn set(&mut self, flag: &str, path: &str, text: &str) {
        self.unset(path);
        self.given
            .push((flag.to_owned(), path.to_owned(), text.to_owned()));
    }

    /// Takes one back.
    pub(crate) fn unset(&mut self, path: &str) {
        self.given.retain(|(_, of, _)| of != path);
    }

    /// The text of one, where it was given.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        let found = self.given.iter().find(|(_, of, _)| of == path);
        found.map(|(_, _, text)| text.as_str())
    }
}

impl clap::FromArgMatches for SettingFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        for (key, name) in with_flags() {
            let flag = format!("--{name}");
            if matches!(key.kind, Kind::Flag(_)) {
                if matches.get_flag(name) {
                    let on = !name.starts_with("no-");
                    flags.given.push((flag, key.path(), on.to_string()));
                }
                continue;
            }
            let texts = matches.get_many::<String>(name);
            for text in texts.into_iter().flatten() {
                flags.given.push((flag.clone(), key.path(), text.clone()));
            }
        }
        for (name, _) in RULES {
            let rules = matches.get_many::<String>(name);
            for rule in rules.into_iter().flatten() {
                let text = format!("{name} {rule}");
                let path = "permissions".to_owned();
                flags.given.push((format!("--{name}"), path, text));
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
        let command =
            with_flags().fold(command, |command, (key, name)| command.arg(arg(key, name)));
        let command = RULES.iter().fold(command, |command, (name, help)| {
            let arg = Arg::new(*name).long(*name).value_name("TOOL[:PATTERN]");
            command.arg(arg.action(ArgAction::Append).help(*help))
        });
        command.arg(
            Arg::new(SET)
                .long(SET)
                .value_name("KEY=VALUE")
                .action(ArgAction::Append)
                .help("Set any key of a configuration; `plimsoll config show` lists them"),
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn with_flags() -> impl Iterator<Item = (&'static Key, &'static str)> {
    config::keys().filter_map(|key| Some((key, key.flag?)))
}

fn arg(key: &'static Key, name: &'static str) -> Arg {
    let arg = Arg::new(name).long(name);
    let doc = key.doc.trim_end_matches('.');
    if matches!(key.kind, Kind::Flag(_)) {
        let help = match name.starts_with("no-") {
            true => format!("Not this: {}", doc.strip_prefix("Whether ").unwrap_or(doc)),
            false => doc.to_owned(),
        };
        return arg.action(ArgAction::SetTrue).help(help);
    }
    let default = match key.default {
        Preset::Value("[]" | "{}") | Preset::Words("none") => String::new(),
        Preset::Value(text) => format!(" [default: {}]", text.replace(['"', '[', ']'], "")),
        Preset::Words(text) => format!(" [default: {text}]"),
    };
    let names = match key.kind {
        Kind::Choice(names, _) => format!(" [one of: {}]", names.join(", ")),
        _ => String::new(),
    };
    let action = match key.kind {
        Kind::Texts(_) => ArgAction::Append,
        _ => ArgAction::Set,
    };
    arg.action(action)
        .value_name(value_name(key))
        .allow_negative_numbers(true)
        .help(format!("{doc}{names}{default}"))
}

fn value_name(key: &Key) -> &'static str {
    match (key.name, key.kind) {
        ("model", _) => "PROVIDER/NAME",
        ("base_url", _) => "URL",
        ("root", _) => "DIR",
        ("pins", _) => "RULE",
        (_, Kind::Whole(..) | Kind::Count(..)) => "N",
        (_, Kind::Tokens(..) | Kind::TokensOrNone(_) | Kind::Window(_) | Kind::Size(_)) => "TOKENS",
        (_, Kind::Time(_) | Kind::TimeOrNone(_)) => "SECONDS",
        (_, Kind::Dollars(_)) => "DOLLARS",
        (_, Kind::Path(_)) => "FILE",
        (_, Kind::Choice(..) | Kind::Execution(_)) => "NAME",
        (_, Kind::Names(_)) => "NAMES",
        (_, Kind::Share(_) | Kind::Number(..)) => "NUMBER",
        _ => "TEXT",
    }
}
