//! [`Order`]: parses a line of a chat: a message or a command.

use std::path::PathBuf;

use CommandArgument::{May, Must, Nothing};

/// A parsed line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// An empty line.
    Nothing,
    /// A message for the model.
    Say(String),
    Help,
    Compact(Option<String>),
    Context,
    Undo,
    Fork(Option<String>),
    Model(Option<String>),
    Save(PathBuf),
    Diff,
    Cost,
    Pins,
    Pin(String),
    Session(Option<String>),
    Sessions(Option<String>),
    New,
    /// A message for the current run.
    Steer(String),
    /// A message for after the run's answer.
    Later(String),
    Stop,
    GoOn,
    Quit,
    /// An unknown command, with an error message.
    Unknown(String),
}

/// A command, as shown in the help.
pub(crate) struct SlashCommand {
    pub(crate) name: &'static str,
    /// The argument.
    pub(crate) takes: CommandArgument,
    pub(crate) does: &'static str,
}

/// The argument of a command, with its placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandArgument {
    Nothing,
    May(&'static str),
    Must(&'static str),
}

/// All commands, in the order of the help.
pub(crate) const COMMANDS: [SlashCommand; 19] = [
    command("help", Nothing, "show this help"),
    command(
        "steer",
        Must("TEXT"),
        "send TEXT to the current run, as a plain line does",
    ),
    command(
        "later",
        Must("TEXT"),
        "send TEXT after the answer of the current run",
    ),
    command("stop", Nothing, "stop the current run, as Ctrl-C does"),
    command("go", Nothing, "continue the last run"),
    command(
        "compact",
        May("FOCUS"),
        "compact the context; a summary keeps FOCUS",
    ),
    command("context", Nothing, "show what fills the context window"),
    command("diff", Nothing, "show the files that the session changed"),
    command(
        "cost",
        Nothing,
        "show the tokens and the cost of the session",
    ),
    command("pins", Nothing, "list the pinned rules"),
    command(
        "pin",
        Must("RULE"),
        "pin RULE: it is never evicted or shortened",
    ),
    command(
        "undo",
        Nothing,
        "undo the last run; offers to restore its files",
    ),
    command("fork", May("NAME"), "continue in a copy of this session"),
    command(
        "model",
        May("PROVIDER/NAME"),
        "switch to another model, or show the current one",
    ),
    command(
        "session",
        May("ID"),
        "switch to another session, or show the current one",
    ),
    command("new", Nothing, "start a new session; this one is kept"),
    command(
        "sessions",
        May("WORDS"),
        "list the sessions of this folder, or search for WORDS",
    ),
    command(
        "save",
        Must("FILE"),
        "save the chat as JSON (OpenAI), or as text if FILE ends in .md",
    ),
    command("quit", Nothing, "exit, as Ctrl-D does"),
];

const fn command(name: &'static str, takes: CommandArgument, does: &'static str) -> SlashCommand {
    SlashCommand { name, takes, does }
}

impl SlashCommand {
    /// Returns the line of the help.
    pub(crate) fn help(&self) -> String {
        format!("  {:<24} {}", self.usage(), self.does)
    }

    /// Returns the command with its argument, as the user types it.
    pub(crate) fn usage(&self) -> String {
        match self.takes {
            CommandArgument::Nothing => format!("/{}", self.name),
            CommandArgument::May(what) => format!("/{} [{what}]", self.name),
            CommandArgument::Must(what) => format!("/{} {what}", self.name),
        }
    }
}

impl Order {
    /// Parses a line. `//` begins a message that starts with one slash.
    pub(crate) fn of(line: &str) -> Self {
        let line = line.trim();
        if line.is_empty() {
            return Self::Nothing;
        }
        let Some(rest) = line.strip_prefix('/') else {
            return Self::Say(line.to_owned());
        };
        if rest.starts_with('/') {
            return Self::Say(rest.to_owned());
        }
        let (name, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let name = match name {
            "exit" | "q" => "quit",
            "?" | "h" => "help",
            "continue" => "go",
            "clear" => "new",
            "resume" => "sessions",
            "export" => "save",
            name => name,
        };
        let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
            return Self::Unknown(unknown(name));
        };
        let text = text.trim();
        let given = (!text.is_empty()).then(|| text.to_owned());
        match (command.takes, &given) {
            (CommandArgument::Must(what), None) => {
                return Self::Unknown(format!("/{name} needs {what}, as in {}", command.usage()));
            }
            (CommandArgument::Nothing, Some(_)) => {
                return Self::Unknown(format!(
                    "/{name} takes no argument; to send this line to the model, write //{rest}"
                ));
            }
            _ => {}
        }
        match name {
            "help" => Self::Help,
            "steer" => Self::Steer(given.unwrap_or_default()),
            "later" => Self::Later(given.unwrap_or_default()),
            "stop" => Self::Stop,
            "go" => Self::GoOn,
            "compact" => Self::Compact(given),
            "context" => Self::Context,
            "cost" => Self::Cost,
            "diff" => Self::Diff,
            "pins" => Self::Pins,
            "pin" => Self::Pin(given.unwrap_or_default()),
            "undo" => Self::Undo,
            "fork" => Self::Fork(given),
            "model" => Self::Model(given),
            "session" => Self::Session(given),
            "sessions" => Self::Sessions(given),
            "new" => Self::New,
            "save" => Self::Save(given.unwrap_or_default().into()),
            _ => Self::Quit,
        }
    }
}

fn unknown(name: &str) -> String {
    let near = COMMANDS
        .iter()
        .map(|command| {
            (
                strsim::damerau_levenshtein(command.name, name),
                command.name,
            )
        })
        .min()
        .filter(|(far, of)| *far <= 2 && *far < of.len());
    let hint = match near {
        Some((_, near)) => format!("did you mean /{near}? "),
        None => String::new(),
    };
    format!(
        "there is no command /{name}; {hint}/help lists all commands, and //{name} sends the line \
         to the model"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_a_terminal_of_80_columns() {
        for command in &COMMANDS {
            let line = command.help();
            assert!(line.chars().count() < 80, "{line}");
        }
    }

    #[test]
    fn a_line_is_said_or_is_a_command() {
        let some = |text: &str| Some(text.to_owned());
        for (line, order) in [
            ("", Order::Nothing),
            ("  \t", Order::Nothing),
            ("Port it.", Order::Say("Port it.".into())),
            (
                " what does /help do?",
                Order::Say("what does /help do?".into()),
            ),
            ("//usr is full", Order::Say("/usr is full".into())),
            ("/help", Order::Help),
            ("  /?", Order::Help),
            ("/compact", Order::Compact(None)),
            (
                "/compact  the file names ",
                Order::Compact(some("the file names")),
            ),
            (
                "/later\tand the tests",
                Order::Later("and the tests".into()),
            ),
            ("/save a b.md", Order::Save("a b.md".into())),
            ("/model openai/gpt-5", Order::Model(some("openai/gpt-5"))),
            ("/exit", Order::Quit),
            ("/continue", Order::GoOn),
        ] {
            assert_eq!(Order::of(line), order, "{line}");
        }
    }

    #[test]
    fn every_command_of_the_help_is_one() {
        for command in &COMMANDS {
            let line = match command.takes {
                CommandArgument::Nothing => format!("/{}", command.name),
                _ => format!("/{} x", command.name),
            };
            assert!(!matches!(Order::of(&line), Order::Unknown(_)), "{line}");
            let bare = Order::of(&format!("/{}", command.name));
            let needs = matches!(command.takes, CommandArgument::Must(_));
            assert_eq!(matches!(bare, Order::Unknown(_)), needs, "{}", command.name);
        }
    }

    #[test]
    fn what_is_no_command_is_told_the_nearest() {
        for (line, says) in [
            ("/contxt", "did you mean /context?"),
            ("/quti", "did you mean /quit?"),
            ("/usr/bin is empty", "//usr/bin says it"),
            ("/save", "/save needs FILE"),
            ("/undo it", "nothing follows /undo"),
            ("/", "there is no command /"),
        ] {
            let Order::Unknown(text) = Order::of(line) else {
                panic!("{line}");
            };
            assert!(text.contains(says), "{text}");
        }
        let Order::Unknown(text) = Order::of("/frobnicate") else {
            panic!();
        };
        assert!(!text.contains("did you mean"), "{text}");
    }
}
